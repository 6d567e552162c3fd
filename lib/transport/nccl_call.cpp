// SPDX-License-Identifier: BSD-3-Clause
#include "transport/detail/nccl_call.hpp"

#include <limits>
#include <optional>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

constexpr int least_for_8_bit_floats = 90;

struct Element {
  ncclDataType_t type;
  std::size_t per_element = 1;  // elements of NCCL per element of the call
};

Element element_of(DataType type) {
  // In the order of DataType. Numbers of 8 bits are transferred as bytes, which every NCCL
  // supports; see arithmetic_type().
  constexpr Element elements[] = {{ncclInt8},    {ncclUint8},    {ncclUint8, 2}, {ncclUint8, 2},
                                  {ncclInt32},   {ncclUint32},   {ncclInt64},    {ncclUint64},
                                  {ncclFloat16}, {ncclBfloat16}, {ncclFloat32},  {ncclFloat64},
                                  {ncclUint8},   {ncclUint8}};
  static_assert(std::size(elements) == static_cast<std::size_t>(DataType::float8_e5m2) + 1);
  return elements[static_cast<std::size_t>(type)];
}

// Returns the type for reductions; nothing if the loaded NCCL or the headers have none.
std::optional<ncclDataType_t> arithmetic_type(DataType type, const nccl::Library& library) {
  if (type == DataType::float8_e4m3 || type == DataType::float8_e5m2) {
    if (library.version() >= 22400)
      return type == DataType::float8_e4m3 ? ncclFloat8e4m3 : ncclFloat8e5m2;
    return std::nullopt;
  }
  const Element element = element_of(type);
  return element.per_element == 1 ? std::optional{element.type} : std::nullopt;
}

// Returns the size of the largest group over which NCCL computes an accurate average of a type.
// NCCL rounds the factor 1/size to the type. Below the smallest normal number, this loses some or
// all digits.
std::int64_t largest_average(DataType type) {
  if (type == DataType::float8_e4m3) return std::int64_t{1} << 6;
  if (type == DataType::float8_e5m2 || type == DataType::float16) return std::int64_t{1} << 14;
  return std::numeric_limits<std::int64_t>::max();
}

ncclRedOp_t native(ReduceOp op) {
  constexpr ncclRedOp_t ops[] = {ncclSum, ncclProd, ncclMin, ncclMax, ncclAvg};  // as ReduceOp
  static_assert(std::size(ops) == static_cast<std::size_t>(ReduceOp::avg) + 1);
  return ops[static_cast<std::size_t>(op)];
}

// Issues a call with functions of NCCL.
class NcclIssue {
 public:
  NcclIssue(const Call& call, const nccl::Communicator& comm, int rank, int size)
      : call_{call},
        comm_{comm},
        nccl_{comm.library()},
        rank_{rank},
        size_{size},
        stream_{static_cast<cudaStream_t>(call.stream.native())},
        in_{reduces(call.operation) ? Element{*arithmetic_type(call.in.type, nccl_)}
                                    : element_of(call.in.type)},
        out_{reduces(call.operation) ? in_ : element_of(call.out.type)} {}

  [[nodiscard]] bool is_in_progress() const { return is_in_progress_; }

  void operator()() {
    const Call& c = call_;
    const int root = static_cast<int>(c.root.value());
    if (c.has_blocks()) return blocks(root);
    switch (c.operation) {
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
        return gather(root);
      case Operation::scatter:
        return scatter(root);
      case Operation::all_to_all:
        return all_to_all(root);
      case Operation::send:
        return send(c.in, static_cast<int>(c.destination.value()));
      case Operation::recv:
        return recv(c.out, static_cast<int>(c.source.value()));
      case Operation::send_recv:
        return grouped([&] {
          send(c.in, static_cast<int>(c.destination.value()));
          recv(c.out, static_cast<int>(c.source.value()));
        });
      default:  // see OperationFacts::nccl
        throw UnsupportedError{fmt::format("NCCL has no {}", to_string(c.operation)),
                               "synchronise the stream, and use the operation on the host"};
    }
  }

 private:
  // With copy engines, NCCL reads the offset of the buffer at the root from the buffer that each
  // member passes (ncclCeGather and ncclCeScatter in src/ce_coll.cc). In rankmesh, members other
  // than the root need not pass this buffer, so these functions are called only with the option.
  // Along an axis, the root passes other memory than the program.
  [[nodiscard]] bool gathers_as_one() const {
    return comm_.prefers_copy_engines() && call_.original == nullptr && nccl_.Gather != nullptr &&
           nccl_.Scatter != nullptr;
  }

