// SPDX-License-Identifier: BSD-3-Clause
// Host memory in groups that span nodes, on two levels.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/detail/copy_of_error.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "transport/detail/note_guard.hpp"
#include "transport/detail/shm_transport.hpp"
#include "transport/levels/execution.hpp"

namespace rankmesh {

/// Carries collectives of a group whose members are on several nodes, at least two of them on one
/// node: inside each node through shared memory, and between the nodes by messages of MPI. It does
/// not carry all_to_all, blocks of different sizes and reductions with a function of the program.
///
/// The members compare their calls. Members of the same node compare them in shared memory; members
/// of different nodes compare them by the messages, which contain the call. If the calls differ,
/// all members throw a MismatchError: those that are in a call of the group at once, and the others
/// in their next call.
///
/// There is no helper thread: operations make progress in run(), and in the test() of any Pending
/// of this transport. They are carried out in the order in which they were issued.
class RANKMESH_API HierarchicalTransport final : public RoutedTransport {
 public:
  struct Nodes {
    levels::Shape shape;
    std::unique_ptr<ShmTransport> inside;  ///< Null if this member is alone on its node.
  };
  /// @param comm   The communicator of the group. It must outlive this object.
  /// @param guard  Numbers the calls of the group, and with the option `check` compares each call
  ///               before it is carried out. It must outlive this object.
  /// @param uses_copies  Whether operations use copies of the caller's buffers: ranks may be lost.
  ///                     See StagedCall.
  HierarchicalTransport(mpi::CommunicatorView comm, Nodes nodes, detail::NoteGuard& guard,
                        bool uses_copies, levels::Sizes sizes = {});

  [[nodiscard]] std::string_view name() const override { return "hierarchical"; }
  [[nodiscard]] record::Carrier carrier() const override { return record::Carrier::hierarchical; }
  [[nodiscard]] bool supports(const Call& call) const override;
  [[nodiscard]] std::string why_not(const Call& call) const override;
  void run(const Call& call, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  [[nodiscard]] bool is_polled(const Call&) const override { return true; }

  void give_up(const Error& why) override { fail(detail::copy_of(why)); }
  /// Returns the guard of the members on this node; null if this member is alone there.
  [[nodiscard]] detail::CallGuard* inside() const { return inside_.get(); }

 private:
  class PendingExecution;
  struct Issued;
  [[nodiscard]] std::shared_ptr<Issued> issue(const Call& call);
  void advance();
  bool step(Issued& issued);
  void refuse(const MismatchError& error);
  [[nodiscard]] MismatchError error_of(const levels::Difference& difference) const;
  void fail(std::exception_ptr why);

  mpi::CommunicatorView comm_;
  detail::NoteGuard& guard_;
  const bool uses_copies_;
  std::unique_ptr<ShmTransport> inside_;
  std::shared_ptr<levels::Setting> setting_;
  std::deque<std::shared_ptr<Issued>> queue_;
  std::exception_ptr failure_;  // why the group has ended early
  int polls_ = 0;
};

}  // namespace rankmesh
