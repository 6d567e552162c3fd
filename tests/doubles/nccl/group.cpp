// SPDX-License-Identifier: BSD-3-Clause
#include "group.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "common/settings.hpp"
#include "connect.hpp"
#include "counters.hpp"
#include "engine.hpp"
#include "faults.hpp"
#include "machine.hpp"
#include "order.hpp"

namespace fake {
namespace {

struct Group {
  int depth = 0;
  bool last_blocks = true;  // whether the communicator of the last operation is blocking
  Outcome error;
  std::vector<Job> jobs;
  Batches batches;
  std::shared_ptr<GroupRun> latest;  // that this thread has started
};

// The launches of a group of non-blocking communicators. One thread of NCCL makes all of them, in
// order, before any of the communicators is ready (groupLaunch in src/group.cc); here the first
// poll that says so does.
class LaunchTogether {
 public:
  explicit LaunchTogether(Batches batches) : batches_(std::move(batches)) {}
  Outcome of(const Comm& comm) {
    std::lock_guard lock(mutex_);
    for (auto& [other, operations] : batches_)
      outcomes_[other.get()] = launch(other, std::move(operations));
    batches_.clear();
    return outcomes_.at(&comm);
  }

 private:
  std::mutex mutex_;
  Batches batches_;  // empty after the launch
  std::map<const Comm*, Outcome> outcomes_;
};

// The group of this thread.
Group& own_group() {
  thread_local Group own;
  static Group* const everybodys = new Group;
  return broken("group_per_thread") ? *everybodys : own;
}

// A call of this thread that returns when NCCL has carried it out. Meanwhile other threads must not
// free the communicator.
class Inside {
 public:
  explicit Inside(CommPtr comm) : comm_(std::move(comm)) { count(1); }
  ~Inside() { count(-1); }
  Inside(const Inside&) = delete;

 private:
  void count(int change) {
    std::lock_guard lock(comm_->mutex);
    comm_->inside += change;
    comm_->changed.notify_all();
  }
  CommPtr comm_;
};

// Blocking jobs run side by side: each may wait for ranks that wait for another one.
Outcome run_all(std::vector<Job>& jobs) {
  std::vector<Outcome> outcomes(jobs.size());
  std::vector<std::unique_ptr<Inside>> inside;
  for (const Job& job : jobs)
    if (!job.local) inside.push_back(std::make_unique<Inside>(job.comm));
  if (jobs.size() == 1 || broken("side_by_side")) {
    for (std::size_t i = 0; i < jobs.size(); ++i) outcomes[i] = jobs[i].body();
  } else {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < jobs.size(); ++i)
      threads.emplace_back([&, i] { outcomes[i] = jobs[i].body(); });
    for (std::thread& thread : threads) thread.join();
  }
  Outcome first;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (outcomes[i].ok() && jobs[i].deliver) jobs[i].deliver();
    if (!outcomes[i].ok() && first.ok()) first = outcomes[i];
  }
  return first;
}

// group.cc, ncclAsyncLaunch: all inits, splits and finalizes of a group are blocking, or none is.
Outcome check_mode(const Group& ended) {
  bool any_blocking = false, any_not = false;
  for (const Job& job : ended.jobs) {
    if (job.local) continue;
    (job.blocking ? any_blocking : any_not) = true;
  }
  if (any_blocking && any_not)
    return failed(ncclInvalidArgument, "blocking and non-blocking communicators are in one group");
  return {};
}

// The connections of a blocking communicator are made in the caller's thread.
Outcome launch_blocking(const CommPtr& comm, std::vector<Operation> operations) {
  const Inside inside(comm);
  if (injected_hang(*comm)) {
    std::unique_lock lock(comm->mutex);
    ++totals().hanging;
    comm->changed.wait_for(lock, std::chrono::duration<double>(comm->seat.limit),
                           [&] { return comm->seat.cancelled(); });
    --totals().hanging;
    return failed(ncclInternalError, "a call on rank %d ended without its peers", comm->seat.rank);
  }
  if (const unsigned missing = missing_connections(*comm, operations); missing != 0)
    if (Outcome bad = connect(*comm, missing); !bad.ok()) return bad;
  return launch(comm, std::move(operations));
}

