// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_watch.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rankmesh::detail {
namespace {

using Latest = PublishedDeviceWork::Latest;
constexpr int bits_of_number = 56;

std::uint64_t key_of(const GroupDescription& group) {
  return group.key() | 1;  // 0 means not used
}

// Returns the number of the latest call of a group that the rank of a slot has issued; nothing if
// it does not say that it has the group.
std::optional<std::uint64_t> latest_of(const PublishedDeviceWork& work, std::uint64_t key) {
  for (const Latest& latest : work.latest) {
    if (latest.group != key) continue;
    const std::uint64_t number = latest.number;
    if (latest.group == key) return number;  // the place was not given to another group meanwhile
  }
  return std::nullopt;
}

// An operation that may not have ended on the device of a rank.
struct Unended {
  std::uint64_t key;
  std::uint64_t number;
  ShortName group;
};

std::optional<Unended> oldest_of(const PublishedDeviceWork& work) {
  const std::uint64_t oldest = work.oldest;
  const std::uint64_t place = oldest >> bits_of_number;
  if (place == 0) return std::nullopt;
  const Latest& latest = work.latest[place - 1];
  const std::uint64_t key = latest.group;
  const auto name = latest.name.read();
  // The rank may have closed the group meanwhile, and given its place to another one.
  if (key == 0 || !name || work.oldest != oldest) return std::nullopt;
  return Unended{key, oldest & ((std::uint64_t{1} << bits_of_number) - 1), ShortName{name->words}};
}

std::string text_of(const std::vector<std::int64_t>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

}  // namespace

void DeviceWatch::open(Connection& connection) {
  if (connection.device_place != nullptr) return;
  PublishedDeviceWork& work = control_->board().own().device;
  connection.device_place = std::make_unique<Connection::DevicePlace>();
  const auto free =
      std::ranges::find_if(work.latest, [](auto& latest) { return latest.group == 0; });
  if (free == work.latest.end()) {
    ++work.groups_without_place;
    return;
  }
  free->number = 0;
  free->name.write(ShortName{connection.group.name}.words());
  free->group = key_of(connection.group);
  *connection.device_place = {static_cast<std::uint64_t>(free - work.latest.begin()) + 1,
                              &free->number};
}

void DeviceWatch::close(Connection& connection, DeviceCalls& calls) {
  PublishedDeviceWork& work = control_->board().own().device;
  const auto place = std::exchange(connection.device_place, nullptr);
  if (place == nullptr) return;
  calls.end_all_of(connection);  // first: `oldest` must not refer to a place of another group
  if (place->index == 0)
    --work.groups_without_place;
  else
    work.latest[place->index - 1].group = 0;
}

IssuedOnDevice DeviceWatch::note(const std::shared_ptr<Connection>& connection,
                                 Operation operation) const {
  std::uint64_t number = 0;
  if (!is_point_to_point(operation)) {
    number = connection->last_device_call();
    if (std::atomic<std::uint64_t>* const place = connection->device_place->number)
      place->store(number, std::memory_order_relaxed);
  }
  const std::uint64_t packed = connection->device_place->index << bits_of_number | number;
  return {connection, operation, number, packed};
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
  std::vector<std::int64_t> missing;
  std::vector<std::size_t> late, members;
  bool is_elsewhere = false, has_place = true;
  for (const Rank member : group.ranks) {
    const auto slot = board.index_of(member);
    if (!slot) {
      is_elsewhere = true;
      continue;
    }
    members.push_back(*slot);
    const PublishedDeviceWork& work = board.area(*slot).device;
    const auto latest = latest_of(work, key_of(group));
    if (!latest && work.groups_without_place != 0) has_place = false;
    if (latest.value_or(0) >= stuck.number) continue;
    late.push_back(*slot);
    missing.push_back(member.value());
  }
  std::string text = "all of its members on this node have issued it";
  if (stuck.number == 0)
    text = "messages have no numbers, so the missing ranks are not known";
  else if (!has_place)
    text = "the board has no space for more groups, so the missing ranks are not known";
  else if (!missing.empty())
    text = "missing: " + text_of(missing);
  if (is_elsewhere) text += "; of members on other nodes, nothing is known";
  return text + waits_behind(late.empty() || !has_place ? members : late);
}

// The members that are missing may wait in another group, as may members that have issued the
// operation behind another one. So this follows the oldest operation of each of these ranks, until
// it finds a rank that is missing and has nothing to do on its device.
std::string DeviceWatch::waits_behind(const std::vector<std::size_t>& slots) const {
  const NodeBoard& board = control_->board();
  std::string found;
  std::vector<bool> was_asked(board.ranks().size());
  std::deque<std::size_t> to_ask{slots.begin(), slots.end()};
  for (; !to_ask.empty(); to_ask.pop_front()) {
    const std::size_t asked = to_ask.front();
    if (was_asked[asked]) continue;
    was_asked[asked] = true;
    const auto oldest = oldest_of(board.area(asked).device);
    if (!oldest) continue;
    std::vector<std::size_t> late, members;
    std::vector<std::int64_t> missing;
    bool is_last = false;
    for (std::size_t slot = 0; slot < board.ranks().size(); ++slot) {
      const auto latest = latest_of(board.area(slot).device, oldest->key);
      if (!latest) continue;
      members.push_back(slot);
      if (*latest >= oldest->number) continue;
      late.push_back(slot);
      missing.push_back(board.ranks()[slot].value());
      if (!oldest_of(board.area(slot).device)) is_last = true;
    }
    const auto& next = late.empty() ? members : late;
    to_ask.insert(to_ask.end(), next.begin(), next.end());
    if (late.empty()) continue;
    found = fmt::format("; the device of rank {} waits in '{}' for {}",
                        board.ranks()[asked].value(), oldest->group.text(), text_of(missing));
    if (is_last) break;
  }
  return found;
}

}  // namespace rankmesh::detail
