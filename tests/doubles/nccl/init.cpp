// SPDX-License-Identifier: BSD-3-Clause
// New communicators from unique IDs.
#include <vector>

#include "common/settings.hpp"
#include "counters.hpp"
#include "fake_cuda.hpp"
#include "faults.hpp"
#include "group.hpp"
#include "log.hpp"
#include "machine.hpp"
#include "network.hpp"
#include "rendezvous.hpp"

namespace fake {
namespace {

Outcome check_arguments(ncclComm_t* out, int ranks, int rank, int id_count, const ncclUniqueId* ids,
                        const ncclConfig_t* given, Config& config) {
  if (out == nullptr || ids == nullptr) return failed(ncclInvalidArgument, "init: a null pointer");
  *out = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return failed(ncclInvalidArgument, "init: rank %d of %d does not exist", rank, ranks);
  if (id_count < 1 || id_count > ranks)
    return failed(ncclInvalidArgument,
                  "init: %d IDs for %d ranks; from 1 to the number of ranks are allowed", id_count,
                  ranks);
  return read_config(given, config);
}

ncclResult_t init(ncclComm_t* out, int ranks, int rank, int id_count, const ncclUniqueId* ids,
                  const ncclConfig_t* given) {
  read_settings_once();
  Config config;
  if (Outcome bad = check_arguments(out, ranks, rank, id_count, ids, given, config); !bad.ok())
    return add(bad, Job{});
  int device = -1;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) {
    const ncclResult_t result =
        add(failed(ncclUnhandledCudaError, "init: %s", cudaGetErrorString(error)), Job{});
    if (version() >= 22809 && version() <= 23007)
      forget_one_end();  // a defect of those versions, imitated
    return result;
  }
  const CommPtr comm = new_comm(rank, ranks, device, config);
  const std::vector<ncclUniqueId> own_ids(ids, ids + id_count);
  Job job;
  job.comm = comm;
  job.blocking = config.blocking;
  job.body = [comm, own_ids, device] {
    Outcome done = injected_init_failure(*comm);
    if (done.ok())
      done = take_seat(comm->seat, own_ids.data(), static_cast<int>(own_ids.size()), device);
    if (done.ok()) write_log(comm->seat.rank, device);
    if (done.ok())
      ++totals().inits;
    else if (comm->config.blocking)
      remove_live(comm);
    return done;
  };
  job.undo = [comm] { remove_live(comm); };
  add_live(comm);
  if (config.blocking) {
    job.deliver = [comm, out] { *out = comm.get(); };
  } else {
    *out = comm.get();  // known at once, to be polled
  }
  return add({}, std::move(job));
}

}  // namespace
}  // namespace fake

using namespace fake;

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return report(failed(ncclInvalidArgument, "ncclGetUniqueId: a null pointer"));
  read_settings_once();
  if (Outcome bad = injected_id_failure(); !bad.ok()) return report(bad);
  if (!network_interface_exists())
    return report(failed(ncclInvalidUsage, "Bootstrap : no socket interface found"));
  const Outcome made = make_unique_id(*id, IdKind::of_user);
  if (made.ok()) ++totals().unique_ids;
  return report(made);
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return init(comm, ranks, rank, 1, &id, nullptr);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return init(comm, ranks, rank, 1, &id, config);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int id_count,
                                      ncclUniqueId* ids, ncclConfig_t* config) {
  return init(comm, ranks, rank, id_count, ids, config);
}

}  // extern "C"
