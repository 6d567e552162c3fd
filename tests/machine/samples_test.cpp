// SPDX-License-Identifier: BSD-3-Clause
// Reads a sample of each format.
#include <doctest/doctest.h>

#include <vector>

#include "machine/samples.hpp"

using rankmesh::LevelKind;
using rankmesh::Machine;
using rankmesh_test::machine_of;

namespace {

// The units of all slots at a level.
std::vector<std::int64_t> units(const Machine& machine, std::size_t level) {
  std::vector<std::int64_t> result;
  for (std::int64_t s = 0; s < machine.slot_count(); ++s) result.push_back(machine.unit(level, s));
  return result;
}

using List = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a host file of Open MPI gives nodes and slots") {
  const Machine machine = machine_of({}, "openmpi.hosts");
  CHECK(machine.describe() == "6 slots: 3 nodes of 2");
  CHECK(machine.host(0) == "aa");
  CHECK(machine.host(5) == "cc");
  CHECK(machine.local_slot(5) == 1);
}

TEST_CASE("hosts whose names differ in their domains only are different hosts") {
  const Machine machine = machine_of({}, "openmpi-domains.hosts");
  CHECK(machine.describe() == "4 slots: 2 nodes of 2");
  CHECK(machine.host(2) == "mpi-worker.2.foo.net");
}

TEST_CASE("a host file of MPICH gives nodes of different sizes") {
  const Machine machine = machine_of({}, "mpich.hosts");
  CHECK(machine.describe() == "7 slots: 3 nodes of 1 to 4");
  CHECK(units(machine, 0) == List{0, 1, 1, 1, 1, 2, 2});
  CHECK(machine.host(6) == "shakey");
  CHECK(machine.local_slot(4) == 3);
}

TEST_CASE("the variables of a Slurm job give nodes and tasks") {
  const Machine machine = machine_of({}, "slurm-job.env");
  CHECK(units(machine, 0) == List{0, 0, 1, 1, 2, 2, 3});
  CHECK(machine.host(4) == "cn3");
  CHECK(machine.host(6) == "gpu007");
}

TEST_CASE("the environment of a job of Slurm is read") {
  const Machine machine = machine_of({}, "slurm-job-5-tasks.env");
  CHECK(units(machine, 0) == List{0, 0, 0, 0, 1});
  CHECK(machine.host(4) == "h1");
}

TEST_CASE("Slurm's tree gives leaves and spines") {
  const Machine machine = machine_of({.ranks_per_node = 4}, "slurm-tree.conf");
  CHECK(machine.describe() == "384 slots: 6 spines of 64, 12 leaves of 32, 96 nodes of 4");
  CHECK(machine.unit_name(0, 5) == "switch.2.6");
  CHECK(machine.unit_name(1, 0) == "switch.1.1");
  CHECK(machine.host(383) == "srv6208");
}

TEST_CASE("Slurm's blocks are domains, and larger block sizes join them") {
  const Machine machine = machine_of({.ranks_per_node = 4}, "slurm-block.conf");
  REQUIRE(machine.levels().size() == 4);
  CHECK(machine.levels()[2].kind == LevelKind::domain);
  CHECK(machine.fast_level() == 2);
  CHECK(machine.unit_count(0) == 3);
  CHECK(machine.unit_count(1) == 6);
  CHECK(machine.unit_count(2) == 12);
  CHECK(machine.unit_name(2, 11) == "rack62");
}

TEST_CASE("topology.yaml gives the network of the default topology") {
  const Machine tree = machine_of({.ranks_per_node = 2}, "slurm-tree.yaml");
  CHECK(tree.describe() == "4 slots: 2 nodes of 2");  // one switch has them all
  CHECK(tree.host(0) == "Node304");
  const Machine block = machine_of({.ranks_per_node = 2}, "slurm-block.yaml");
  CHECK(block.host(3) == "Node105");
}

