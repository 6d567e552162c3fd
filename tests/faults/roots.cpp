// SPDX-License-Identifier: BSD-3-Clause
// One rank passes another root.
#include "faults/operations.hpp"

namespace faults {
namespace {

RankInGroup root_of(const Cell& c, const char* operation) {
  const std::string name = std::string{"tp."} + operation + "(";
  c.expect({name, "root " + std::to_string(c.size - 1)}, {name, "root 0"});
  return c.pick(last_member(c), first_member);
}

}  // namespace

Kinds roots() {
  return {
      {.name = "root_broadcast",
       .fault = [](Cell& c) { broadcast(c, c.floats(), root_of(c, "broadcast")); }},
      {.name = "root_reduce",
       .fault = [](Cell& c) { reduce(c, c.floats(), root_of(c, "reduce")); }},
      {.name = "root_gather", .fault = [](Cell& c) { gather(c, c.block(), root_of(c, "gather")); }},
      {.name = "root_scatter",
       .fault = [](Cell& c) { scatter(c, c.block(), root_of(c, "scatter")); }},
  };
}

}  // namespace faults
