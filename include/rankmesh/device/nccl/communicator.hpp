// An NCCL communicator that is owned, or adopted.
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

/// Non-blocking (unless its options say otherwise): a call may answer *in progress*, and nothing
/// else may follow on it, be recorded behind it or end a capture until wait_until_ready() has seen
/// success. Held by unique_ptr: NCCL keeps pointers into it. One thread.
class RANKMESH_API Communicator {
 public:
  /// Begins an init; returns at once. Collective over the `ranks` members, which pass the same IDs
  /// in the same order.
  /// @param ids   one per several ranks: more than one needs NCCL 2.23.
  /// @param name  shows in NCCL's own logs (2.27); kept alive with the communicator.
  static std::unique_ptr<Communicator> begin(const Library& library,
                                             std::span<const ncclUniqueId> ids, int ranks, int rank,
                                             std::string name, const GroupOptions& options);
  /// Begins to split a settled communicator; settle it first, then the child. Collective over the
  /// parent's ranks.
  /// @param colour  the child's number; nothing where this rank is in none: then null is returned.
  /// @param key     orders the ranks of one child.
  static std::unique_ptr<Communicator> split(Communicator& parent, std::optional<int> colour,
                                             int key, std::string name,
                                             const GroupOptions& options);
  /// One that the user made; never finalised, destroyed or aborted here.
  static std::unique_ptr<Communicator> adopt(const Library& library, ncclComm_t native,
                                             std::string name);
  /// Aborts, locally and without waiting, what was not destroyed.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] ncclComm_t native() const noexcept { return native_; }
  [[nodiscard]] const std::string& name() const noexcept { return *name_; }
  /// False for one that was adopted.
  [[nodiscard]] bool is_owned() const noexcept { return owned_; }
  /// Returns whether NCCL calls wait in the call itself. An adopted one counts as non-blocking.
  [[nodiscard]] bool is_blocking() const noexcept { return is_blocking_; }
  [[nodiscard]] const Library& library() const noexcept { return *library_; }

  /// Ranks, and this process's number among them, as NCCL has them. Settled ones only.
  [[nodiscard]] int size() const;
  [[nodiscard]] int rank() const;
  /// The CUDA device that it was made on.
  [[nodiscard]] int device() const;

  /// Whether the last call is through. @throws NcclError where it, or an earlier operation, failed.
  [[nodiscard]] bool is_ready() const;
  /// Polls until it is. @throws TimeoutError, NcclError.
  void wait_until_ready(const Deadline& deadline) const;

  /// Begins to end it: operations under way complete. Collective; settle, then destroy().
  void finalize();
  /// Frees it. After finalize() and wait_until_ready().
  void destroy();
  /// Ends it at once, whatever its peers do. Local.
  void abort() noexcept;

 private:
  Communicator(const Library& library, ncclComm_t native, std::string name, bool owned);

  const Library* library_;
  ncclComm_t native_;
  ncclComm_t no_child_ =
      nullptr;  // NCCL writes here when a split without a child has settled, not in the call
  std::unique_ptr<const std::string> name_;  // its characters must not move while NCCL has them
  bool owned_;
  bool is_blocking_ = false;
};

}  // namespace rankmesh::nccl
