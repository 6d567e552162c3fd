// SPDX-License-Identifier: BSD-3-Clause
// Rules of doctor about limits of the process, shared memory and permissions.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/doctor.hpp"

namespace rankmesh::report::detail {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

struct NamedLimit {
  const char* name;
  const char* option;  // of ulimit
  std::int64_t LimitFacts::*value;
  bool is_size;
};
constexpr NamedLimit limits[] = {
    {"locked memory", "-l", &LimitFacts::locked_memory, true},
    {"number of descriptors", "-n", &LimitFacts::descriptors, false},
    {"address space", "-v", &LimitFacts::address_space, true},
};

std::string limit_text(const NamedLimit& limit, std::int64_t value) {
  return limit.is_size || value < 0 ? size_text(value) : fmt::format("{}", value);
}

// Returns the lowest limit of the ranks that a function chooses.
std::int64_t lowest_of(const Examination& job, std::int64_t LimitFacts::*limit,
                       const auto& is_chosen) {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  for (const RankFacts& facts : job.ranks)
    if (is_chosen(facts)) lowest = std::min(lowest, facts.limits.*limit);
  return lowest;
}

}  // namespace

Findings check_limits_differ(const Rule& rule, const Examination& job) {
  Findings findings;
  for (const NamedLimit& limit : limits) {
    const auto values = variants(
        job, [&](const RankFacts& facts) { return limit_text(limit, facts.limits.*limit.value); });
    for (Finding& found : differing(
             rule, values, fmt::format("the limit of the {} differs", limit.name),
             "the ranks with the lower limit fail first, at a size that works elsewhere",
             fmt::format("set the same limit on all nodes: ulimit {} in the job script, "
                         "/etc/security/limits.conf, or LimitNOFILE and LimitMEMLOCK of the daemon "
                         "that starts the ranks",
                         limit.option)))
      findings.push_back(std::move(found));
  }
  return findings;
}

Findings check_locked_memory(const Rule& rule, const Examination& job) {
  constexpr std::int64_t least = 1024 * mebibyte;
  const auto is_low = [](const RankFacts& facts) {
    return !facts.rdma_devices.empty() && facts.limits.locked_memory >= 0 &&
           facts.limits.locked_memory < least;
  };
  auto ranks = ranks_with(job, is_low);
  if (ranks.empty()) return {};
  const std::int64_t lowest = lowest_of(job, &LimitFacts::locked_memory, is_low);
  return {finding(
      rule, std::move(ranks),
      fmt::format("only {} of memory can be locked, but there are RDMA devices", size_text(lowest)),
      "RDMA locks the memory that it sends from; MPI and NCCL then fail with 'cannot "
      "allocate memory', or fall back to TCP",
      "ulimit -l unlimited in the job script, memlock in /etc/security/limits.conf, or "
      "LimitMEMLOCK=infinity for the daemon that starts the ranks")};
}

// TCP needs a descriptor for each rank on another node; RDMA does not.
Findings check_descriptors(const Rule& rule, const Examination& job) {
  constexpr std::int64_t least = 256;
  const auto ranks_of_job = static_cast<std::int64_t>(job.ranks.size());
  const auto needed = [&](const RankFacts& facts) {
    return facts.rdma_devices.empty() ? std::max(least, 64 + ranks_of_job) : least;
  };
  RankList low;
  std::int64_t limit = 0, wanted = 0;
  for (const RankFacts& facts : job.ranks) {
    if (facts.limits.descriptors < 0 || facts.limits.descriptors >= needed(facts)) continue;
    if (low.empty() || facts.limits.descriptors < limit) limit = facts.limits.descriptors;
    wanted = std::max(wanted, needed(facts));
    low.push_back(facts.rank);
  }
  if (low.empty()) return {};
  return {finding(
      rule, std::move(low),
      fmt::format("a process is allowed to have {} descriptors, but this job needs about {}", limit,
                  wanted),
      "each connection and each shared segment takes a descriptor; MPI and NCCL fail "
      "with 'too many open files', often only when the groups are created",
      fmt::format("ulimit -n {} in the job script, or a higher nofile in "
                  "/etc/security/limits.conf",
                  std::max<std::int64_t>(4096, 2 * wanted)))};
}

Findings check_address_space(const Rule& rule, const Examination& job) {
  const auto is_limited = [](const RankFacts& facts) { return facts.limits.address_space >= 0; };
  auto ranks = ranks_with(job, is_limited);
  if (ranks.empty()) return {};
  const std::int64_t lowest = lowest_of(job, &LimitFacts::address_space, is_limited);
  return {finding(
      rule, std::move(ranks), fmt::format("the address space is limited to {}", size_text(lowest)),
      "CUDA, MPI and shared memory reserve more address space than the memory they use, so "
      "they can fail even when memory is free",
      "ulimit -v unlimited in the job script; limit the memory by the batch system "
      "instead")};
}

Findings check_shared_memory(const Rule& rule, const Examination& job) {
  constexpr std::int64_t per_rank = 16 * mebibyte;
  Findings findings;
  for (const auto& [node, members] : by_node(job)) {
    const RankFacts& first = *members.front();
    const auto ranks = static_cast<std::int64_t>(members.size());
    if (first.shared_memory_free >= per_rank * ranks) continue;
    const std::string what =
        first.shared_memory_size < 0
            ? fmt::format("host {} has no /dev/shm", first.host)
            : fmt::format("/dev/shm of host {} has {} free of {}, for {}", first.host,
                          size_text(first.shared_memory_free), size_text(first.shared_memory_size),
                          rankmesh::detail::count_text(ranks, "rank"));
    findings.push_back(
        finding(rule, ranks_of(members), what,
                "MPI and NCCL keep the buffers between ranks of a node there; a process that "
                "writes beyond the end of the memory is killed by SIGBUS",
                fmt::format("remove old files from /dev/shm, or make it larger: docker run "
                            "--shm-size={}g (or --ipc=host), or mount -o remount,size=... /dev/shm",
                            std::max<std::int64_t>(1, ranks / 8))));
  }
  return findings;
}

// With ptrace_scope 1, a process may trace only its children. This is the default of several
// distributions, and MPI works with it.
Findings check_ptrace_scope(const Rule& rule, const Examination& job) {
  auto ranks = ranks_with(job, [](const RankFacts& facts) { return facts.ptrace_scope >= 2; });
  if (ranks.empty()) return {};
  return {finding(rule, std::move(ranks), "kernel.yama.ptrace_scope is 2 or 3",
                  "debuggers cannot attach to a rank that hangs, and MPI copies messages inside a "
                  "node twice because it cannot read the memory of another process",
                  "sysctl kernel.yama.ptrace_scope=1, if the administrator agrees")};
}

}  // namespace rankmesh::report::detail
