// SPDX-License-Identifier: BSD-3-Clause
#include "comm.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "common/settings.hpp"
#include "counters.hpp"
#include "fake_cuda.hpp"
#include "machine.hpp"

namespace fake {
namespace {

struct Live {
  std::mutex mutex;
  std::map<ncclComm_t, CommPtr> comms;
  std::atomic<int> begun{0};
};

Live& live() {
  static Live* const made = new Live;  // never destroyed: helper threads may outlive static objects
  return *made;
}

std::uint64_t hash_name(const char* name) {
  return name == nullptr ? 0 : hash_bytes(name, std::strlen(name));
}

const char* meeting_name(int kind) {
  switch (static_cast<Meeting>(kind)) {
    case Meeting::finalize:
      return "CommFinalize";
    case Meeting::split:
      return "CommSplit";
    case Meeting::window:
      return "CommWindowRegister";
    case Meeting::connect:
      return "an operation that makes connections";
  }
  return "nothing";
}

}  // namespace

CommPtr new_comm(int rank, int ranks, int device, const Config& config) {
  const auto comm = std::make_shared<Comm>();
  comm->seat.rank = rank;
  comm->seat.ranks = ranks;
  comm->device = device;
  comm->config = config;
  comm->name_hash = hash_name(config.name);
  comm->number = live().begun++;
  comm->sent.resize(static_cast<std::size_t>(ranks));
  comm->received.resize(static_cast<std::size_t>(ranks));
  comm->charged = static_cast<long long>(number("FAKE_NCCL_MEMORY", 8 << 20));
  fake_cuda_charge(device, comm->charged);
  return comm;
}

void add_live(const CommPtr& comm) {
  std::lock_guard lock(live().mutex);
  live().comms[comm.get()] = comm;
}

void remove_live(const CommPtr& comm) {
  std::function<void()> undelivered;
  {
    std::lock_guard lock(comm->mutex);
    if (comm->gone) return;
    comm->gone = true;
    comm->progress.launches.clear();
    undelivered.swap(comm->progress.deliver);
    comm->changed.notify_all();
  }
  if (broken("release")) return;
  if (comm->seat.segment.ok()) {
    comm->seat.mine().left = 1;
    comm->seat.segment.ring_all();
  }
  fake_cuda_charge(comm->device, -comm->charged);
  comm->charged = 0;
  std::lock_guard lock(live().mutex);
  live().comms.erase(comm.get());
}

CommPtr find_comm(ncclComm_t handle) {
  std::lock_guard lock(live().mutex);
  const auto found = live().comms.find(handle);
  return found == live().comms.end() ? nullptr : found->second;
}

long live_comms() {
  std::lock_guard lock(live().mutex);
  return static_cast<long>(live().comms.size());
}

std::uint64_t hash_of(const Comm& comm) { return comm.seat.segment.slot(comm.seat.rank).ids; }

void set_error(Comm& comm, const Outcome& outcome) {
  {
    std::lock_guard lock(comm.mutex);
    if (comm.error.ok()) comm.error = outcome;
    comm.changed.notify_all();
  }
  report(outcome);
}

// That a peer on another host has ended is this rank's error too.
Outcome current_error(Comm& comm) {
  std::unique_lock lock(comm.mutex);
  if (!comm.error.ok()) return comm.error;
  if (comm.progress.background || !comm.seat.segment.ok()) return {};
  if (Outcome trouble = comm.seat.segment.trouble(comm.seat.rank); !trouble.ok())
    comm.error = trouble;
  return comm.error;
}

Outcome enter(ncclComm_t handle, CommPtr& comm, Use use) {
  comm = find_comm(handle);
  if (!comm)
    return failed(ncclInvalidArgument,
                  "this handle is of no communicator: it was never made, or is destroyed");
  ++totals().entries;
  if (use == Use::query) return {};
  if (Outcome error = current_error(*comm); !error.ok()) return error;
  std::lock_guard lock(comm->mutex);
  if (comm->progress.busy && !broken("early_reuse"))
    return failed(ncclInvalidArgument,
                  "the communicator is used before the previous call was polled to success");
  join_run(*comm);
  if (comm->finalized && !broken("use_after_finalize"))
    return failed(ncclInvalidArgument, "the communicator is used after ncclCommFinalize");
  if (hash_name(comm->config.name) != comm->name_hash && !broken("name_kept"))
    return failed(ncclInvalidArgument,
                  "the text behind commName has changed: it must live as long as the communicator");
  return {};
}

Outcome drain(Comm& comm) {
  std::unique_lock lock(comm.mutex);
  const bool drained = comm.changed.wait_for(
      lock, std::chrono::duration<double>(comm.seat.limit),
      [&] { return comm.done == comm.issued || !comm.error.ok() || comm.seat.cancelled(); });
  if (!comm.error.ok()) return comm.error;
  if (!drained)
    return failed(ncclSystemError, "rank %d waited %.1f s for its own operations to end",
                  comm.seat.rank, comm.seat.limit);
  return {};
}

Outcome meet(Comm& comm, Meeting kind, const std::function<void(RankSlot&, int)>& write) {
  const Segment& segment = comm.seat.segment;
  const std::uint64_t turn = ++comm.met;
  const int parity = static_cast<int>(
      turn & 1);  // the next barrier may begin while some ranks still read this one
  RankSlot& mine = comm.seat.mine();
  mine.meeting[parity] = static_cast<int>(kind);
  if (write) write(mine, parity);
  mine.met = turn;
  segment.ring_all();
  const auto missing = [&] {
    std::vector<int> out;
    for (int rank = 0; rank < comm.seat.ranks; ++rank)
      if (segment.slot(rank).met < turn) out.push_back(rank);
    return out;
  };
  const std::string what = std::string(meeting_name(static_cast<int>(kind)));
  if (Outcome done = wait_for(
          comm.seat, what, [&] { return missing().empty(); }, missing);
      !done.ok())
    return done;
  for (int rank = 0; rank < comm.seat.ranks; ++rank) {
    if (segment.slot(rank).meeting[parity] == static_cast<int>(kind)) continue;
    return hang(comm.seat, "rank " + std::to_string(comm.seat.rank) + " called " + what +
                               ", rank " + std::to_string(rank) + " called " +
                               meeting_name(segment.slot(rank).meeting[parity]));
  }
  return {};
}

void become_busy(Comm& comm) {
  comm.progress.busy = !broken("in_progress");
  comm.progress.polls = static_cast<int>(number("FAKE_NCCL_POLLS", 2));
}

void set_abort_flag(Comm& comm) {
  *comm.seat.abort_flag = !broken("abort_cancels");
  std::lock_guard lock(comm.mutex);
  comm.changed.notify_all();
  if (!comm.progress.background && comm.seat.segment.ok()) comm.seat.segment.ring(comm.seat.rank);
}

void cancel_run(Comm& comm) {
  std::shared_ptr<GroupRun> run;
  {
    std::lock_guard lock(comm.mutex);
    run = comm.progress.run;
  }
  if (!run || run->pending == 0 || broken("jobs_together")) return;
  for (const auto& member : run->members)
    if (const CommPtr other = member.lock(); other && other.get() != &comm) set_abort_flag(*other);
}

void join_run(Comm& comm) {
  if (comm.progress.run) comm.progress.run->joined = true;
}

bool polls_join() { return version() >= 22602 || broken("poll_joins"); }

bool is_outstanding(const GroupRun& run) {
  for (const auto& member : run.members) {
    const CommPtr comm = member.lock();
    if (!comm) continue;
    std::lock_guard lock(comm->mutex);
    if (comm->progress.busy && comm->progress.run.get() == &run && comm->error.ok() &&
        !comm->gone && !comm->seat.cancelled())
      return true;
  }
  return false;
}

void run_in_background(const CommPtr& comm, const std::shared_ptr<GroupRun>& run,
                       std::function<Outcome()> body, std::function<void()> deliver) {
  {
    std::lock_guard lock(comm->mutex);
    become_busy(*comm);
    comm->progress.background = true;
    comm->progress.deliver = std::move(deliver);
    comm->progress.run = run;
  }
  ++run->pending;
  count_thread(1);
  ++totals().helpers;
  std::thread([comm, run, body = std::move(body)] {
    const Outcome outcome = body();
    if (!outcome.ok()) {
      set_error(*comm, outcome);
      if (!broken("jobs_together"))
        for (const auto& member : run->members)
          if (const CommPtr other = member.lock()) set_error(*other, outcome);
      cancel_run(*comm);
    }
    --run->pending;
    count_thread(-1);
    std::lock_guard lock(comm->mutex);
    comm->progress.background = false;
    comm->changed.notify_all();
  }).detach();
}

// group.cc, ncclGroupEndInternal: until 2.22 only where there are connections to make or inits;
// since 2.23 for every group whose last communicator is non-blocking.
bool has_helpers() { return version() >= 22300; }

void run_in_helper(const std::function<void()>& body) {
  if (!has_helpers() || broken("helper_threads")) return body();
  ++totals().helpers;
  std::thread(body).join();
}

}  // namespace fake
