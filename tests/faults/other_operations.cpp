// SPDX-License-Identifier: BSD-3-Clause
// One rank makes another call.
#include "faults/operations.hpp"

namespace faults {
namespace {

template <class Other>
Kind instead_of_all_reduce(const char* name, Other other) {
  const auto fault = [name = std::string{name}, other](Cell& c) {
    c.expect({"tp." + name}, {"tp.all_reduce(", elements(c.floats())});
    c.is_odd() ? other(c) : all_reduce(c, c.floats());
  };
  return {.name = std::string{"all_reduce_"} + name, .fault = fault};
}

}  // namespace

Kinds other_operations() {
  return {
      instead_of_all_reduce("broadcast", [](Cell& c) { broadcast(c, c.floats()); }),
      instead_of_all_reduce("reduce", [](Cell& c) { reduce(c, c.floats()); }),
      instead_of_all_reduce("barrier", [](Cell& c) { barrier(c); }),
      instead_of_all_reduce("all_gather", [](Cell& c) { all_gather(c, c.block()); }),
      instead_of_all_reduce("gather", [](Cell& c) { gather(c, c.block()); }),
      instead_of_all_reduce("scatter", [](Cell& c) { scatter(c, c.block()); }),
      instead_of_all_reduce("reduce_scatter", [](Cell& c) { reduce_scatter(c, c.block()); }),
      instead_of_all_reduce("all_to_all", [](Cell& c) { all_to_all(c, c.block()); }),
      instead_of_all_reduce("scan", [](Cell& c) { scan(c, c.floats()); }),
      {.name = "broadcast_reduce",
       .fault =
           [](Cell& c) {
             c.expect({"tp.reduce("}, {"tp.broadcast("});
             c.is_odd() ? reduce(c, c.floats()) : broadcast(c, c.floats());
           }},
      {.name = "gather_scatter",
       .fault =
           [](Cell& c) {
             c.expect({"tp.scatter("}, {"tp.gather("});
             c.is_odd() ? scatter(c, c.block()) : gather(c, c.block());
           }},
  };
}

}  // namespace faults
