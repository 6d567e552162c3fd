// SPDX-License-Identifier: BSD-3-Clause
// scotch_compare [TREES [SEED [ragged]]]
//
// Compares arrange() with the mapping of Scotch (SCOTCH_graphMap, the strategy for quality) on
// random meshes and random trees of up to 64 slots. The trees are regular, or with `ragged` they
// lack some slots and whole units of a regular tree; for Scotch, these are parts of a target
// architecture (SCOTCH_archSub). Both assignments are judged by bytes_per_level(), outermost level
// first. Prints how often each of them is smaller; the exit status is 1 if Scotch's is ever
// smaller.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <rankmesh/machine/machine.hpp>
#include <rankmesh/place/arrange.hpp>
#include <rankmesh/spec/mesh_spec.hpp>

extern "C" {
#include <scotch/scotch.h>
#include <stdint.h>
#include <stdio.h>
}

using namespace rankmesh;
using Random = std::mt19937_64;

namespace {

constexpr int most_slots = 64;

struct Case {
  std::vector<SCOTCH_Num> tree;    // the number of units in each unit of the level before
  std::vector<SCOTCH_Num> leaves;  // of the regular tree, that the machine has
  std::string mesh;
};

// The leaves of a regular tree without one to a third of them: single ones, or a whole unit.
std::vector<SCOTCH_Num> some_leaves(const std::vector<SCOTCH_Num>& tree, int slots,
                                    Random& random) {
  std::vector<bool> is_left(static_cast<std::size_t>(slots), true);
  int lost = 1 + static_cast<int>(random() % static_cast<unsigned>(std::max(slots / 3, 1)));
  while (lost > 0) {
    int size = 1;  // of a unit at a random level
    for (std::size_t l = tree.size() - random() % tree.size(); l < tree.size(); ++l)
      size *= static_cast<int>(tree[l]);
    if (size > lost) size = 1;
    const int first = static_cast<int>(random() % static_cast<unsigned>(slots / size)) * size;
    for (int s = first; s < first + size; ++s) is_left[static_cast<std::size_t>(s)] = false;
    lost -= size;
  }
  std::vector<SCOTCH_Num> leaves;
  for (int s = 0; s < slots; ++s)
    if (is_left[static_cast<std::size_t>(s)]) leaves.push_back(static_cast<SCOTCH_Num>(s));
  return leaves;
}

// A tree, and a mesh of as many ranks.
Case random_case(bool is_ragged, Random& random) {
  Case result;
  int slots = 1;
  const int levels = 2 + static_cast<int>(random() % 3);
  for (int l = 0; l < levels; ++l) {
    const int most = most_slots / slots;
    if (most < 2) break;
    result.tree.push_back(
        2 + static_cast<SCOTCH_Num>(random() % static_cast<unsigned>(std::min(most - 1, 5))));
    slots *= static_cast<int>(result.tree.back());
  }
  if (is_ragged) {
    result.leaves = some_leaves(result.tree, slots, random);
    slots = static_cast<int>(result.leaves.size());
  }
  std::vector<std::string> names{"pp", "dp", "tp", "cp", "ep"};
  std::ranges::shuffle(names, random);
  for (int factor = 2, used = 0; slots > 1;) {  // prime factors, some of them joined
    while (slots % factor != 0) ++factor;
    int size = factor;
    slots /= factor;
    while (slots > 1 && (random() % 2 == 0 || used + 1 == 3)) {
      while (slots % factor != 0) ++factor;
      size *= factor;
      slots /= factor;
    }
    result.mesh += (result.mesh.empty() ? "" : ",") + names[static_cast<std::size_t>(used++)] +
                   "=" + std::to_string(size);
  }
  return result;
}

Machine machine_of(const Case& one) {
  std::int64_t slots = 1;
  for (const SCOTCH_Num size : one.tree) slots *= size;
  std::vector<MachineLevel> levels;
  std::int64_t size = slots;
  for (std::size_t l = 0; l + 1 < one.tree.size(); ++l) {
    size /= one.tree[l];
    levels.push_back({.name = "level" + std::to_string(l),
                      .kind = l + 2 == one.tree.size() ? LevelKind::node : LevelKind::network,
                      .size = one.leaves.empty() ? size : 0});
    for (const SCOTCH_Num leaf : one.leaves)
      levels.back().units.push_back(static_cast<std::int32_t>(leaf / size));
  }
  if (!one.leaves.empty()) slots = static_cast<std::int64_t>(one.leaves.size());
  return Machine{slots, std::move(levels)};
}

// Pairs of ranks and their bytes. In a ring or tree that adapts to the machine, any two members
// can become neighbours, so all pairs count alike.
std::map<std::pair<std::int64_t, std::int64_t>, SCOTCH_Num> edges_of(
    const MeshPlan& plan, const std::vector<FamilyTraffic>& traffic) {
  std::map<std::pair<std::int64_t, std::int64_t>, SCOTCH_Num> edges;
  for (const FamilyTraffic& t : traffic) {
    const GroupFamily& family = plan.groups(t.name);
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      const std::vector<Rank> ranks = family.group(g).to_vector();
      for (std::size_t i = 0; i < ranks.size(); ++i)
        for (std::size_t j = i + 1; j < ranks.size(); ++j) {
          if (t.pattern == Pattern::chain && j != i + 1) continue;
          const auto pairs = static_cast<std::int64_t>(ranks.size() - 1);
          const std::int64_t weight =
              t.pattern == Pattern::chain ? 200 * t.bytes : 100 * t.bytes / pairs;
          edges[{ranks[i].value(), ranks[j].value()}] +=
              static_cast<SCOTCH_Num>(std::max<std::int64_t>(weight, 1));
        }
    }
  }
  return edges;
}

