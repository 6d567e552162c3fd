#include "transport/detail/nccl_transport.hpp"

#include <optional>

#include <fmt/format.h>

#include "rankmesh/device/stream.hpp"
#include "rankmesh/transport/local_transport.hpp"

namespace rankmesh {
namespace {

struct Element {
  ncclDataType_t type;
  std::size_t per_element = 1;  // NCCL elements in one of ours
};

Element element_of(DataType type) {
  switch (type) {
    case DataType::int8:
      return {ncclInt8};
    case DataType::uint8:
      return {ncclUint8};
    case DataType::int16:
    case DataType::uint16:
      return {ncclUint8, 2};
    case DataType::int32:
      return {ncclInt32};
    case DataType::uint32:
      return {ncclUint32};
    case DataType::int64:
      return {ncclInt64};
    case DataType::uint64:
      return {ncclUint64};
    case DataType::float16:
      return {ncclFloat16};
    case DataType::bfloat16:
      return {ncclBfloat16};
    case DataType::float32:
      return {ncclFloat32};
    case DataType::float64:
      return {ncclFloat64};
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
      return {ncclUint8};  // moved as bytes, which every NCCL can; see arithmetic_type()
  }
  return {ncclUint8};
}

// The type for reductions; nothing where the loaded NCCL, or the headers, have none.
std::optional<ncclDataType_t> arithmetic_type(DataType type, const nccl::Library& library) {
  if (type == DataType::float8_e4m3 || type == DataType::float8_e5m2) {
    if (library.version() >= 22400)
      return type == DataType::float8_e4m3 ? ncclFloat8e4m3 : ncclFloat8e5m2;
    return std::nullopt;
  }
  const Element element = element_of(type);
  return element.per_element == 1 ? std::optional{element.type} : std::nullopt;
}

ncclRedOp_t native(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return ncclSum;
    case ReduceOp::prod:
      return ncclProd;
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
    case ReduceOp::avg:
      return ncclAvg;
  }
  return ncclSum;
}

// The call in NCCL's terms.
class NcclIssue {
 public:
  NcclIssue(const Call& call, const nccl::Communicator& comm, int rank, int size)
      : call_{call},
        comm_{comm},
        nccl_{comm.library()},
        rank_{rank},
        size_{size},
        stream_{static_cast<cudaStream_t>(call.stream.native())},
        in_{element_of(call.in.type)},
        out_{element_of(call.out.type)} {
    if (reduces(call.operation)) in_.type = out_.type = *arithmetic_type(call.in.type, nccl_);
  }

  void operator()() {
    const Call& c = call_;
    const int root = static_cast<int>(c.root.value());
    if (c.has_blocks()) return blocks(root);
    switch (c.operation) {
      case Operation::barrier:
        throw UnsupportedError{"a barrier is the host's",
                               "synchronise the stream, or use the host's barrier"};
      case Operation::broadcast:
        return check(nccl_.Broadcast(c.out.data, c.out.data, count(c.out), out_.type, root,
                                     comm_.native(), stream_),
                     "ncclBroadcast");
      case Operation::all_reduce:
        return check(nccl_.AllReduce(c.in.data, c.out.data, count(c.in), in_.type,
                                     native(c.reduction), comm_.native(), stream_),
                     "ncclAllReduce");
      case Operation::reduce:
        return check(nccl_.Reduce(c.in.data, c.out.data, count(c.in), in_.type, native(c.reduction),
                                  root, comm_.native(), stream_),
                     "ncclReduce");
      case Operation::all_gather:
        return check(
            nccl_.AllGather(c.in.data, c.out.data, count(c.in), in_.type, comm_.native(), stream_),
            "ncclAllGather");
      case Operation::reduce_scatter:
        return check(nccl_.ReduceScatter(c.in.data, c.out.data, count(c.out), out_.type,
                                         native(c.reduction), comm_.native(), stream_),
                     "ncclReduceScatter");
      case Operation::gather:
        return grouped([&] {
          send(c.in, root);
          for (int r = 0; r < size_ && rank_ == root; ++r)
            recv(c.out.slice(r * c.in.count, c.in.count), r);
        });
      case Operation::scatter:
        return grouped([&] {
          for (int r = 0; r < size_ && rank_ == root; ++r)
            send(c.in.slice(r * c.out.count, c.out.count), r);
          recv(c.out, root);
        });
      case Operation::all_to_all:
        return grouped([&] {
          const std::int64_t n = c.in.count / size_;
          for (int r = 0; r < size_; ++r) {
            send(c.in.slice(r * n, n), r);
            recv(c.out.slice(r * n, n), r);
          }
        });
      case Operation::send:
        return send(c.in, static_cast<int>(c.destination.value()));
      case Operation::recv:
        return recv(c.out, static_cast<int>(c.source.value()));
      case Operation::send_recv:
        return grouped([&] {
          send(c.in, static_cast<int>(c.destination.value()));
          recv(c.out, static_cast<int>(c.source.value()));
        });
    }
  }

