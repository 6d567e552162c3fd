// SPDX-License-Identifier: BSD-3-Clause
// An NCCL communicator.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "rankmesh/layout/group_options.hpp"

namespace rankmesh::detail {
class ControlPlane;
}

namespace rankmesh::nccl {

/// Holds an NCCL communicator. This object owns the communicator unless the program created it
/// (adopt()).
///
/// Each communicator is first created as a non-blocking communicator, so that its creation has a
/// deadline. Its children (split()) may be blocking. A call on a non-blocking communicator may
/// return before NCCL has carried it out. After each such call, wait until wait_until_ready()
/// returns before you make the next call on the communicator, record an event, or end a capture. A
/// call on a blocking communicator returns when NCCL has carried it out; CallWatch limits its time.
///
/// The functions that create a Communicator return a unique_ptr, because NCCL keeps pointers to
/// data members of the object. Thread safety: one thread at a time.
class RANKMESH_API Communicator {
 public:
  /// Begins to create a non-blocking communicator; call wait_until_ready() next. Collective over
  /// the `ranks` members of the new communicator, which must pass the same IDs in the same order.
  /// Blocks only if NCCL_COMM_BLOCKING is 1 (see forced_blocking()).
  /// @param ids   One or more unique IDs. Several IDs shorten the init of large groups and need
  ///              NCCL 2.23 or later.
  /// @param name  A name that appears in the logs of NCCL 2.27 and later.
  static std::unique_ptr<Communicator> begin(const Library& library,
                                             std::span<const ncclUniqueId> ids, int ranks, int rank,
                                             std::string name, const GroupOptions& options);
  /// Begins to split a communicator that is ready. Call wait_until_ready() on the parent next, then
  /// on the child. Collective over the parent's ranks. Blocks if the parent blocks. The child
  /// blocks if blocks_after_creation() says so.
  /// @param colour  Ranks with the same colour form a child. If `colour` is empty, this rank gets
  ///                no child.
  /// @param key  The ranks of a child are ordered by key.
  /// @return The child, or null if this rank gets no child.
  static std::unique_ptr<Communicator> split(Communicator& parent, std::optional<int> colour,
                                             int key, std::string name,
                                             const GroupOptions& options);
  /// Refers to a communicator of the program. The new object never finalises, destroys or aborts
  /// that communicator.
  /// @param blocks Whether the communicator is blocking, which is NCCL's default. NCCL has no
  ///                function that returns this mode.
  static std::unique_ptr<Communicator> adopt(const Library& library, ncclComm_t native,
                                             std::string name, bool blocks);
  /// If the communicator is owned and was not destroyed, aborts it. Local; does not wait for other
  /// ranks.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Returns the communicator of NCCL.
  [[nodiscard]] ncclComm_t native() const noexcept {
    return std::atomic_ref<ncclComm_t>{native_->handle}.load(std::memory_order_relaxed);
  }
  /// Returns the name of the group in messages.
  [[nodiscard]] const std::string& name() const noexcept { return native_->name; }
  /// Returns whether this object owns the communicator, which is false after adopt().
  [[nodiscard]] bool is_owned() const noexcept { return owned_; }
  /// Returns whether NCCL calls on the communicator block until they are carried out.
  [[nodiscard]] bool is_blocking() const noexcept { return is_blocking_; }
  /// Returns whether the options ask for copy engines instead of thread blocks
  /// (GroupOptions::cta_policy is 2).
  [[nodiscard]] bool prefers_copy_engines() const noexcept { return prefers_copy_engines_; }
  /// Returns the library that has created the communicator.
  [[nodiscard]] const Library& library() const noexcept { return *library_; }

  /// Returns the number of ranks. The communicator must be ready.
  [[nodiscard]] int size() const;
  /// Returns this process's rank. The communicator must be ready.
  [[nodiscard]] int rank() const;
  /// Returns the number of the CUDA device. The communicator must be ready.
  [[nodiscard]] int device() const;

  /// Returns whether NCCL has carried out the last call on the communicator.
  /// @throws NcclError if this call or an earlier operation failed; the errors of require_whole().
  [[nodiscard]] bool is_ready() const;
  /// Polls until is_ready() returns true.
  /// @param mesh  The mesh whose call waits, and whose operations on host memory advance meanwhile;
  ///              null if there is none.
  /// @throws TimeoutError if the deadline passes; the errors of is_ready(); LostRanks if the mesh
  /// has lost ranks.
  void wait_until_ready(const Deadline& deadline,
                        const rankmesh::detail::ControlPlane* mesh = nullptr) const;

  /// Throws NcclError if a communicator that shares resources with this one was aborted: NCCL then
  /// drops the operations of both communicators without an error. Throws TimeoutError if this
  /// communicator was aborted because of a time limit, and ClosedError if it was aborted for
  /// another reason. An abort ends the work on streams, which looks like success.
  void require_whole() const;

  /// Begins to finalise the communicator: NCCL completes the operations in progress. Collective
  /// over the ranks of the communicator; blocks only if the communicator does. Call
  /// wait_until_ready() next, then destroy().
  void finalize();
  /// Begins to finalise several communicators of one mode in one NCCL group, which NCCL finalises
  /// side by side. Therefore their order does not matter. Collective over the ranks of each of
  /// them; blocks only if the communicators do.
  static void finalize(std::span<Communicator* const> comms);
  /// Frees the communicator after finalize() and wait_until_ready(). Local. If the communicator
  /// holds an error, aborts it instead, because ncclCommDestroy would leave the calling thread
  /// inside an NCCL group (2.24 and later).
  /// @throws NcclError the error of the communicator.
  void destroy();

 private:
  friend class Abort;
  // What NCCL keeps pointers to, and may still use after this object is destroyed.
  struct Native {
    explicit Native(std::string text) : name{std::move(text)} {}
    std::mutex mutex;  // between polls and the beginning of an abort in another thread
    ncclComm_t handle = nullptr;
    // NCCL writes the handle of the child here if a split gives this rank no child. NCCL writes the
    // handle when the parent becomes ready, which may be after the call has returned.
    ncclComm_t no_child = nullptr;
    const std::string name;                  // NCCL keeps a pointer to the characters
    std::optional<std::string> why_aborted;  // what later calls say; may be empty
  };
  // The communicators that share their resources: a parent and its children. If one is aborted,
  // NCCL ends the operations of all, because they have one abort flag.
  struct Family {
    std::string aborted;  // the name of the first one that was aborted
  };

  Communicator(const Library& library, ncclComm_t native, std::string name, bool owned);
  // Gives the handle to an abort. From now on, this object holds no communicator.
  ncclComm_t take(const std::string& why);

  const Library* library_;
  std::shared_ptr<Native> native_;
  bool owned_;
  mutable bool is_in_progress_ = false;  // an init, or a split of this communicator
  bool is_blocking_ = false;
  bool prefers_copy_engines_ = false;
  std::shared_ptr<Family> family_;  // null if the communicator shares nothing
};

}  // namespace rankmesh::nccl
