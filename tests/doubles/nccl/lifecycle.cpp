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

// init.cc, commDestroySync (2.28.9: lines 2222-2234; 2.18.5: lines 1750-1758), which finalizes,
// destructions and aborts have in common. It waits until the streams of the communicator are empty:
// these wait for the program's streams (enqueue.cc, ncclLaunchFinish: lines 1715-1723), so an
// operation that is queued behind another communicator's stuck kernel counts. And it waits until
// the last graph with operations of the communicator is destroyed. NCCL has no limit for this; the
// double gives up after FAKE_NCCL_TIMEOUT, and leaves the communicator alive.
enum class By { caller, helper };  // the thread of a finalize that does not block waits for itself

Outcome settle(Comm& comm, By by) {
  std::unique_lock lock(comm.mutex);
  const auto is_idle = [&] {
    const bool streams_are = comm.done == comm.issued || broken("abort_drains");
    const bool graphs_are = comm.recordings == 0 || broken("graphs_pin");
    const bool helper_is = by == By::helper || !comm.progress.background;
    return helper_is && comm.running == 0 && streams_are && graphs_are;
  };
  const auto limit =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(comm.seat.limit);
  while (!is_idle()) {
    // An operation is woken; a helper that may still be mapping the segment looks up by itself.
    if (!comm.progress.background && comm.seat.segment.ok()) comm.seat.segment.ring(comm.seat.rank);
    comm.changed.wait_for(lock, std::chrono::milliseconds(5), is_idle);
    if (std::chrono::steady_clock::now() < limit) continue;
    ++totals().stuck_ends;
    return failed(ncclSystemError,
                  "rank %d waited %.1f s (FAKE_NCCL_TIMEOUT) for the end of a communicator: %llu "
                  "operations have not ended, and %d are in living graphs; NCCL waits for ever",
                  comm.seat.rank, comm.seat.limit,
                  static_cast<unsigned long long>(comm.issued - comm.done), comm.recordings);
  }
  return {};
}

Outcome finalize(Comm& comm) {
  if (Outcome bad = drain(comm); !bad.ok()) return bad;
  if (Outcome bad = settle(comm, By::helper); !bad.ok()) return bad;
  return broken("finalize_meets") ? Outcome{} : meet(comm, Meeting::finalize);
}

Outcome destroy(const CommPtr& comm) {
  // What was put on streams still runs; an error does not keep it alive.
  if (!comm->finalized && !broken("destroy_waits"))
    if (Outcome bad = settle(*comm, By::caller); !bad.ok()) return bad;
  remove_live(comm);
  return {};
}

// init.cc, commReclaim: it frees what a call in another thread still uses.
void note_use(Comm& comm) {
  std::lock_guard lock(comm.mutex);
  if (comm.inside > 0 && !comm.is_freed_in_use) ++totals().unsafe_aborts;
  comm.is_freed_in_use = comm.inside > 0;
}

// Ends every wait of this rank on this communicator, then lets go. init.cc, setCommAbortFlags
// (2.28.9: line 2394): the flags are this rank's. Peers on other hosts see that their connections
// are closed; those on this host learn nothing.
Outcome abort(const CommPtr& comm) {
  note_use(*comm);
  if (Outcome bad = settle(*comm, By::caller); !bad.ok()) return bad;
  if (comm->seat.segment.ok() && !comm->finalized && !broken("abort_spreads"))
    comm->seat.segment.cut_other_hosts(comm->seat.rank);
  remove_live(comm);
  return {};
}

// Before 2.22, destroy and abort free at once, inside a group too (init.cc, ncclCommAbort of 2.21.5
// calls commReclaim, that of 2.22.3 ncclAsyncLaunch).
ncclResult_t add_end(Job job) {
  if (version() >= 22200 || broken("ends_at_once")) return add({}, std::move(job));
  return report(job.body());
}

Outcome check_destroy(ncclComm_t handle, CommPtr& comm) {
  if (Outcome bad = enter(handle, comm, Use::query); !bad.ok()) return bad;
  current_error(*comm);
  std::lock_guard lock(comm->mutex);
  if (comm->progress.busy && comm->error.ok())
    return failed(ncclInvalidArgument,
                  "the communicator is destroyed before the previous call was polled to success");
  join_run(*comm);
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
  job.undo = [comm] {
    std::lock_guard lock(comm->mutex);
    comm->finalized = false;
  };
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
  return add_end(std::move(job));
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
  cancel_run(*comm);
  {
    std::lock_guard lock(comm->mutex);
    join_run(*comm);
  }
  job.body = [comm] { return abort(comm); };
  job.local = true;
  return add_end(std::move(job));
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
    const bool works = progress.background || (progress.run && progress.run->pending > 0);
    if (works || progress.stuck || hangs || (progress.busy && --progress.polls > 0))
      return ncclSuccess;
    progress.busy = false;
    if (polls_join()) join_run(*comm);
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