 private:
  // v-forms, as many operations as there are blocks, issued together. Empty blocks are left out at
  // both ends.
  void blocks(int root) {
    const Call& c = call_;
    grouped([&] {
      for (int r = 0; r < size_; ++r) {
        const auto k = static_cast<std::size_t>(r);
        const ConstBuffer in = block_of(c.in, c.in_blocks, k);
        const Buffer out = block_of(c.out, c.out_blocks, k);
        switch (c.operation) {
          case Operation::all_gather:
            if (out.count > 0)
              check(nccl_.Broadcast(c.in.data, out.data, count(out), out_.type, r, comm_.native(),
                                    stream_),
                    "ncclBroadcast");
            break;
          case Operation::reduce_scatter:
            if (in.count > 0)
              check(nccl_.Reduce(in.data, c.out.data, count(in), in_.type, native(c.reduction), r,
                                 comm_.native(), stream_),
                    "ncclReduce");
            break;
          case Operation::gather:
            if (r == rank_ && c.in.count > 0) send(c.in, root);
            if (rank_ == root && out.count > 0) recv(out, r);
            break;
          case Operation::scatter:
            if (rank_ == root && in.count > 0) send(in, r);
            if (r == rank_ && c.out.count > 0) recv(c.out, root);
            break;
          default:  // all_to_all: the checks let no other pass
            if (in.count > 0) send(in, r);
            if (out.count > 0) recv(out, r);
        }
      }
    });
  }

  template <class B>
  static std::size_t count(const B& buffer) {
    return static_cast<std::size_t>(buffer.count) * element_of(buffer.type).per_element;
  }
  void check(ncclResult_t code, const char* function) const {
    nccl_.check(code, function, comm_.native());
  }
  void send(ConstBuffer in, int to) {
    check(nccl_.Send(in.data, count(in), in_.type, to, comm_.native(), stream_), "ncclSend");
  }
  void recv(Buffer out, int from) {
    check(nccl_.Recv(out.data, count(out), out_.type, from, comm_.native(), stream_), "ncclRecv");
  }

  // The group is closed whatever happens inside, else the thread would stay in it.
  template <class Calls>
  void grouped(Calls&& calls) {
    check(nccl_.GroupStart(), "ncclGroupStart");
    try {
      calls();
    } catch (...) {
      (void)nccl_.GroupEnd();
      throw;
    }
    check(nccl_.GroupEnd(), "ncclGroupEnd");
  }

  const Call& call_;
  const nccl::Communicator& comm_;
  const nccl::Library& nccl_;
  int rank_, size_;
  cudaStream_t stream_;
  Element in_, out_;
};

class StreamPending final : public Pending {
 public:
  // @param comm  null for copies.
  StreamPending(StreamRef stream, const nccl::Communicator* comm) : comm_{comm} {
    event_.record(stream);
  }
  void order_before(StreamRef stream) override { event_.make_wait(stream); }
  bool test() override {
    if (comm_ != nullptr)
      (void)comm_->is_ready();  // what failed says so, and may never end or seem to have ended
    return event_.query();
  }

