// SPDX-License-Identifier: BSD-3-Clause
// What the system says about the process of a record, and how its clock differs from ours.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "base/detail/process_identity.hpp"
#include "detail/image.hpp"
#include "detail/processes.hpp"

namespace rankmesh::record::detail {
namespace {

using rankmesh::detail::ProcessIdentity;
using rankmesh::detail::ProcessState;

Process process_of(ProcessState state) {
  switch (state) {
    case ProcessState::running:
      return Process::running;
    case ProcessState::sleeping:
      return Process::sleeping;
    case ProcessState::stopped:
      return Process::stopped;
    case ProcessState::ended:
      return Process::ended;
    case ProcessState::unknown:
      break;
  }
  return Process::unknown;
}

std::string link_of(const std::string& path) {
  char text[256];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size <= 0 ? std::string{} : std::string{text, static_cast<std::size_t>(size)};
}

// Returns what a time namespace adds to the monotonic clock; nothing if that is not known.
std::optional<std::int64_t> shift_of(const std::string& process) {
  const std::string folder = "/proc/" + process;
  // The file has the shift of future children, which may be in another namespace.
  if (link_of(folder + "/ns/time") != link_of(folder + "/ns/time_for_children"))
    return std::nullopt;
  std::ifstream file{folder + "/timens_offsets"};
  std::string clock;
  std::int64_t seconds = 0, nanoseconds = 0;
  while (file >> clock >> seconds >> nanoseconds)
    if (clock == "monotonic" || clock == "1") return seconds * 1'000'000'000 + nanoseconds;
  return std::nullopt;
}

// Returns how the process's clock differs from that of this process.
std::optional<std::int64_t> clock_shift(const std::string& process) {
  if (link_of("/proc/self/ns/time") == link_of(fmt::format("/proc/{}/ns/time", process))) return 0;
  const auto theirs = shift_of(process);
  const auto ours = shift_of("self");
  if (!theirs || !ours) return std::nullopt;
  return *theirs - *ours;
}

Observation alive(Process state, std::int64_t process_id) {
  const auto shift = clock_shift(std::to_string(process_id));
  return {state, shift.has_value(), shift.value_or(0)};
}

// The names may or may not have a domain.
std::string_view without_domain(std::string_view host) { return host.substr(0, host.find('.')); }

bool is_this_host(std::string_view host) {
  char own[256] = "";
  ::gethostname(own, sizeof own - 1);
  return without_domain(host) == without_domain(own);
}

// The process of a record that another process, or only the file, has kept.
Observation by_identity(const format::Header& header, bool is_on_this_machine) {
  const std::string_view host{header.host, ::strnlen(header.host, sizeof header.host)};
  if (!is_on_this_machine && !is_this_host(host)) return {};
  const ProcessIdentity identity{header.process_id, header.process_start, header.process_namespace};
  const ProcessState state = state_of(identity, ProcessIdentity::own());
  if (state == ProcessState::unknown || state == ProcessState::ended) return {process_of(state)};
  return alive(process_of(state), header.process_id);
}

}  // namespace

Observation observation_of(const Source& source, std::span<const std::byte> bytes) {
  const auto image = std::make_unique<Image>();
  std::memcpy(image->bytes.data(), bytes.data(), format::header_bytes);
  const format::Header& header = image->header();
  if (source.process_id == 0) return by_identity(header, false);
  if (!has_made(source.process_id, header.process_id, header.process_namespace))
    return by_identity(header, true);
  const auto stat = rankmesh::detail::read_process_stat(std::to_string(source.process_id));
  const ProcessState state = stat ? stat->state : rankmesh::detail::state_without_stat();
  if (state == ProcessState::ended || !stat) return {process_of(state)};
  return alive(process_of(stat->state), source.process_id);
}

}  // namespace rankmesh::record::detail
