// SPDX-License-Identifier: BSD-3-Clause
#include "raw_communicator.hpp"

#include <sched.h>

#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "row.hpp"

namespace gpu_rows {

using rankmesh::device::check;
using rankmesh::nccl::Library;

void choose_device() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int local = 0;
  MPI_Comm_rank(node, &local);
  MPI_Comm_free(&node);
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  check(cudaSetDevice(local % count), "cudaSetDevice");
  check(cudaFree(nullptr), "cudaFree");  // creates the context, so that no row measures it
}

RawCommunicator::RawCommunicator(const RawOptions& options) : blocking_{options.blocking} {
  const Library& nccl = Library::load();
  ncclUniqueId id{};
  if (rank() == 0) nccl.check(nccl.GetUniqueId(&id), "ncclGetUniqueId");
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = options.blocking ? 1 : 0;
  if (options.max_ctas) {
    config.minCTAs = 1;  // NCCL compares the two before it fills in what is not set
    config.maxCTAs = *options.max_ctas;
  }
  if (options.shares) config.splitShare = 1;
  settle(nccl.CommInitRankConfig(&comm_, size(), id, rank(), &config), "ncclCommInitRankConfig");
}

RawCommunicator::~RawCommunicator() {
  const Library& nccl = Library::load();
  try {
    settle(nccl.CommFinalize(comm_), "ncclCommFinalize");
    (void)nccl.CommDestroy(comm_);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank(), error.what());
    (void)nccl.CommAbort(comm_);
  }
}

void RawCommunicator::all_reduce(const float* in, float* out, std::size_t count,
                                 cudaStream_t stream) const {
  const Library& nccl = Library::load();
  settle(nccl.AllReduce(in, out, count, ncclFloat, ncclSum, comm_, stream), "ncclAllReduce");
}

void RawCommunicator::settle(ncclResult_t code, const char* function) const {
  const Library& nccl = Library::load();
  nccl.check(code, function, comm_);
  if (blocking_) return;
  for (ncclResult_t state = ncclInProgress; state == ncclInProgress;) {
    nccl.check(nccl.CommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
    nccl.check(state, function, comm_);
    if (state == ncclInProgress) sched_yield();
  }
}

}  // namespace gpu_rows
