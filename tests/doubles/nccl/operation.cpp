// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

#include "common/settings.hpp"
#include "fake_cuda.hpp"
#include "machine.hpp"

namespace fake {
namespace {

constexpr std::size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
constexpr int first_new_type = 10;  // 8-bit floats came with 2.24
constexpr const char* type_names[] = {"int8",    "uint8",    "int32",   "uint32",
                                      "int64",   "uint64",   "float16", "float32",
                                      "float64", "bfloat16", "fp8e4m3", "fp8e5m2"};
constexpr const char* op_names[] = {"sum", "prod", "max", "min", "avg", "premulsum"};

Extent elements_used(const Comm& comm, const Operation& o) {
  const auto n = static_cast<std::size_t>(comm.seat.ranks);
  const bool at_root = o.root == comm.seat.rank;
  switch (o.kind) {
    case fake_all_reduce:
      return {o.count, o.count};
    case fake_reduce:
      return {o.count, at_root ? o.count : 0};
    case fake_broadcast:
      return {at_root ? o.count : 0, o.count};
    case fake_all_gather:
      return {o.count, n * o.count};
    case fake_reduce_scatter:
      return {n * o.count, o.count};
    case fake_all_to_all:
      return {n * o.count, n * o.count};
    case fake_gather:
      return {o.count, at_root ? n * o.count : 0};
    case fake_scatter:
      return {at_root ? n * o.count : 0, o.count};
    case fake_send:
      return {o.count, 0};
    case fake_recv:
      return {0, o.count};
    case fake_calls_end:
      break;
  }
  return {0, 0};
}

// taskAppend (src/enqueue.cc): before 2.28, also collectives that only move data; never messages.
Outcome check_capability(const Comm& comm, const Operation& o) {
  constexpr int least_for_8_bits = 90;
  constexpr int since_moving_is_allowed = 22800;
  const bool reduces =
      o.kind == fake_all_reduce || o.kind == fake_reduce || o.kind == fake_reduce_scatter;
  const bool concerned = o.type >= first_new_type && !o.point_to_point() && o.count > 0 &&
                         (reduces || version() < since_moving_is_allowed);
  for (int rank = 0; concerned && rank < comm.seat.ranks; ++rank) {
    const int capability = comm.seat.segment.slot(rank).capability;
    if (capability < least_for_8_bits && !broken("fp8_capability"))
      return failed(ncclInvalidArgument,
                    "FP8 reduction support begins with sm90 capable devices; rank %d has sm%d",
                    rank, capability);
  }
  return {};
}

Outcome check_buffer(const Comm& comm, const char* which, const void* buffer, std::size_t bytes) {
  if (bytes == 0) return {};
  int device = -1;
  if (buffer == nullptr) return failed(ncclInvalidArgument, "%s is null", which);
  if (broken("buffer_check")) return {};
  if (!fake_cuda_owns(buffer, bytes, &device))
    return failed(ncclInvalidArgument,
                  "%s: %zu bytes at %p are not, or not wholly, in one device allocation", which,
                  bytes, buffer);
  if (device >= 0 && device != comm.device)
    return failed(ncclInvalidArgument, "%s is on device %d, the communicator on %d", which, device,
                  comm.device);
  return {};
}

}  // namespace

std::size_t type_bytes(ncclDataType_t type) {
  return type >= 0 && type < ncclNumTypes ? sizes[type] : 0;
}

Extent bytes_used(const Comm& comm, const Operation& o) {
  const Extent elements = elements_used(comm, o);
  const std::size_t size = type_bytes(o.type);
  return {elements.send * size, elements.receive * size};
}

const char* call_name(int kind) {
  constexpr const char* names[] = {"AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter",
                                   "AlltoAll",  "Gather", "Scatter",   "Send",      "Recv"};
  return kind >= 0 && kind < fake_calls_end ? names[kind] : "?";
}

Posted posted_form(const Operation& o) {
  const bool reduces =
      o.kind == fake_all_reduce || o.kind == fake_reduce || o.kind == fake_reduce_scatter;
  return {o.kind, o.type, reduces ? (o.premultiplies() ? static_cast<int>(ncclNumOps) : o.op) : -1,
          o.root, o.count};
}

std::string describe(const Posted& p) {
  std::string text = std::string(call_name(p.kind)) + "(count " + std::to_string(p.count) + ", " +
                     type_names[p.type];
  if (p.op >= 0) text += std::string(", ") + op_names[p.op];
  if (p.root >= 0) text += ", root " + std::to_string(p.root);
  return text + ")";
}

Outcome check(Comm& comm, Operation& o) {
  const bool is_too_new = o.type >= first_new_type && version() < 22400 && !broken("new_types");
  if (type_bytes(o.type) == 0 || is_too_new)
    return failed(ncclInvalidArgument, "%s: data type %d does not exist", call_name(o.kind),
                  o.type);
  if (Outcome bad = check_capability(comm, o); !bad.ok()) return bad;
  const bool rooted = o.kind == fake_reduce || o.kind == fake_broadcast || o.kind == fake_gather ||
                      o.kind == fake_scatter;
  if ((rooted || o.point_to_point()) && (o.root < 0 || o.root >= comm.seat.ranks))
    return failed(ncclInvalidArgument, "%s: rank %d does not exist in a communicator of %d",
                  call_name(o.kind), o.root, comm.seat.ranks);
  if (o.op < 0)
    return failed(ncclInvalidArgument, "%s: reduction %d does not exist", call_name(o.kind), o.op);
  if (o.premultiplies()) {
    std::lock_guard lock(comm.mutex);
    const auto found = comm.reductions.find(o.op);
    if (found == comm.reductions.end() || found->second.type != o.type)
      return failed(ncclInvalidArgument, "%s: reduction %d is not of this communicator and type",
                    call_name(o.kind), o.op);
    o.scalar = found->second;
  }
  int current = -1;
  cudaGetDevice(&current);
  if (current != comm.device && !broken("comm_device")) {
    fake_cuda_note_wrong_device();
    return failed(ncclInvalidUsage,
                  "%s: the current device is %d, the communicator was made for %d",
                  call_name(o.kind), current, comm.device);
  }
  if (fake_cuda_stream_device(o.stream) != comm.device) {
    fake_cuda_note_wrong_device();
    return failed(ncclInvalidArgument,
                  "%s: the stream is on device %d (-1: no such stream), the communicator on %d",
                  call_name(o.kind), fake_cuda_stream_device(o.stream), comm.device);
  }
  if (o.kind == fake_all_to_all && o.send == o.receive && o.count > 0)
    return failed(ncclInvalidArgument, "AlltoAll cannot work in place");
  const Extent bytes = bytes_used(comm, o);
  if (Outcome bad = check_buffer(comm, "sendbuff", o.send, bytes.send); !bad.ok()) return bad;
  return check_buffer(comm, "recvbuff", o.receive, bytes.receive);
}

}  // namespace fake
