// SPDX-License-Identifier: BSD-3-Clause
// Each rule: a mesh that breaks it, and the same mesh fixed.
#include "place/check.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "machine/read_machine.hpp"
#include "place/mesh_file.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "support/checks.hpp"

using rankmesh::Machine;
using rankmesh::MachineNumbers;
using rankmesh::MachineReader;
using rankmesh::MeshPlan;
using rankmesh::MeshSpec;
using rankmesh::PlacementFinding;

namespace {

Machine nodes_of(std::int64_t ranks_per_node, std::int64_t world,
                 std::optional<std::int64_t> nodes_per_leaf = std::nullopt) {
  return MachineReader{}.machine(
      {.ranks_per_node = ranks_per_node, .nodes_per_leaf = nodes_per_leaf, .world_size = world});
}

std::set<std::string> rules_of(const char* mesh, const Machine& machine,
                               const std::vector<std::string>& silenced = {}) {
  std::set<std::string> rules;
  const MeshPlan plan = MeshSpec::parse(mesh).plan(machine.slot_count());
  for (const PlacementFinding& finding : check_placement(plan, machine, silenced)) {
    rules.insert(finding.rule);
    CHECK(!finding.what.empty());
    CHECK(!finding.why.empty());
    CHECK(!finding.fix.empty());
  }
  return rules;
}

bool breaks(const char* rule, const char* mesh, const Machine& machine) {
  return rules_of(mesh, machine).contains(rule);
}

// A machine whose nodes are given by one number per rank.
Machine by_ranks(std::vector<std::int32_t> nodes) {
  MachineReader reader;
  std::vector<std::string> hosts;
  for (int n = 0; n <= *std::ranges::max_element(nodes); ++n)
    hosts.push_back("host" + std::to_string(n));
  reader.set_job(std::move(nodes), hosts);
  return reader.machine();
}

}  // namespace

TEST_CASE("leaves-domain: tp across nodes") {
  CHECK(breaks("leaves-domain", "tp=4,dp=8", nodes_of(8, 32)));
  CHECK_FALSE(breaks("leaves-domain", "dp=8,tp=4", nodes_of(8, 32)));
  CHECK(breaks("leaves-domain", "ep=8,edp=4", nodes_of(8, 32)));
  CHECK_FALSE(breaks("leaves-domain", "edp=4,ep=8", nodes_of(8, 32)));
  const Machine nvl72 =
      MachineReader{}.machine({.ranks_per_node = 4, .ranks_per_domain = 16, .world_size = 32});
  CHECK_FALSE(breaks("leaves-domain", "dp=2,tp=16", nvl72));  // an NVLink domain of several nodes
}

TEST_CASE("larger-than-domain: more tp than GPUs of a node") {
  CHECK(breaks("larger-than-domain", "dp=2,tp=16", nodes_of(8, 32)));
  CHECK_FALSE(breaks("leaves-domain", "dp=2,tp=16", nodes_of(8, 32)));
  CHECK_FALSE(breaks("larger-than-domain", "dp=4,tp=8", nodes_of(8, 32)));
}

TEST_CASE("shared-fault-domain: all replicas on one node") {
  CHECK(breaks("shared-fault-domain", "pp=4,dp=8", nodes_of(8, 32)));
  CHECK_FALSE(breaks("shared-fault-domain", "dp=4,tp=8", nodes_of(8, 32)));
  CHECK_FALSE(breaks("shared-fault-domain", "dp=8", nodes_of(8, 8)));  // there is one node only
}

TEST_CASE("pipeline-detour: stages that return to a node") {
  const Machine dealt = by_ranks({0, 1, 0, 1});
  CHECK(breaks("pipeline-detour", "pp=4", dealt));
  CHECK_FALSE(breaks("pipeline-detour", "pp=4", by_ranks({0, 0, 1, 1})));
  CHECK_FALSE(breaks("pipeline-detour", "pp=8,tp=8", nodes_of(8, 64, 4)));
}

