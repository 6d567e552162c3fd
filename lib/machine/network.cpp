// SPDX-License-Identifier: BSD-3-Clause
// Turns switches and hosts into levels.
#include <algorithm>

#include <fmt/format.h>

#include "detail/input.hpp"
#include "detail/network_builder.hpp"

namespace rankmesh::detail {

std::int32_t NetworkBuilder::switch_called(const std::string& name, LevelKind kind,
                                           std::int64_t line) {
  const auto [entry, is_new] =
      switches_.try_emplace(name, static_cast<std::int32_t>(network_.switches.size()));
  if (is_new) {
    if (std::ssize(network_.switches) == most_hosts)
      refuse(origin_, line, fmt::format("more than {} switches are named", most_hosts),
             "check the numbers in brackets");
    network_.switches.push_back({name, kind, Network::none, line});
  }
  return entry->second;
}

void NetworkBuilder::put_switch(std::int32_t child, std::int32_t parent, std::int64_t line) {
  Network::Switch& below = network_.switches[static_cast<std::size_t>(child)];
  if (below.parent != Network::none && below.parent != parent)
    refuse(origin_, line,
           fmt::format("the switch '{:.40}' is below two switches, '{:.40}' and '{:.40}'",
                       below.name, network_.switches[static_cast<std::size_t>(below.parent)].name,
                       network_.switches[static_cast<std::size_t>(parent)].name),
           "the network must be a tree: list each switch below one other switch");
  below.parent = parent;
}

void NetworkBuilder::put_host(const std::string& name, std::int32_t parent, std::int64_t line) {
  const auto [entry, is_new] =
      hosts_.try_emplace(name, static_cast<std::int32_t>(network_.hosts.size()));
  if (is_new) {
    if (std::ssize(network_.hosts) == most_hosts)
      refuse(origin_, line, fmt::format("more than {} nodes are named", most_hosts),
             "check the numbers in brackets");
    network_.hosts.push_back({name, parent, line});
    return;
  }
  const Network::Host& host = network_.hosts[static_cast<std::size_t>(entry->second)];
  if (host.parent == parent) return;
  refuse(origin_, line,
         fmt::format("the node '{:.40}' is below two switches, '{:.40}' and '{:.40}'", name,
                     network_.switches[static_cast<std::size_t>(host.parent)].name,
                     network_.switches[static_cast<std::size_t>(parent)].name),
         "the network must be a tree: name each node below one switch");
}

Network NetworkBuilder::finish() {
  if (network_.hosts.empty())
    refuse(origin_, 0, "no node is named", "name the nodes of each switch or block");
  // A chain that is longer than the number of switches is a circle.
  constexpr int deepest = 64;
  for (const Network::Switch& from : network_.switches) {
    int depth = 0;
    for (std::int32_t s = from.parent; s != Network::none;
         s = network_.switches[static_cast<std::size_t>(s)].parent)
      if (++depth > deepest)
        refuse(origin_, from.line,
               fmt::format("the switch '{:.40}' is below itself, or below more than {} others",
                           from.name, deepest),
               "the network must be a tree");
  }
  return std::move(network_);
}

namespace {

constexpr std::int32_t none = Network::none;

// The height of each switch: 1 above hosts only, and one more than its highest child. Blocks count
// as their own levels.
std::vector<int> heights_of(const Network& network) {
  std::vector<int> heights(network.switches.size(), 1);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (std::size_t s = 0; s < network.switches.size(); ++s) {
      const std::int32_t parent = network.switches[s].parent;
      if (parent == none || heights[static_cast<std::size_t>(parent)] > heights[s]) continue;
      heights[static_cast<std::size_t>(parent)] = heights[s] + 1;
      has_changed = true;
    }
  }
  return heights;
}

std::string tier_name(int tier) {
  constexpr const char* names[] = {"leaf", "spine", "core"};
  return tier < 3 ? names[tier] : fmt::format("tier{}", tier + 1);
}

// Returns whether two levels have the same units.
bool is_same(const MachineLevel& a, const MachineLevel& b) {
  std::unordered_map<std::int32_t, std::int32_t> forth, back;
  for (std::size_t h = 0; h < a.units.size(); ++h)
    if (forth.try_emplace(a.units[h], b.units[h]).first->second != b.units[h] ||
        back.try_emplace(b.units[h], a.units[h]).first->second != a.units[h])
      return false;
  return true;
}

// Whether the switch is an NVLink domain, or inside one.
bool is_in_domain(const Network& network, std::int32_t at) {
  for (; at != none; at = network.switches[static_cast<std::size_t>(at)].parent)
    if (network.switches[static_cast<std::size_t>(at)].kind == LevelKind::domain) return true;
  return false;
}

bool has_one_unit(const MachineLevel& level) {
  return std::ranges::all_of(level.units, [&](auto unit) { return unit == level.units.front(); });
}

}  // namespace

std::vector<MachineLevel> levels_of(const Network& network, const std::vector<std::string>& hosts,
                                    std::string_view origin) {
  std::unordered_map<std::string_view, std::int32_t> parent_of;
  for (const Network::Host& host : network.hosts) parent_of.emplace(host.name, host.parent);
  const std::vector<int> heights = heights_of(network);
  const int highest = heights.empty() ? 0 : *std::ranges::max_element(heights);
  std::vector<MachineLevel> result;
  bool has_domains = false;  // at this height, or above
  for (int height = highest; height >= 1; --height) {
    MachineLevel level{.name = "", .kind = LevelKind::network};
    std::vector<std::int32_t> number(network.switches.size(), none);
    std::vector<std::int32_t> places;
    const auto next = [&](std::string name) {
      level.names.push_back(std::move(name));
      return static_cast<std::int32_t>(level.names.size() - 1);
    };
    for (const std::string& host : hosts) {
      const auto found = parent_of.find(host);
      if (found == parent_of.end())
        refuse(origin, 0, fmt::format("the node '{:.60}' is not in the network", host),
               "name all nodes of the job, as the host file or Slurm names them");
      // The highest switch above the host that is not above this height.
      std::int32_t at = found->second;
      while (network.switches[static_cast<std::size_t>(at)].parent != none &&
             heights[static_cast<std::size_t>(
                 network.switches[static_cast<std::size_t>(at)].parent)] <= height)
        at = network.switches[static_cast<std::size_t>(at)].parent;
      places.push_back(at);
      const Network::Switch& found_switch = network.switches[static_cast<std::size_t>(at)];
      if (heights[static_cast<std::size_t>(at)] == height && found_switch.kind == LevelKind::domain)
        level.kind = LevelKind::domain;
    }
    has_domains = has_domains || level.kind == LevelKind::domain;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      if (has_domains && !is_in_domain(network, places[h])) {  // it shares no fast links
        level.units.push_back(next(hosts[h]));
        continue;
      }
      const auto place = static_cast<std::size_t>(places[h]);
      if (number[place] == none) number[place] = next(network.switches[place].name);
      level.units.push_back(number[place]);
    }
    level.name = level.kind == LevelKind::domain ? "block" : tier_name(height - 1);
    // A single domain says that the hosts are as near to each other as those of one node.
    if (level.kind != LevelKind::domain && has_one_unit(level)) continue;
    if (!result.empty() && is_same(result.back(), level)) {
      // The inner of two equal levels says more if it is a domain.
      if (level.kind == LevelKind::domain) result.back() = std::move(level);
      continue;
    }
    result.push_back(std::move(level));
  }
  return result;
}

}  // namespace rankmesh::detail
