// SPDX-License-Identifier: BSD-3-Clause
// One rank passes another number of elements.
#include "faults/operations.hpp"
#include "rankmesh/base/narrow_float.hpp"

namespace faults {
namespace {

struct Collective {
  const char* name;
  void (*run)(Cell&, std::size_t);
  bool is_per_member;  // the number is that of one member's block
  std::size_t border;  // the bytes from which the default routes name MPI; 0: none
};

constexpr Collective collectives[] = {
    {"all_reduce", [](Cell& c, std::size_t n) { all_reduce(c, n); }, false, 96 * 1024},
    {"broadcast", [](Cell& c, std::size_t n) { broadcast(c, n); }, false, 8 * 1024},
    {"reduce", [](Cell& c, std::size_t n) { reduce(c, n); }, false, 8 * 1024},
    {"all_gather", [](Cell& c, std::size_t n) { all_gather(c, n); }, true, 32 * 1024},
    {"gather", [](Cell& c, std::size_t n) { gather(c, n); }, true, 16 * 1024},
    {"scatter", [](Cell& c, std::size_t n) { scatter(c, n); }, true, 16 * 1024},
    {"reduce_scatter", [](Cell& c, std::size_t n) { reduce_scatter(c, n); }, true, 0},
    {"all_to_all", [](Cell& c, std::size_t n) { all_to_all(c, n); }, true, 16 * 1024},
    {"scan", [](Cell& c, std::size_t n) { scan(c, n); }, false, 0},
};

enum class Less : std::uint8_t { by_one, by_half };

Kind differing(const Collective& of, Less less) {
  const auto fault = [of, less](Cell& c) {
    const std::size_t n = of.is_per_member ? c.block() : c.floats();
    const std::size_t fewer = less == Less::by_one ? n - 1 : n / 2;
    const std::string operation = std::string{"tp."} + of.name + "(";
    if (of.is_per_member)
      c.expect(operation);
    else
      c.expect({operation, elements(fewer)}, {operation, elements(n)});
    of.run(c, c.pick(fewer, n));
  };
  return {.name = (less == Less::by_one ? "count_" : "half_") + std::string{of.name},
          .fault = fault};
}

// On the border of two transports: one call lies below it, the other one above.
Kind border(const Collective& of) {
  const auto fault = [of](Cell& c) {
    const std::size_t parts = of.is_per_member ? members(c) : 1;
    const std::size_t n = (of.border / 4 + parts - 1) / parts;
    c.expect(std::string{"tp."} + of.name + "(");
    of.run(c, c.pick(n - 1, n));
  };
  return {.name = std::string{"border_"} + of.name, .fault = fault, .has_one_size = true};
}

void in_a_duplicate(Cell& c) {
  const std::size_t n = c.floats();
  c.expect({"tp[x].all_reduce(", elements(n - 1)}, {"tp[x].all_reduce(", elements(n)});
  c.mesh->duplicate("tp", "x").all_reduce(c.memory<float>(c.pick(n - 1, n)));
}

void of_half_floats(Cell& c) {
  const std::size_t n = 2 * c.floats();
  c.expect("tp.all_reduce(");
  c.group->all_reduce(c.memory<Float16>(c.pick(n - 1, n), Float16{1.0F}));
}

void with_a_function(Cell& c) {
  const std::size_t n = c.floats();
  c.expect({"tp.all_reduce(", elements(n - 1, "")}, {"tp.all_reduce(", elements(n, "")});
  c.group->all_reduce(c.memory<float>(c.pick(n - 1, n)),
                      [](const float& a, const float& b) { return a + b; });
}

}  // namespace

Kinds counts() {
  Kinds kinds;
  for (const Less less : {Less::by_one, Less::by_half})
    for (const Collective& of : collectives) kinds.push_back(differing(of, less));
  kinds.push_back({.name = "count_duplicate", .fault = in_a_duplicate});
  kinds.push_back({.name = "count_float16", .fault = of_half_floats});
  kinds.push_back({.name = "count_user_function", .fault = with_a_function});
  for (const Collective& of : collectives)
    if (of.border > 0) kinds.push_back(border(of));
  return kinds;
}

}  // namespace faults
