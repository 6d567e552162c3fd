// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/record/read.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "detail/image.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::record {
namespace {

using detail::Clock;
using detail::Image;

template <std::size_t size>
std::string text_of(const char (&text)[size]) {
  return detail::printable({text, ::strnlen(text, size)});
}

// Copies the fields that need no conversion.
Record facts_of(const format::Header& header) {
  Record record;
  record.mesh_key = header.mesh_key;
  record.mesh = text_of(header.mesh);
  record.world_size = header.world_size;
  record.rank = Rank{header.rank};
  record.coordinates = text_of(header.coordinates);
  record.host = text_of(header.host);
  for (const auto& transport : header.transports)
    if (transport[0] != '\0') record.transports.push_back(text_of(transport));
  record.node = header.node.load(detail::relaxed);
  record.process_id = header.process_id;
  record.process_origin = {header.process_start, header.process_namespace, header.boot[0],
                           header.boot[1]};
  record.presence = static_cast<Presence>(header.presence.load(detail::relaxed));
  if (const auto reason = header.reason.read()) record.reason = detail::printable(reason->text);
  record.process = static_cast<Process>(header.observed_process);
  record.opened_at = header.opened_at;
  record.clock_error = header.clock_error.load(detail::relaxed);
  record.is_observed = header.observed_at != 0;
  record.has_all_times = header.has_all_times == 1;
  return record;
}

// Returns the latest time that the record of an ended or unreachable process contains.
Time last_time(const Record& record, const format::Header& header, const Clock& clock) {
  Time last = clock.of_clock(header.last.nanoseconds.load(detail::relaxed));
  for (const Call& call : record.calls) {
    if (call.begin) last = std::max(last, *call.begin);
    if (call.end) last = std::max(last, *call.end);
  }
  for (const Mark& mark : record.marks) last = std::max(last, mark.time);
  if (record.wait) last = std::max(last, record.wait->since);
  return last;
}

}  // namespace

Record read(std::span<const std::byte> bytes, const std::string& name) {
  detail::check_layout(bytes.first(std::min(bytes.size(), format::header_bytes)), bytes.size(),
                       name);
  const auto image = std::make_unique<Image>();
  std::memcpy(image->bytes.data(), bytes.data(), format::total_bytes);
  const format::Header& header = image->header();
  detail::check_header(header, name);
  Record record = facts_of(header);
  const Clock clock{header};
  if (const auto wait = header.wait.read()) {
    record.wait = detail::read_wait(*image, wait->text, name);
    record.wait->since = clock.of_clock(wait->since);
    record.wait->point = wait->key;
  }
  detail::read_lines(*image, name, record);
  detail::read_entries(*image, clock, name, record);
  record.read_at =
      record.is_observed ? clock.of_clock(header.observed_at) : last_time(record, header, clock);
  return record;
}

}  // namespace rankmesh::record
