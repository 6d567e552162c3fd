// SPDX-License-Identifier: BSD-3-Clause
#include "transport/detail/nccl_transport.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/detail/patience.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "transport/detail/local_transport.hpp"
#include "transport/detail/nccl_call.hpp"

namespace rankmesh {
namespace {

// The default streams are those of the current device.
void require_device_of(StreamRef stream, const NcclContext& context) {
  if (context.is_released()) return;  // a Work of a captured operation, after close()
  const void* native = stream.native();
  if (native == nullptr || native == cudaStreamLegacy || native == cudaStreamPerThread)
    device::require_current(context.claim.device());
}

class StreamPending final : public Pending {
 public:
  // @param comm  Null for copies.
  // @param own_work  The number of work on the group's own stream; 0 for other streams.
  StreamPending(StreamRef stream, const nccl::Communicator* comm,
                std::shared_ptr<NcclContext> context, std::uint64_t own_work = 0)
      : comm_{comm},
        context_{std::move(context)},
        event_{context_->take_event()},
        stream_{stream.native()},
        own_work_{own_work} {
    event_.record(stream);
  }
  ~StreamPending() override { context_->give_back(std::move(event_)); }
  StreamPending(const StreamPending&) = delete;
  StreamPending& operator=(const StreamPending&) = delete;
  void order_before(StreamRef stream) override {
    require_device_of(stream, *context_);
    require_working();
    event_.make_wait(stream);
    if (own_work_ != 0) context_->note_order(stream_, own_work_);
  }
  bool test() override {
    require_working();
    const bool has_ended = event_.query();
    if (has_ended && own_work_ != 0) context_->note_order(stream_, own_work_);
    return has_ended;
  }

 private:
  // Throws if NCCL has failed. In this case the event may never occur, or occur too early.
  void require_working() const {
    if (comm_ != nullptr) (void)comm_->is_ready();
  }

  const nccl::Communicator* comm_;
  std::shared_ptr<NcclContext> context_;
  device::Event event_;
  const void* stream_;
  std::uint64_t own_work_;
};

// From 2.27 to 2.30 at least, NCCL asks about an event in an operation outside of captures if
// captures or graphs hold operations of the communicator (ncclLaunchPrepare in src/enqueue.cc). In
// the capture mode of the thread, the question could invalidate a capture of the program, so such a
// call is made in relaxed mode.
bool asks_beside_graphs(bool is_captured, const NcclContext& context) {
  return !is_captured && context.graphs.hold_any();
}

}  // namespace

bool StreamTransport::supports(const Call& call) const {
  return call.is_on_device() && !facts_of(call.operation).nccl.empty();
}

StreamRef StreamTransport::stream() {
  device::require_current(context_->claim.device());
  if (stream_.native() == nullptr) stream_ = device::Stream::create(priority_);
  return StreamRef{stream_};
}

std::unique_ptr<Pending> StreamTransport::start(const Call& call) {
  return queue_after(call.stream, [&](StreamRef own) {
    Call moved = call;
    moved.stream = own;
    issue(moved);
  });
}

std::unique_ptr<Pending> StreamTransport::queue_after(StreamRef stream,
                                                      const std::function<void(StreamRef)>& queue) {
  (void)device::is_captured(stream);
  const StreamRef own_stream = this->stream();
  device::Event before = context_->take_event();
  before.record(stream);
  before.make_wait(own_stream);
  context_->give_back(std::move(before));
  // Copies of a group of one wait for nobody, so they need no order.
  const std::uint64_t own_work =
      comm_ == nullptr ? 0 : context_->note_own_work(own_stream.native(), group_);
  queue(own_stream);
  return std::make_unique<StreamPending>(own_stream, comm_, context_, own_work);
}

// An event in a stream that is being captured would become a part of the graph.
std::unique_ptr<Pending> StreamTransport::end_of(StreamRef stream) {
  if (is_capturing(stream)) return nullptr;
  return std::make_unique<StreamPending>(stream, nullptr, context_);
}

bool StreamTransport::is_capturing(StreamRef stream) const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  device::check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream.native()), &status),
                "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

