// SPDX-License-Identifier: BSD-3-Clause
// Runs calls: checks them, and passes them to a transport or to the open batch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "check_call.hpp"
#include "connection.hpp"
#include "lifetime.hpp"
#include "mesh_runtime.hpp"
#include "message_sequence.hpp"
#include "rankmesh/group/work.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/transport/call.hpp"
#include "router.hpp"
#include "transport/detail/published_call.hpp"

namespace rankmesh::detail {

/// Runs the calls of one coordinator. It checks a call, replaces it by a ScratchCall if no
/// transport carries it as it is, chooses the transport, and waits with a deadline, or defers the
/// call to the end of the open batch.
class CallDispatcher final : private Waiter {
 public:
  /// @param name  The name of the group; used in messages.
  CallDispatcher(std::string name, std::shared_ptr<Connection> connection,
                 std::shared_ptr<MeshRuntime> runtime);
  ~CallDispatcher();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] RankInGroup self() const { return self_; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Returns the number of this coordinator among those that share the connection.
  [[nodiscard]] std::uint32_t name_index() const;
  [[nodiscard]] Connection& connection() const { return *connection_; }
  [[nodiscard]] const std::shared_ptr<Connection>& shared_connection() const { return connection_; }
  [[nodiscard]] const std::shared_ptr<MeshRuntime>& runtime() const { return runtime_; }

  /// Returns the object that tells whether this coordinator still exists.
  [[nodiscard]] std::shared_ptr<const Lifetime> lifetime() const { return lifetime_; }

  /// Runs a call on ordinary host memory; blocks. Every instruction counts here:
  /// scripts/router-cost counts them. If anything is unusual or invalid, the
  /// checked path takes over.
  template <Operation operation>
  [[gnu::always_inline]] void run_fast(const Call& call) {
    MeshRuntime& runtime = *runtime_;
    const CallLock lock{runtime};
    if (connection_->is_usable() && !runtime.slow_path.any() &&
        is_valid_fast<operation>(call, self_, size_)) [[likely]] {
      if constexpr (is_point_to_point(operation)) connection_->messages.add(call);
      return router_.choose_fast<operation>(call).run(call, *this);
    }
    run_checked(call);
  }
  /// Runs any call; blocks on host memory.
  void run(const Call& call);
  /// Starts any call; does not block.
  /// @param kept    Stays alive until the operation is complete.
  /// @param finish  See GroupAccess::start().
  [[nodiscard]] Work start(const Call& call, std::shared_ptr<void> kept,
                           std::function<void()> finish = {});
  /// Starts an operation that consists of several messages; does not block.
  [[nodiscard]] Work start(const SequenceDescription& description,
                           std::unique_ptr<MessageSequence> sequence);
  /// Starts an operation on device memory that consists of copies and messages. It runs on the
  /// group's own stream, after the work that `stream` holds now.
  [[nodiscard]] Work start(const SequenceDescription& description, StreamRef stream,
                           std::shared_ptr<DeviceSequence> sequence);
  /// The comparison of a call on device memory with the calls of the other members.
  struct Comparison {
    WaitPoint point;
    std::unique_ptr<Pending> pending;  // null without the option `check`
  };
  /// Starts the comparison of a call on device memory; does not block.
  [[nodiscard]] Comparison start_comparison(const Call& call);
  /// Waits for a comparison.
  /// @throws MismatchError if the members make different calls; TimeoutError if a member is
  /// missing.
  void finish(const Comparison& comparison);
  /// Issues a deferred call of this dispatcher, at the end of its batch. Returns the record of a
  /// call on device memory, for follow().
  RecordedCall issue(const DeferredCall& call);
  /// Records when the device has finished a call that NCCL has taken.
  void follow(RecordedCall recorded, StreamRef stream, Operation operation);

  /// Returns the size in bytes of a message that has arrived; see RoutedTransport::arrived().
  [[nodiscard]] std::optional<std::int64_t> arrived(RankInGroup from, int tag);

  /// Returns the transport that carries a call, and the reasons. Local. The call needs no memory.
  [[nodiscard]] RouteExplanation explain(const Call& call, bool capture) const;
  /// Returns the device transport.
  /// @throws NoDeviceError if the group has no device transport; the error gives the reason.
  [[nodiscard]] DeviceTransport& device(std::string_view operation) const;
  /// Blocks the host until the stream is idle.
  void wait_for_stream(StreamRef stream);
  /// Throws ClosedError if the mesh or the group is closed.
  /// @param hint  The hint of the error.
  void require_open(const char* hint) const;
  /// See GroupAccess::require_no_batch(). The caller has a CallLock.
  void require_no_batch(std::string_view function) const;

 private:
  void wait(const Call& call, std::uint64_t number, const std::function<bool()>& done,
            const std::function<std::vector<std::int64_t>()>& awaited,
            const std::function<bool()>& may_give_up) override;
  void poll(WaitPoint point, const std::function<bool()>& done);
  /// Polls, and marks the group as broken if the wait fails.
  void await(WaitPoint point, const std::function<bool()>& done);
  void finish(const Call& call, std::uint64_t number, std::unique_ptr<Pending> pending) override;
  [[nodiscard]] std::string activity_of(const Call& call) const override;

  [[nodiscard]] const CallRanges* ranges() const;
  [[gnu::noinline]] void run_checked(const Call& call);
  void route(const Call& call);
  [[nodiscard]] Work start_checked(const Call& call, std::shared_ptr<void> kept,
                                   std::function<void()> finish);
  template <class Action>
  void keeping_failure(const Call& call, Action&& action);
  [[noreturn]] void out_of_memory(const Call& call, const WaitPoint& point);
  /// Checks a call. Returns the transport of a call on device memory; null for other calls.
  RoutedTransport* check(const Call& call) const;
  [[nodiscard]] bool is_usable() const;
  [[noreturn]] void throw_unusable(std::string_view function) const;
  [[nodiscard]] WaitPoint point_of(const SequenceDescription& description,
                                   std::vector<int> members) const;
  void issue_together(const std::vector<Call>& calls);
  [[nodiscard]] std::shared_ptr<AsyncOperation> operation_of(
      const SequenceDescription& description, std::unique_ptr<MessageSequence> sequence) const;
  void run_on_device(const Call& call, RoutedTransport& transport);
  void compare_on_device(const Call& call, const RoutedTransport& transport);
  [[nodiscard]] Call of_caller(const Call& call) const;
  void run_on_host(const Call& call);
  void run_in_mpi_beside_polled(const Call& call, RoutedTransport& transport);
  /// Waits for the polled collectives of these meshes, each with the timeout of its group.
  void finish_polled_collectives(const std::vector<std::shared_ptr<MeshRuntime>>& meshes);
  /// Returns the transport of the program that carries a call on device memory; null if none does.
  [[nodiscard]] RoutedTransport* program_transport(const Call& call) const;
  void run_on_scratch(const Call& call);
  void run_polled(const Call& call);
  void start_on_device(const Call& call, RoutedTransport& transport, AsyncOperation& operation);
  void watch_own_stream(Operation operation);
  void start_on_host(const Call& call, AsyncOperation& operation);
  template <class Action>
  void breaking_on_failure(Action&& action);
  template <class Wait>
  void breaking_group(Wait&& wait);
  [[nodiscard]] RoutedTransport& transport_for(const Call& call) const;
  /// Returns the number of a call that is issued next; 0 for messages.
  [[nodiscard]] std::uint64_t next_number(const Call& call) const;
  [[nodiscard]] WaitPoint point_of(const Call& call, std::uint64_t number) const;
  /// Records a call for which this object waits, or an asynchronous call. Transports record the
  /// calls that they run.
  /// @param bits  See RecordedCall.
  [[nodiscard]] RecordedCall record(const Call& call, std::uint64_t number,
                                    const RoutedTransport& transport, std::uint64_t bits) const;
  [[nodiscard]] RecordedCall record_on_device(const Call& call, const RoutedTransport& transport,
                                              std::uint64_t bits);
  /// Returns a function that returns point_of(call, number) when neither the call nor this object
  /// need exist any more.
  [[nodiscard]] std::function<WaitPoint(const GroupDescription&)> describing(
      const Call& call, std::uint64_t number) const;
  [[nodiscard]] WaitPoint point_of_message(const Call& call) const;
  [[nodiscard]] WaitPoint collective_point(const Call& call, std::uint64_t number) const;

  std::string name_;
  Publication publication_;
  std::shared_ptr<Lifetime> lifetime_ = std::make_shared<Lifetime>(name_);
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<MeshRuntime> runtime_;
  RankInGroup self_;
  std::int64_t size_;
  Router router_;
};

}  // namespace rankmesh::detail
