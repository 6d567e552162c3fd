// SPDX-License-Identifier: BSD-3-Clause
// Host memory within a node, through memory that the members share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/transport/shared_segment.hpp"
#include "transport/detail/call_guard.hpp"
#include "transport/detail/group_members.hpp"
#include "transport/detail/node_memory.hpp"
#include "transport/detail/routed_transport.hpp"
#include "transport/shm/algorithms.hpp"
#include "transport/shm/engine.hpp"
#include "transport/shm/meeting.hpp"
#include "transport/shm/messages.hpp"

namespace rankmesh {

/// Carries every collective of members that share a node, except arithmetic on 16- and 8-bit floats
/// (see ScratchCall) and functions of the program. Buffers of any size are copied through the
/// segment in pieces. Buffers in symmetric memory are not copied, and large buffers are read
/// directly if the system allows it. Blocking v-forms with large blocks are compared here, and
/// another transport carries them. Carries small messages between two members, and announces and
/// checks large ones, whose elements another transport carries.
///
/// There is no helper thread: operations make progress in `run`, and in the `test` of any Pending
/// of this transport. They are carried out in the order in which they were issued.
///
/// The members compare their calls in the first step of every operation. If the calls differ, run()
/// and test() throw a MismatchError on every member that is in the call, with the same text, and
/// later calls of the other members throw it too. This object is therefore the guard of its group,
/// also for calls that other transports carry: such a call takes a step without data.
class RANKMESH_API ShmTransport final : public RoutedTransport, public detail::CallGuard {
 public:
  struct Place {
    std::vector<std::byte*> areas;     ///< Each member's memory, in group order.
    std::vector<std::int32_t> locals;  ///< Each member's number on the node.
    /// The rings to each member and from each member; empty if MPI carries the messages.
    std::vector<shm::Ring> rings_to, rings_from;
    int self = 0;
    std::size_t slot_bytes = 0;
    bool is_oversubscribed = false;  ///< The node has more ranks than cores.
    detail::GroupMembers members;
    detail::Recording recording;                    ///< Where the calls are recorded.
    std::shared_ptr<detail::NodeMemory> processes;  ///< Reads ordinary memory of the members.
    std::shared_ptr<SharedSegment>
        memory;  ///< Keeps the areas, if they belong to this group alone.

    /// Returns the object that reads ordinary memory of the members; null if the system refuses
    /// this.
    [[nodiscard]] shm::MemoryReader* reader() const {
      return processes != nullptr && processes->why_not().empty() ? processes.get() : nullptr;
    }
    /// Identifies the group in this process: symmetric windows list the groups that they serve.
    [[nodiscard]] const void* key() const { return areas[static_cast<std::size_t>(self)]; }
  };
  ShmTransport(Place place, shm::Limits limits);

  [[nodiscard]] std::string_view name() const override { return "shm"; }
  [[nodiscard]] record::Carrier carrier() const override { return record::Carrier::shared_memory; }
  [[nodiscard]] bool supports(const Call& call) const override {
    return is_point_to_point(call.operation) ? carries_message(call) : engine_.can(call);
  }
  [[nodiscard]] std::string why_not(const Call& call) const override;
  [[nodiscard]] std::string how(const Call& call) const override;
  void run(const Call& call, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  [[nodiscard]] bool is_polled(const Call&) const override { return true; }
  [[nodiscard]] bool uses_symmetric_memory(const Call& call) const override {
    return engine_.uses_symmetric_memory(call);
  }

  [[nodiscard]] std::optional<std::int64_t> arrived(RankInGroup from, int tag) override;
  /// Lets other transports carry messages between two members. Call it before any message.
  void leave_messages_to_others(const char* why) {
    messages_.reset();
    why_no_messages_ = why;
  }
  /// Sets the transport for messages that are larger than the rings carry, and for blocking v-forms
  /// that need more than one step. It must outlive all calls, and compares nothing. Call it before
  /// any call.
  void carry_large_messages_by(RoutedTransport& transport) {
    large_ = &transport;
    engine_.leave_large_blocks();
  }

  /// Starts an operation that is a part of a call, and is carried out by this algorithm; does not
  /// block. The Call must stay valid until the operation is complete.
  /// @param number  The number of the whole call in its group.
  [[nodiscard]] std::unique_ptr<Pending> start_step(const Call& call,
                                                    const shm::Algorithm& algorithm,
                                                    std::uint64_t number);

  // See CallGuard. Comparisons and operations have one order. The members compare a call in shared
  // memory, so MPI's operation may begin beside the comparison, and makes progress in the program's
  // own calls of MPI.
  [[nodiscard]] std::uint64_t& calls() override { return engine_.calls(); }
  bool meet(const Call& call, bool is_async, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start_comparison(const Call& call, Carry carry) override;
  [[nodiscard]] std::unique_ptr<Pending> start_end(const Call& call, const bool& has_run) override;
  void give_up(const Error& why) override;
  void throw_if_ended() override;
  [[nodiscard]] bool has_ended() const override { return engine_.is_halted(); }
  void bring(std::uint64_t number) override { engine_.bring(number); }
  [[nodiscard]] std::optional<std::uint64_t> brought_by_all() const override {
    return engine_.brought_by_all();
  }
  void leave(std::string_view why) override { engine_.leave(why); }
  bool have_all_left() override;
  [[nodiscard]] std::vector<std::int64_t> not_left() const override;
  void stay() override { engine_.stay(); }
  void compare_at_close() override;

 private:
  class PendingSteps;
  struct Halves;
  class PendingMessage;
  [[nodiscard]] bool carries_message(const Call& call) const {
    return messages_ != nullptr && large_ != nullptr && !call.is_on_device();
  }
  void run_message(const Call& call, Waiter& waiter);
  [[nodiscard]] std::unique_ptr<Pending> start_message(const Call& call);
  [[noreturn]] void throw_crossing(const shm::Crossing& crossing) const;
  void poll(shm::Progress& progress, const Call& call, Waiter& waiter);
  void wait_for(shm::Progress& progress, const Call& call, Waiter& waiter);
  void poll_unrecorded(shm::Progress& progress, const Call& call, Waiter& waiter);
  bool try_to_complete(const shm::Progress& progress);
  [[noreturn]] void end_early();
  void throw_if_ended_in(const Call& call, Waiter& waiter);
  void throw_if_unreadable(const std::optional<shm::FailedRead>& failed) const;
  struct Found {
    shm::Finding::State state;
    std::string text;
  };
  // Whether the next step of the group belongs to this operation, which only lets members meet.
  [[nodiscard]] bool is_meeting(const shm::Progress& progress) const {
    return progress.algorithm == &shm::meeting && engine_.is_oldest(progress);
  }
  [[nodiscard]] bool may_give_up(const shm::Progress& progress);
  bool is_written() const;
  template <class Compose>
  void write_finding(const std::vector<Rank>& missing, Compose&& compose);
  [[nodiscard]] Found compare() const;
  [[nodiscard]] detail::BlockCounts counts_at(std::uint64_t step) const;
  [[nodiscard]] std::string call_text(std::size_t member, std::uint64_t step,
                                      const detail::BlockCounts& block_counts) const;

  const Place place_;
  shm::Engine engine_;
  std::unique_ptr<shm::Messages> messages_;  // null if other transports carry them
  RoutedTransport* large_ = nullptr;         // carries large messages
  const char* why_no_messages_ = "the group has too many members for rings between all of them";
  int pauses_;
  int polls_ = 0;
  bool has_thrown_ = false;  // what ended the group early
  bool is_writing_ = false;  // this rank has decided that it gives up, and will say why
};

}  // namespace rankmesh
