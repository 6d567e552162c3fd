// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/parts.hpp"

namespace rankmesh::report {
namespace {

// The devices of a node's ranks, in their order.
std::string devices_text(const LiveFacts& live, const std::vector<Rank>& ranks) {
  constexpr std::size_t most = 16;
  if (live.devices.empty()) return {};
  std::vector<int> devices;
  for (const Rank rank : ranks)
    devices.push_back(live.devices.at(static_cast<std::size_t>(rank.value())));
  const bool is_cut = devices.size() > most;
  if (is_cut) devices.resize(most);
  return fmt::format(", devices {}{}", fmt::join(devices, ","), is_cut ? ",..." : "");
}

// How long NCCL took to start, or why there are no devices.
std::string phases_text(const LiveFacts& live) {
  if (!live.phases)
    return live.why_no_devices.empty() ? ""
                                       : fmt::format("  no devices: {}\n", live.why_no_devices);
  const LiveFacts::Phases& p = *live.phases;
  return fmt::format(
      "  NCCL was started in {:.1f} ms: unique IDs {:.1f}, broadcasts {:.1f}, barriers {:.1f}, "
      "inits {:.1f}, splits {:.1f}\n",
      1e3 * (p.unique_ids + p.broadcasts + p.barriers + p.inits + p.splits), 1e3 * p.unique_ids,
      1e3 * p.broadcasts, 1e3 * p.barriers, 1e3 * p.inits, 1e3 * p.splits);
}

// What NCCL chose, on as few lines as possible, and what to do about it.
std::string nccl_text(const LiveFacts& live) {
  std::string text;
  for (const auto& [choice, ranks] : detail::nccl_groups(live))
    text += fmt::format("  NCCL chose on ranks {}: {}\n", RankSet::of(ranks).to_string(48), choice);
  for (const std::string& advice : nccl_advice(live.nccl, live.placement.node_count()))
    text += fmt::format("  advice: {}\n", advice);
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::vector<Rank>>> detail::nccl_groups(const LiveFacts& live) {
  std::vector<std::pair<std::string, std::vector<Rank>>> groups;
  for (std::size_t r = 0; r < live.nccl.size(); ++r) {
    const std::string choice = to_string(live.nccl[r]);
    auto group = std::ranges::find(groups, choice, [](const auto& entry) { return entry.first; });
    if (group == groups.end()) group = groups.insert(groups.end(), {choice, {}});
    group->second.emplace_back(static_cast<std::int64_t>(r));
  }
  return groups;
}

std::string detail::nodes_text(const LiveFacts& live) {
  std::vector<std::vector<Rank>> ranks(static_cast<std::size_t>(live.placement.node_count()));
  std::vector<std::vector<Rank>> processes(ranks.size());
  for (std::int64_t r = 0; r < live.placement.world_size(); ++r) {
    const auto node = static_cast<std::size_t>(live.placement.node(r));
    ranks[node].push_back(r);
    processes[node].push_back(live.process_ids.at(static_cast<std::size_t>(r)));
  }
  for (std::vector<Rank>& list : processes) {  // equal in containers of one node
    std::ranges::sort(list);
    const auto repeated = std::ranges::unique(list);
    list.erase(repeated.begin(), repeated.end());
  }
  std::string text;
  const std::size_t shown = std::min(max_nodes, ranks.size());
  for (std::size_t n = 0; n < shown; ++n)
    text += fmt::format("  n{} {}: ranks {}, processes {}{}\n", n, live.hosts.at(n),
                        RankSet::of(ranks[n]).to_string(48),
                        RankSet::of(processes[n]).to_string(48), devices_text(live, ranks[n]));
  if (ranks.size() > shown) text += fmt::format("  ... and {} more nodes\n", ranks.size() - shown);
  std::map<std::string, std::vector<Rank>> without_memory;  // numbers of nodes, by the reason
  for (std::size_t n = 0; n < live.why_no_shared_memory.size(); ++n)
    if (const std::string& why = live.why_no_shared_memory[n]; !why.empty())
      without_memory[why].push_back(static_cast<std::int64_t>(n));
  for (const auto& [why, nodes] : without_memory)
    text += fmt::format("  the ranks of n{} share no memory, so groups inside {} use MPI: {}\n",
                        RankSet::of(nodes).to_string(48), nodes.size() == 1 ? "it" : "them", why);
  return text + phases_text(live) + nccl_text(live);
}

}  // namespace rankmesh::report
