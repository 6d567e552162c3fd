// SPDX-License-Identifier: BSD-3-Clause
#include "group.hpp"

#include <atomic>
#include <map>
#include <thread>

#include "common/settings.hpp"
#include "counters.hpp"
#include "engine.hpp"
#include "order.hpp"

namespace fake {
namespace {

struct Group {
  int depth = 0;
  Outcome error;
  std::vector<Job> jobs;
  Batches batches;
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

// Blocking jobs run side by side: each may wait for ranks that wait for another one.
Outcome run_all(std::vector<Job>& jobs) {
  std::vector<Outcome> outcomes(jobs.size());
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

// All jobs and batches are blocking, or none is.
Outcome check_mode(const Group& ended) {
  bool any_blocking = false, any_not = false;
  for (const Job& job : ended.jobs) {
    if (job.local) continue;
    (job.blocking ? any_blocking : any_not) = true;
  }
  for (const auto& [comm, operations] : ended.batches)
    (comm->config.blocking ? any_blocking : any_not) = true;
  if (any_blocking && any_not && !broken("mixed_group"))
    return failed(ncclInvalidArgument, "blocking and non-blocking communicators are in one group");
  return {};
}

Outcome find_obstacle(const Group& ended) {
  if (!ended.error.ok()) return ended.error;
  if (!ended.jobs.empty() && !ended.batches.empty())
    return failed(ncclInvalidUsage, "operations and inits, splits or aborts are in one group");
  return check_mode(ended);
}

Outcome launch_all(Batches& batches, bool& in_progress) {
  arrange(batches);
  Batches later;
  for (auto& [comm, operations] : batches) {
    if (!comm->config.blocking && !broken("in_progress"))
      later.emplace_back(comm, std::move(operations));
    else if (Outcome bad = launch(comm, std::move(operations)); !bad.ok())
      return bad;
  }
  if (later.empty()) return {};
  in_progress = true;
  const auto together = std::make_shared<LaunchTogether>(later);
  for (const auto& [comm, operations] : later) {
    std::lock_guard lock(comm->mutex);
    become_busy(*comm);
    comm->progress.launches.push_back(
        [together, comm = comm.get()] { return together->of(*comm); });
  }
  return {};
}

Outcome run(Group& ended, bool& in_progress) {
  if (Outcome bad = find_obstacle(ended); !bad.ok()) {
    for (const Job& job : ended.jobs)
      if (job.undo) job.undo();
    return bad;
  }
  if (!ended.jobs.empty()) {
    std::vector<Job> now;
    for (Job& job : ended.jobs) {
      if (job.local && !job.comm->config.blocking && number("FAKE_NCCL_END_IN_PROGRESS", 0) != 0)
        in_progress = true;
      if (job.blocking || job.local) {
        now.push_back(std::move(job));
      } else {
        run_in_background(job.comm, std::move(job.body), std::move(job.deliver));
        in_progress = true;
      }
    }
    return now.empty() ? Outcome{} : run_all(now);
  }
  return launch_all(ended.batches, in_progress);
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
  if (!really) return report(ended.error);
  bool in_progress = false;
  const Outcome outcome = run(ended, in_progress);
  if (!outcome.ok()) return report(outcome);
  return in_progress ? ncclInProgress : ncclSuccess;
}

ncclResult_t fail_call(const Outcome& bad) {
  Group& group = own_group();
  if (group.depth > 0 && group.error.ok()) group.error = bad;
  return report(bad);
}

}  // namespace

void group_start() { ++own_group().depth; }
ncclResult_t group_end() { return end_group(true); }
bool is_in_group() { return own_group().depth > 0; }
void forget_one_end() { ++own_group().depth; }

ncclResult_t add(Outcome checked, const CommPtr& comm, const Operation& operation) {
  if (!checked.ok()) return fail_call(checked);
  Group& group = own_group();
  ++totals().calls[operation.kind];
  group_start();
  std::vector<Operation>* batch = nullptr;
  for (auto& [other, operations] : group.batches)
    if (other == comm) batch = &operations;
  if (batch == nullptr) batch = &group.batches.emplace_back(comm, std::vector<Operation>{}).second;
  batch->push_back(operation);
  if (broken("deferred_operations")) {  // start at once, whatever the depth
    std::vector<Operation> single = std::move(*batch);
    group.batches.clear();
    launch(comm, std::move(single));
  }
  return group_end();
}

ncclResult_t add(Outcome checked, Job job) {
  if (!checked.ok()) return fail_call(checked);
  group_start();
  own_group().jobs.push_back(std::move(job));
  return group_end();
}

}  // namespace fake

using namespace fake;

extern "C" {

ncclResult_t ncclGroupStart() {
  group_start();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() { return group_end(); }

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
