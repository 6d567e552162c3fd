// SPDX-License-Identifier: BSD-3-Clause
// Rules of doctor about NCCL's network variables.
#include <strings.h>
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/doctor.hpp"

namespace rankmesh::report::detail {
namespace {

bool is_same_word(const std::string& a, const char* b) { return strcasecmp(a.c_str(), b) == 0; }

// Whether a list chooses one of the names. As in NCCL, items are prefixes, or whole names after
// '='; '^' at the beginning means all other names. A ':' begins a port.
bool chooses_any(std::string list, const std::vector<std::string>& names) {
  const bool is_exclusion = list.starts_with('^');
  if (is_exclusion) list.erase(0, 1);
  const bool is_exact = list.starts_with('=');
  if (is_exact) list.erase(0, 1);
  const auto parts = items(list);
  return std::ranges::any_of(names, [&](const std::string& name) {
    const bool is_listed = std::ranges::any_of(parts, [&](const std::string& part) {
      const std::string word = part.substr(0, part.find(':'));
      return is_exact ? name == word : name.starts_with(word);
    });
    return is_listed != is_exclusion;
  });
}

// The ranks on which the variable chooses nothing; one finding per host and value.
Findings chooses_nothing(
    const Rule& rule, const Examination& job, const std::string& name,
    const std::function<const std::vector<std::string>&(const RankFacts&)>& names, const char* noun,
    const char* why, const char* fix) {
  std::map<std::string, RankList> wrong;
  for (const RankFacts& facts : job.ranks) {
    const auto value = variable(facts, name);
    if (!value || chooses_any(*value, names(facts))) continue;
    const auto& there = names(facts);
    wrong[fmt::format(
              "{}={} chooses no {} of host {}, which has {}", name, *value, noun, facts.host,
              there.empty() ? std::string{"none"} : fmt::format("{}", fmt::join(there, ", ")))]
        .push_back(facts.rank);
  }
  return findings_of(rule, wrong, why, fix);
}

}  // namespace

Findings check_nccl_interface(const Rule& rule, const Examination& job) {
  return chooses_nothing(
      rule, job, "NCCL_SOCKET_IFNAME",
      [](const RankFacts& facts) -> const std::vector<std::string>& { return facts.interfaces; },
      "network interface that is up",
      "NCCL finds no address for its first connections, and refuses to start",
      "unset NCCL_SOCKET_IFNAME, or set it to a prefix that exists on all nodes (ip -br link)");
}

Findings check_nccl_network(const Rule& rule, const Examination& job) {
  std::map<std::string, RankList> wrong;
  for (const RankFacts& facts : job.ranks) {
    const auto value = variable(facts, "NCCL_NET");
    if (!value || is_same_word(*value, "Socket") || facts.has_net_plugin) continue;
    if (is_same_word(*value, "IB")) {
      if (facts.rdma_devices.empty())
        wrong[fmt::format("NCCL_NET=IB, but host {} has no RDMA device", facts.host)].push_back(
            facts.rank);
    } else {
      wrong[fmt::format("NCCL_NET={} is neither IB nor Socket, and no plugin of NCCL is found on "
                        "host {}",
                        *value, facts.host)]
          .push_back(facts.rank);
    }
  }
  return findings_of(rule, wrong,
                     "NCCL refuses to start if it does not find the network it must use",
                     "unset NCCL_NET, or install the plugin (libnccl-net.so) and add its folder to "
                     "LD_LIBRARY_PATH on all nodes");
}

Findings check_nccl_hca(const Rule& rule, const Examination& job) {
  return chooses_nothing(
      rule, job, "NCCL_IB_HCA",
      [](const RankFacts& facts) -> const std::vector<std::string>& { return facts.rdma_devices; },
      "RDMA device", "NCCL then sends over TCP, many times slower, without a message",
      "unset NCCL_IB_HCA, or set it to names that ibv_devices prints on this host");
}

Findings check_rdma_disabled(const Rule& rule, const Examination& job) {
  auto ranks = ranks_with(job, [](const RankFacts& facts) {
    const auto value = variable(facts, "NCCL_IB_DISABLE");
    const auto net = variable(facts, "NCCL_NET");
    return !facts.rdma_devices.empty() &&
           ((value && *value != "0") || (net && is_same_word(*net, "Socket")));
  });
  if (ranks.empty() || node_count(job) < 2) return {};
  return {finding(rule, std::move(ranks),
                  "NCCL_IB_DISABLE or NCCL_NET=Socket keeps NCCL from using the RDMA devices",
                  "NCCL then sends over TCP between nodes",
                  "unset the variable unless RDMA does not work here")};
}

}  // namespace rankmesh::report::detail