void StreamTransport::wait(StreamRef ref, const Deadline& deadline,
                           const std::function<void()>& look) {
  require_device_of(ref, *context_);
  if (device::is_captured(ref))
    throw UsageError{fmt::format("'{}' cannot wait for a stream that is being captured", group_),
                     "end the capture first: what is captured does not run until the graph does"};
  const device::Stream stream = device::Stream::adopt(static_cast<cudaStream_t>(ref.native()));
  const auto is_done = [&] {
    look();
    const bool done = stream.query();
    if (comm_ != nullptr) (void)comm_->is_ready();  // throws if an error has ended the stream
    return done;
  };
  if (!poll_until(is_done, deadline))
    throw TimeoutError{fmt::format("the work of '{}' on a stream did not end within {} s", group_,
                                   deadline.seconds()),
                       "a collective on the stream may wait for other members: check what they do",
                       {}};
}

NcclTransport::NcclTransport(std::unique_ptr<nccl::Communicator> comm, int rank, int size,
                             Deadline::Duration timeout, int priority,
                             std::shared_ptr<NcclContext> context, BootstrapReport report,
                             int least_compute_capability)
    : StreamTransport{comm->name(), comm.get(), std::move(context), priority},
      comm_{std::move(comm)},
      rank_{rank},
      size_{size},
      timeout_{timeout},
      report_{std::move(report)},
      least_compute_capability_{least_compute_capability} {
  context_->add(*comm_);
}

NcclTransport::~NcclTransport() { context_->forget(*comm_); }

void NcclTransport::wait(StreamRef stream, const Deadline& deadline,
                         const std::function<void()>& look) {
  try {
    StreamTransport::wait(stream, deadline, look);
  } catch (const TimeoutError& error) {
    end_work_on(stream, error.message());
    throw;
  }
}

// Ends the operations of the group. Otherwise, the program could not free device memory, because
// cudaFree waits for them. If the stream waits for another group, the operations of all groups are
// ended, as in CallWatch.
void NcclTransport::end_work_on(StreamRef ref, const std::string& why) noexcept {
  if (!comm_->is_owned()) return;
  const auto abort_alone = [&](auto&&... comms) {
    const device::Claim::Issuing alone{context_->claim};  // no other thread is in a call of NCCL
    if (!context_->batch->is_open()) (void)context_->abort(comms..., why);
  };
  try {
    abort_alone(std::array{comm_.get()});
    const device::Stream stream = device::Stream::adopt(static_cast<cudaStream_t>(ref.native()));
    if (!poll_until([&] { return stream.query(); }, Deadline{detail::patience().aborted_call}))
      abort_alone();
  } catch (const std::exception&) {
    // That thread's call has a limit of its own, or CUDA has failed.
  }
}

void NcclTransport::require_supported(const Call& call) const {
  detail::validate_nccl_call(call, context_->library, least_compute_capability_, size_);
  // NCCL makes its own device current while it works (ncclGroupEndInternal in src/group.cc).
  require_device_of(call.stream, *context_);
  nccl::Batch::require_no_other(context_->batch.get());
  // NCCL launches the operations of a communicator that does not block in a thread of its own
  // (ncclGroupEndInternal in src/group.cc), where the handle means the stream of that thread.
  if (call.stream.native() == cudaStreamPerThread && !comm_->is_blocking())
    throw UsageError{
        fmt::format("{}: an operation on cudaStreamPerThread, and NCCL calls on the communicator "
                    "do not block",
                    comm_->name()),
        "use a stream that was created, or remove blocking = false from the options of the name; "
        "before NCCL 2.23, and if NCCL_COMM_BLOCKING is 0, calls never block"};
}

void NcclTransport::validate(const Call& call) const {
  require_supported(call);
  (void)device::is_captured(call.stream);
}

