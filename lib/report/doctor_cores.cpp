// SPDX-License-Identifier: BSD-3-Clause
// Rules of doctor about the cores that ranks are allowed to use.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/doctor.hpp"

namespace rankmesh::report::detail {
namespace {

using rankmesh::detail::count_text;
bool is_oversubscribed(const Members& members) {
  const auto cores = cores_of(members);
  return !cores.empty() && members.size() > cores.size();
}

std::string cores_text(const std::vector<int>& cores) {
  std::vector<Rank> list(cores.begin(), cores.end());
  return RankSet::of(list).to_string(60);
}

// The ranks of a node, grouped by the set of cores that they are allowed to use.
std::map<std::vector<int>, Members> by_cores(const Members& members) {
  std::map<std::vector<int>, Members> sets;
  for (const RankFacts* facts : members)
    if (!facts->cores.empty()) sets[facts->cores].push_back(facts);
  return sets;
}

// The ranks that share cores: those with equal sets that are too small for all of them, and those
// with different sets that have cores in common. Ranks with one set that is large enough are bound
// to a socket, or not bound at all.
Members sharing(const Members& members) {
  const auto sets = by_cores(members);
  std::set<const RankFacts*> found;
  for (auto a = sets.begin(); a != sets.end(); ++a) {
    if (a->second.size() > a->first.size()) found.insert(a->second.begin(), a->second.end());
    for (auto b = std::next(a); b != sets.end(); ++b) {
      std::vector<int> common;
      std::ranges::set_intersection(a->first, b->first, std::back_inserter(common));
      if (common.empty()) continue;
      found.insert(a->second.begin(), a->second.end());
      found.insert(b->second.begin(), b->second.end());
    }
  }
  Members result{found.begin(), found.end()};
  std::ranges::sort(result, {}, &RankFacts::rank);
  return result;
}

std::string bindings_text(const Members& members) {
  constexpr std::size_t most = 4;
  std::string text;
  std::size_t written = 0;
  for (const auto& [cores, ranks] : by_cores(members)) {
    if (written == most) return text + "; ...";
    text += fmt::format("{}{}: core{} {}", written++ == 0 ? "" : "; ", ranks_text(ranks_of(ranks)),
                        cores.size() == 1 ? "" : "s", cores_text(cores));
  }
  return text;
}

// The number of threads that OMP_NUM_THREADS asks for at the outer level; 0 if it is not set.
std::int64_t threads_of(const RankFacts& facts) {
  const std::string text = variable(facts, "OMP_NUM_THREADS").value_or("");
  std::int64_t threads = 0;
  std::from_chars(text.data(), text.data() + text.size(), threads);
  return threads;
}

}  // namespace

Findings check_oversubscription(const Rule& rule, const Examination& job) {
  Findings findings;
  for (const auto& [node, members] : by_node(job)) {
    if (!is_oversubscribed(members)) continue;
    findings.push_back(
        finding(rule, ranks_of(members),
                fmt::format("{} ranks on host {} share {}", members.size(), members.front()->host,
                            count_text(cores_of(members).size(), "core")),
                "ranks that wait poll, and take the cores from the ranks that they wait for",
                "start fewer ranks per node, or reserve more cores (sbatch --cpus-per-task, "
                "docker run --cpuset-cpus); for a test, let ranks yield: mpirun --mca "
                "mpi_yield_when_idle 1"));
  }
  return findings;
}

// On a node with too few cores, ranks share cores regardless of their binding.
Findings check_bindings(const Rule& rule, const Examination& job) {
  Findings findings;
  for (const auto& [node, members] : by_node(job)) {
    if (is_oversubscribed(members)) continue;
    const Members shared = sharing(members);
    if (shared.empty()) continue;
    findings.push_back(finding(
        rule, ranks_of(shared),
        fmt::format("ranks of host {} are bound to the same cores: {}", shared.front()->host,
                    bindings_text(shared)),
        "ranks on one core take turns, so each of them is at most half as fast, and all others "
        "wait for them",
        "let the launcher bind the ranks, and start only one job per node: mpirun --bind-to core, "
        "srun --cpu-bind=cores; remove taskset, numactl and KMP_AFFINITY from the job script"));
  }
  return findings;
}

Findings check_threads(const Rule& rule, const Examination& job) {
  Findings findings;
  for (const auto& [node, members] : by_node(job)) {
    std::int64_t threads = 0;
    Members crowded;
    for (const RankFacts* facts : members) {
      threads += std::max<std::int64_t>(1, threads_of(*facts));
      if (threads_of(*facts) > static_cast<std::int64_t>(facts->cores.size()))
        crowded.push_back(facts);
    }
    const auto cores = static_cast<std::int64_t>(cores_of(members).size());
    const bool is_total = crowded.empty();
    const bool asks =
        std::ranges::any_of(members, [](const RankFacts* facts) { return threads_of(*facts) > 1; });
    if (!asks || (is_total && threads <= cores)) continue;
    const RankFacts& first = is_total ? *members.front() : *crowded.front();
    findings.push_back(finding(
        rule, ranks_of(is_total ? members : crowded),
        is_total
            ? fmt::format("OMP_NUM_THREADS makes {} threads on the {} cores of host {}", threads,
                          cores, first.host)
            : fmt::format("OMP_NUM_THREADS={} on rank {}, which is allowed to use {}",
                          threads_of(first), first.rank, count_text(first.cores.size(), "core")),
        "threads on one core take turns, and OpenMP waits for the last thread at the end of each "
        "loop",
        "set OMP_NUM_THREADS to the number of cores of a rank, or bind ranks to more cores (srun "
        "--cpus-per-task, mpirun --map-by slot:PE=N)"));
  }
  return findings;
}

Findings check_core_counts(const Rule& rule, const Examination& job) {
  return differing(
      rule,
      variants(job,
               [](const RankFacts& facts) { return fmt::format("{} cores", facts.cores.size()); }),
      "ranks are allowed to use different numbers of cores",
      "the ranks with fewer cores may be slower, and the others wait for them",
      "if the nodes are equal, start the same number of ranks on each, with the same "
      "binding");
}

}  // namespace rankmesh::report::detail