// Moves ranks that share a slot to free slots, each to the one with the smallest objective.
void repair(const MeshPlan& plan, const Machine& machine, const std::vector<FamilyTraffic>& traffic,
            std::vector<std::int64_t>& slots) {
  std::vector<int> used(slots.size());
  std::vector<std::size_t> extra;
  for (std::size_t r = 0; r < slots.size(); ++r)
    if (used[static_cast<std::size_t>(slots[r])]++ > 0) extra.push_back(r);
  for (const std::size_t rank : extra) {
    std::vector<std::int64_t> best;
    std::int64_t place = -1;
    for (std::size_t s = 0; s < used.size(); ++s) {
      if (used[s] > 0) continue;
      slots[rank] = static_cast<std::int64_t>(s);
      auto bytes = bytes_per_level(plan, machine, traffic, slots);
      if (place >= 0 && bytes >= best) continue;
      best = std::move(bytes);
      place = slots[rank];
    }
    slots[rank] = place;
    used[static_cast<std::size_t>(place)] = 1;
  }
}

std::vector<std::int64_t> scotch_slots(const Case& one, const MeshPlan& plan,
                                       const std::vector<FamilyTraffic>& traffic) {
  const auto ranks = static_cast<std::size_t>(plan.world_size());
  std::vector<std::vector<std::pair<SCOTCH_Num, SCOTCH_Num>>> neighbours(ranks);
  for (const auto& [pair, weight] : edges_of(plan, traffic)) {
    neighbours[static_cast<std::size_t>(pair.first)].emplace_back(pair.second, weight);
    neighbours[static_cast<std::size_t>(pair.second)].emplace_back(pair.first, weight);
  }
  std::vector<SCOTCH_Num> starts{0}, ends, weights, result(ranks);
  for (const auto& list : neighbours) {
    for (const auto& [end, weight] : list) {
      ends.push_back(end);
      weights.push_back(weight);
    }
    starts.push_back(static_cast<SCOTCH_Num>(ends.size()));
  }
  std::vector<SCOTCH_Num> costs;  // an outer link costs 20 times as much as an inner one
  SCOTCH_Num cost = 1;
  for (std::size_t l = 0; l < one.tree.size(); ++l, cost *= 20) costs.insert(costs.begin(), cost);
  SCOTCH_Graph graph;
  SCOTCH_Arch arch, part;
  SCOTCH_Strat strategy;
  SCOTCH_graphInit(&graph);
  SCOTCH_archInit(&arch);
  SCOTCH_stratInit(&strategy);
  SCOTCH_graphBuild(&graph, 0, static_cast<SCOTCH_Num>(ranks), starts.data(), nullptr, nullptr,
                    nullptr, static_cast<SCOTCH_Num>(ends.size()), ends.data(), weights.data());
  SCOTCH_archTleaf(&arch, static_cast<SCOTCH_Num>(one.tree.size()), one.tree.data(), costs.data());
  const bool is_ragged = !one.leaves.empty();
  if (is_ragged) {
    SCOTCH_archInit(&part);
    if (SCOTCH_archSub(&part, &arch, static_cast<SCOTCH_Num>(one.leaves.size()),
                       one.leaves.data()) != 0)
      std::abort();
  }
  SCOTCH_stratGraphMapBuild(&strategy, SCOTCH_STRATQUALITY | SCOTCH_STRATBALANCE,
                            static_cast<SCOTCH_Num>(ranks), 0.01);
  if (SCOTCH_graphMap(&graph, is_ragged ? &part : &arch, &strategy, result.data()) != 0)
    std::abort();
  SCOTCH_stratExit(&strategy);
  if (is_ragged) SCOTCH_archExit(&part);
  SCOTCH_archExit(&arch);
  SCOTCH_graphExit(&graph);
  return {result.begin(), result.end()};
}

}  // namespace

int main(int argc, char** argv) {
  const int trees = argc > 1 ? std::atoi(argv[1]) : 1000;
  Random random{argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 19};
  const bool is_ragged = argc > 3;
  int smaller = 0, equal = 0, larger = 0;
  for (int i = 0; i < trees; ++i) {
    const Case one = random_case(is_ragged, random);
    const Machine machine = machine_of(one);
    const MeshPlan plan = MeshSpec::parse_string(one.mesh).plan();
    const auto traffic = usual_traffic(plan);
    std::vector<std::int64_t> slots = scotch_slots(one, plan, traffic);
    repair(plan, machine, traffic, slots);
    const auto theirs = bytes_per_level(plan, machine, traffic, slots);
    const auto ours = arrange(plan, machine, traffic).best.bytes;
    (ours < theirs ? smaller : ours == theirs ? equal : larger) += 1;
    if (ours > theirs)
      std::printf("larger: %s on %s\n", one.mesh.c_str(), machine.describe().c_str());
  }
  std::printf("%d trees: arrange() is smaller in %d, equal in %d, larger in %d\n", trees, smaller,
              equal, larger);
  return larger == 0 ? 0 : 1;
}
