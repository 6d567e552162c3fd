// SPDX-License-Identifier: BSD-3-Clause
// Rules from measurements.
#include <doctest/doctest.h>

#include <string>

#include "rankmesh/routes/tuning.hpp"

using namespace rankmesh;

namespace {

std::string text_of(const std::vector<RouteRule>& rules) {
  std::string text;
  for (const RouteRule& rule : rules) text += (text.empty() ? "" : "; ") + rule.to_string();
  return text;
}

}  // namespace

TEST_CASE("ranges in which another transport is faster become rules, other ranges do not") {
  const auto timing = [](std::int64_t bytes, double mpi, double shm) {
    return RouteTiming{bytes, {{"mpi", mpi}, {"shm", shm}}};
  };
  const std::vector<RouteTiming> small{timing(8, 1, 0.5), timing(64, 1, 0.5), timing(1024, 1, 0.97),
                                       timing(4096, 1, 2)};
  CHECK(text_of(tuned_rules("tp", Operation::all_reduce, small)) == "tp.all_reduce:host:0-1K=shm");
  const std::vector<RouteTiming> twice{timing(8, 1, 0.5), timing(64, 1, 1.5), timing(1024, 1, 0.1),
                                       timing(4096, 1, 0.1)};
  CHECK(text_of(tuned_rules("dp", Operation::broadcast, twice)) ==
        "dp.broadcast:host:0-64=shm; dp.broadcast:host:1K-4097=shm");
  CHECK(tuned_rules("tp", Operation::all_reduce, std::vector{timing(8, 1, 1)}).empty());
  CHECK(
      tuned_rules("tp", Operation::all_reduce, std::vector{RouteTiming{8, {{"mpi", 1}}}}).empty());
  CHECK(tuned_rules("tp", Operation::all_reduce, {}).empty());
  CHECK(text_of(tuned_rules("tp", Operation::barrier, std::vector{timing(0, 1, 0.1)}, false)) ==
        "tp.barrier:host=shm");
  // The rules can be parsed.
  const std::string text = text_of(tuned_rules("dp", Operation::broadcast, twice));
  CHECK(RouteTable::parse(text, RouteSource::file, "x").to_string() == text);
}
