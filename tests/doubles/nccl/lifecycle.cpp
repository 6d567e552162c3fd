// SPDX-License-Identifier: BSD-3-Clause
// The end of a communicator, and what can be asked of it.
#include <chrono>

#include "common/settings.hpp"
#include "counters.hpp"
#include "faults.hpp"
#include "group.hpp"
#include "machine.hpp"

namespace fake {
namespace {

Outcome finalize(Comm& comm) {
  if (Outcome bad = drain(comm); !bad.ok()) return bad;
  return broken("finalize_meets") ? Outcome{} : meet(comm, Meeting::finalize);
}

Outcome destroy(const CommPtr& comm) {
  if (!comm->finalized && !broken("destroy_waits"))
    drain(*comm);  // what was put on streams still runs; an error does not keep it alive
  remove_live(comm);
  return {};
}

// init.cc, commReclaim: it frees what a call in another thread still uses.
void note_use(Comm& comm) {
  std::lock_guard lock(comm.mutex);
  if (comm.inside > 0 && !comm.is_freed_in_use) ++totals().unsafe_aborts;
  comm.is_freed_in_use = comm.inside > 0;
}

// Ends every wait of this rank and of its peers, then lets go. Does not wait for anybody else.
Outcome abort(const CommPtr& comm) {
  note_use(*comm);
  std::unique_lock lock(comm->mutex);
  const auto quiet = [&] { return !comm->progress.background && comm->running == 0; };
  while (!quiet()) {
    // An operation is woken; a helper that may still be mapping the segment looks up by itself.
    if (!comm->progress.background) comm->seat.segment.ring(comm->seat.rank);
    comm->changed.wait_for(lock, std::chrono::milliseconds(5), quiet);
  }
  const bool spread = comm->seat.segment.ok() && !comm->finalized && !broken("abort_spreads");
  lock.unlock();
  if (spread)
    comm->seat.segment.spoil(
        comm->seat.rank,
        failed(ncclRemoteError, "rank %d aborted the communicator", comm->seat.rank));
  remove_live(comm);
  return {};
}

// Sets the flag that ends what waits. Inside a group this comes at once, and the rest at its end.
void set_abort_flag(Comm& comm) {
  *comm.seat.abort_flag = !broken("abort_cancels");
  std::lock_guard lock(comm.mutex);
  comm.changed.notify_all();
  if (!comm.progress.background && comm.seat.segment.ok()) comm.seat.segment.ring(comm.seat.rank);
}

Outcome check_destroy(ncclComm_t handle, CommPtr& comm) {
  if (Outcome bad = enter(handle, comm, Use::query); !bad.ok()) return bad;
  current_error(*comm);
  std::lock_guard lock(comm->mutex);
  if (comm->recordings > 0 && !broken("graphs_pin"))
    return failed(
        ncclInvalidUsage,
        "%d operations of the communicator are recorded in live graphs: destroy those first",
        comm->recordings);
  if (comm->progress.busy && comm->error.ok())
    return failed(ncclInvalidArgument,
                  "the communicator is destroyed before the previous call was polled to success");
  return {};
}

}  // namespace
}  // namespace fake

using namespace fake;

extern "C" {

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  CommPtr comm;
  if (Outcome bad = enter(handle, comm); !bad.ok()) return add(bad, Job{});
  {
    std::lock_guard lock(comm->mutex);
    comm->finalized = true;
  }
  Job job;
  job.comm = comm;
  job.blocking = comm->config.blocking;
  job.body = [comm] { return finalize(*comm); };
  return add({}, std::move(job));
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  if (handle == nullptr) return ncclSuccess;
  CommPtr comm;
  if (Outcome bad = check_destroy(handle, comm); !bad.ok()) return add(bad, Job{});
  // init.cc, ncclCommDestroy: an error of the communicator returns between the start and the end of
  // NCCL's own group (2.24 and later), so the thread stays in that group.
  if (const Outcome error = current_error(*comm);
      !error.ok() && !comm->seat.cancelled() && !broken("destroy_after_error")) {
    if (version() >= 22400) forget_one_end();
    return report(error);
  }
  Job job;
  job.comm = comm;
  job.body = [comm] { return destroy(comm); };
  job.local = true;
  return add({}, std::move(job));
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  if (handle == nullptr) return ncclSuccess;
  CommPtr comm;
  if (Outcome bad = enter(handle, comm, Use::query); !bad.ok()) return add(bad, Job{});
  Job job;
  job.comm = comm;
  if (!is_in_group()) {
    ++totals().lone_aborts;
    note_use(*comm);  // before the flag ends the call
  }
  set_abort_flag(*comm);
  job.body = [comm] { return abort(comm); };
  job.local = true;
  return add({}, std::move(job));
}

// The poll that ends a busy phase also puts the held-back operations on their stream: whoever does
// not poll misses them.
ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* out) {
  CommPtr comm;
  if (Outcome bad = enter(handle, comm, Use::query); !bad.ok()) return report(bad);
  if (out == nullptr)
    return report(failed(ncclInvalidArgument, "CommGetAsyncError: a null pointer"));
  ++totals().polls;
  if (const Outcome error = current_error(*comm); !error.ok()) {
    *out = error.code;
    return ncclSuccess;
  }
  std::vector<std::function<Outcome()>> launches;
  std::function<void()> deliver;
  {
    std::lock_guard lock(comm->mutex);
    Progress& progress = comm->progress;
    *out = ncclInProgress;
    const bool hangs = !progress.launches.empty() && injected_hang(*comm);
    if (progress.background || progress.stuck || hangs || (progress.busy && --progress.polls > 0))
      return ncclSuccess;
    progress.busy = false;
    launches.swap(progress.launches);
    deliver.swap(progress.deliver);
  }
  *out = ncclSuccess;
  const auto launch_all = [&] {
    for (const auto& launch_now : launches) {
      if (const Outcome bad = launch_now(); !bad.ok()) {
        set_error(*comm, bad);
        *out = bad.code;
      }
    }
  };
  if (!launches.empty()) run_in_helper(launch_all);
  if (deliver) deliver();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t handle, int* count) {
  CommPtr comm;
  if (Outcome bad = enter(handle, comm); !bad.ok()) return report(bad);
  if (count == nullptr) return report(failed(ncclInvalidArgument, "CommCount: a null pointer"));
  *count = comm->seat.ranks;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t handle, int* device) {
  CommPtr comm;
  if (Outcome bad = enter(handle, comm); !bad.ok()) return report(bad);
  if (device == nullptr) return report(failed(ncclInvalidArgument, "CommCuDevice: a null pointer"));
  *device = comm->device;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t handle, int* rank) {
  CommPtr comm;
  if (Outcome bad = enter(handle, comm); !bad.ok()) return report(bad);
  if (rank == nullptr) return report(failed(ncclInvalidArgument, "CommUserRank: a null pointer"));
  *rank = comm->seat.rank;
  return ncclSuccess;
}

}  // extern "C"