TEST_CASE("Topograph's JSON gives switches and NVLink domains") {
  const Machine machine = machine_of({.ranks_per_node = 2}, "topograph.json");
  REQUIRE(machine.levels().size() == 3);
  CHECK(units(machine, 0) == List{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(units(machine, 1) == List{0, 0, 0, 0, 1, 1, 2, 2});
  CHECK(machine.levels()[1].kind == LevelKind::domain);
  CHECK(machine.unit_name(1, 2) == "domain nvl-3");
  CHECK(machine.host(2) == "I22");
}

TEST_CASE("nvidia-smi gives the sockets and the nearest network interfaces") {
  const Machine dgx = machine_of({}, "nvidia-smi-dgx-h100.txt");
  CHECK(dgx.describe() == "8 slots: 1 node of 8, 2 sockets of 4");
  CHECK(dgx.device(1).nic == "NIC3");
  CHECK(dgx.device(7).nic == "NIC11");
  CHECK(dgx.device(7).device == 7);
  const Machine small = machine_of({.world_size = 4}, "nvidia-smi-2-gpus.txt");
  CHECK(small.describe() == "4 slots: 2 nodes of 2");  // each GPU is a domain of its own
}

TEST_CASE("nodes that are described and not listed have leaves too, and no names of their own") {
  const Machine machine =
      machine_of({.nodes_per_leaf = 2, .world_size = 32}, "nvidia-smi-dgx-h100.txt");
  CHECK(machine.unit_count(machine.node_level()) == 4);
  CHECK(machine.levels()[machine.node_level()].names.empty());
  CHECK(machine.host(31) == "node3");
  const auto leaf = machine.find(LevelKind::network);
  REQUIRE(leaf.has_value());
  CHECK(machine.unit_count(*leaf) == 2);
  CHECK(machine.unit(*leaf, 15) == 0);
  CHECK(machine.unit(*leaf, 16) == 1);
}

TEST_CASE("nvidia-smi names the interfaces in the header, or in a legend") {
  const Machine machine = machine_of({.world_size = 4}, "nvidia-smi-mlx5.txt");
  CHECK(machine.describe() == "4 slots: 2 nodes of 2");
  CHECK(machine.device(0).nic == "mlx5_6");
  CHECK(machine.device(1).nic == "mlx5_7");  // equally near ones are used in turn
}

TEST_CASE("hwloc gives sockets, NVLink domains and devices") {
  const Machine power = machine_of({.world_size = 8}, "hwloc-power8.xml");
  CHECK(power.describe() == "8 slots: 2 nodes of 4, 4 sockets of 2, 4 nvlinks of 2");
  CHECK(power.fast_level() == 2);
  CHECK(power.device(7).device == 3);
  const Machine plain = machine_of({.ranks_per_node = 4}, "hwloc-virtual.xml");
  CHECK(plain.describe() == "4 slots: 1 node of 4");
}

TEST_CASE("NCCL's topology gives NVLink domains, sockets and the nearest interfaces") {
  const Machine linked = machine_of({}, "nccl-ncv4.xml");
  REQUIRE(linked.find(LevelKind::domain).has_value());
  CHECK(linked.unit_count(*linked.find(LevelKind::domain)) == 2);
  const Machine static_file = machine_of({}, "nccl-ndv4.xml");
  CHECK(static_file.slot_count() == 8);
  CHECK(static_file.unit_count(1) == 4);
  CHECK(static_file.device(0).nic == "0103:00:00.0");
  CHECK(static_file.device(1).nic == "0104:00:00.0");
}

TEST_CASE("hosts, a network and the inside of a node are combined") {
  rankmesh::MachineReader reader;
  reader.read("srv1202\nsrv1101\nsrv1201\n", "hosts");
  reader.read(rankmesh_test::sample("slurm-tree.conf"), "slurm-tree.conf");
  reader.read(rankmesh_test::sample("nvidia-smi-dgx-h100.txt"), "topo");
  const Machine machine = reader.machine();
  CHECK(machine.slot_count() == 24);
  CHECK(machine.host(8) == "srv1101");
  const std::size_t leaf = 0;
  CHECK(machine.levels()[leaf].name == "leaf");
  CHECK(machine.unit(leaf, 0) == 0);
  CHECK(machine.unit(leaf, 8) == 1);
  CHECK(machine.unit(leaf, 16) == 0);  // the order of the hosts stays
  CHECK(machine.levels().back().kind == LevelKind::socket);
  CHECK(machine.device(17).nic == "NIC3");
}
