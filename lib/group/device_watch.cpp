// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_watch.hpp"

#include <atomic>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/hash.hpp"

namespace rankmesh::detail {
namespace {

std::uint64_t key_of(const GroupDescription& group) {
  return hash_bytes(group.identity + group.ranks.to_string()).low | 1;  // 0 means not used
}

// Returns the number of the latest call of a group that the rank of a slot has issued; nothing if
// the slot has no space for the group.
std::optional<std::uint64_t> latest_of(const PublishedDeviceWork& work, std::uint64_t key) {
  for (const PublishedDeviceWork::Latest& latest : work.latest) {
    const std::uint64_t group = latest.group;
    if (group == key) return latest.number;
    if (group == 0) return 0;
  }
  return std::nullopt;
}

// Returns where this rank publishes its calls of a group. Groups for which there is no space share
// a place that nobody reads.
std::atomic<std::uint64_t>* place_of(PublishedDeviceWork& work, std::uint64_t key) {
  for (PublishedDeviceWork::Latest& latest : work.latest) {
    if (latest.group == 0) latest.group = key;
    if (latest.group == key) return &latest.number;
  }
  static std::atomic<std::uint64_t> nobodys;
  return &nobodys;
}

}  // namespace

IssuedOnDevice DeviceWatch::note(const std::shared_ptr<Connection>& connection,
                                 Operation operation) const {
  std::uint64_t number = 0;
  if (!is_point_to_point(operation)) {
    number = connection->last_device_call();
    if (connection->published_device_call == nullptr) {
      NodeBoard& board = control_->board();
      connection->published_device_call = place_of(board.own().device, key_of(connection->group));
    }
    connection->published_device_call->store(number, std::memory_order_relaxed);
  }
  return {connection, operation, number};
}

std::string DeviceWatch::reason_to_abort(DeviceCalls& calls) {
  if (has_reported_) return {};
  NodeBoard& board = control_->board();
  for (std::size_t slot = 0; slot < board.ranks().size(); ++slot)
    if (const auto found = board.area(slot).device.stuck.read()) {
      has_reported_ = true;
      return found->text;
    }
  const auto stuck = calls.find_stuck(limit_);
  if (!stuck) return {};
  has_reported_ = true;
  std::string text =
      fmt::format("{} of '{}' on rank {} has not ended on the device within {} s; {}",
                  to_string(stuck->operation), stuck->connection->group.name,
                  control_->rank().value(), limit_.count(), missing_in(*stuck));
  board.own().device.stuck.write(1, NodeBoard::now(), text);
  return text;
}

std::string DeviceWatch::missing_in(const IssuedOnDevice& stuck) const {
  const NodeBoard& board = control_->board();
  const GroupDescription& group = stuck.connection->group;
  if (stuck.number == 0) return "messages have no numbers, so the missing ranks are not known";
  std::vector<std::int64_t> missing;
  bool is_elsewhere = false;
  for (const Rank member : group.ranks) {
    const auto slot = board.index_of(member);
    if (!slot) {
      is_elsewhere = true;
      continue;
    }
    const auto latest = latest_of(board.area(*slot).device, key_of(group));
    if (!latest)
      return "the board has no space for more groups, so the missing ranks are not known";
    if (*latest < stuck.number) missing.push_back(member.value());
  }
  std::string text = missing.empty()
                         ? "all of its members on this node have issued it"
                         : fmt::format("missing: rank{} {}", missing.size() == 1 ? "" : "s",
                                       fmt::join(missing, ", "));
  if (is_elsewhere) text += "; of members on other nodes, nothing is known";
  return text;
}

}  // namespace rankmesh::detail
