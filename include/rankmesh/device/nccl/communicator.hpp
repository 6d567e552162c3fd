// SPDX-License-Identifier: BSD-3-Clause
// An NCCL communicator.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "rankmesh/layout/group_options.hpp"

namespace rankmesh::nccl {

/// Holds an NCCL communicator. This object owns the communicator unless the program created it
/// (adopt()).
///
/// The communicator is non-blocking, unless its options say otherwise. A call on a non-blocking
/// communicator may return before NCCL has carried it out. After each such call, wait until
/// wait_until_ready() returns before you make the next call on the communicator, record an event,
/// or end a capture.
///
/// The functions that create a Communicator return a unique_ptr, because NCCL keeps pointers to
/// data members of the object. Thread safety: one thread at a time.
class RANKMESH_API Communicator {
 public:
  /// Begins to create a communicator; call wait_until_ready() next. Collective over the `ranks`
  /// members of the new communicator, which must pass the same IDs in the same order. Does not
  /// block.
  /// @param ids   One or more unique IDs. Several IDs shorten the init of large groups and need
  ///              NCCL 2.23 or later.
  /// @param name  A name that appears in the logs of NCCL 2.27 and later.
  static std::unique_ptr<Communicator> begin(const Library& library,
                                             std::span<const ncclUniqueId> ids, int ranks, int rank,
                                             std::string name, const GroupOptions& options);
  /// Begins to split a communicator that is ready. Call wait_until_ready() on the parent next, then
  /// on the child. Collective over the parent's ranks. Does not block.
  /// @param colour  Ranks with the same colour form a child. If `colour` is empty, this rank gets
  ///                no child.
  /// @param key  The ranks of a child are ordered by key.
  /// @return The child, or null if this rank gets no child.
  static std::unique_ptr<Communicator> split(Communicator& parent, std::optional<int> colour,
                                             int key, std::string name,
                                             const GroupOptions& options);
  /// Refers to a communicator of the program. The new object never finalises, destroys or aborts
  /// that communicator.
  static std::unique_ptr<Communicator> adopt(const Library& library, ncclComm_t native,
                                             std::string name);
  /// If the communicator is owned and was not destroyed, aborts it. Local; does not wait for other
  /// ranks.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] ncclComm_t native() const noexcept { return native_; }
  [[nodiscard]] const std::string& name() const noexcept { return *name_; }
  /// Returns whether this object owns the communicator, which is false after adopt().
  [[nodiscard]] bool is_owned() const noexcept { return owned_; }
  /// Returns whether NCCL calls on the communicator block until they are carried out. The result is
  /// false for an adopted communicator.
  [[nodiscard]] bool is_blocking() const noexcept { return is_blocking_; }
  [[nodiscard]] const Library& library() const noexcept { return *library_; }

  /// Returns the number of ranks. The communicator must be ready.
  [[nodiscard]] int size() const;
  /// Returns this process's rank. The communicator must be ready.
  [[nodiscard]] int rank() const;
  /// Returns the number of the CUDA device. The communicator must be ready.
  [[nodiscard]] int device() const;

  /// Returns whether NCCL has carried out the last call on the communicator.
  /// @throws NcclError if this call or an earlier operation failed.
  [[nodiscard]] bool is_ready() const;
  /// Polls until is_ready() returns true.
  /// @throws TimeoutError if the deadline passes; NcclError if an operation failed.
  void wait_until_ready(const Deadline& deadline) const;

  /// Begins to finalise the communicator: NCCL completes the operations in progress. Collective
  /// over the ranks of the communicator; does not block. Call wait_until_ready() next, then
  /// destroy().
  void finalize();
  /// Frees the communicator after finalize() and wait_until_ready(). Local.
  void destroy();
  /// Ends the communicator at once, without regard to the state of the other ranks. Local.
  void abort() noexcept;
  /// Aborts several communicators in one NCCL group. If they were aborted one after the other, an
  /// abort could wait for a peer that is still aborting another communicator.
  static void abort(std::span<Communicator* const> comms) noexcept;

 private:
  Communicator(const Library& library, ncclComm_t native, std::string name, bool owned);

  const Library* library_;
  ncclComm_t native_;
  // The place for the child's handle in a split without a child. NCCL writes the handle when the
  // parent becomes ready, which may be after the call has returned.
  ncclComm_t no_child_ = nullptr;
  std::unique_ptr<const std::string> name_;  // NCCL keeps a pointer to the characters
  bool owned_;
  bool is_blocking_ = false;
};

}  // namespace rankmesh::nccl
