// SPDX-License-Identifier: BSD-3-Clause
#include "transport/detail/nccl_transport.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/transport/local_transport.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "transport/detail/nccl_call.hpp"

namespace rankmesh {
namespace {

class StreamPending final : public Pending {
 public:
  // @param comm  Null for copies.
  StreamPending(StreamRef stream, const nccl::Communicator* comm) : comm_{comm} {
    event_.record(stream);
  }
  void order_before(StreamRef stream) override { event_.make_wait(stream); }
  bool test() override {
    // Throws if NCCL has failed: the event may then never happen, or happen too early.
    if (comm_ != nullptr) (void)comm_->is_ready();
    return event_.query();
  }

 private:
  const nccl::Communicator* comm_;
  device::Event event_;
};

// An event in a stream that is being captured would become a part of the graph.
std::unique_ptr<Pending> end_of_work(StreamRef stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  device::check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream.native()), &status),
                "cudaStreamIsCapturing");
  if (status != cudaStreamCaptureStatusNone) return nullptr;
  return std::make_unique<StreamPending>(stream, nullptr);
}

bool is_device_call(const Call& call) {
  return call.in.kind == MemoryKind::device || call.out.kind == MemoryKind::device;
}

// Returns the call on the group's own stream, ordered after the work that the call's stream holds.
Call moved_to(StreamRef own_stream, const Call& call) {
  device::Event before;
  before.record(call.stream);
  before.make_wait(own_stream);
  Call moved = call;
  moved.stream = own_stream;
  return moved;
}

// Waits on the host for a stream. @param comm  Null for a group of one.
void wait_for(StreamRef ref, const nccl::Communicator* comm, const std::string& group,
              const Deadline& deadline) {
  const device::Stream stream = device::Stream::adopt(static_cast<cudaStream_t>(ref.native()));
  const auto is_done = [&] {
    const bool done = stream.query();
    if (comm != nullptr) (void)comm->is_ready();  // throws if the stream ended because of an error
    return done;
  };
  if (!poll_until(is_done, deadline))
    throw TimeoutError{
        fmt::format("the work of '{}' on a stream did not end within {} s", group,
                    deadline.seconds()),
        "a collective on the stream may wait for other members: check what they do, or "
        "end the collective with Mesh::abort()",
        {}};
}

}  // namespace

StreamRef OwnStream::get() {
  device::require_current(context_->claim.device());
  if (stream_.native() == nullptr) stream_ = device::Stream::create(priority_);
  return StreamRef{stream_};
}

NcclTransport::NcclTransport(std::unique_ptr<nccl::Communicator> comm, int rank, int size,
                             Deadline::Duration timeout, int priority,
                             std::shared_ptr<NcclContext> context, BootstrapReport report)
    : comm_{std::move(comm)},
      rank_{rank},
      size_{size},
      timeout_{timeout},
      context_{std::move(context)},
      stream_{context_, priority},
      report_{std::move(report)} {}

bool NcclTransport::supports(const Call& call) const {
  return is_device_call(call) && call.operation != Operation::barrier;
}

void NcclTransport::validate(const Call& call) const {
  detail::validate_nccl_call(call, context_->library);
  device::require_current(context_->claim.device());
  nccl::Batch::require_no_other(context_->batch.get());
}

void NcclTransport::issue(const Call& call) {
  if (call.rows != 1) return issue_along_axis(call);
  validate(call);
  const device::Claim::Issuing alone{context_->claim};
  nccl::Batch& batch = *context_->batch;
  if (!batch.is_open()) (void)comm_->is_ready();  // throws if an earlier operation failed
  context_->graphs.note(call.stream, comm_->name());
  detail::issue_nccl_call(call, *comm_, rank_, size_);
  if (batch.is_open())
    batch.add(*comm_);
  else
    comm_->wait_until_ready(Deadline{timeout_});
}

// Packs or unpacks blocks along an axis on the stream. Each member's block is one two-dimensional
// copy: its pieces are contiguous in the packed block, and `size` pieces apart in the whole array.
void NcclTransport::issue_along_axis(const Call& call) {
  device::require_current(context_->claim.device());
  const bool gathers =
      call.operation == Operation::all_gather || call.operation == Operation::gather;
  const bool is_rooted =
      call.operation == Operation::gather || call.operation == Operation::scatter;
  const bool has_whole = !is_rooted || call.root.value() == rank_;
  Call plain = call;
  plain.rows = 1;
  if (!has_whole) return issue(plain);

  auto* stream = static_cast<cudaStream_t>(call.stream.native());
  const auto block = static_cast<std::size_t>(gathers ? call.in.bytes() : call.out.bytes());
  const auto rows = static_cast<std::size_t>(call.rows);
  const auto n = static_cast<std::size_t>(size_);
  const std::size_t piece = block / rows;
  void* memory = nullptr;
  device::check(cudaMallocAsync(&memory, n * block, stream), "cudaMallocAsync");
  auto* packed = static_cast<std::byte*>(memory);
  const auto copy = [&](std::byte* to, std::size_t to_pitch, const std::byte* from,
                        std::size_t from_pitch) {
    device::check(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, piece, rows,
                                    cudaMemcpyDeviceToDevice, stream),
                  "cudaMemcpy2DAsync");
  };
  try {
    if (gathers) {
      plain.out.data = packed;
      issue(plain);
      for (std::size_t k = 0; k < n; ++k)
        copy(call.out.data + k * piece, n * piece, packed + k * block, piece);
    } else {
      for (std::size_t k = 0; k < n; ++k)
        copy(packed + k * block, piece, call.in.data + k * piece, n * piece);
      plain.in.data = packed;
      issue(plain);
    }
  } catch (...) {
    (void)cudaFreeAsync(memory, stream);
    throw;
  }
  device::check(cudaFreeAsync(memory, stream), "cudaFreeAsync");
}

std::unique_ptr<Pending> NcclTransport::start(const Call& call) {
  const Call own = moved_to(stream(), call);
  issue(own);
  return std::make_unique<StreamPending>(own.stream, comm_.get());
}

std::unique_ptr<Pending> NcclTransport::end_of(StreamRef stream) { return end_of_work(stream); }

void NcclTransport::wait(StreamRef stream, const Deadline& deadline) {
  wait_for(stream, comm_.get(), comm_->name(), deadline);
}

void NcclTransport::warm_up(float* scratch, const device::Stream& stream, WaitMonitor& monitor,
                            const WaitPoint& point, const Deadline& deadline) {
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
  // If a member fails, its verdict ends this wait.
  monitor.wait([&] { return stream.query(); }, point, deadline);
  report_.warm_up = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool LocalDeviceTransport::supports(const Call& call) const {
  return is_device_call(call) && call.operation != Operation::barrier;
}

void LocalDeviceTransport::copy(const Call& call) {
  const LocalCopy copy = local_copy(call);
  if (copy.out.count == 0) return;
  device::check(
      cudaMemcpyAsync(copy.out.data, copy.in.data, static_cast<std::size_t>(copy.out.bytes()),
                      cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(call.stream.native())),
      "cudaMemcpyAsync");
}

std::unique_ptr<Pending> LocalDeviceTransport::start(const Call& call) {
  const Call own = moved_to(stream(), call);
  copy(own);
  return std::make_unique<StreamPending>(own.stream, nullptr);
}

std::unique_ptr<Pending> LocalDeviceTransport::end_of(StreamRef stream) {
  return end_of_work(stream);
}

void LocalDeviceTransport::wait(StreamRef stream, const Deadline& deadline) {
  wait_for(stream, nullptr, group_, deadline);
}

}  // namespace rankmesh
