// SPDX-License-Identifier: BSD-3-Clause
// The parts of a shared-memory algorithm. An algorithm is one constant `Algorithm` in a file of its
// own; algorithms.cpp lists all of them. docs/routes.md explains how to add one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "rankmesh/transport/call.hpp"
#include "transport/shm/area.hpp"
#include "transport/shm/direct.hpp"

namespace rankmesh::shm {

inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

/// The sizes at which a group changes from one algorithm to another. They are equal on all members.
struct Limits {
  /// Up to this size every member reduces all elements of an all_reduce, which takes one step.
  /// Above it every member reduces a share, which takes two steps.
  std::int64_t flat_bytes = 4096;
  /// From this size on, symmetric memory is read directly. Below this size, payloads are copied.
  std::int64_t symmetric_bytes = 4096;
  /// From this size of the inputs on, members read each other's ordinary buffers, if they can.
  std::int64_t direct_bytes = 256 << 10;
};

/// One step of an operation, as the member that runs it sees it. All members compute the same
/// values, except for the addresses in the call.
struct Step {
  const Call& call;
  std::uint64_t number;  ///< counts the steps of the group, from 1
  std::int64_t at;       ///< the first element (of each block) that this step carries
  std::int64_t count;    ///< how many elements (of each block) it carries
  std::size_t bytes;     ///< size of a member's payload
  std::size_t offset;    ///< where the payload lies in a member's area
};

/// A group of members that share memory, as one member sees it. Members are numbered from 0 in
/// group order.
struct Group {
  const void* id;  ///< identifies the group in SymmetricWindow::groups; it is never dereferenced
  std::vector<Area> areas;           ///< the memory of each member
  std::vector<std::int32_t> locals;  ///< the local rank of each member, for symmetric memory
  std::size_t self;
  std::size_t size;
  std::size_t slot_bytes;
  Limits limits;
  /// Scratch memory for the addresses that a reduction reads, one per member. It is allocated with
  /// the group because a step must not allocate.
  std::unique_ptr<const std::byte*[]> sources;
  /// Null if the members do not read ordinary memory of each other.
  std::unique_ptr<DirectReads> direct;

