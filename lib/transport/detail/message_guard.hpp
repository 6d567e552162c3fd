// SPDX-License-Identifier: BSD-3-Clause
// The guard of messages between two members.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/mpi/communicator.hpp"
#include "transport/detail/call_guard.hpp"
#include "transport/detail/group_members.hpp"

namespace rankmesh::detail {

/// Compares the two ends of each message. Each end sends a header to the other one: operation,
/// type, count and tag. The data move only when both ends have the header of the other one.
/// Therefore a send ends only after the receiver has called recv. Headers with the same tag are
/// matched in the order of the calls, as MPI matches the messages themselves.
///
/// There is no helper thread: comparisons make progress when one of them is tested.
class MessageGuard final : public CallGuard {
 public:
  /// @param comm  The communicator of the group, which must outlive this object.
  MessageGuard(const mpi::CommunicatorView& comm, GroupMembers members);
  ~MessageGuard() override;
  MessageGuard(const MessageGuard&) = delete;
  MessageGuard& operator=(const MessageGuard&) = delete;

  /// @return true: this rank must not block inside MPI. The other end may first need another
  ///         message of this rank, and that message makes progress only in calls of rankmesh.
  bool meet(const Call& call, bool is_async, Waiter& waiter) override;
  /// test() of the result also throws if the other end of another compared message differs, because
  /// that member does not continue. cancel() takes back a receive whose sender has not called send.
  [[nodiscard]] std::unique_ptr<Pending> start_comparison(const Call& call, Carry carry) override;
  /// Returns the size in bytes of the next message that `from` has sent with this tag and that the
  /// calling member has not begun to receive. Returns nothing if there is none. Makes progress.
  [[nodiscard]] std::optional<std::int64_t> arrived(RankInGroup from, int tag);

  /// Ends all comparisons: this member continues none of its messages.
  void give_up(const Error& why) override;
  /// Throws the failure of a compared message, if there is one. The other end then does not
  /// continue with other messages either.
  void throw_if_ended() override;
  /// The other members then need not know which receives this member takes back.
  void leave(std::string_view) override { is_leaving_ = true; }
  void stay() override { is_leaving_ = false; }
  /// Takes the headers of receives that others have cancelled.
  void compare_at_close() override { advance(); }

 private:
  struct MessageHeader;
  struct Half;
  struct Arrived;
  struct Compared;
  class PendingMatch;
  std::shared_ptr<Compared> begin(const Call& call, Carry carry);
  void advance();
  bool test(const Compared& compared);
  bool withdraw(const Compared& compared);
  void forget(const Compared& compared);
  void send(int member, const MessageHeader& header) const;
  void receive();
  void take_back(const Arrived& withdrawal);
  [[nodiscard]] bool is_withdrawn(const Arrived& arrived);
  void match();
  [[nodiscard]] bool may_start(const Compared& compared) const;
  void compare(const Half& half) const;
  [[nodiscard]] std::string text_of(const MessageHeader& header, int member, int peer) const;

  mpi::CommunicatorView comm_;
  GroupMembers members_;
  std::list<std::shared_ptr<Compared>> waiting_;  // in the order of the calls
  std::vector<Arrived> arrived_;                  // headers that no message of this member has
  // Receives that their members have taken back too late: a message of this member has been
  // compared with each of them, and goes to the member's next receive. The header of that one is
  // dropped.
  std::vector<Arrived> taken_back_;
  bool is_leaving_ = false;
  std::uint64_t receives_ = 0;  // of this member; they number its headers
};

}  // namespace rankmesh::detail
