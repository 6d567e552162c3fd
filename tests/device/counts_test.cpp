// SPDX-License-Identifier: BSD-3-Clause
// The plan's counts against what is really created, for published layouts scaled down to 16 ranks
// (docs/communicators.md has the table for the whole ones).
#include <doctest/doctest.h>

#include "device/test_platform.hpp"
#include "place/count.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::size;

namespace {

long broadcasts = 0;  // of unique IDs, begun by their roots
long creations = 0;   // of MPI communicators of groups by this process

}  // namespace

// MPI's profiling interface: the library's calls come through here.
extern "C" int MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm,
                          MPI_Request* request) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  broadcasts += rank == root && count == static_cast<int>(sizeof(ncclUniqueId) + sizeof(int))
                    ? 1
                    : 0;  // an ID and its status
  return PMPI_Ibcast(data, count, type, root, comm, request);
}

extern "C" int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* result) {
  ++creations;
  return PMPI_Comm_create_group(comm, group, tag, result);
}

TEST_CASE("unique IDs, broadcasts, communicators and creations are those that the plan counts") {
  SKIP_UNLESS(size() == 16, "needs 16 ranks");
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  for (const char* layout : {
           "llama3:tp=2,cp=2,pp=2,dp=2",                   // Llama 3 405B, long context
           "llama3:tp=2,cp=1,pp=2,dp=4",                   // Llama 3 405B, 8,192 GPUs
           "pp=4,dp=2,tp=2",                               // Megatron-Turing NLG 530B
           "pp=2,dp=8 | pp=2,edp=2,ep=4",                  // DeepSeek-V3, training
           "dp=8,tp=2 | ep=16",                            // DeepSeek-V3, decoding
           "megatron:world_size=16,tp=1,pp=2,ep=4",        // Megatron-Core's recipe for Mixtral
           "megatron:world_size=16,tp=2,pp=2,ep=4,etp=1",  // tp8 pp16 ep64 etp1 on 16,384
           "megatron:world_size=16,tp=2,pp=2,cp=2,ep=2,num_dist_opt=1",
       }) {
    CAPTURE(layout);
    const FakeNcclCounters before = test_platform::nccl();
    broadcasts = creations = 0;
    Mesh mesh{MPI_COMM_WORLD, layout, test_platform::options()};
    const FakeNcclCounters after = test_platform::nccl();
    const PlanCounts counts = count(mesh.plan());
    // Each communicator is counted by its leader's ID; each rank holds what the plan says of it.
    long sums[] = {after.unique_ids - before.unique_ids, broadcasts, creations};
    MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sums[0] == counts.unique_ids);
    CHECK(sums[1] == counts.broadcasts());
    CHECK(after.communicators - before.communicators ==
          static_cast<long>(mesh.plan().communicators(mesh.rank()).size()));
    CHECK(creations == static_cast<long>(mesh.plan().communicators(mesh.rank()).size()));
    CHECK(sums[2] == counts.creations);
    mesh.close();
  }
}