 private:
  const nccl::Communicator* comm_;
  device::Event event_;
};

bool is_device_call(const Call& call) {
  return call.in.kind == MemoryKind::device || call.out.kind == MemoryKind::device;
}

// What NCCL would refuse, or worse: the group is as good as before.
void refuse_unsupported(const Call& call, const nccl::Library& library) {
  if (call.operation == Operation::all_to_all && call.in.data == call.out.data && call.in.count > 0)
    throw UnsupportedError{
        "NCCL has no all_to_all in place: it would overwrite what is still to be sent",
        "use separate memory"};
  if (reduces(call.operation) && !arithmetic_type(call.in.type, library))
    throw UnsupportedError{fmt::format("NCCL {} does no arithmetic on {}", library.version_text(),
                                       to_string(call.in.type)),
                           "use 32-bit integers, or wider floats (8-bit ones need NCCL 2.24)"};
}

}  // namespace

bool NcclTransport::supports(const Call& call) const {
  return is_device_call(call) && call.operation != Operation::barrier;
}

void NcclTransport::validate(const Call& call) const {
  refuse_unsupported(call, comm_.library());
  device::require_current(claim_.device());
  nccl::Batch::require_no_other(&batch_);
}

void NcclTransport::run(const Call& call) {
  if (call.rows != 1) return run_along_axis(call);
  validate(call);
  const device::Claim::Issuing alone{claim_};
  if (!batch_.is_open()) (void)comm_.is_ready();  // an earlier operation's failure surfaces here
  graphs_.note(call.stream, comm_.name());
  NcclIssue{call, comm_, rank_, size_}();
  if (batch_.is_open())
    batch_.add(comm_);
  else
    comm_.wait_until_ready(Deadline{timeout_});
}

// Each member's block is one copy in two dimensions: its stretches lie `size` stretches apart in
// the whole.
void NcclTransport::run_along_axis(const Call& call) {
  device::require_current(claim_.device());
  const bool gathers =
      call.operation == Operation::all_gather || call.operation == Operation::gather;
  const bool is_rooted =
      call.operation == Operation::gather || call.operation == Operation::scatter;
  const bool has_whole = !is_rooted || call.root.value() == rank_;
  Call plain = call;
  plain.rows = 1;
  if (!has_whole) return run(plain);

  auto* stream = static_cast<cudaStream_t>(call.stream.native());
  const auto block = static_cast<std::size_t>(gathers ? call.in.bytes() : call.out.bytes());
  const auto rows = static_cast<std::size_t>(call.rows);
  const auto n = static_cast<std::size_t>(size_);
  const std::size_t stretch = block / rows;
  void* memory = nullptr;
  device::check(cudaMallocAsync(&memory, n * block, stream), "cudaMallocAsync");
  auto* packed = static_cast<std::byte*>(memory);
  const auto copy = [&](std::byte* to, std::size_t to_pitch, const std::byte* from,
                        std::size_t from_pitch) {
    device::check(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, stretch, rows,
                                    cudaMemcpyDeviceToDevice, stream),
                  "cudaMemcpy2DAsync");
  };
  try {
    if (gathers) {
      plain.out.data = packed;
      run(plain);
      for (std::size_t k = 0; k < n; ++k)
        copy(call.out.data + k * stretch, n * stretch, packed + k * block, stretch);
    } else {
      for (std::size_t k = 0; k < n; ++k)
        copy(packed + k * block, stretch, call.in.data + k * stretch, n * stretch);
      plain.in.data = packed;
      run(plain);
    }
  } catch (...) {
    (void)cudaFreeAsync(memory, stream);
    throw;
  }
  device::check(cudaFreeAsync(memory, stream), "cudaFreeAsync");
}

std::unique_ptr<Pending> NcclTransport::start(const Call& call) {
  run(call);
  return std::make_unique<StreamPending>(call.stream, &comm_);
}

bool LocalDeviceTransport::supports(const Call& call) const {
  return is_device_call(call) && call.operation != Operation::barrier;
}

void LocalDeviceTransport::run(const Call& call) {
  const LocalCopy copy = local_copy(call);
  if (copy.out.count == 0) return;
  device::check(
      cudaMemcpyAsync(copy.out.data, copy.in.data, static_cast<std::size_t>(copy.out.bytes()),
                      cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(call.stream.native())),
      "cudaMemcpyAsync");
}

std::unique_ptr<Pending> LocalDeviceTransport::start(const Call& call) {
  run(call);
  return std::make_unique<StreamPending>(call.stream, nullptr);
}

}  // namespace rankmesh
