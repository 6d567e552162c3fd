// Takes a call from the check to its transport, or to the queue of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "check_call.hpp"
#include "connection.hpp"
#include "mesh_runtime.hpp"
#include "rankmesh/group/work.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/transport/call.hpp"
#include "router.hpp"

namespace rankmesh::detail {

/// Carries the calls of one coordinator: checks them, chooses the transport, waits with a deadline,
/// lowers what no transport carries, and defers what belongs to a batch.
class CallDispatcher final : private Waiter {
 public:
  /// @param name  Of the group, for messages.
  CallDispatcher(std::string name, std::shared_ptr<Connection> connection,
                 std::shared_ptr<MeshRuntime> runtime);
  ~CallDispatcher();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] RankInGroup self() const { return self_; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] Connection& connection() const { return *connection_; }
  [[nodiscard]] const std::shared_ptr<MeshRuntime>& runtime() const { return runtime_; }

  /// Runs a call on ordinary host memory; blocks. Every instruction counts here:
  /// scripts/router-cost counts them. Whatever is unusual or wrong is left to the checked path.
  template <Operation operation>
  [[gnu::always_inline]] void run_fast(const Call& call) {
    MeshRuntime& runtime = *runtime_;
    const CallLock lock{runtime};
    if (connection_->is_usable() && !runtime.slow_path.any() &&
        is_valid_fast<operation>(call, self_, size_)) [[likely]]
      return router_.choose_fast<operation>(call).run(call, *this);
    run_checked(call);
  }
  /// Runs any call; blocks on host memory.
  void run(const Call& call);
  /// Starts any call. @param kept  Stays alive until the operation is complete.
  [[nodiscard]] Work start(const Call& call, std::shared_ptr<void> kept);
  /// Issues a call of this dispatcher whose batch ends.
  void issue(const DeferredCall& call);

  /// Says which transport serves a call, and why. Local. The call needs no memory.
  [[nodiscard]] RouteExplanation explain(const Call& call, bool capture) const;
  /// @throws NoDeviceError, with the reason, where the group has no device transport.
  [[nodiscard]] DeviceTransport& device(std::string_view operation) const;
  /// Waits on the host until the stream has run everything that it holds.
  void wait_for_stream(StreamRef stream);
  /// @throws ClosedError after close(). @param hint  What the caller should have done.
  void require_open(const char* hint) const;

 private:
  void wait(const Call& call, std::uint64_t number, const std::function<bool()>& done) override;

  [[gnu::noinline]] void run_checked(const Call& call);
  void check(const Call& call, bool on_device) const;
  void run_on_device(const Call& call);
  void run_on_host(const Call& call);
  void run_lowered(const Call& call);
  void run_with_deadline(const Call& call, Deadline::Duration duration);
  void start_on_host(const Call& call, AsyncOperation& operation);
  template <class Action>
  void breaking_on_failure(Action&& action);
  [[nodiscard]] Transport& transport_for(const Call& call) const;
  [[nodiscard]] WaitPoint wait_point(const Call& call);

  std::string name_;
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<MeshRuntime> runtime_;
  RankInGroup self_;
  std::int64_t size_;
  Router router_;
};

}  // namespace rankmesh::detail
