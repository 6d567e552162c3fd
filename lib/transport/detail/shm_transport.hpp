// SPDX-License-Identifier: BSD-3-Clause
// Host memory within a node, through memory that the members share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/transport/shared_segment.hpp"
#include "rankmesh/transport/transport.hpp"
#include "rankmesh/wait/rank_names.hpp"
#include "transport/detail/block_counts.hpp"
#include "transport/shm/algorithms.hpp"
#include "transport/shm/engine.hpp"
#include "transport/shm/meeting.hpp"

namespace rankmesh {

/// Carries every collective of members that share a node, but not blocks of different sizes and no
/// arithmetic on 16- and 8-bit floats. Buffers of any size go through the segment in pieces; those
/// in symmetric memory stay where they are.
///
/// Nothing runs by itself: operations make progress in `run`, in the `test` of any Pending of this
/// transport, and in `advance`. They are carried out in the order in which they were issued.
///
/// The members compare their calls in the first step of every operation. If the calls differ, run()
/// and test() throw a MismatchError on every member that is in the call, with the same text, and
/// later calls of the other members throw it too.
class RANKMESH_API ShmTransport final : public Transport {
 public:
  struct Place {
    std::vector<std::byte*> areas;     ///< Each member's memory, in group order.
    std::vector<std::int32_t> locals;  ///< Each member's number on the node.
    int self = 0;
    std::size_t slot_bytes = 0;
    bool is_oversubscribed = false;                  ///< The node has more ranks than cores.
    std::vector<std::string> names_of_coordinators;  ///< For messages, see Call::family.
    RankSet ranks;                                   ///< The members, for messages.
    RankNames names;
    detail::Recording recording;  ///< Where the calls are recorded.
    std::shared_ptr<SharedSegment>
        memory;  ///< Keeps the areas, if they belong to this group alone.

    /// Identifies the group in this process: symmetric windows list the groups that they serve.
    [[nodiscard]] const void* key() const { return areas[static_cast<std::size_t>(self)]; }
  };
  ShmTransport(Place place, shm::Limits limits);

  [[nodiscard]] std::string_view name() const override { return "shm"; }
  [[nodiscard]] record::Carrier carrier() const override { return record::Carrier::shared_memory; }
  [[nodiscard]] bool supports(const Call& call) const override { return engine_.can(call); }
  [[nodiscard]] std::string why_not(const Call& call) const override;
  void run(const Call& call, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  [[nodiscard]] bool is_polled() const override { return true; }
  void advance() override {
    if (!engine_.is_idle()) engine_.advance();
  }
  [[nodiscard]] bool uses_symmetric_memory(const Call& call) const override {
    return engine_.uses_symmetric_memory(call);
  }

  /// Compares a call that another transport will carry with the calls of the other members. Blocks
  /// until all members have reached the call.
  /// @throws MismatchError, and what `waiter` throws.
  void meet(const shm::Meeting& meeting, Waiter& waiter);
  /// Starts a meeting; does not block. The meeting must stay valid until it is complete.
  [[nodiscard]] std::unique_ptr<Pending> start_meeting(const shm::Meeting& meeting);
  /// Starts an operation that is a part of a call, and is carried out by this algorithm; does not
  /// block. The Call must stay valid until the operation is complete.
  /// @param number  The number of the whole call in its group.
  [[nodiscard]] std::unique_ptr<Pending> start_step(const Call& call,
                                                    const shm::Algorithm& algorithm,
                                                    std::uint64_t number);

  [[nodiscard]] std::uint64_t calls() const override { return engine_.calls(); }
  void leave(std::string_view why) override { engine_.leave(why); }
  bool have_all_left() override;
  void stay() override { engine_.stay(); }
  void give_up(const Error& why) override;
  void compare_at_close() override;
  void throw_if_ended() override;

 private:
  class Operation;
  void poll(shm::Progress& progress, const Call& call, Waiter& waiter);
  void poll_unrecorded(shm::Progress& progress, const Call& call, Waiter& waiter);
  bool try_to_complete(const shm::Progress& progress);
  [[noreturn]] void end_early();
  struct Found {
    shm::Finding::State state;
    std::string text;
  };
  [[nodiscard]] Found compare() const;
  [[nodiscard]] detail::BlockCounts counts_at(std::uint64_t step) const;
  [[nodiscard]] std::string call_text(std::size_t member, std::uint64_t step,
                                      const detail::BlockCounts& block_counts) const;

  const Place place_;
  shm::Engine engine_;
  int pauses_;
  int polls_ = 0;
  bool has_thrown_ = false;  // what ended the group early
};

}  // namespace rankmesh
