// SPDX-License-Identifier: BSD-3-Clause
// Checks the part of a record that precedes the entries.
#include <cstring>

#include <fmt/format.h>

#include "detail/image.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::record::detail {
namespace {

// MPI numbers ranks with an int.
constexpr std::int64_t largest_world = std::int64_t{1} << 31;
constexpr std::int64_t latest = std::int64_t{1} << 62;  // the year 2116

template <class Number>
Number load(std::span<const std::byte> bytes, std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

template <std::size_t size>
bool has_end(const char (&text)[size]) {
  return std::memchr(text, 0, size) != nullptr;
}

bool is_within(std::int64_t number, std::int64_t end) { return number >= 0 && number < end; }

// Returns the name of the first field with an impossible value; null if there is none.
const char* wrong_field(const format::Header& header) {
  if (header.world_size < 1 || header.world_size > largest_world) return "world_size";
  if (!is_within(header.rank, header.world_size)) return "rank";
  if (header.process_id < 1) return "process_id";
  if (!is_within(header.opened_at, latest)) return "opened_at";
  if (header.has_all_times > 1) return "has_all_times";
  if (header.counter_is_clock > 1) return "counter_is_clock";
  if (!has_end(header.host)) return "host";
  if (!has_end(header.coordinates)) return "coordinates";
  if (!has_end(header.mesh)) return "mesh";
  for (const auto& transport : header.transports)
    if (!has_end(transport)) return "transports";
  if (header.next.load(relaxed) % format::position_unit != format::first_next) return "next";
  if (!is_within(header.clock_error.load(relaxed), latest / 4)) return "clock_error";
  if (header.node.load(relaxed) < 0) return "node";
  if (header.presence.load(relaxed) > static_cast<std::uint32_t>(Presence::failed))
    return "presence";
  if (header.group_bytes_used.load(relaxed) > format::group_bytes) return "group_bytes_used";
  if (header.observed_process > static_cast<std::uint32_t>(Process::ended))
    return "observed_process";
  return nullptr;
}

}  // namespace

void refuse_altered(const std::string& name, const std::string& what) {
  throw DataError{fmt::format("the record '{}' was altered: {}", name, what),
                  "only rankmesh writes records; copy the file again"};
}

void check_layout(std::span<const std::byte> bytes, std::size_t size, const std::string& name) {
  using format::Header;
  constexpr std::size_t fixed = offsetof(Header, mesh_key);
  if (bytes.size() < fixed || std::memcmp(bytes.data(), format::magic, sizeof format::magic) != 0)
    throw DataError{fmt::format("'{}' is not a record of rankmesh", name),
                    "a record is a file that a rank writes, see RANKMESH_RECORD"};
  if (load<std::uint32_t>(bytes, offsetof(Header, byte_order)) != format::byte_order)
    throw DataError{
        fmt::format("the record '{}' was written on a machine with another byte order", name),
        "read the record on a machine with the same byte order"};
  const auto version = load<std::uint32_t>(bytes, offsetof(Header, version));
  if (version != format::version)
    throw DataError{fmt::format("the record '{}' has version {}, and this program reads version {}",
                                name, version, format::version),
                    "use the meshinfo of the rankmesh that the job uses"};
  if (load<std::uint32_t>(bytes, offsetof(Header, header_bytes)) != format::header_bytes ||
      load<std::uint32_t>(bytes, offsetof(Header, entry_bytes)) != sizeof(format::Entry) ||
      load<std::uint32_t>(bytes, offsetof(Header, entry_count)) != format::entry_count ||
      load<std::uint32_t>(bytes, offsetof(Header, group_bytes)) != format::group_bytes)
    refuse_altered(name, fmt::format("its sizes are not those of version {}", format::version));
  if (size != format::total_bytes)
    throw DataError{fmt::format("the record '{}' is truncated: it has {} bytes instead of {}", name,
                                size, format::total_bytes),
                    "copy the file again"};
}

void check_header(const format::Header& header, const std::string& name) {
  if (const char* field = wrong_field(header))
    refuse_altered(name, fmt::format("'{}' in its header has an impossible value", field));
}

}  // namespace rankmesh::record::detail
