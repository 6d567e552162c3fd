// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "machine/read_machine.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/transfer/plan.hpp"
#include "rankmesh/transfer/relabel.hpp"

using namespace rankmesh;

namespace {

std::vector<TensorTransfer> one(const std::string& from, const std::string& to) {
  return {{TensorPlacement::parse(from), TensorPlacement::parse(to)}};
}

// The bytes of a plan are those that the relabelling promises.
Relabelling relabelled(const std::vector<TensorTransfer>& tensors) {
  const Relabelling result = relabel(tensors);
  CHECK(plan_transfer(tensors).volume().moved_bytes == result.moved_before);
  CHECK(plan_transfer(result.apply(tensors)).volume().moved_bytes == result.moved_bytes);
  CHECK(result.moved_bytes <= result.moved_before);
  return result;
}

}  // namespace

TEST_CASE("a rotation over 8 ranks moves nothing after relabelling") {
  const Relabelling result =
      relabelled(one("[64,8] f32 @ tp=8 : (tp, _)", "[64,8] f32 @ tp=8 on 1-7,0 : (tp, _)"));
  CHECK(result.moved_before == 64 * 8 * 4);
  CHECK(result.moved_bytes == 0);
  CHECK(result.cost == 0);
  CHECK(result.least_cost == 0);
  CHECK(result.rank_of.at(Rank{1}) == Rank{0});
}

TEST_CASE("replicas and several tensors are relabelled together") {
  auto tensors = one("[64,8] f32 @ dp=2,tp=4 : (tp, _)", "[64,8] bf16 @ tp=4,dp=2 : (tp, _)");
  tensors.push_back({TensorPlacement::parse("[32] f32 @ dp=2,tp=4 : (tp)"),
                     TensorPlacement::parse("[32] f32 @ tp=4,dp=2 : (tp)"), "bias"});
  const Relabelling result = relabelled(tensors);
  CHECK(result.moved_before > 0);
  CHECK(result.moved_bytes == 0);
  CHECK(result.apply(tensors)[1].name == "bias");
}

TEST_CASE("columns become rows: relabelling moves half") {
  // 8 x 8 blocks of columns become 4 x 16 blocks of rows, on 64 ranks.
  const Relabelling result =
      relabelled(one("[64,64] f64 @ c=8,r=8 : (r, c)", "[64,64] f64 @ r=4,c=16 : (r, c)"));
  CHECK(result.moved_bytes == 64 * 64 * 8 / 2);
  CHECK(result.least_cost == result.moved_bytes);
}

TEST_CASE("ranks that hold nothing are exchanged only among each other") {
  const Relabelling result =
      relabelled(one("[8] f32 @ tp=2 : (tp)", "[8] f32 @ tp=2 on 4-5 : (tp)"));
  CHECK(result.moved_bytes == result.moved_before);
  CHECK_THROWS_AS((void)result.apply(TensorPlacement::parse("[8] f32 @ tp=2 : (tp)")), Error);
}

TEST_CASE("bytes between nodes cost more") {
  // Rank 0 holds the first half, rank 2 the second one. Ranks 0 and 1 share a node, and 2 and 3.
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 2, .world_size = 4});
  const auto tensors = one("[8] f32 @ tp=2 on 0,2 : (tp)", "[8] f32 @ tp=2 on 3,1 : (tp)");
  const Relabelling result = relabel(tensors, {.machine = &machine});
  CHECK(result.rank_of.at(Rank{3}) == Rank{1});
  CHECK(result.rank_of.at(Rank{1}) == Rank{3});
  CHECK(result.moved_bytes == 32);
  CHECK(result.cost == 32);
  CHECK(plan_transfer(tensors, &machine).volume().between_nodes_bytes == 32);
  CHECK(plan_transfer(result.apply(tensors), &machine).volume().between_nodes_bytes == 0);
  CHECK(relabel(tensors, {.machine = &machine, .node_weight = 3, .network_weight = 3}).cost == 96);
  CHECK_THROWS_AS((void)relabel(tensors, {.node_weight = 3, .network_weight = 2}), UsageError);
  const Machine small = MachineReader{}.machine({.ranks_per_node = 1, .world_size = 2});
  CHECK_THROWS_AS((void)relabel(tensors, {.machine = &small}), UsageError);
}

TEST_CASE("a mesh that does not list its ranks in ascending order keeps its places") {
  const std::string place = "[4] u8 @ torch:shape=4,dim_names=x,rank_map=1x0x3x2 : (x)";
  const auto tensors = one(place, place);
  const Relabelling result = relabelled(tensors);
  CHECK(result.moved_bytes == 0);
  const TensorPlacement to = result.apply(tensors)[0].to;
  for (std::int64_t r = 0; r < 4; ++r)
    CHECK(to.runs(Rank{r}, 0).front().global == tensors[0].to.runs(Rank{r}, 0).front().global);
}

TEST_CASE("a relabelled tensor keeps its second place and its name") {
  auto tensors = one("[8] f32 @ tp=2 : (tp)", "[8] f32 @ tp=2 : (tp)");
  tensors[0].name = "weight";
  tensors[0].copy = TensorPlacement::parse("[8] f32 @ tp=2 on 1,0 : (tp)");
  const auto moved = relabel(tensors).apply(tensors);
  CHECK(moved[0].name == "weight");
  CHECK(moved[0].copy == tensors[0].copy);
}

TEST_CASE("elements that several ranks of a node hold count once") {
  // Ranks 0 and 1 share a node. Both have element 4, and rank 1 has element 1; the node lacks
  // three.
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 2, .world_size = 4});
  const auto tensors = one("[6] u8 @ kv=2,copy=2 : (4:kv*copy + 2:kv)", "[6] u8 @ x=1 on 0 : (_)");
  const Relabelling result = relabel(tensors, {.machine = &machine});
  CHECK(result.moved_bytes == 4);
  CHECK(result.cost == 31);
}

TEST_CASE("ranks without elements may take part") {
  // The second stage had the tensor, the first one gets it: the stages are exchanged.
  const Relabelling result =
      relabelled(one("[8] f32 @ pp=2,tp=2 at pp=1 : (tp)", "[8] f32 @ pp=2,tp=2 at pp=0 : (tp)"));
  CHECK(result.moved_before == 32);
  CHECK(result.moved_bytes == 0);
  CHECK(result.rank_of.at(Rank{0}) == Rank{2});
}
