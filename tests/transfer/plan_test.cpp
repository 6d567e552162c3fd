// SPDX-License-Identifier: BSD-3-Clause
// Plans of transfers whose numbers are known.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "machine/read_machine.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/transfer/tensor_list.hpp"

using rankmesh::LayoutRules;
using rankmesh::Machine;
using rankmesh::MachineReader;
using rankmesh::plan_transfer;
using rankmesh::SpecError;
using rankmesh::TensorList;
using rankmesh::TensorPlacement;
using rankmesh::TensorTransfer;
using rankmesh::TransferPlan;
using rankmesh::TransferStep;
using rankmesh::UsageError;

namespace {

TransferPlan planned(const char* from, const char* to, const Machine* machine = nullptr) {
  return plan_transfer(TensorPlacement::parse(from), TensorPlacement::parse(to), machine);
}

std::string file(const std::string& name) {
  std::ifstream file{std::string{RANKMESH_EXAMPLE_LAYOUTS} + "/" + name};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::vector<TensorTransfer> listed(const std::string& list, const std::string& from,
                                   const std::string& from_mesh, const std::string& to,
                                   const std::string& to_mesh) {
  const auto tensors = TensorList::parse_toml(file(list), list);
  const auto source = LayoutRules::parse_toml(file(from), from);
  const auto target = LayoutRules::parse_toml(file(to), to);
  return transfers_of(tensors, {source, from_mesh}, {target, to_mesh});
}

}  // namespace

TEST_CASE("the same place moves nothing") {
  const auto plan =
      planned("[16,8] bf16 @ dp=2,tp=4 : (_, tp)", "[16,8] bf16 @ dp=2,tp=4 : (_, tp)");
  const auto volume = plan.volume();
  CHECK(volume.moved_bytes == 0);
  CHECK(volume.copied_bytes == 8 * 16 * 2 * 2);
  CHECK(plan.peers(3).empty());
  REQUIRE(plan.of(3)[0].copies.size() == 1);
  CHECK(plan.of(3)[0].copies[0].blocks.size() == 1);
  CHECK(plan.of(3)[0].copies[0].blocks[0].length == 32);  // the whole memory in one run
}

TEST_CASE("eight-way to four-way tensor parallelism") {
  const auto plan = planned("[16,8] bf16 @ tp=8 : (_, tp)", "[16,8] bf16 @ tp=4 on 8-11 : (_, tp)");
  const auto part = plan.of(9);
  REQUIRE(part[0].receives.size() == 2);
  CHECK(part[0].receives[0].peer == 2);
  CHECK(part[0].receives[1].peer == 3);
  const auto& block = part[0].receives[1].blocks.at(0);
  CHECK(block.source == 0);
  CHECK(block.target == 1);
  CHECK(block.length == 1);
  REQUIRE(block.loops.size() == 1);
  CHECK(block.loops[0] == rankmesh::TransferLoop{16, 1, 2});
  CHECK(plan.of(3)[0].sends.at(0).blocks.at(0).loops == block.loops);
  CHECK(plan.volume().moved_bytes == 16 * 8 * 2);
  CHECK(plan.world_size() == 12);
}

TEST_CASE("replicas share the work, one receiver each where it is even") {
  const auto plan = planned("[64] f32 @ dp=4,tp=2 : (tp)", "[64] f32 @ dp=4,tp=2 on 8-15 : (tp)");
  for (const rankmesh::TransferFlow& flow : plan.flows()) CHECK(flow.bytes == 32 * 4);
  CHECK(plan.flows().size() == 8);
}

TEST_CASE("ranks with several groups of elements leave some of them to other holders") {
  // Ranks 0 and 1 have the first third, 1 and 2 the second one, 2 and 3 the last one.
  const auto plan = planned("[36] f32 @ ep=4 : (ep:lists(0-11; 0-23; 12-35; 24-35))",
                            "[36] f32 @ tp=1 on 4 : (_)");
  for (const rankmesh::TransferFlow& flow : plan.flows()) CHECK(flow.bytes == 9 * 4);
  CHECK(plan.volume().least_most_sent_bytes == 9 * 4);
}

TEST_CASE("a node that lacks elements receives each of them once") {
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 4, .world_size = 8});
  const char* const from = "[64] f32 @ dp=4 : (_)";
  const char* const to = "[64] f32 @ dp=4 on 4-7 : (_)";
  const auto plan = planned(from, to, &machine);
  const auto volume = plan.volume();
  CHECK(volume.between_nodes_bytes == 64 * 4);
  CHECK(volume.least_between_nodes_bytes == 64 * 4);
  CHECK(volume.moved_bytes == 4 * 64 * 4);
  const auto direct = plan_transfer(TensorPlacement::parse(from), TensorPlacement::parse(to),
                                    &machine, {.fan_out = false});
  CHECK(direct.volume().between_nodes_bytes == 4 * 64 * 4);
  CHECK(direct.digest() != plan.digest());
}

