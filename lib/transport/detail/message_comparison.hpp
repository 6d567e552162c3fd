// SPDX-License-Identifier: BSD-3-Clause
// The comparison of messages between two members.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/transport/call.hpp"
#include "transport/detail/call_variants.hpp"

namespace rankmesh::detail {

/// Compares the two ends of each message. Before the data moves, each end sends a header to the
/// other: operation, type, count and tag. MPI matches messages between two members with the same
/// tag in the order in which they were sent. The headers are matched in the same order. Therefore a
/// send ends only after the receiver has called recv.
///
/// There is no helper thread: comparisons make progress in advance(). Used by one thread at a time.
class MessageComparison {
 public:
  /// A message that is compared, or both messages of a send_recv.
  class Exchange;

  /// @param comm  The communicator of the group, which must outlive this object.
  MessageComparison(const mpi::CommunicatorView& comm, GroupMembers members);
  ~MessageComparison();
  MessageComparison(const MessageComparison&) = delete;
  MessageComparison& operator=(const MessageComparison&) = delete;

  /// Sends the headers of a call. Local; the call may be destroyed afterwards.
  /// @param carry  Starts the operation that carries the message; runs as soon as both ends are
  ///               equal, in the order of the calls.
  std::shared_ptr<Exchange> begin(const Call& call, std::function<void()> carry);
  /// Continues the exchanges as far as the other members allow. Never waits and never throws.
  void advance();
  /// Returns the size in bytes of the next message that `from` has sent with this tag and that the
  /// calling member has not begun to receive. Returns nothing if there is none. Makes progress.
  [[nodiscard]] std::optional<std::int64_t> arrived(RankInGroup from, int tag);
  /// Makes progress, and returns whether the message was compared and its operation was started.
  /// @throws MismatchError if the other end differs; the text is the same on both ends. Also if the
  ///                       other end of another compared message differs, because that member does
  ///                       not continue.
  /// @throws the errors that `carry` throws.
  bool test(const Exchange& exchange);
  /// Returns whether test() would return true, without making progress. Never throws.
  [[nodiscard]] static bool is_complete(const Exchange& exchange);
  /// Throws the failure of a compared message, if there is one. The other end then does not
  /// continue with other messages either.
  void throw_if_failed() const;
  /// Ends all comparisons: this member continues none of its messages.
  void end(const std::exception_ptr& why);
  /// Takes back a receive whose sender has not called send, and forgets it. Local. Makes progress.
  /// @return false if both ends were compared, so that the message will arrive, or if the
  ///         comparison has failed.
  [[nodiscard]] bool withdraw(const Exchange& exchange);
  /// Says whether this member makes no further calls. The others then need not know which receives
  /// it takes back.
  void set_leaving(bool is_leaving) { is_leaving_ = is_leaving; }
  /// Returns whether the source of a receive is another member. Messages of a member to itself are
  /// not compared.
  [[nodiscard]] bool compares(const Call& receive) const {
    return receive.source.value() != comm_.rank();
  }
  /// Forgets a message that is not compared yet.
  void forget(const Exchange& exchange);

 private:
  struct Header;
  struct Half;
  struct Arrived;
  void send(int member, const Header& header) const;
  void receive();
  void take_back(const Arrived& withdrawal);
  [[nodiscard]] bool is_withdrawn(const Arrived& arrived);
  void match();
  [[nodiscard]] bool may_start(const Exchange& exchange) const;
  void compare(const Half& half) const;
  [[nodiscard]] std::string text_of(const Header& header, int member, int peer) const;

  mpi::CommunicatorView comm_;
  GroupMembers members_;
  std::list<std::shared_ptr<Exchange>> waiting_;  // in the order of the calls
  std::vector<Arrived> arrived_;                  // headers without an exchange
  // Receives that were taken back after a message of this member was compared with them. The next
  // receive of the same kind gets that message, so its header is not needed.
  std::vector<Arrived> taken_back_;
  bool is_leaving_ = false;
  std::uint64_t receives_ = 0;  // of this member; they number its headers
};

}  // namespace rankmesh::detail
