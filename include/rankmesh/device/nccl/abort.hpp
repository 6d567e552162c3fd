// SPDX-License-Identifier: BSD-3-Clause
// The end of NCCL communicators that cannot be finalised.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/nccl/communicator.hpp"

namespace rankmesh::nccl {

/// Aborts communicators together. This is the only place that calls ncclCommAbort.
///
/// An abort sets a flag that ends the operations of this rank, and then waits without a limit:
/// until the operations have left the streams, even if they are queued behind work that never ends,
/// and until all CUDA graphs that hold operations of the communicator are destroyed
/// (commDestroySync in src/init.cc). Therefore each communicator is aborted in a thread of its own.
/// All flags are set at once, whatever the version of NCCL, and the caller waits for a limited
/// time. A thread whose abort has not ended then goes on by itself, and may never end. It shares
/// what NCCL keeps pointers to with the Communicator, which may be destroyed.
///
/// Thread safety: one thread at a time.
class RANKMESH_API Abort {
 public:
  /// When NCCL may free the communicators.
  enum class Frees {
    at_once,
    when_released,  ///< After release(), because a call of another thread still uses them.
  };
  /// How long wait() waits if the caller says nothing else: 5 s.
  static Deadline::Duration usual_limit() noexcept;
  /// Returns whether CUDA graphs hold operations of the group with this name.
  using IsInGraphs = std::function<bool(const std::string& name)>;

  /// Begins to abort the communicators that are owned and have not ended. From now on they hold
  /// nothing. Does not wait, except for NCCL 2.18, whose communicators are aborted in this thread
  /// while they are being created. Local.
  /// @param why  What later calls on the communicators say, if it is not empty.
  explicit Abort(std::span<Communicator* const> comms, const std::string& why = {},
                 Frees frees = Frees::at_once);
  ~Abort();
  Abort(const Abort&) = delete;
  Abort& operator=(const Abort&) = delete;

  /// Lets NCCL free the communicators.
  void release() noexcept;
  /// Releases the communicators and waits until they have ended, for at most `limit`. Does not wait
  /// for communicators whose operations CUDA graphs hold: these end when the graphs are destroyed.
  /// @return Names and reasons of those that have not ended, which are left behind; empty if all
  /// have ended.
  std::string wait(Deadline::Duration limit = usual_limit(),
                   const IsInGraphs& is_in_graphs = {}) noexcept;

 private:
  struct AbortState;
  void begin(std::shared_ptr<Communicator::Native> native, ncclComm_t handle);
  void begin_late_children();

  const Library* library_ = nullptr;
  int device_ = 0;
  std::shared_ptr<AbortState> state_;
};

}  // namespace rankmesh::nccl