  [[nodiscard]] std::byte* payload(std::size_t member, const Step& step) const {
    return areas[member].at(step.offset);
  }
  /// Returns where the payload of the step before this one lies. Both steps belong to the same
  /// operation and have payloads of the same size.
  [[nodiscard]] std::byte* previous_payload(std::size_t member, const Step& step) const {
    return areas[member].at(Area::payload_offset(step.number - 1, step.bytes, slot_bytes));
  }
  /// Points `sources` at the payloads of all members, `skip` bytes behind their beginnings.
  void set_sources(const Step& step, std::size_t skip = 0) const {
    for (std::size_t k = 0; k < size; ++k) sources[k] = areas[k].at(step.offset + skip);
  }
};

/// Reduces the memory that `group.sources` points at, from the first member to the last.
void reduce_sources(const Group& group, const Call& call, std::byte* out, std::int64_t count);

/// A range of elements.
struct Share {
  std::int64_t begin, count;
};
/// Divides `count` elements among `members`. Shares consist of whole cache lines.
[[nodiscard]] Share share_of(std::size_t members, std::size_t member, std::int64_t count,
                             DataType type);

/// What a member publishes in all steps of an operation: `unit` bytes for each of `count` elements.
/// The engine divides these bytes into pieces that fit into a slot. If there are no elements, the
/// operation takes a single step, in which the members only compare their calls.
struct Payload {
  std::int64_t count;
  std::size_t unit;
};

/// What all members know after the first step of a v-form.
struct Lengths {
  std::int64_t longest;  ///< the elements of the longest block
  bool any_is_async;     ///< whether any member uses the form with _async
};

/// Which members publish in a step, and which members wait for them.
enum class Flow : std::uint8_t {
  all_to_all,   ///< every member publishes and waits for all others
  root_to_all,  ///< the root publishes and waits for no member; the others wait for the root
  all_to_root,  ///< the members other than the root publish; only the root waits
};

/// One half of an algorithm that takes two steps per piece, or the whole of an algorithm that takes
/// one step.
struct Phase {
  Flow flow = Flow::all_to_all;
  /// Writes this member's payload. It runs only on members that publish according to `flow`. Null
  /// means that the number of the step is sufficient.
  void (*publish)(const Group& group, const Step& step) = nullptr;
  /// Reads the payloads for which this member has waited. It runs on every member, even on members
  /// that wait for no other member. Null means that there is nothing to read.
  void (*read)(const Group& group, const Step& step) = nullptr;
  /// Compares the payloads for which this member has waited with its own call, before anything is
  /// read. Null means that comparing the descriptors of the calls is sufficient.
  bool (*agrees)(const Group& group, const Step& step) = nullptr;
};

class Engine;
struct Progress;

/// What became of an operation that tried the fast path.
enum class Outcome : std::uint8_t {
  complete,
  begun,      ///< It has published its step and waits for other members.
  not_begun,  ///< It must take the general path.
};

/// How a collective operation is carried out in shared memory.
///
/// Every decision of an algorithm must depend only on values that are the same on all members
/// (operation, type, counts, whether memory is symmetric), because each member chooses the
/// algorithm and numbers its steps without communication.
struct Algorithm {
  std::string_view name;
  Operation operation;
  /// Bits that are added to CallDescriptor::kind. Two kinds of algorithms that could carry the same
  /// call have different bits, so the comparison finds members that have chosen differently.
  std::uint64_t forms = 0;
  /// Whether it can carry this call; null means that it carries every call.
  bool (*applies)(const Group& group, const Call& call) = nullptr;
  /// For algorithms that read and write symmetric memory, null for others: whether the buffers of
  /// the call lie in symmetric memory of the group with this id, such that no copy is needed.
  bool (*is_symmetric)(const Call& call, const void* group) = nullptr;
  Payload (*payload)(const Group& group, const Call& call);
  /// For v-forms; null for others. The first step of a v-form carries a whole slot: the counts of
  /// the blocks, and as many elements as fit beside them, which `payload` tells. This function runs
  /// when all members have published the first step. It returns the length of the longest block,
  /// from which the engine computes how many further steps there are.
  Lengths (*lengths)(const Group& group, const Step& step) = nullptr;
  Phase first{};
  /// The second step of each piece. A member publishes it only after it has read the first step, so
  /// it may publish results of that step. It may also read the payloads of the first phase again.
  std::optional<Phase> second{};
  /// Whether members read each other's ordinary memory, which they may not be able to.
  bool is_direct = false;
  /// run_in_one_step<ALGORITHM>, for algorithms whose calls may take the fast path.
  Outcome (*run_small)(Engine& engine, Progress& progress, const Call& call, int looks) = nullptr;
};

/// Returns the descriptor of a call with equal blocks and without a user's reduction.
[[gnu::always_inline]] inline CallDescriptor descriptor_of_plain(const Call& call,
                                                                 Operation operation) {
  if (call.original != nullptr) [[unlikely]]
    return detail::describe(*call.original, operation);
  return detail::describe_plain(call, operation);
}

/// Returns the descriptor of any call, as this algorithm carries it.
[[nodiscard]] inline CallDescriptor descriptor_of(const Call& call, const Algorithm& algorithm) {
  CallDescriptor descriptor = detail::describe_completely(call);
  descriptor.kind |= algorithm.forms;
  return descriptor;
}

// Parts that several algorithms share.

/// Returns the address of an element of a buffer.
template <class Byte>
[[nodiscard]] Byte* element(const BasicBuffer<Byte>& buffer, std::int64_t i) {
  return buffer.data + static_cast<std::size_t>(i) * size_of(buffer.type);
}

[[nodiscard]] inline bool is_root(const Group& group, const Call& call) {
  return call.root.value() == static_cast<std::int64_t>(group.self);
}
[[nodiscard]] inline std::size_t root_of(const Call& call) {
  return static_cast<std::size_t>(call.root.value());
}

/// The payload of algorithms in which a member publishes all of its input, or of its output.
[[nodiscard]] inline Payload payload_of_input(const Group&, const Call& call) {
  return {call.in.count, size_of(call.in.type)};
}
[[nodiscard]] inline Payload payload_of_output(const Group&, const Call& call) {
  return {call.out.count, size_of(call.out.type)};
}
/// Publishes the piece of the input that the step carries.
inline void publish_input(const Group& group, const Step& step) {
  copy_bytes(group.payload(group.self, step), element(step.call.in, step.at), step.bytes);
}
}  // namespace rankmesh::shm
