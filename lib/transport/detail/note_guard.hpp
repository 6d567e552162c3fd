// SPDX-License-Identifier: BSD-3-Clause
// What members of a group without shared memory tell each other about its end.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "rankmesh/mpi/communicator.hpp"
#include "transport/detail/call_guard.hpp"
#include "transport/detail/call_variants.hpp"

namespace rankmesh::detail {

/// The part that guards have in common whose members tell each other by messages why the group ends
/// early. Such a message is a note. Members look for notes when they have waited for a while, and
/// when they close the group.
class NoteGuard : public CallGuard {
 public:
  /// @param comm  The communicator of the group. It must outlive this object.
  NoteGuard(const mpi::CommunicatorView& comm, GroupMembers members)
      : comm_{comm}, members_{std::move(members)} {}

  [[nodiscard]] const GroupMembers& members() const { return members_; }
  /// Tells the other members that a transport has found different calls. Local.
  void refuse(const MismatchError& error);
  void give_up(const Error& why) override;
  void throw_if_ended() override;
  bool have_all_left() override;
  void stay() override { ++failed_attempts_; }

 protected:
  enum class NoteKind : std::uint64_t {
    departure,  // its sender makes no further calls; the text is the reason, or empty
    report,     // its sender is in a call that a departed member has not made; the text is the call
    finding     // the text of the MismatchError
  };
  // What a member tells the others in addition to its calls.
  struct Note {
    std::uint64_t mark = 0;
    NoteKind kind = NoteKind::departure;
    std::uint64_t closed_after = 0;  // 1 + the number of calls
    std::uint64_t attempt = 0;       // the number of the attempt to close the group
    char text[1000] = {};
  };
  void tell_all(NoteKind kind, std::string_view text, std::uint64_t closed_after = 0) const;
  void receive_notes();
  // Takes a note of another member that is no finding.
  virtual void take(int from, const Note& note, std::string text) = 0;

  mpi::CommunicatorView comm_;
  GroupMembers members_;
  std::exception_ptr failure_;  // why the group has ended early
  bool has_thrown_ = false;     // on this rank

 private:
  std::uint64_t failed_attempts_ = 0;  // to close the group
};

}  // namespace rankmesh::detail
