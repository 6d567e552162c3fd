// SPDX-License-Identifier: BSD-3-Clause
// The files for launchers.
#include "place/emit.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "machine/read_machine.hpp"
#include "place/spread.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/place/arrange.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

using rankmesh::emit;
using rankmesh::EmitFormat;
using rankmesh::FamilyTraffic;
using rankmesh::Machine;
using rankmesh::MachineReader;
using rankmesh::MeshPlan;
using rankmesh::MeshSpec;
using rankmesh::usual_pattern;

namespace {

Machine two_hosts() {
  MachineReader reader;
  reader.read("a slots=2\nb slots=2\n", "hosts");
  return reader.machine();
}

const std::vector<std::int64_t> swapped{0, 2, 1, 3};  // rank 1 in slot 2, rank 2 in slot 1

}  // namespace

TEST_CASE("each format says where the ranks are") {
  const Machine machine = two_hosts();
  const std::string rank_file =
      "rank 0=a slot=0\nrank 1=b slot=0\nrank 2=a slot=1\nrank 3=b slot=1\n";
  CHECK(emit(EmitFormat::openmpi, machine, swapped) == rank_file);
  CHECK(emit(EmitFormat::openmpi5, machine, swapped) == rank_file);
  for (const EmitFormat format : {EmitFormat::openmpi_seq, EmitFormat::mpich, EmitFormat::slurm})
    CHECK(emit(format, machine, swapped) == "a\nb\na\nb\n");
  CHECK(emit(EmitFormat::cray, machine, std::vector<std::int64_t>{1, 2, 3, 0}) == "3,0,1,2\n");
  CHECK_THROWS_AS((void)emit(EmitFormat::cuda_devices, machine, swapped), rankmesh::UsageError);
  MachineReader reader;
  reader.read("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n", "topo");
  CHECK(emit(EmitFormat::cuda_devices, reader.machine({.world_size = 4}), swapped) ==
        "0 CUDA_VISIBLE_DEVICES=0\n1 CUDA_VISIBLE_DEVICES=0\n2 CUDA_VISIBLE_DEVICES=1\n"
        "3 CUDA_VISIBLE_DEVICES=1\n");
}

TEST_CASE("every format has a name and a command") {
  for (const char* name : {"openmpi", "openmpi5", "openmpi-seq", "mpich", "slurm", "cray",
                           "torchrun", "cuda-devices", "mesh-order"}) {
    const auto format = rankmesh::emit_format(name);
    REQUIRE(format.has_value());
    CHECK(rankmesh::emit_usage(*format, "FILE", 4).find("FILE") != std::string::npos);
  }
  CHECK_FALSE(rankmesh::emit_format("openmpi6").has_value());
}

TEST_CASE("a mesh file with the emitted order has the groups of the plan in the same places") {
  const MeshPlan plan = MeshSpec::parse("tp=4,dp=6").plan();
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 4, .world_size = 24});
  const auto found = arrange(plan, machine, usual_traffic(plan));
  const std::string text =
      "mesh = \"tp=4,dp=6\"\n" + emit(EmitFormat::mesh_order, machine, found.best.slots);
  const MeshPlan moved = MeshSpec::parse_toml(text, "moved.toml").plan();
  for (const char* name : {"tp", "dp"}) {
    const auto planned = spread_of(plan.groups(name), machine, found.best.slots);
    const auto actual = spread_of(moved.groups(name), machine);
    CHECK(planned[0].inside == actual[0].inside);
    CHECK(planned[0].most_units == actual[0].most_units);
  }
  CHECK(spread_of(moved.groups("tp"), machine)[0].split == 0);
}

TEST_CASE("the emitted order replaces that of the mesh file") {
  const std::string mesh = "mesh = \"ep=2,pp=4\"\n";
  const MeshSpec spec = MeshSpec::parse_toml(mesh + "rank_order = [2,1,4,6,3,5,0,7]\n", "old.toml");
  const MeshPlan plan = spec.plan();
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 2, .world_size = 8});
  const std::vector<FamilyTraffic> traffic{{"ep", 350, usual_pattern("ep")},
                                           {"pp", 7, rankmesh::Pattern::chain}};
  const auto found = arrange(plan, machine, traffic);
  REQUIRE(found.best.bytes != found.today.bytes);
  const auto order_of = [&](const std::vector<std::int64_t>& slots,
                            std::span<const FamilyTraffic> of) {
    return emit(EmitFormat::mesh_order, machine, slots_in_mesh_order(spec, of, slots));
  };
  const MeshPlan moved =
      MeshSpec::parse_toml(mesh + order_of(found.best.slots, traffic), "new.toml").plan();
  CHECK(arrange(moved, machine, traffic).today.bytes == found.best.bytes);
  const std::vector<std::int64_t> today{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(MeshSpec::parse_toml(mesh + order_of(today, {}), "today.toml").plan().canonical_text() ==
        plan.canonical_text());
}

TEST_CASE("an order that a mesh file cannot have is refused") {
  const std::vector<FamilyTraffic> traffic{{"listed", 1, rankmesh::Pattern::ring}};
  const std::vector<std::int64_t> slots{0, 1, 2, 3};
  const auto refused = [&](const std::string& text, const std::string& why) {
    CHECK_THROWS_WITH_AS(
        (void)slots_in_mesh_order(MeshSpec::parse_toml(text, "a.toml"), traffic, slots),
        doctest::Contains(why.c_str()), rankmesh::UsageError);
  };
  refused("mesh = \"tp=2\"\nrank_offset = 2\n", "with rank_offset");
  refused("[grids.a]\nmesh = \"tp=2\"\nranks = \"0-1\"\n", "with grids");
  const std::string lists = "mesh = \"tp=4\"\n[groups]\nlisted = [[0, 3]]\n";
  refused(lists, "the groups of 'listed'");
  CHECK(slots_in_mesh_order(MeshSpec::parse_toml(lists, "a.toml"), {}, slots) == slots);
}

TEST_CASE("torchrun starts hosts in the order of their ranks, and devices in that of the slots") {
  const Machine machine = two_hosts();
  // The ranks 0 and 1 are on b, in reverse order.
  CHECK(emit(EmitFormat::torchrun, machine, std::vector<std::int64_t>{3, 2, 0, 1}) ==
        "b: CUDA_VISIBLE_DEVICES=1,0 torchrun --nnodes=2 --node-rank=0 --nproc-per-node=2 "
        "--master-addr=b --master-port=29500\n"
        "a: CUDA_VISIBLE_DEVICES=0,1 torchrun --nnodes=2 --node-rank=1 --nproc-per-node=2 "
        "--master-addr=b --master-port=29500\n");
  CHECK_THROWS_WITH_AS((void)emit(EmitFormat::torchrun, machine, swapped),
                       doctest::Contains("a has the ranks 0 and 2 and none between them"),
                       rankmesh::UsageError);
}

TEST_CASE("slots that do not exist or are taken twice are refused") {
  const Machine machine = two_hosts();
  CHECK_THROWS_AS((void)emit(EmitFormat::slurm, machine, std::vector<std::int64_t>{0, 0}),
                  rankmesh::UsageError);
  CHECK_THROWS_AS((void)emit(EmitFormat::slurm, machine, std::vector<std::int64_t>{4}),
                  rankmesh::UsageError);
}
