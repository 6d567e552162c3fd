// SPDX-License-Identifier: BSD-3-Clause
// Machines from numbers, their levels, and what is refused.
#include "rankmesh/machine/machine.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "machine/read_machine.hpp"
#include "rankmesh/base/error.hpp"

using rankmesh::LevelKind;
using rankmesh::Machine;
using rankmesh::MachineFormat;
using rankmesh::MachineLevel;
using rankmesh::MachineNumbers;
using rankmesh::MachineReader;
using rankmesh::SpecError;

namespace {

Machine by_numbers(const MachineNumbers& numbers) { return MachineReader{}.machine(numbers); }

std::string refusal(std::string_view text, MachineFormat format = MachineFormat::automatic) {
  try {
    MachineReader reader;
    reader.read(text, "file", format);
    (void)reader.machine();
  } catch (const SpecError& error) {
    CHECK(!error.hint().empty());
    return error.message();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("numbers describe a regular machine of any size without tables") {
  const Machine machine =
      by_numbers({.ranks_per_node = 8, .nodes_per_leaf = 4, .world_size = 1 << 20});
  CHECK(machine.describe() == "1048576 slots: 32768 leaves of 32, 131072 nodes of 8");
  CHECK(machine.levels()[0].units.empty());
  CHECK(machine.unit(0, 1'000'000) == 31250);
  CHECK(machine.host(1'000'000) == "node125000");
}

TEST_CASE("the last node may have fewer slots") {
  const Machine machine = by_numbers({.ranks_per_node = 8, .world_size = 20});
  CHECK(machine.describe() == "20 slots: 3 nodes of 4 to 8");
}

TEST_CASE("an NVLink domain may be larger or smaller than a node") {
  const Machine large =
      by_numbers({.ranks_per_node = 4, .ranks_per_domain = 72, .world_size = 144});
  CHECK(large.describe() == "144 slots: 2 nvlinks of 72, 36 nodes of 4");
  CHECK(large.fast_level() == 0);
  const Machine small = by_numbers({.ranks_per_node = 8, .ranks_per_domain = 4, .world_size = 16});
  CHECK(small.describe() == "16 slots: 2 nodes of 8, 4 nvlinks of 4");
  CHECK_THROWS_AS(by_numbers({.ranks_per_node = 8, .ranks_per_domain = 6}), SpecError);
}

TEST_CASE("an NVLink domain may have several leaves") {
  const MachineNumbers numbers{
      .ranks_per_node = 4, .ranks_per_domain = 72, .nodes_per_leaf = 9, .world_size = 144};
  const std::string levels = "144 slots: 2 nvlinks of 72, 4 leaves of 36, 36 nodes of 4";
  CHECK(by_numbers(numbers).describe() == levels);
  MachineReader reader;
  reader.read("n[1-36] slots=4\n", "file");
  CHECK(reader.machine(numbers).describe() == levels);
  MachineReader tree;
  tree.read("n[1-36] slots=4\n", "hosts");
  tree.read(
      "SwitchName=a Nodes=n[1-9]\nSwitchName=b Nodes=n[10-18]\nSwitchName=c Nodes=n[19-27]\n"
      "SwitchName=d Nodes=n[28-36]\nSwitchName=root Switches=a,b,c,d\n",
      "topology.conf");
  CHECK(tree.machine({.ranks_per_domain = 72}).describe() == levels);
}

TEST_CASE("levels that cross each other are refused, whatever the size of the machine") {
  CHECK_THROWS_WITH_AS(by_numbers({.ranks_per_node = 8,
                                   .ranks_per_domain = 16,
                                   .nodes_per_leaf = 3,
                                   .world_size = std::int64_t{1} << 40}),
                       doctest::Contains("nvlink1 is in two units of the level 'leaf'"), SpecError);
}

TEST_CASE("the units of a level have numbers from 0") {
  const auto machine = [](std::vector<std::int32_t> units, std::vector<std::string> names) {
    return Machine{2,
                   {{.name = "node",
                     .kind = LevelKind::node,
                     .units = std::move(units),
                     .names = std::move(names)}}};
  };
  CHECK_THROWS_WITH_AS(machine({0, -1}, {}), doctest::Contains("has no unit -1"), SpecError);
  CHECK_THROWS_WITH_AS(machine({0, 1}, {"a"}), doctest::Contains("has no unit 1"), SpecError);
  CHECK(machine({0, 1}, {"a", "b"}).host(1) == "b");
}

TEST_CASE("units that are contiguous and equal become a size") {
  const Machine machine{6,
                        {{.name = "node", .kind = LevelKind::node, .units = {5, 5, 2, 2, 9, 9}}}};
  CHECK(machine.levels()[0].size == 2);
  const Machine dealt{4, {{.name = "node", .kind = LevelKind::node, .units = {0, 1, 0, 1}}}};
  CHECK(dealt.levels()[0].size == 0);
  CHECK(dealt.local_slot(2) == 1);
}

TEST_CASE("a machine must be a tree with one level of nodes") {
  const MachineLevel node{.name = "node", .kind = LevelKind::node, .size = 2};
  const MachineLevel leaf{.name = "leaf", .kind = LevelKind::network, .size = 3};
  CHECK_THROWS_AS((Machine{6, {leaf, node}}), SpecError);
  CHECK_THROWS_AS((Machine{6, {leaf}}), SpecError);
  CHECK_THROWS_AS((Machine{0, {node}}), SpecError);
  CHECK_THROWS_AS((void)(Machine{2, {node}}.first_slots(3)), SpecError);
  CHECK((Machine{6, {node}}.first_slots(3)).describe() == "3 slots: 2 nodes of 1 to 2");
}

TEST_CASE("a host file may begin with a byte order mark and name addresses") {
  MachineReader reader;
  reader.read(
      "\xEF\xBB\xBF"
      "a:4 slots=4\nfe80::1 slots=2\nfe80::2\n",
      "hosts");
  const Machine machine = reader.machine();
  const std::vector<std::string> hosts{"a", "fe80::1", "fe80::2"};
  CHECK(machine.levels()[0].names == hosts);
  CHECK(machine.slot_count() == 7);
  CHECK(machine.host(5) == "fe80::1");
}

TEST_CASE("a single domain is a level, a single switch is none") {
  const auto levels = [](const char* topology) {
    MachineReader reader;
    reader.read("n1 slots=4\nn2 slots=4\n", "hosts");
    reader.read(topology, "topology.conf");
    return reader.machine().levels().size();
  };
  CHECK(levels("BlockName=b Nodes=n[1-18]\n") == 2);
  CHECK(levels("SwitchName=s Nodes=n[1-18]\n") == 1);
}

TEST_CASE("domains inside some of the nodes only") {
  MachineReader reader;
  reader.read("a slots=4\nb slots=8\n", "hosts");
  const Machine machine = reader.machine({.ranks_per_domain = 4});
  REQUIRE(machine.levels().size() == 2);
  CHECK(machine.levels()[1].name == "nvlink");
  CHECK(machine.unit_count(1) == 3);
}

TEST_CASE("bad descriptions are refused with their line and the reason") {
  using enum MachineFormat;
  CHECK(refusal("a slots=4\nb slots=x\n") ==
        "file:2: the number of slots must be a number from 1 to 4194304, got 'x'");
  CHECK(refusal("a\n\nb turbo=1\n") == "file:3: unknown option 'turbo' after a host");
  CHECK(refusal("a:4 slots=1\n") == "file:1: a host cannot have both 1 and 4 slots");
  CHECK(refusal("a\nb slots=1 slots=4\n") == "file:2: a host cannot have both 1 and 4 slots");
  CHECK(refusal("# nothing\n") == "file: the host file names no host");
  CHECK(refusal("n[1-3\n") == "file:1: a bracket of a list of names is not closed");
  CHECK(refusal("n[3-1]\n").starts_with("file:1: a number in brackets must be a number from 3"));
  CHECK(refusal("n[0-9999999]\n") == "file:1: more than 1048576 names are listed");
  CHECK(refusal("SLURM_JOB_NODELIST=n[1-2]\nSLURM_TASKS_PER_NODE=8(x3)\n") ==
        "file:2: SLURM_TASKS_PER_NODE gives the tasks of 3 nodes, but the job has 2");
  CHECK(refusal("SLURM_TASKS_PER_NODE=8(y3)\n") == "file:1: '8(y3)' is not a number of tasks");
  CHECK(refusal("SLURM_TASKS_PER_NODE=8\n") == "file: SLURM_JOB_NODELIST is missing");
  CHECK(refusal("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1\n") ==
        "file:2: the node 'n1' is below two switches, 'a' and 'b'");
  CHECK(refusal("SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Nodes=n\n") ==
        "file:1: the switch 'a' is below itself, or below more than 64 others");
  CHECK(refusal("SwitchName=a Nodes=n1 Speed=3\n") == "file:1: unknown key 'Speed'");
  CHECK(refusal("BlockName=a Nodes=n1\nBlockSizes=4,6\n") ==
        "file:2: the block size 6 is not a multiple of 4");
  CHECK(refusal("- topology: t\n  flat: true\n") ==
        "file:1: the default topology is neither a tree nor blocks");
  CHECK(refusal("- topology: t\n  tree:\n    switches:\n    - nodes: n1\n") ==
        "file:4: a switch has no name");
  CHECK(refusal("- topology: t\n\ttree: x\n") ==
        "file:2: found a tab character that violates indentation");
  CHECK(refusal("{\"instances\": [\n {\"network_layers\": []}]}") ==
        "file:2: an instance has no id");
  CHECK(refusal("{\"instances\": [\n {\"id\": \"a\" \"b\"}]}") ==
        "file:2: did not find expected ',' or '}'");
  CHECK(refusal("\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\n") ==
        "file:3: the row of GPU1 has 1 cells, but there are 2 columns");
  CHECK(refusal("\tGPU0\tGPU1\nGPU0\t X \tQQ\n") ==
        "file:2: 'QQ' is not a relation between devices");
  CHECK(refusal("<topology>\n<object type=\"Package\">\n</topology>") == "file:3: mismatched tag");
  CHECK(refusal("<system>\n<cpu></cpu></system>") == "file: the topology has no GPU");
  CHECK(refusal("<system>\n<cpu") == "file:2: unclosed token");
}

TEST_CASE("altered files of elements are refused") {
  std::string packages, deep;
  for (int i = 0; i < 257; ++i) packages += "<object type=\"Package\"/>";
  CHECK(refusal("<topology>" + packages + "</topology>") ==
        "file: a node has more than 256 sockets");
  for (int i = 0; i < 300; ++i) deep += "<nvlink>";
  CHECK(refusal("<system>" + deep).ends_with("elements too deep inside others"));
}

TEST_CASE("a comment does not tell the format of a file") {
  MachineReader reader;
  reader.read("# 2 instances: x\na slots=2\n", "file");
  CHECK(reader.machine().describe() == "2 slots: 1 node of 2");
}

TEST_CASE("of the hosts in a file of NCCL, one is the node") {
  const std::string gpu = "<pci busid=\"0008:01:00.0\"><gpu dev=\"0\"/></pci>";
  MachineReader reader;
  reader.read("<system><cpu numaid=\"0\" host_hash=\"0x1\">" + gpu +
                  "</cpu><cpu numaid=\"0\" host_hash=\"0x2\">" + gpu + "</cpu></system>",
              "file");
  CHECK(reader.machine().describe() == "1 slot: 1 node of 1");
}

TEST_CASE("hosts without an NVLink domain are in none") {
  const auto host = [](const char* id, const char* leaf, const char* labels) {
    return std::string{"{\"id\":\""} + id + "\",\"network_layers\":[\"" + leaf + "\",\"spine\"]" +
           labels + "}";
  };
  const char* domain = ",\"labels\":{\"x/domain\":\"nvl-1\"}";
  MachineReader reader;
  reader.read("{\"instances\":[" + host("a1", "leaf-a", domain) + "," +
                  host("a2", "leaf-a", domain) + "," + host("b1", "leaf-b", "") + "," +
                  host("b2", "leaf-b", "") + "]}",
              "file");
  reader.read("a1\na2\nb1\nb2\n", "hosts");
  const Machine machine = reader.machine();
  const std::size_t fast = machine.fast_level();
  CHECK(machine.unit(fast, 0) == machine.unit(fast, 1));
  CHECK(machine.unit(fast, 2) != machine.unit(fast, 3));
}

TEST_CASE("parts that contradict each other are refused") {
  MachineReader reader;
  reader.read("a slots=2\nb slots=2\n", "hosts");
  CHECK_THROWS_AS(reader.read("c\n", "other"), SpecError);
  reader.read("SwitchName=s Nodes=a\n", "topology.conf");
  CHECK_THROWS_AS((void)reader.machine(), SpecError);  // b is on no switch
  CHECK_THROWS_AS((void)reader.machine({.nodes_per_leaf = 2}), SpecError);
  CHECK_THROWS_AS(by_numbers({}), SpecError);
  CHECK_THROWS_AS(by_numbers({.ranks_per_node = 0}), SpecError);
}

TEST_CASE("a network of different depths is a tree of nested units") {
  MachineReader reader;
  reader.read(
      "SwitchName=core Switches=spine,leaf1\nSwitchName=spine Switches=leaf[2-3]\n"
      "SwitchName=leaf1 Nodes=n1\nSwitchName=leaf2 Nodes=n[2-3]\nSwitchName=leaf3 Nodes=n4\n",
      "topology.conf");
  const Machine machine = reader.machine({.ranks_per_node = 2});
  REQUIRE(machine.levels().size() == 3);
  CHECK(machine.unit_count(0) == 2);
  CHECK(machine.unit_count(1) == 3);
  CHECK(machine.unit_name(0, 0) == "leaf1");  // it has no spine of its own
  CHECK(machine.unit_name(0, 1) == "spine");
}