TEST_CASE("ragged-nodes and nccl-uneven-nodes: 7 and 8 ranks per node") {
  const Machine uneven = by_ranks({0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(breaks("ragged-nodes", "dp=15", uneven));
  CHECK(breaks("nccl-uneven-nodes", "dp=15", uneven));
  CHECK_FALSE(breaks("ragged-nodes", "dp=16", nodes_of(8, 16)));
  CHECK_FALSE(breaks("nccl-uneven-nodes", "dp=16", nodes_of(8, 16)));
  CHECK(breaks("nccl-uneven-nodes", "dp=2,tp=12", nodes_of(8, 24)));
}

TEST_CASE("nccl-uneven-nodes: also beside groups on more nodes, and in groups by lists") {
  CHECK(breaks("nccl-uneven-nodes", "dp=2,tp=4", by_ranks({0, 1, 2, 3, 4, 4, 4, 5})));
  CHECK_FALSE(breaks("nccl-uneven-nodes", "dp=2,tp=4", by_ranks({0, 1, 2, 3, 4, 4, 5, 5})));
  const Machine machine = nodes_of(4, 8);
  const auto by_lists = [&](const char* ranks) {
    const std::string text =
        std::string{"mesh = 'all=8'\nworld_size = 8\n[groups]\nodd = ['"} + ranks + "']\n";
    const MeshPlan plan = MeshSpec::parse_toml(text, "x.toml").plan();
    return std::ranges::any_of(check_placement(plan, machine, {}), [](const auto& finding) {
      return finding.rule == "nccl-uneven-nodes" && finding.name == "odd";
    });
  };
  CHECK(by_lists("0,1,2,5"));
  CHECK_FALSE(by_lists("0,1,5,6"));
}

TEST_CASE("the groups of a finding are cut with dots") {
  const MeshPlan plan = MeshSpec::parse("dp=80,tp=3").plan();  // two of four groups in a row leave
  const auto found = check_placement(plan, nodes_of(4, 240), {});
  const auto at = std::ranges::find(found, "leaves-domain", &PlacementFinding::rule);
  REQUIRE(at != found.end());
  CHECK(at->groups.ends_with(",..."));
}

TEST_CASE("shared-device: more ranks than GPUs") {
  MachineReader reader;
  reader.read("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n", "topo");
  CHECK(breaks("shared-device", "dp=8", reader.machine({.ranks_per_node = 4, .world_size = 8})));
  CHECK_FALSE(breaks("shared-device", "dp=8", reader.machine({.world_size = 8})));
}

TEST_CASE("scattered-ranks: ranks that are dealt out") {
  CHECK(breaks("scattered-ranks", "dp=4", by_ranks({0, 1, 0, 1})));
  CHECK_FALSE(breaks("scattered-ranks", "dp=4", by_ranks({0, 0, 1, 1})));
  CHECK_FALSE(breaks("scattered-ranks", "dp=5", by_ranks({0, 0, 1, 1, 1})));
  const Machine machine = by_ranks({0, 0, 1, 2, 1, 2});
  const auto found = check_placement(MeshSpec::parse("dp=6").plan(6), machine, {});
  const auto at = std::ranges::find(found, "scattered-ranks", &PlacementFinding::rule);
  REQUIRE(at != found.end());
  CHECK(at->what == "the ranks of host1 are not consecutive");
}

TEST_CASE("preset-mismatch: groups that are not those of the claimed mesh") {
  const auto claims = [](const char* mesh, const char* same_as) {
    return check_claim(MeshSpec::parse(mesh).plan(16), same_as);
  };
  const auto findings = claims("dp=2,pp=2,tp=4", "megatron:tp=4,pp=2");
  REQUIRE(findings.size() >= 2);
  CHECK(findings.front().rule == "preset-mismatch");
  CHECK(claims("pp=2,dp=2,tp=4", "megatron:tp=4,pp=2").empty());
}

TEST_CASE("rules are silenced by their ids") {
  const Machine machine = nodes_of(8, 32);
  CHECK(rules_of("tp=4,dp=8", machine, {"leaves-domain"}).count("leaves-domain") == 0);
  CHECK_THROWS_AS((void)rules_of("tp=4,dp=8", machine, {"leaves-domains"}), rankmesh::SpecError);
  const MeshSpec spec = MeshSpec::parse_toml(
      "mesh = \"tp=4,dp=8\"\nsame_as = \"megatron:tp=4,pp=8\"\nsilence = [\"leaves-domain\"]\n",
      "f");
  CHECK(spec.silenced() == std::vector<std::string>{"leaves-domain"});
  CHECK(spec.same_as() == "megatron:tp=4,pp=8");
  CHECK(to_toml(MeshSpec::parse_toml(to_toml(spec), "again")) == to_toml(spec));
}

TEST_CASE("errors come first") {
  const Machine uneven = by_ranks({0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
  const auto findings = check_placement(MeshSpec::parse("dp=15").plan(), uneven);
  CHECK(std::ranges::is_sorted(findings, {}, &PlacementFinding::severity));
}

TEST_CASE("order-not-launchers: a mesh that deals its ranks out to nodes") {
  const auto breaks_order = [](const std::string& order) {
    const std::string text = "mesh = \"dp=2,tp=3\"\nrank_order = \"" + order + "\"\n";
    const MeshPlan plan = MeshSpec::parse_toml(text, "order.toml").plan();
    for (const PlacementFinding& finding : check_placement(plan, nodes_of(3, 6)))
      if (finding.rule == "order-not-launchers") return true;
    return false;
  };
  CHECK(breaks_order("0,3,1,4,2,5"));
  CHECK_FALSE(breaks_order("3,4,5,0,1,2"));
  CHECK_FALSE(breaks_order("2,1,0,5,4,3"));
}

TEST_CASE("plan-sends-less: an assignment that sends 1.5 times fewer bytes") {
  const auto found = [](const char* mesh, const Machine& machine) {
    return check_alternatives(MeshSpec::parse(mesh).plan(machine.slot_count()), machine);
  };
  // Groups of dp lie inside the leaves and those of tp do not.
  const auto worse = found("tp=4,dp=8", nodes_of(4, 32, 2));
  REQUIRE(worse.size() == 1);
  CHECK(worse[0].rule == "plan-sends-less");
  CHECK(worse[0].severity == rankmesh::Severity::note);
  CHECK_CONTAINS(worse[0].what, "times fewer bytes between leaves");
  CHECK_CONTAINS(worse[0].fix, "meshinfo plan");
  CHECK(found("dp=8,tp=4", nodes_of(4, 32, 2)).empty());
  // Nothing can be better than one node.
  CHECK(found("tp=4,dp=8", nodes_of(32, 32)).empty());
  // tp and dp each fill a node; the outer dimension of equal ones leaves the nodes in any order.
  CHECK(found("a=2,b=2", nodes_of(2, 4)).empty());
  // Between the nodes, the order of the dimensions decides whether anything is sent at all.
  const auto nothing = found("tp=2,one=2", nodes_of(2, 4));
  REQUIRE(nothing.size() == 1);
  CHECK_CONTAINS(nothing[0].what, "sends nothing between nodes");
  // Meshes whose search would take seconds are left alone.
  CHECK(found("tp=2,dp=16384", nodes_of(2, 32768)).empty());
}

TEST_CASE("node-loss-fatal: a node with the only copies of a part") {
  const auto findings = [](const char* mesh, const Machine& machine) {
    return rankmesh::check_node_loss(MeshSpec::parse(mesh).plan(machine.slot_count()), machine);
  };
  const auto broken = findings("pp=2,dp=2,tp=2", nodes_of(4, 8));
  REQUIRE(broken.size() == 1);
  CHECK(broken[0].rule == "node-loss-fatal");
  CHECK(broken[0].what ==
        "the loss of one node can be fatal: 2 of 2 nodes have the only copies of 4 parts of the "
        "model, for example node0 those of pp=0,tp=0");
  CHECK(findings("dp=2,pp=2,tp=2", nodes_of(4, 8)).empty());
  CHECK(findings("dp=3,tp=2", nodes_of(2, 6)).empty());
  CHECK(findings("dp=3,tp=2", by_ranks({0, 0, 0, 0, 0, 1})).size() == 1);  // rank 0, 2 and 4
  CHECK(findings("fsdp=4", nodes_of(2, 4)).size() == 1);                   // shards are no replicas
}
