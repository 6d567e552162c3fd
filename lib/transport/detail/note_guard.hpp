// SPDX-License-Identifier: BSD-3-Clause
// The guard of groups without shared memory.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rankmesh/mpi/communicator.hpp"
#include "transport/detail/call_guard.hpp"
#include "transport/detail/group_members.hpp"

namespace rankmesh::detail {

/// Members of a group without shared memory tell each other by messages why the group ends early.
/// Such a message is a note. Members look for notes when they have waited for a while, and when
/// they close the group.
///
/// This guard compares nothing. Its members wait for each other in a barrier of MPI, so meet() does
/// not learn whether other members start the operation. ExchangeGuard compares calls.
class NoteGuard : public CallGuard {
 public:
  /// @param comm  The communicator of the group. It must outlive this object.
  NoteGuard(const mpi::CommunicatorView& comm, GroupMembers members)
      : comm_{comm}, members_{std::move(members)} {}

  [[nodiscard]] const GroupMembers& members() const { return members_; }
  /// Tells the other members that a transport has found different calls. Local.
  void refuse(const MismatchError& error);
  bool meet(const Call& call, bool is_async, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start_comparison(const Call& call, Carry carry) override;
  void give_up(const Error& why) override;
  void throw_if_ended() override;
  [[nodiscard]] bool has_ended() const override { return failure_ != nullptr; }
  void leave(std::string_view) override {}
  bool have_all_left() override;
  void compare_at_close() override { throw_if_ended(); }
  void stay() override { ++failed_attempts_; }

 protected:
  enum class NoteKind : std::uint64_t {
    departure,  // its sender makes no further calls; the text is the reason, or empty
    report,     // its sender is in a call that a departed member has not made; the text is the call
    finding     // the text of the MismatchError
  };
  // What a member tells the others in addition to its calls.
  struct GuardNote {
    std::uint64_t mark = 0;
    NoteKind kind = NoteKind::departure;
    std::uint64_t closed_after = 0;  // 1 + the number of calls
    std::uint64_t attempt = 0;       // the number of the attempt to close the group
    char text[1000] = {};
  };
  void tell_all(NoteKind kind, std::string_view text, std::uint64_t closed_after = 0) const;
  void receive_notes();
  // Takes a note of another member that is no finding.
  virtual void take(int, const GuardNote&, std::string) {}

  mpi::CommunicatorView comm_;
  GroupMembers members_;
  std::exception_ptr failure_;  // why the group has ended early
  bool has_thrown_ = false;     // on this rank

 private:
  std::uint64_t failed_attempts_ = 0;  // to close the group
};

}  // namespace rankmesh::detail
