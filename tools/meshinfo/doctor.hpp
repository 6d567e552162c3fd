// SPDX-License-Identifier: BSD-3-Clause
// What meshinfo doctor gathers and measures.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "job.hpp"
#include "report/rank_facts.hpp"

namespace meshinfo {

// Returns what this process knows without MPI, and without other processes.
rankmesh::report::RankFacts local_facts();
// Returns whether this process can resolve the name of a host.
bool resolves(const std::string& host);
// Adds the libraries and the devices; needs the local rank.
void add_libraries_and_devices(rankmesh::report::RankFacts& facts);

// The facts of all ranks, on rank 0; empty on the other ranks.
struct GatheredFacts {
  std::vector<rankmesh::report::RankFacts> ranks;
  bool in_job = false;
};

// Ends the process if a step takes too long, with a message that names the step: a network that
// loses messages would otherwise make doctor itself hang.
class StepWatch {
 public:
  // @param seconds  0: no limit.
  StepWatch(double seconds, std::string who);
  ~StepWatch();
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;
  // Begins a step. `name` completes the sentence "... has waited ... in NAME".
  void begin(std::string name);

 private:
  void run();

  const double seconds_;
  const std::string who_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string step_;
  std::int64_t number_ = 0;
  bool is_over_ = false;
  std::thread thread_;
};

// Measures, on the first rank of each node, the clock of the node, and the latency and the
// bandwidth to the first rank of the next node; also resolves the name of that host. Collective
// over the job.
void measure_nodes(rankmesh::report::RankFacts& facts, StepWatch& watch);

}  // namespace meshinfo