  void gather(int root) {
    const Call& c = call_;
    if (!gathers_as_one()) return blocks(root);
    check(nccl_.Gather(c.in.data, c.out.data, count(c.in), in_.type, root, comm_.native(), stream_),
          "ncclGather");
  }
  void scatter(int root) {
    const Call& c = call_;
    if (!gathers_as_one()) return blocks(root);
    check(nccl_.Scatter(c.in.data, c.out.data, count(c.out), out_.type, root, comm_.native(),
                        stream_),
          "ncclScatter");
  }
  void all_to_all(int root) {
    const Call& c = call_;
    const std::int64_t n = c.in.count / size_;
    if (nccl_.AlltoAll == nullptr) return blocks(root);
    check(nccl_.AlltoAll(c.in.data, c.out.data, count(c.in.slice(0, n)), in_.type, comm_.native(),
                         stream_),
          "ncclAlltoAll");
  }
  // Returns the block of a member in a buffer.
  template <class B>
  [[nodiscard]] B block(const B& buffer, const Blocks* blocks, Extent extent, int member) const {
    if (blocks != nullptr || extent != Extent::blocks)
      return block_of(buffer, blocks, static_cast<std::size_t>(member));
    const std::int64_t n = buffer.count / size_;
    return buffer.slice(member * n, n);
  }
  // Issues one NCCL operation per block, in one group. Both ends omit empty blocks, because all
  // members know the counts.
  void blocks(int root) {
    const Call& c = call_;
    const OperationFacts& facts = facts_of(c.operation);
    grouped([&] {
      for (int r = 0; r < size_; ++r) {
        const ConstBuffer in = block(c.in, c.in_blocks, facts.in, r);
        const Buffer out = block(c.out, c.out_blocks, facts.out, r);
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
          default:  // all_to_all; check_call() allows no other operation
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
  void check(ncclResult_t code, const char* function) {
    nccl_.check(code, function, comm_.native());
    is_in_progress_ |= code == ncclInProgress;
  }
  void send(ConstBuffer in, int to) {
    check(nccl_.Send(in.data, count(in), in_.type, to, comm_.native(), stream_), "ncclSend");
  }
  void recv(Buffer out, int from) {
    check(nccl_.Recv(out.data, count(out), out_.type, from, comm_.native(), stream_), "ncclRecv");
  }

  template <class Calls>
  void grouped(Calls&& calls) {
    is_in_progress_ |= nccl_.grouped(calls) == ncclInProgress;
  }

  const Call& call_;
  const nccl::Communicator& comm_;
  const nccl::Library& nccl_;
  int rank_, size_;
  cudaStream_t stream_;
  Element in_, out_;
  bool is_in_progress_ = false;
};

}  // namespace

bool issue_nccl_call(const Call& call, const nccl::Communicator& comm, int rank, int size) {
  NcclIssue issue{call, comm, rank, size};
  issue();
  return issue.is_in_progress();
}

void validate_nccl_call(const Call& call, const nccl::Library& library,
                        int least_compute_capability, std::int64_t size) {
  if (call.operation == Operation::all_to_all && call.in.data == call.out.data && call.in.count > 0)
    throw UnsupportedError{
        "NCCL has no all_to_all in place: it would overwrite elements before they are sent",
        "use separate memory"};
  if (reduces(call.operation) && !arithmetic_type(call.in.type, library))
    throw UnsupportedError{
        fmt::format("NCCL {} cannot reduce elements of type {}", library.version_text(),
                    to_string(call.in.type)),
        "use 32-bit or 64-bit integers, or wider floats (8-bit floats need NCCL 2.24)"};
  const bool is_8_bit =
      call.in.type == DataType::float8_e4m3 || call.in.type == DataType::float8_e5m2;
  if (reduces(call.operation) && is_8_bit && least_compute_capability < least_for_8_bit_floats)
    throw UnsupportedError{
        fmt::format("NCCL cannot reduce elements of type {}: a device of the group has compute "
                    "capability {}.{}",
                    to_string(call.in.type), least_compute_capability / 10,
                    least_compute_capability % 10),
        "NCCL reduces 8-bit floats from compute capability 9.0 on: use wider floats, or host "
        "memory"};
  if (reduces(call.operation) && call.reduction == ReduceOp::avg &&
      size > largest_average(call.in.type))
    throw UnsupportedError{
        fmt::format("NCCL cannot average elements of type {} over {} members: it multiplies with "
                    "1/{} in this type, which has too few digits there",
                    to_string(call.in.type), size, size),
        "use sum and divide, or wider floats"};
}

}  // namespace rankmesh::detail
