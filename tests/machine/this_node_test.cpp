// SPDX-License-Identifier: BSD-3-Clause
// The running node through libhwloc. Its variables replace the node by a synthetic one, or by a
// file that was written elsewhere.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "machine/samples.hpp"
#include "rankmesh/base/error.hpp"

using rankmesh::Machine;
using rankmesh::MachineNumbers;
using rankmesh::MachineReader;

#if RANKMESH_TEST_HWLOC

namespace {

// The plugins of libhwloc open GPUs and displays. The tests need none of them, and some leak
// memory.
void leave_plugins_out() { setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1); }

// The running node while a variable of libhwloc is set.
Machine node_with(const char* variable, const std::string& value, const MachineNumbers& numbers) {
  struct Variable {
    const char* name;
    ~Variable() { unsetenv(name); }
  };
  leave_plugins_out();
  unsetenv("HWLOC_COMPONENTS");  // it may exclude what the variable asks for
  setenv(variable, value.c_str(), 1);
  const Variable owner{variable};
  MachineReader reader;
  reader.read_this_node();
  return reader.machine(numbers);
}

}  // namespace

TEST_CASE("libhwloc gives the sockets of the running node") {
  const Machine machine =
      node_with("HWLOC_SYNTHETIC", "pack:2 core:4 pu:1", {.ranks_per_node = 8, .world_size = 16});
  CHECK(machine.describe() == "16 slots: 2 nodes of 8, 4 sockets of 4");
}

TEST_CASE("libhwloc gives the same machine as its XML") {
  const std::string path = std::string{RANKMESH_MACHINE_SAMPLES} + "/hwloc-power8-v2.xml";
  const Machine live = node_with("HWLOC_XMLFILE", path, {.world_size = 8});
  const Machine file = rankmesh_test::machine_of({.world_size = 8}, "hwloc-power8-v2.xml");
  CHECK(live.describe() == file.describe());
  REQUIRE(file.device_count() > 0);
  CHECK(live.device_count() == file.device_count());
  for (std::int64_t slot = 0; slot < 8; ++slot) {
    CHECK(live.device(slot).device == file.device(slot).device);
    CHECK(live.device(slot).nic == file.device(slot).nic);
  }
}

TEST_CASE("the running node is described") {
  leave_plugins_out();
  MachineReader reader;
  reader.read_this_node();
  CHECK(reader.machine({.ranks_per_node = 4, .world_size = 8}).slot_count() == 8);
  CHECK_THROWS_AS(reader.read_this_node(), rankmesh::SpecError);
}

TEST_CASE("what libhwloc cannot read is refused") {
  CHECK_THROWS_AS((void)node_with("HWLOC_XMLFILE", "/nonexistent/node.xml", {}), rankmesh::Error);
}

#else

TEST_CASE("without libhwloc, the running node is refused") {
  MachineReader reader;
  CHECK_THROWS_AS(reader.read_this_node(), rankmesh::UsageError);
}

#endif