void launch_later(const Batches& batches, std::shared_ptr<GroupRun>& latest) {
  const auto together = std::make_shared<LaunchTogether>(batches);
  const auto run = std::make_shared<GroupRun>();
  bool has_thread = has_helpers();
  for (const auto& [comm, operations] : batches) run->members.push_back(comm);
  for (const auto& [comm, operations] : batches) {
    if (const unsigned missing = missing_connections(*comm, operations); missing != 0) {
      run_in_background(comm, run, [comm = comm, missing] { return connect(*comm, missing); });
      has_thread = true;
    }
    std::lock_guard lock(comm->mutex);
    become_busy(*comm);
    comm->progress.run = run;
    comm->progress.launches.push_back(
        [together, comm = comm.get()] { return together->of(*comm); });
  }
  if (has_thread) latest = run;
}

// group.h, ncclGroupCommJoin: the communicator of the last operation decides for all of the group.
// group.cc, ncclGroupEndInternal and groupLaunch: if it is non-blocking, every communicator is set
// to ncclInProgress, but only non-blocking ones are reset at the end.
Outcome launch_batches(Group& ended, bool& in_progress, std::shared_ptr<GroupRun>& latest) {
  const bool blocks = has_helpers() && !broken("mixed_group") ? ended.last_blocks : true;
  bool any_not = false;
  for (const auto& [comm, operations] : ended.batches) any_not |= !comm->config.blocking;
  const bool is_in_background = any_not && !blocks;
  arrange(ended.batches);
  Batches later;
  for (auto& [comm, operations] : ended.batches) {
    const bool is_blocking = comm->config.blocking || broken("in_progress");
    if (is_in_background && is_blocking) {
      std::lock_guard lock(comm->mutex);
      comm->progress.busy = comm->progress.stuck = true;
    }
    if (is_blocking) {
      if (Outcome bad = launch_blocking(comm, std::move(operations)); !bad.ok()) return bad;
      continue;
    }
    later.emplace_back(comm, std::move(operations));
  }
  in_progress = !later.empty();
  if (in_progress) launch_later(later, latest);
  return {};
}

// Until 2.26, a thread has one group job (`__thread struct ncclGroupJob ncclGroupJobMain`) with one
// queue (`__thread ... ncclAsyncJobs`; 2.26.5: group.cc, lines 19-21 and 543-575), which the helper
// thread of a group that does not block still uses. A second group starts the jobs of the first one
// again, on the same communicators. 2.27.3 gives each group a job of its own (group.cc, line 643).
bool has_one_queue() { return version() < 22703 && !broken("one_queue"); }

// 2.18.3 to 2.18.6 look (include/group.h, lines 89-97): a new group is refused.
bool refuses_second_group() { return version() >= 21803 && version() < 21900; }

bool has_outstanding(const Group& group) {
  return has_one_queue() && group.latest && is_outstanding(*group.latest);
}

// Whether the helper thread of the latest group is not joined yet (comm.hpp, join_run()). Its mode,
// ncclGroupBlocking, is still that of this thread, and another group overwrites its job, so that
// the next call on a communicator of the first one joins the wrong thread (group.cc of 2.21.5,
// lines 47-51, 380-430). Destructions and aborts are launched all the same (2.25.1: line 49).
Outcome find_unjoined(const Group& ended) {
  if (!has_one_queue() || !ended.latest || ended.latest->joined) return {};
  const auto is_of = [&](bool blocks) {
    return std::any_of(ended.jobs.begin(), ended.jobs.end(),
                       [&](const Job& job) { return !job.local && job.blocking == blocks; });
  };
  if (is_of(true))
    return failed(ncclInvalidArgument,
                  "a blocking init, split or finalize follows a group that does not block, whose "
                  "thread no call but a poll has joined: NCCL %d finds both modes in one group",
                  version());
  if (!is_of(false) && ended.batches.empty()) return {};
  ++totals().overlapping_groups;
  return failed(ncclInternalError,
                "a group ends while no call but a poll has joined the thread of the earlier one: "
                "NCCL %d overwrites its job, and may crash",
                version());
}

Outcome find_obstacle(const Group& ended) {
  if (!ended.error.ok()) return ended.error;
  if (has_outstanding(ended) && !(ended.jobs.empty() && ended.batches.empty())) {
    ++totals().overlapping_groups;
    return failed(ncclInternalError,
                  "a group ends while an earlier group of this thread is not polled to success: "
                  "NCCL %d runs the calls of the earlier one twice, and hangs or crashes",
                  version());
  }
  if (Outcome bad = find_unjoined(ended); !bad.ok()) return bad;
  if (!ended.jobs.empty() && !ended.batches.empty())
    return failed(ncclInvalidUsage, "operations and inits, splits or aborts are in one group");
  return check_mode(ended);
}

