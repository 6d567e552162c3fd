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

/// Holds an NCCL communicator that this object owns or that the program has created (adopt()).
///
/// The communicator is non-blocking, unless its options say otherwise. A call on a non-blocking
/// communicator may return while the call is still in progress. So wait_until_ready() must have
/// returned before the next call on the communicator, before an event is recorded after the call,
/// and before a capture ends.
///
/// A unique_ptr holds the object, because NCCL keeps pointers to its data members. Thread safety:
/// one thread at a time.
class RANKMESH_API Communicator {
 public:
  /// Begins an init; call wait_until_ready() next. Collective over the `ranks` members, which must
  /// pass the same IDs in the same order. Does not block.
  /// @param ids   More than one ID shortens the init of large groups; it needs NCCL 2.23.
  /// @param name  Appears in NCCL's logs (2.27).
  static std::unique_ptr<Communicator> begin(const Library& library,
                                             std::span<const ncclUniqueId> ids, int ranks, int rank,
                                             std::string name, const GroupOptions& options);
  /// Begins to split a communicator that is ready. Call wait_until_ready() on the parent next, then
  /// on the child. Collective over the parent's ranks. Does not block.
  /// @param colour  Ranks with the same colour form a child. If it is empty, this rank gets no
  ///                child.
  /// @param key     Orders the ranks of a child.
  /// @return The child, or null if this rank gets no child.
  static std::unique_ptr<Communicator> split(Communicator& parent, std::optional<int> colour,
                                             int key, std::string name,
                                             const GroupOptions& options);
  /// Refers to a communicator of the program. This object never finalises, destroys or aborts it.
  static std::unique_ptr<Communicator> adopt(const Library& library, ncclComm_t native,
                                             std::string name);
  /// Aborts the communicator if it was not destroyed. Local; does not wait.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] ncclComm_t native() const noexcept { return native_; }
  [[nodiscard]] const std::string& name() const noexcept { return *name_; }
  /// Returns false for an adopted communicator.
  [[nodiscard]] bool is_owned() const noexcept { return owned_; }
  /// Returns whether NCCL calls wait in the call itself. An adopted communicator counts as
  /// non-blocking.
  [[nodiscard]] bool is_blocking() const noexcept { return is_blocking_; }
  [[nodiscard]] const Library& library() const noexcept { return *library_; }

  /// Return the number of ranks and this process's rank. The communicator must be ready.
  [[nodiscard]] int size() const;
  [[nodiscard]] int rank() const;
  /// Returns the number of the CUDA device. The communicator must be ready.
  [[nodiscard]] int device() const;

  /// Returns whether the last call is complete.
  /// @throws NcclError  The call, or an earlier operation, failed.
  [[nodiscard]] bool is_ready() const;
  /// Polls until is_ready() returns true. @throws TimeoutError, NcclError.
  void wait_until_ready(const Deadline& deadline) const;

  /// Begins to finalise: operations in progress will complete. Collective; does not block. Call
  /// wait_until_ready() next, then destroy().
  void finalize();
  /// Frees the communicator after finalize() and wait_until_ready(). Local.
  void destroy();
  /// Ends the communicator at once, regardless of what the other ranks do. Local.
  void abort() noexcept;
  /// Aborts several communicators in one group of NCCL. Aborting one after the other can wait for a
  /// peer that has not come to that communicator yet.
  static void abort(std::span<Communicator* const> comms) noexcept;

 private:
  Communicator(const Library& library, ncclComm_t native, std::string name, bool owned);

  const Library* library_;
  ncclComm_t native_;
  // A split without a child needs a place for the child's handle. NCCL writes it when the parent
  // becomes ready, after the call has returned.
  ncclComm_t no_child_ = nullptr;
  std::unique_ptr<const std::string> name_;  // NCCL keeps a pointer to the characters
  bool owned_;
  bool is_blocking_ = false;
};

}  // namespace rankmesh::nccl
