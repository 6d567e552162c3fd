// Asynchronous operations that are not complete.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "connection.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/wait/wait_monitor.hpp"
#include "rankmesh/wait/wait_point.hpp"
#include "slow_path_reasons.hpp"

namespace rankmesh::detail {

/// An asynchronous operation, from its call until it is complete or has failed.
struct AsyncOperation {
  std::shared_ptr<Connection> connection;
  WaitPoint point;
  StreamRef stream;  ///< The caller's, for operations on device memory.
  bool is_on_device = false;
  bool is_deferred = false;  ///< It belongs to a batch that has not ended, so it is not issued.
  Transport* transport = nullptr;    ///< The one that carries it on host memory.
  std::unique_ptr<Pending> pending;  ///< Null before it is issued, and once it has ended.
  std::shared_ptr<void> kept;        ///< Buffers that were moved into the operation.
  std::string failure;               ///< Why it will never be complete; empty while it may be.

  [[nodiscard]] bool is_polled() const { return transport != nullptr && transport->is_polled(); }
};

/// All operations of one mesh that are in flight, in the order of issue. A Work that is dropped
/// loses nothing: its operation stays here.
class OperationsInFlight {
 public:
  explicit OperationsInFlight(SlowPathReasons& reasons) : reasons_{reasons} {}

  void add(std::shared_ptr<AsyncOperation> operation);
  /// Makes progress. Returns true once the operation is complete, and forgets it then.
  /// @throws what the operation failed with.
  bool test(AsyncOperation& operation);
  /// Waits on the host. @throws TimeoutError, after which the group is broken and the operation's
  /// memory is leaked, because MPI may still use it.
  void wait(AsyncOperation& operation, WaitMonitor& monitor, const Deadline& deadline);

  /// Makes progress on all operations. A failure is kept for whoever waits for the operation.
  void progress();
  /// Makes progress on what nothing but rankmesh carries on.
  void advance_polled();
  /// Waits for all operations of this connection (null: of any). @throws what the first failed
  /// with.
  void finish(const Connection* only, WaitMonitor& monitor, const Deadline& deadline);
  /// Waits for all polled operations, each with its group's timeout.
  void finish_polled(WaitMonitor& monitor);
  /// Gives all operations up, and leaks the memory that MPI may still use.
  void abandon() noexcept;

 private:
  void forget(const AsyncOperation& operation);
  void fail(AsyncOperation& operation, const std::string& why);

  SlowPathReasons& reasons_;
  std::vector<std::shared_ptr<AsyncOperation>> list_;
};

}  // namespace rankmesh::detail
