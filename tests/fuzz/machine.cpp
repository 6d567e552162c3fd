// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes descriptions of machines: any text, read in any format, is refused with a reason and a
// hint, or becomes a tree whose levels agree with each other.
#include <algorithm>
#include <cstdint>
#include <string>

#include "machine/read_machine.hpp"
#include "rankmesh/base/error.hpp"
#include "require.hpp"

using namespace rankmesh;

namespace {

void check(const Machine& machine) {
  require(machine.slot_count() > 0 && !machine.describe().empty(), "no slots");
  const std::int64_t seen = std::min<std::int64_t>(machine.slot_count(), 256);
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    require(machine.smallest(l) > 0 && machine.smallest(l) <= machine.largest(l), "sizes");
    require(machine.unit_count(l) * machine.largest(l) >= machine.slot_count(), "too few units");
    for (std::int64_t s = 0; s < seen; ++s) {
      const std::int64_t unit = machine.unit(l, s);
      require(unit >= 0 && unit < machine.unit_count(l), "a unit that does not exist");
      if (l == 0) continue;
      for (std::int64_t other = 0; other < s; ++other)
        require(
            machine.unit(l, other) != unit || machine.unit(l - 1, other) == machine.unit(l - 1, s),
            "levels that are not nested");
    }
  }
  for (std::int64_t s = 0; s < seen; ++s) require(!machine.host(s).empty(), "no host");
  require(machine.first_slots(1).slot_count() == 1, "a smaller machine");
}

// The first byte chooses the format, if it is a digit.
void read(std::string_view text, MachineReader& reader) {
  auto format = MachineFormat::automatic;
  if (!text.empty() && text.front() >= '0' && text.front() <= '8') {
    format = static_cast<MachineFormat>(text.front() - '0');
    text.remove_prefix(1);
  }
  reader.read(text, "fuzz", format);
}

}  // namespace

// Descriptions that the byte 0x1e separates are combined.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text{reinterpret_cast<const char*>(data), size};
  try {
    MachineReader reader;
    while (true) {
      const std::size_t end = std::min(text.find('\x1e'), text.size());
      read(text.substr(0, end), reader);
      if (end == text.size()) break;
      text.remove_prefix(end + 1);
    }
    check(reader.machine());
    check(reader.machine({.ranks_per_node = 3}));
    check(reader.machine({.ranks_per_domain = 2, .world_size = 4}));
  } catch (const SpecError& error) {
    require(!error.hint().empty() && error.message().size() < 1000,
            "a refusal without a hint, or without end");
  }
  return 0;
}
