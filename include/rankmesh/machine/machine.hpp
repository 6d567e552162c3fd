// SPDX-License-Identifier: BSD-3-Clause
// Describes the machines of a job: which slots share a node, an NVLink domain or a leaf switch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/divider.hpp"

namespace rankmesh {

/// The meaning of a level of a machine.
enum class LevelKind : std::uint8_t {
  network,  ///< nodes below one switch, or in one rack or block
  domain,   ///< GPUs that NVLink or a similar network connects
  node,     ///< a host
  socket,   ///< the GPUs or cores of one processor socket or NUMA node
};

/// Returns the name of the kind, for example `node`.
[[nodiscard]] RANKMESH_API std::string_view to_string(LevelKind kind);

/// One level of a machine. A level divides all slots into units, for example into nodes.
struct RANKMESH_API MachineLevel {
  std::string name;                  ///< for example `node`, `leaf` or `nvlink`
  LevelKind kind = LevelKind::node;  ///< What the units are.
  /// The number of slots of each unit if all units are contiguous and equal; the last unit may have
  /// fewer slots. 0 if the units are listed in `units`.
  std::int64_t size = 0;
  /// The unit of each slot. It is empty if `size` is not 0. Units are numbered in the order of
  /// their lowest slots.
  std::vector<std::int32_t> units{};
  /// The name of each unit. If it is empty, unit 3 of the level `node` is called `node3`.
  std::vector<std::string> names{};
  /// The bytes per second that one slot can send out of its unit. Not set if unknown.
  std::optional<double> bandwidth{};
  /// The time that a short message to another unit takes, in seconds. Not set if unknown.
  std::optional<double> latency{};
};

/// Returns the plural of the name of a level, for example `leaves`.
[[nodiscard]] RANKMESH_API std::string plural(std::string_view level_name);

/// The device of a slot, and the network interface that is nearest to it.
struct SlotDevice {
  std::int32_t device = -1;  ///< the number of the GPU on its node, or -1 if it is not known
  std::string nic{};         ///< for example `mlx5_0`; empty if it is not known
};

/// The machines of a job: a tree of levels over slots. A slot is the place of one rank. Slots are
/// numbered in the order in which the launcher fills them, so rank r is in slot r unless a rank
/// file says otherwise. The levels are listed from the outermost (racks, leaf switches) to the
/// innermost (sockets). Each unit of a level lies inside one unit of the level before it. Units may
/// have different sizes.
///
/// A machine whose levels are regular takes memory for its levels only. Otherwise it takes 4 bytes
/// per slot and level. A machine is immutable after construction, and several threads can use it.
class RANKMESH_API Machine {
 public:
  /// @param slots  the number of slots.
  /// @param levels  the levels, outermost first. One level must be of the kind `node`.
  /// @param devices  the devices of the slots of one node, in the order of the slots. If a node has
  /// more slots than this list, the list repeats. Empty if the devices are not known.
  /// @throws SpecError if there is no slot, if no level or several levels are of the kind `node`,
  /// if a list of units has the wrong length, or if a unit does not lie inside one unit of the
  /// level before it.
  Machine(std::int64_t slots, std::vector<MachineLevel> levels,
          std::vector<SlotDevice> devices = {});

  /// Returns the number of slots, each of which takes one rank.
  [[nodiscard]] std::int64_t slot_count() const { return slots_; }
  /// Returns the levels, from the outermost to the innermost.
  [[nodiscard]] const std::vector<MachineLevel>& levels() const { return levels_; }
  /// Returns the index of the innermost level of a kind, or nothing.
  [[nodiscard]] std::optional<std::size_t> find(LevelKind kind) const;
  /// Returns the index of the level of kind `node`.
  [[nodiscard]] std::size_t node_level() const { return node_level_; }
  /// Returns the level inside which communication is fast: the outermost level of the kind
  /// `domain`, or the node if there is no such level.
  [[nodiscard]] std::size_t fast_level() const;

  /// Returns the number of units of a level.
  [[nodiscard]] std::int64_t unit_count(std::size_t level) const { return unit_counts_[level]; }
  /// Returns the unit of a slot. The slot must exist.
  [[nodiscard]] std::int64_t unit(std::size_t level, std::int64_t slot) const {
    const MachineLevel& l = levels_[level];
    return l.size > 0 ? by_size_[level].quotient(slot) : l.units[static_cast<std::size_t>(slot)];
  }
  /// Returns the number of slots of the largest unit.
  [[nodiscard]] std::int64_t largest(std::size_t level) const { return largest_[level]; }
  /// Returns the number of slots of the smallest unit.
  [[nodiscard]] std::int64_t smallest(std::size_t level) const { return smallest_[level]; }
  /// Returns the name of a unit.
  [[nodiscard]] std::string unit_name(std::size_t level, std::int64_t unit) const;

  /// Returns the name of the host of a slot.
  [[nodiscard]] std::string host(std::int64_t slot) const;
  /// Returns the number of a slot on its node. Takes O(1) time if the `size` of the node level is
  /// not 0, and O(slots) time otherwise.
  [[nodiscard]] std::int64_t local_slot(std::int64_t slot) const;
  /// Returns the device and the nearest network interface of a slot. Takes as long as local_slot().
  [[nodiscard]] SlotDevice device(std::int64_t slot) const;
  /// Returns the number of devices of a node, or 0 if it is not known.
  [[nodiscard]] std::int64_t device_count() const {
    return static_cast<std::int64_t>(devices_.size());
  }

  /// Returns a machine that has only the first `slots` slots of this machine.
  /// @throws SpecError if the machine has fewer slots.
  [[nodiscard]] Machine first_slots(std::int64_t slots) const;
  /// Returns this machine with these values of MachineLevel::bandwidth and MachineLevel::latency.
  /// @throws UsageError if a value is not positive.
  [[nodiscard]] Machine with_speed(std::size_t level, std::optional<double> bandwidth,
                                   std::optional<double> latency) const;
  /// Returns one line, for example `16 slots: 2 leaf, 4 node of 4`.
  [[nodiscard]] std::string describe() const;

 private:
  std::int64_t slots_;
  std::vector<MachineLevel> levels_;
  std::vector<SlotDevice> devices_;
  std::vector<Divider> by_size_;
  std::vector<std::int64_t> unit_counts_, largest_, smallest_;
  std::size_t node_level_ = 0;
};

}  // namespace rankmesh