void NcclTransport::issue(const Call& call) {
  if (call.rows != 1) return issue_along_axis(call);
  require_supported(call);
  const device::Claim::Issuing alone{context_->claim};
  nccl::Batch& batch = *context_->batch;
  if (batch.is_open()) {
    comm_->require_whole();
    batch.add(*comm_);
  }
  // Throws if the capture is invalidated.
  last_issue_ = {call.stream.native(), context_->graphs.note(call.stream, comm_->name())};
  const bool asks = asks_beside_graphs(last_issue_.is_captured, *context_);
  // NCCL itself returns the error of an earlier operation (ncclEnqueueCheck in src/enqueue.cc).
  if (batch.is_open()) {
    if (asks) batch.relax();
    (void)detail::issue_nccl_call(call, *comm_, rank_, size_);
    return;
  }
  std::optional<device::RelaxedCaptureMode> relaxed;
  if (asks) [[unlikely]]
    relaxed.emplace();
  const auto limit = comm_->is_blocking() ? timeout_ : nccl::CallWatch::no_limit;
  context_->watch.run(std::array{comm_.get()}, limit, [&] {
    comm_->require_whole();
    if (detail::issue_nccl_call(call, *comm_, rank_, size_))
      comm_->wait_until_ready(Deadline{timeout_}, context_->control.get());
  });
}

bool NcclTransport::is_capturing(StreamRef stream) const {
  const bool is_known = last_issue_.stream == stream.native();
  return is_known ? last_issue_.is_captured : StreamTransport::is_capturing(stream);
}

bool NcclTransport::is_registered(const std::byte* address) const {
  const std::less_equal<const std::byte*> is_below;
  return std::ranges::any_of(registered_, [&](std::span<const std::byte> memory) {
    return is_below(memory.data(), address) && !is_below(memory.data() + memory.size(), address);
  });
}

void NcclTransport::warm_up(float* scratch, std::int64_t largest, const device::Stream& stream,
                            WaitMonitor& monitor, const WaitPoint& point,
                            const Deadline& deadline) {
  const auto begin = std::chrono::steady_clock::now();
  const Buffer value{reinterpret_cast<std::byte*>(scratch), 1, DataType::float32,
                     MemoryKind::device};
  issue(
      {.operation = Operation::all_reduce, .in = value.as_input(), .out = value, .stream = stream});
  Buffer received = value;
  received.data += sizeof(float);
  for (const int hop : {1, size_ - 1})  // both ways around the ring
    issue({.operation = Operation::send_recv,
           .in = value.as_input(),
           .out = received,
           .destination = RankInGroup{(rank_ + hop) % size_},
           .source = RankInGroup{(rank_ + size_ - hop) % size_},
           .stream = stream});
  // Between two sizes NCCL's choice rarely changes more than once.
  constexpr std::int64_t step = 64;
  for (std::int64_t bytes = std::int64_t{256} * size_; bytes < largest; bytes *= step)
    warm_up_collectives(scratch, bytes, stream);
  if (largest > 0) warm_up_collectives(scratch, largest, stream);
  // If a member fails, its verdict ends this wait.
  monitor.wait([&] { return stream.query(); }, point, deadline);
  report_.warm_up = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void NcclTransport::warm_up_collectives(float* scratch, std::int64_t bytes, StreamRef stream) {
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float)) / size_;
  const Buffer whole{reinterpret_cast<std::byte*>(scratch), count * size_, DataType::float32,
                     MemoryKind::device};
  const Buffer own = whole.slice(rank_ * count, count);
  if (count == 0) return;
  for (const Operation operation : {Operation::all_reduce, Operation::broadcast, Operation::reduce})
    issue({.operation = operation, .in = whole.as_input(), .out = whole, .stream = stream});
  issue({.operation = Operation::all_gather, .in = own.as_input(), .out = whole, .stream = stream});
  issue({.operation = Operation::reduce_scatter,
         .in = whole.as_input(),
         .out = own,
         .stream = stream});
}

void LocalDeviceTransport::issue(const Call& call) {
  const LocalCopy copy = local_copy(call);
  require_device_of(call.stream, *context_);
  (void)device::is_captured(call.stream);
  if (copy.out.count == 0) return;
  device::check(
      cudaMemcpyAsync(copy.out.data, copy.in.data, static_cast<std::size_t>(copy.out.bytes()),
                      cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(call.stream.native())),
      "cudaMemcpyAsync");
}

}  // namespace rankmesh
