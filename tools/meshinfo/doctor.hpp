// SPDX-License-Identifier: BSD-3-Clause
// What meshinfo doctor gathers and measures.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "job.hpp"
#include "report/rank_facts.hpp"

namespace rankmesh::meshinfo {

// Returns what this process knows without MPI, and without other processes.
report::RankFacts local_facts();
// Returns whether this process can resolve the name of a host.
bool resolves(const std::string& host);

// The facts of all ranks, on rank 0; empty on the other ranks.
struct GatheredFacts {
  std::vector<report::RankFacts> ranks;
  bool in_job = false;
};

// Ends the process if a step takes too long, with a message that names the step: a network that
// loses messages would otherwise make doctor itself hang.
class StepWatch {
 public:
  // @param seconds  0: no limit.
  StepWatch(double seconds, std::string who);
  // Begins a step. `name` completes the sentence "... has waited ... in NAME".
  void begin(std::string name);

 private:
  void run(const std::stop_token& end);

  const double seconds_;
  const std::string who_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string step_;
  std::int64_t number_ = 0;
  std::jthread thread_;  // last, because it uses the others
};

}  // namespace rankmesh::meshinfo