Outcome run(Group& ended, bool& in_progress, std::shared_ptr<GroupRun>& latest) {
  if (Outcome bad = find_obstacle(ended); !bad.ok()) {
    for (const Job& job : ended.jobs)
      if (job.undo) job.undo();
    return bad;
  }
  if (!ended.jobs.empty()) {
    std::vector<Job> now;
    const auto together = std::make_shared<GroupRun>();
    for (const Job& job : ended.jobs)
      if (!job.blocking && !job.local) together->members.push_back(job.comm);
    for (Job& job : ended.jobs) {
      if (job.local && !job.comm->config.blocking && number("FAKE_NCCL_END_IN_PROGRESS", 0) != 0)
        in_progress = true;
      if (job.blocking || job.local) {
        now.push_back(std::move(job));
      } else {
        run_in_background(job.comm, together, std::move(job.body), std::move(job.deliver));
        in_progress = true;
        latest = together;
      }
    }
    return now.empty() ? Outcome{} : run_all(now);
  }
  return launch_batches(ended, in_progress, latest);
}

ncclResult_t end_group(bool really) {
  Group& group = own_group();
  if (group.depth == 0) {
    if (broken("unmatched_end")) return ncclSuccess;
    return report(failed(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart"));
  }
  if (--group.depth > 0) return report(group.error);
  Group ended = std::move(group);
  group = {};
  group.latest = ended.latest;
  if (!really) return report(ended.error);
  bool in_progress = false;
  const Outcome outcome = run(ended, in_progress, group.latest);
  if (!outcome.ok()) return report(outcome);
  return in_progress ? ncclInProgress : ncclSuccess;
}

ncclResult_t fail_call(const Outcome& bad) {
  Group& group = own_group();
  if (group.depth > 0 && group.error.ok()) group.error = bad;
  return report(bad);
}

}  // namespace

Outcome group_start() {
  if (refuses_second_group() && has_outstanding(own_group()))
    return failed(ncclInvalidUsage,
                  "a group begins while an earlier group of this thread is not polled to success");
  // They join the thread of a group that has ended (include/group.h of 2.18.5, lines 89-97).
  if (refuses_second_group() && own_group().latest) own_group().latest->joined = true;
  ++own_group().depth;
  return {};
}
ncclResult_t group_end() { return end_group(true); }
bool is_in_group() { return own_group().depth > 0; }
void forget_one_end() { ++own_group().depth; }

ncclResult_t add(Outcome checked, const CommPtr& comm, const Operation& operation) {
  if (!checked.ok()) return fail_call(checked);
  Group& group = own_group();
  ++totals().calls[operation.kind];
  if (Outcome bad = group_start(); !bad.ok()) return report(bad);
  std::vector<Operation>* batch = nullptr;
  for (auto& [other, operations] : group.batches)
    if (other == comm) batch = &operations;
  if (batch == nullptr) batch = &group.batches.emplace_back(comm, std::vector<Operation>{}).second;
  batch->push_back(operation);
  group.last_blocks = comm->config.blocking;
  if (broken("deferred_operations")) {  // start at once, whatever the depth
    std::vector<Operation> single = std::move(*batch);
    group.batches.clear();
    launch(comm, std::move(single));
  }
  return group_end();
}

ncclResult_t add(Outcome checked, Job job) {
  if (!checked.ok()) return fail_call(checked);
  if (Outcome bad = group_start(); !bad.ok()) {
    if (job.undo) job.undo();
    return report(bad);
  }
  own_group().jobs.push_back(std::move(job));
  return group_end();
}

}  // namespace fake

using namespace fake;

extern "C" {

ncclResult_t ncclGroupStart() {
  ++totals().entries;
  return report(group_start());
}

ncclResult_t ncclGroupEnd() {
  ++totals().entries;
  return group_end();
}

// Ends the group without doing anything of it.
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  constexpr unsigned info_magic = 0x74685283;
  if (info != nullptr && info->magic != info_magic)
    return report(failed(ncclInvalidArgument,
                         "ncclSimInfo_t was not initialised with NCCL_SIM_INFO_INITIALIZER"));
  const ncclResult_t result = end_group(false);
  if (result == ncclSuccess && info != nullptr) info->estimatedTime = 1.0f;
  return result;
}

}  // extern "C"
