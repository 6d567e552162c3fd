// SPDX-License-Identifier: BSD-3-Clause
// NCCL's communication functions: each only writes down what was called.
#include "common/settings.hpp"
#include "group.hpp"

namespace fake {
namespace {

ncclResult_t call(FakeNcclCall kind, const void* send, void* receive, std::size_t count,
                  ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t handle,
                  cudaStream_t stream) {
  CommPtr comm;
  Operation operation{kind, send, receive, count, type, op, {}, root, stream};
  Outcome checked = enter(handle, comm);
  if (checked.ok()) {
    checked = check(*comm, operation);
    // enqueue.cc, ncclEnqueueCheck: after an error of the arguments, a non-blocking communicator
    // keeps the error, and is of no more use.
    if (!checked.ok() && !comm->config.blocking && !broken("sticky_errors"))
      set_error(*comm, checked);
  }
  return add(std::move(checked), comm, operation);
}

}  // namespace
}  // namespace fake

using namespace fake;

extern "C" {

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call(fake_all_reduce, send, receive, count, type, op, -1, comm, stream);
}

ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return call(fake_reduce, send, receive, count, type, op, root, comm, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return call(fake_broadcast, send, receive, count, type, ncclSum, root, comm, stream);
}

ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return call(fake_broadcast, buffer, buffer, count, type, ncclSum, root, comm, stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return call(fake_all_gather, send, receive, count, type, ncclSum, -1, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call(fake_reduce_scatter, send, receive, count, type, op, -1, comm, stream);
}

ncclResult_t ncclAlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream) {
  return call(fake_all_to_all, send, receive, count, type, ncclSum, -1, comm, stream);
}

ncclResult_t ncclGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return call(fake_gather, send, receive, count, type, ncclSum, root, comm, stream);
}

ncclResult_t ncclScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                         int root, ncclComm_t comm, cudaStream_t stream) {
  return call(fake_scatter, send, receive, count, type, ncclSum, root, comm, stream);
}

ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return call(fake_send, send, nullptr, count, type, ncclSum, peer, comm, stream);
}

ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call(fake_recv, nullptr, receive, count, type, ncclSum, peer, comm, stream);
}

}  // extern "C"
