// The protocol of collectives in shared memory. Knows neither MPI nor processes: members are
// processes with a segment or threads of one process, and nothing here waits.
//
// Every operation is a fixed number of steps, numbered over the life of the group, the same on all
// members. In a step a member publishes (its payload, then the step's number), sees the numbers of
// the members that it needs, reads, and counts the step as done. A payload of a step may be read in
// this step and the next. So it is overwritten, ahead_of() steps later, only when all members are
// done with the step after it: no operation sees the payload of another, whatever follows whatever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rankmesh/transport/call.hpp"
#include "shm_area.hpp"

namespace rankmesh::shm {

/// Tells the core that this thread spins.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

/// Where in their windows a member's buffers begin; published instead of the data.
struct Offsets {
  std::uint64_t in, out;
};

/// What a group does when; the same on all members.
struct Limits {
  /// all_reduce up to here: every member reduces everything in one step; above, its share, in two.
  std::int64_t flat_bytes = 4096;
  /// Symmetric memory from here on is used in place; below, payloads are copied.
  std::int64_t symmetric_bytes = 4096;
};

/// How an operation is carried.
enum class Way : std::uint8_t {
  nothing,  ///< no elements: complete at once
  barrier,
  broadcast,
  flat_all_reduce,
  split_all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  reduce,
  gather,
  scatter,
  // In symmetric memory:
  in_place_all_reduce,
  in_place_broadcast,
  in_place_all_gather,
  in_place_reduce_scatter,
  in_place_all_to_all,
};

/// Whether the call's buffers lie in symmetric memory of this group, such that it can be carried
/// without a copy. @param group  one of SymmetricWindow::groups.
[[nodiscard]] bool is_in_place(const Call& call, const void* group);

/// An operation under way. Stays where it is until it is complete.
struct Progress {
  const Call* call = nullptr;
  Way way = Way::nothing;
  std::int64_t piece = 0;  ///< elements (of each block) per step
  std::uint64_t first = 0;
  std::uint64_t steps = 0;
  std::uint64_t published = 0;
  std::uint64_t read = 0;
  int seen = 0;  ///< members found to have published the step that is read next
  Progress* next = nullptr;

  [[nodiscard]] bool is_complete() const { return read == steps; }
};

class Engine {
 public:
  /// @param areas  each member's memory, in group order.
  /// @param locals  each member's number on the node, for symmetric memory.
  /// @param group  as windows of symmetric memory know it.
  Engine(std::vector<std::byte*> areas, std::vector<std::int32_t> locals, int self,
         std::size_t slot_bytes, Limits limits, const void* group);

  /// Whether the protocol has the operation, for this type and number of members.
  [[nodiscard]] bool can(const Call& call) const;
  /// Puts an operation behind those that are under way. The call, its buffers and `progress` stay
  /// until it is complete.
  void begin(Progress& progress, const Call& call);
  /// The same for one that takes a single step, where nothing is under way: as few instructions as
  /// can be. Looks for the others at most `looks` times, with a pause in between. False: `progress`
  /// is not complete, or not even begun.
  bool run_small(Progress& progress, const Call& call, int looks);
  /// Goes on with what is under way as far as the other members have come. Never waits.
  void advance();
  [[nodiscard]] bool is_idle() const { return reading_ == nullptr; }
  /// Steps of operations that were begun.
  [[nodiscard]] std::uint64_t steps() const { return next_step_ - 1; }
  /// Forgets what is under way: a member is gone. Nothing may be begun after it.
  void give_up() { publishing_ = reading_ = last_ = nullptr; }

 private:
  [[nodiscard]] Way way_of(const Call& call) const;
  void plan(Progress& p) const;
  [[nodiscard]] bool may_publish(const Progress& p);
  [[nodiscard]] bool may_overwrite(std::uint64_t step, std::size_t bytes);
  void enqueue(Progress& p);
  void publish(Progress& p);
  [[nodiscard]] bool others_have_published(Progress& p);
  void read(Progress& p);

  [[nodiscard]] std::size_t payload_bytes(const Progress& p, std::uint64_t i) const;
  [[nodiscard]] std::int64_t piece_at(const Progress& p, std::uint64_t i) const;
  void publish_offsets(const Progress& p, std::uint64_t step);
  [[nodiscard]] std::byte* part(const SymmetricWindow& window, int member, std::uint64_t step,
                                bool of_out) const;
  void read_in_place(Progress& p, std::uint64_t step);
  struct Share {
    std::int64_t begin, count;
  };
  [[nodiscard]] Share share_of(int member, std::int64_t count, DataType type) const;

  const void* group_;
  std::vector<Area> areas_;
  std::vector<std::int32_t> locals_;
  int self_;
  int size_;
  std::size_t slot_bytes_;
  Limits limits_;
  std::uint64_t next_step_ = 1;
  std::uint64_t all_done_ = 0;  // every member is known to be through with this step
  Progress* publishing_ = nullptr;
  Progress* reading_ = nullptr;
  Progress* last_ = nullptr;
  std::vector<const std::byte*> sources_;
};

}  // namespace rankmesh::shm
