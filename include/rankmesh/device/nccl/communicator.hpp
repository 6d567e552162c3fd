// An NCCL communicator that is owned, or adopted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/nccl/library.hpp"

namespace rankmesh::nccl {

/// What a communicator is made with; the same on all its ranks. Unset: NCCL's own choice. Options that the
/// loaded NCCL does not know are ignored by it.
struct Config {
  std::optional<int> min_ctas{};
  std::optional<int> max_ctas{};
  std::optional<int> cga_cluster_size{};
  std::optional<int> traffic_class{};
};

/// Non-blocking: a call may answer *in progress*, and nothing else may follow on it, be recorded behind it or
/// end a capture until settle() has seen success. Move-only through unique_ptr. One thread.
class RANKMESH_API Communicator {
 public:
  /// Begins an init; returns at once. Collective over the `ranks` members, which pass the same IDs in the
  /// same order.
  /// @param ids   one per several ranks: more than one needs NCCL 2.23.
  /// @param name  shows in NCCL's own logs (2.27); kept alive with the communicator.
  static std::unique_ptr<Communicator> begin(const Library& library, std::span<const ncclUniqueId> ids,
                                             int ranks, int rank, std::string name, const Config& config);
  /// One that the user made; never finalised, destroyed or aborted here.
  static std::unique_ptr<Communicator> adopt(const Library& library, ncclComm_t native, std::string name);
  /// Aborts, locally and without waiting, what was not destroyed.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] ncclComm_t native() const noexcept { return native_; }
  [[nodiscard]] const std::string& name() const noexcept { return *name_; }
  [[nodiscard]] const Library& library() const noexcept { return *library_; }

  /// Whether the last call is through. @throws NcclError where it, or an earlier operation, failed.
  [[nodiscard]] bool is_settled() const;
  /// Polls until it is. @throws TimeoutError, NcclError.
  void settle(const Deadline& deadline) const;

  /// Begins to end it: operations under way complete. Collective; settle, then destroy().
  void finalize();
  /// Frees it. After finalize() and settle().
  void destroy();
  /// Ends it at once, whatever its peers do. Local.
  void abort() noexcept;

 private:
  Communicator(const Library& library, ncclComm_t native, std::string name, bool owned);

  const Library* library_;
  ncclComm_t native_;
  std::unique_ptr<const std::string> name_;  // its characters must not move while NCCL has them
  bool owned_;
};

}  // namespace rankmesh::nccl
