// SPDX-License-Identifier: BSD-3-Clause
// One rank passes another element type or another reduction.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <stdexcept>

#include "faults/operations.hpp"
#include "rankmesh/base/narrow_float.hpp"

namespace faults {
namespace {

void int_and_float(Cell& c) {
  const std::size_t n = c.floats();
  c.expect({"tp.all_reduce(", elements(n, "int32")}, {"tp.all_reduce(", elements(n)});
  c.is_odd() ? all_reduce<std::int32_t>(c, n) : all_reduce(c, n);
}
void double_of_the_same_bytes(Cell& c) {
  const std::size_t n = c.floats();
  c.expect({"tp.all_reduce(", elements(n / 2, "float64")}, {"tp.all_reduce(", elements(n)});
  c.is_odd() ? all_reduce<double>(c, n / 2) : all_reduce(c, n);
}
void double_of_the_same_count(Cell& c) {
  const std::size_t n = c.floats();
  c.expect({"tp.all_reduce(", elements(n, "float64")}, {"tp.all_reduce(", elements(n)});
  c.is_odd() ? all_reduce<double>(c, n) : all_reduce(c, n);
}
void of_broadcast(Cell& c) {
  const std::size_t n = c.floats();
  c.expect({"tp.broadcast(", elements(n, "int32")}, {"tp.broadcast(", elements(n)});
  c.is_odd() ? broadcast<std::int32_t>(c, n) : broadcast(c, n);
}
void of_all_gather(Cell& c) {
  c.expect({"tp.all_gather(", "float64"}, {"tp.all_gather(", "float32"});
  c.is_odd() ? all_gather<double>(c, c.block() / 2) : all_gather(c, c.block());
}

void max_of_all_reduce(Cell& c) {
  c.expect({"tp.all_reduce(", "max"}, {"tp.all_reduce(", "sum"});
  all_reduce(c, c.floats(), c.pick(ReduceOp::max, ReduceOp::sum));
}
void avg_of_all_reduce(Cell& c) {
  c.expect({"tp.all_reduce(", "avg"}, {"tp.all_reduce(", "sum"});
  all_reduce(c, c.floats(), c.pick(ReduceOp::avg, ReduceOp::sum));
}
void max_of_reduce(Cell& c) {
  c.expect({"tp.reduce(", "max"}, {"tp.reduce(", "sum"});
  reduce(c, c.floats(), first_member, c.pick(ReduceOp::max, ReduceOp::sum));
}
void max_of_scan(Cell& c) {
  c.expect({"tp.scan(", "max"}, {"tp.scan(", "sum"});
  scan(c, c.floats(), c.pick(ReduceOp::max, ReduceOp::sum));
}
void type_of_scan(Cell& c) {
  const std::size_t n = c.floats();
  c.expect({"tp.scan(", elements(n, "int32")}, {"tp.scan(", elements(n)});
  c.is_odd() ? scan<std::int32_t>(c, n) : scan(c, n);
}
void max_of_reduce_scatter(Cell& c) {
  c.expect({"tp.reduce_scatter(", "max"}, {"tp.reduce_scatter(", "sum"});
  reduce_scatter(c, c.block(), c.pick(ReduceOp::max, ReduceOp::sum));
}

float added(const float& a, const float& b) { return a + b; }

void function_of_all_reduce(Cell& c) {
  c.expect("tp.all_reduce(");
  if (!c.is_odd()) return all_reduce(c, c.floats());
  const auto v = c.memory<float>(c.floats());
  issue(
      c, [&] { c.group->all_reduce(v, added); },
      [&] { return c.group->all_reduce_async(v, added); });
}
void function_of_reduce(Cell& c) {
  c.expect("tp.reduce(");
  if (!c.is_odd()) return reduce(c, c.floats());
  const auto in = c.memory<float>(c.floats()), out = c.memory<float>(c.floats());
  issue(
      c, [&] { c.group->reduce(in, out, first_member, added); },
      [&] { return c.group->reduce_async(in, out, first_member, added); });
}

// The call ends with an error on every rank, also where the values may be right.
void throwing_all_reduce(Cell& c) {
  c.expect({"no such sum"}, {});
  const auto v = c.memory<float>(c.floats());
  const auto fails = [](float, float) -> float { throw std::domain_error{"no such sum"}; };
  issue(
      c, [&] { c.group->all_reduce(v, fails); },
      [&] { return c.group->all_reduce_async(v, fails); });
  c.wrong("the call returned");
}
// The last member combines in any case, and no other member needs its result.
void throwing_scan(Cell& c) {
  const auto v = c.memory<float>(c.floats());
  const auto fails = [is_odd = c.is_odd()](float a, float b) {
    return is_odd ? throw std::domain_error{"no such sum"} : a + b;
  };
  issue(
      c, [&] { c.group->scan(v, fails); }, [&] { return c.group->scan_async(v, fails); });
  c.wrong("the call returned");
}
void calling_scan(Cell& c) {
  c.expect({"uses a mesh that is in a call"}, {});
  const auto v = c.memory<float>(c.floats());
  const auto calls = [&c](float a, float b) {
    if (c.is_odd()) c.group->barrier();
    return a + b;
  };
  issue(
      c, [&] { c.group->scan(v, calls); }, [&] { return c.group->scan_async(v, calls); });
  c.wrong("the call returned");
}

// Limits the memory of this process to what it has now and 4 MiB more.
class LittleMemory {
 public:
  LittleMemory() {
    ::getrlimit(RLIMIT_AS, &before_);
    std::ifstream file{"/proc/self/statm"};
    rlim_t pages = 0;
    file >> pages;
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{4} << 20);
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ~LittleMemory() { ::setrlimit(RLIMIT_AS, &before_); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  rlimit before_{};
};

// Sums of 16-bit floats are computed in memory of 32-bit floats.
void too_little_memory(Cell& c) {
  c.expect({"too little memory for"}, {"tp.all_reduce"});
  const auto v = c.memory<BFloat16>(std::size_t{1} << 24);
  std::optional<LittleMemory> little;
  if (c.is_odd()) little.emplace();
  c.group->all_reduce(v);
}

// MPI libraries combine in another order where a function is commutative, so the members would not
// send each other what they wait for.
Commutative commutative_here(const Cell& c) { return c.pick(Commutative::yes, Commutative::no); }

void commutative_all_reduce(Cell& c) {
  c.expect({"tp.all_reduce(", "commutative"}, {"tp.all_reduce("});
  const auto v = c.memory<float>(c.floats());
  issue(
      c, [&] { c.group->all_reduce(v, added, commutative_here(c)); },
      [&] { return c.group->all_reduce_async(v, added, commutative_here(c)); });
}
void commutative_reduce(Cell& c) {
  c.expect({"tp.reduce(", "commutative"}, {"tp.reduce("});
  const auto in = c.memory<float>(c.floats()), out = c.memory<float>(c.floats());
  issue(
      c, [&] { c.group->reduce(in, out, first_member, added, commutative_here(c)); },
      [&] { return c.group->reduce_async(in, out, first_member, added, commutative_here(c)); });
}
void commutative_reduce_scatter(Cell& c) {
  c.expect({"tp.reduce_scatter(", "commutative"}, {"tp.reduce_scatter("});
  const auto in = c.memory<float>(c.block() * members(c)), out = c.memory<float>(c.block());
  issue(
      c, [&] { c.group->reduce_scatter(in, out, added, commutative_here(c)); },
      [&] { return c.group->reduce_scatter_async(in, out, added, commutative_here(c)); });
}

}  // namespace

Kinds types() {
  return {
      {.name = "type_int32", .fault = int_and_float},
      {.name = "type_double_bytes", .fault = double_of_the_same_bytes},
      {.name = "type_double_count", .fault = double_of_the_same_count},
      {.name = "type_scan", .fault = type_of_scan},
      {.name = "type_broadcast", .fault = of_broadcast},
      {.name = "type_all_gather", .fault = of_all_gather},
      {.name = "max_all_reduce", .fault = max_of_all_reduce},
      {.name = "avg_all_reduce", .fault = avg_of_all_reduce},
      {.name = "max_reduce", .fault = max_of_reduce},
      {.name = "max_scan", .fault = max_of_scan},
      {.name = "max_reduce_scatter", .fault = max_of_reduce_scatter},
      {.name = "function_all_reduce", .fault = function_of_all_reduce},
      {.name = "function_reduce", .fault = function_of_reduce},
      {.name = "throwing_all_reduce", .expected = Expected::told, .fault = throwing_all_reduce},
      {.name = "throwing_scan", .expected = Expected::usage, .fault = throwing_scan},
      {.name = "throwing_calls_mesh", .expected = Expected::told, .fault = calling_scan},
      {.name = "memory_all_reduce",
       .expected = Expected::told,
       .fault = too_little_memory,
       .has_one_size = true},
      {.name = "commutative_all_reduce", .fault = commutative_all_reduce},
      {.name = "commutative_reduce", .fault = commutative_reduce},
      {.name = "commutative_reduce_scatter", .fault = commutative_reduce_scatter},
  };
}

}  // namespace faults