TEST_CASE("a holder on the receiver's node sends") {
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 2, .world_size = 8});
  const auto plan =
      planned("[6] f32 @ dp=3 on 0,2,4 : (_)", "[6] f32 @ dp=4 on 1,3,5,7 : (_)", &machine);
  CHECK(plan.peers(3).at(0).peer == 2);
  CHECK(plan.peers(3).size() == 1);
  CHECK(plan.peers(7).size() == 3);  // no holder on its node: all of them send a part
}

TEST_CASE("partial sums are added once and forwarded") {
  const auto plan = planned("[12] f32 @ dp=4 : (_) sum(dp)", "[12] f32 @ dp=4 : (_)");
  // As a ring would: each rank receives 3 parts of 3 elements in each of two steps.
  CHECK(plan.volume().moved_bytes == 4 * 2 * 9 * 4);
  const auto part = plan.of(1);
  CHECK(part[0].copies.at(0).elements == 3);
  REQUIRE(part[0].receives.size() == 6);
  CHECK(part[0].receives[0].is_added);
  CHECK(part[0].receives[3].step == TransferStep::forward);
}

TEST_CASE("a message has the smaller one of both types") {
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 2, .world_size = 4});
  const auto moved = [&](const char* from, const char* to) {
    const auto volume = planned(from, to, &machine).volume();
    CHECK(volume.moved_bytes == volume.least_moved_bytes);
    return volume.moved_bytes;
  };
  // Two ranks of a node receive 8 elements each; half of them are forwarded.
  CHECK(moved("[8] f32 @ tp=1 : (_)", "[8] bf16 @ dp=2 on 2-3 : (_)") == 2 * 8 * 2);
  CHECK(moved("[8] bf16 @ tp=1 : (_)", "[8] f32 @ dp=2 on 2-3 : (_)") == 2 * 8 * 2);
  CHECK(moved("[8] f16 @ tp=1 : (_)", "[8] bf16 @ dp=2 on 2-3 : (_)") == 2 * 8 * 2);
  // Two summands of 2 bytes for each element, and a forwarded sum of 4 bytes.
  CHECK(moved("[8] bf16 @ tp=2 : (_) sum(tp)", "[8] f32 @ dp=2 on 2-3 : (_)") == 8 * (2 * 2 + 4));
}

TEST_CASE("what cannot be planned is refused") {
  const auto refused = [](const char* from, const char* to, const char* reason,
                          const Machine* machine = nullptr) {
    try {
      (void)planned(from, to, machine);
      FAIL_CHECK("accepted");
    } catch (const UsageError& error) {
      CHECK_MESSAGE(error.message().find(reason) != std::string::npos, error.message());
      CHECK_FALSE(error.hint().empty());
    }
  };
  refused("[4] f32 @ tp=2 : (tp)", "[8] f32 @ tp=2 : (tp)",
          "the tensor has the shape [4] before the transfer, but [8] after it");
  refused("[4] f32 @ tp=2 : (tp)", "[4] f32 @ tp=2 : (_) sum(tp)",
          "would have partial sums along 'tp' after the transfer");
  refused("[4] f32 @ tp=2 : (tp:lists(0; 3))", "[4] f32 @ tp=2 : (tp)",
          "needs the index 1 of axis 0 after the transfer, but no rank has it before");
  refused("[8] f32 @ tp=2 : (tp)", "[8] i32 @ tp=4 : (tp)",
          "the tensor [8] f32 @ tp=2 : (tp) cannot become int32");
  refused("[8] i64 @ tp=2 : (tp)", "[8] i32 @ tp=4 : (tp)", "cannot become int32");
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 2, .world_size = 2});
  refused("[4] f32 @ tp=2 : (tp)", "[4] f32 @ tp=3 : (tp)", "but the machine has 2 slots",
          &machine);
  refused("[4] f32 @ tp=8388608 : (_)", "[4] f32 @ tp=3 : (tp)", "more than 4194304 ranks");
}

TEST_CASE("one element is explained") {
  const auto plan =
      plan_transfer({{TensorPlacement::parse("[8,8] f32 @ dp=2,tp=2 : (tp, _)"),
                      TensorPlacement::parse("[8,8] f32 @ tp=2 on 3,4 : (_, tp)"), "w"}});
  const std::vector<std::int64_t> index{3, 5};
  CHECK(plan.explain(0, index) ==
        "element [3,5] of w\n"
        "  before: rank 0 (offset 29), rank 2 (offset 29)\n"
        "  after:  rank 4 (offset 13)\n"
        "  rank 4 receives it from rank 2\n");
  const std::vector<std::int64_t> outside{8, 0};
  CHECK_THROWS_AS((void)plan.explain(0, outside), UsageError);
  CHECK_THROWS_AS((void)plan.explain(1, index), UsageError);
}

