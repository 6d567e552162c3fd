// SPDX-License-Identifier: BSD-3-Clause
// What the system says about the process of a record, and how its clock differs from ours.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/detail/process_identity.hpp"
#include "base/detail/text.hpp"
#include "detail/image.hpp"
#include "detail/processes.hpp"

namespace rankmesh::record::detail {
namespace {

using rankmesh::detail::ProcessIdentity;
using rankmesh::detail::ProcessState;

// Both enumerations have the same order.
Process process_of(ProcessState state) { return static_cast<Process>(state); }

std::string link_of(const std::string& path) {
  char text[256];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size <= 0 ? std::string{} : std::string{text, static_cast<std::size_t>(size)};
}

/// A clock that time namespaces shift.
struct ShiftedClock {
  std::string_view name, number;
};
constexpr ShiftedClock monotonic{"monotonic", "1"};
constexpr ShiftedClock since_boot{"boottime", "7"};

// Returns what a time namespace adds to a clock, in nanoseconds; nothing if that is not known.
std::optional<std::int64_t> shift_of(const std::string& process, const ShiftedClock& which) {
  const std::string folder = "/proc/" + process;
  // timens_offsets holds the shift for future children, which may be in another time namespace than
  // the process itself.
  if (link_of(folder + "/ns/time") != link_of(folder + "/ns/time_for_children"))
    return std::nullopt;
  std::ifstream file{folder + "/timens_offsets"};
  std::string clock;
  std::int64_t seconds = 0, nanoseconds = 0;
  while (file >> clock >> seconds >> nanoseconds)
    if (clock == which.name || clock == which.number) return seconds * 1'000'000'000 + nanoseconds;
  return std::nullopt;
}

// Returns the difference between a clock of the process and the same clock of this process.
std::optional<std::int64_t> clock_shift(const std::string& process, const ShiftedClock& which) {
  if (link_of("/proc/self/ns/time") == link_of(fmt::format("/proc/{}/ns/time", process))) return 0;
  const auto theirs = shift_of(process, which);
  const auto ours = shift_of("self", which);
  if (!theirs || !ours) return std::nullopt;
  return *theirs - *ours;
}

Observation alive(Process state, std::int64_t process_id) {
  const auto shift = clock_shift(std::to_string(process_id), monotonic);
  return {state, shift.has_value(), shift.value_or(0)};
}

// Whether the record was made on this machine since its last boot. Host names do not prove this:
// containers choose their host names, and a machine may have been rebooted.
bool is_of_this_boot(const format::Header& header) {
  const auto own = rankmesh::detail::own_boot();
  return own != decltype(own){} && std::ranges::equal(own, header.boot);
}

// Returns the start time in a record as this process sees it: time namespaces shift it.
std::uint64_t start_seen_here(const format::Header& header) {
  const auto shift = clock_shift(std::to_string(header.process_id), since_boot);
  const std::int64_t ticks_per_second = ::sysconf(_SC_CLK_TCK);
  if (!shift || header.process_start == 0) return header.process_start;
  return header.process_start -
         static_cast<std::uint64_t>(*shift / (1'000'000'000 / ticks_per_second));
}

// Returns the observation of the process of a record if only another process, or the file, has kept
// the record.
Observation by_identity(const format::Header& header, bool is_on_this_machine) {
  if (!is_on_this_machine && !is_of_this_boot(header)) return {};
  const ProcessIdentity identity{header.process_id, start_seen_here(header),
                                 header.process_namespace};
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
