// SPDX-License-Identifier: BSD-3-Clause
// Rules from measurements.
#include <doctest/doctest.h>

#include <string>

#include "place/tuning.hpp"

using namespace rankmesh;

namespace {

std::string text_of(const std::vector<RouteRule>& rules) {
  std::string text;
  for (const RouteRule& rule : rules) text += (text.empty() ? "" : "; ") + rule.to_string();
  return text;
}

RouteRule of(const char* name) {
  RouteRule rule;
  rule.name = name;
  return rule;
}

}  // namespace

TEST_CASE("ranges in which another transport is faster become rules, other ranges do not") {
  const auto timing = [](std::int64_t bytes, double mpi, double shm) {
    return RouteTiming{bytes, {{"mpi", mpi}, {"shm", shm}}};
  };
  const std::vector<RouteTiming> small{timing(8, 1, 0.5), timing(64, 1, 0.5), timing(1024, 1, 0.97),
                                       timing(4096, 1, 2)};
  CHECK(text_of(tuned_rules(of("tp"), Operation::all_reduce, small)) ==
        "tp.all_reduce:host:0-1K=shm");
  const std::vector<RouteTiming> twice{timing(8, 1, 0.5), timing(64, 1, 1.5), timing(1024, 1, 0.1),
                                       timing(4096, 1, 0.1)};
  CHECK(text_of(tuned_rules(of("dp"), Operation::broadcast, twice)) ==
        "dp.broadcast:host:0-64=shm; dp.broadcast:host:1K-4097=shm");
  CHECK(tuned_rules(of("tp"), Operation::all_reduce, std::vector{timing(8, 1, 1)}).empty());
  CHECK(tuned_rules(of("tp"), Operation::all_reduce, std::vector{RouteTiming{8, {{"mpi", 1}}}})
            .empty());
  CHECK(tuned_rules(of("tp"), Operation::all_reduce, {}).empty());
  CHECK(text_of(tuned_rules(of("tp"), Operation::barrier, std::vector{timing(0, 1, 0.1)}, false)) ==
        "tp.barrier:host=shm");
  // The rules can be parsed.
  const std::string text = text_of(tuned_rules(of("dp"), Operation::broadcast, twice));
  CHECK(RouteTable::parse(text, RouteSource::file, "x").to_string() == text);
  // Conditions on the group remain.
  RouteRule four;
  four.least_ranks = four.most_ranks = 4;
  four.one_node = true;
  four.own_cores = false;
  CHECK(text_of(tuned_rules(four, Operation::all_reduce, small)) ==
        "*.all_reduce:host:0-1K:ranks(4):one_node:shared_cores=shm");
}