TEST_CASE("tensors with the same places share their messages") {
  const auto a = TensorPlacement::parse("[8,8] f32 @ tp=2 : (tp, _)");
  const auto b = TensorPlacement::parse("[8,8] f32 @ tp=2 : (_, tp)");
  const auto copy = TensorPlacement::parse("[8,8] f32 @ tp=2 : (tp, _)");
  const auto plan = plan_transfer({{a, b, "x"}, {b, a, "y"}, {copy, b, "z"}});
  const auto part = plan.of(0);
  CHECK(part.size() == 3);
  CHECK(part.kind_count() == 2);
  CHECK(part.kind(2) == 0);
  CHECK(plan.peers(0).at(0).sent_bytes == 3 * 16 * 4);
  CHECK(plan.digest() != plan_transfer({{a, b, "x"}, {b, a, "y"}, {copy, b, "zz"}}).digest());
}

TEST_CASE("the layouts of Megatron-LM, vLLM and DeepSpeed") {
  struct Model {
    const char* list;
    std::int64_t parameters;
    std::size_t tensors;
    bool has_experts;
  };
  for (const Model& model : {Model{"llama3_8b.toml", 8'030'261'248, 291, false},
                             Model{"mixtral_8x7b.toml", 46'702'792'704, 995, true},
                             Model{"deepseek_v3.toml", 671'026'419'200, 45'395, true}}) {
    CAPTURE(model.list);
    const auto transfers = listed(model.list, "megatron.toml", "pp=2,dp=2,tp=4 | pp=2,edp=2,ep=4",
                                  "vllm.toml", "tp=8 on 16-23");
    CHECK(transfers.size() == model.tensors);
    std::int64_t parameters = 0;
    for (const TensorTransfer& transfer : transfers) parameters += transfer.from.element_count();
    CHECK(parameters == model.parameters);
    const auto volume = plan_transfer(transfers).volume();
    CHECK(volume.moved_bytes == volume.least_moved_bytes);
    CHECK_FALSE(listed(model.list, "deepspeed_zero3.toml", "dp=16", "vllm_expert_parallel.toml",
                       "dp=2,tp=4 | ep=8")
                    .empty());
  }
}

TEST_CASE("a wrong list or layout is refused with its line") {
  const auto refused = [](const char* list, const char* rules, const char* reason) {
    try {
      const auto tensors = TensorList::parse_toml(list, "list.toml");
      const auto layout = LayoutRules::parse_toml(rules, "layout.toml");
      (void)transfers_of(tensors, {layout, "pp=2,tp=2"}, {layout, "pp=2,tp=2"});
      FAIL_CHECK("accepted");
    } catch (const SpecError& error) {
      CHECK_MESSAGE(error.message().find(reason) != std::string::npos, error.message());
    }
  };
  const char* const list =
      "counters = {layer = 4}\n[[tensors]]\nname = \"a.{layer}\"\nshape = [8]\n";
  const char* const rules = "[[rules]]\ntensors = \"a.*\"\naxes = \"(tp)\"\n";
  refused("", rules, "list.toml: there is no [[tensors]]");
  refused("[[tensors]]\nname = \"a\"\n", rules, "list.toml:1: the table has no 'shape'");
  refused("[[tensors]]\nname = \"a\"\nshape = [-1]\n", rules,
          "list.toml:3: a size must be a whole number from 0 up");
  refused("[[tensors]]\nname = \"a.{b}\"\nshape = [1]\n", rules, "'b' is not among the counters");
  refused("counters = {b = 2}\n[[tensors]]\nname = \"a.{b:1-2}\"\nshape = [1]\n", rules,
          "'b:1-2' has no valid values");
  refused(list, "[[rules]]\ntensors = \"b\"\naxes = \"(tp)\"\n",
          "layout.toml: no rule matches the tensor 'a.{layer}'");
  refused(list, "[[rules]]\ntensors = \"*\"\naxes = \"(dp)\"\n",
          "layout.toml:1: place '[8] bf16 @ pp=2,tp=2 : (dp)', position 24: 'dp' is not");
  refused(list, "[[rules]]\ntensors = \"*\"\naxes = \"(tp)\"\nat = [\"pp=stage\"]\n",
          "'stage' is neither a counter of the name nor a number");
}
