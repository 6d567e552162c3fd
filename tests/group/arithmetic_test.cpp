// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of docs/arithmetic.md: the same results on every host transport, for every size
// and every form of a call.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "conformance/detail/plain_arithmetic.hpp"
#include "group/conformance.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"
#include "support/reductions.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::reduced;
using rankmesh_test::size;

namespace {

MeshOptions options_for(const std::string& routes, bool has_deadline) {
  MeshOptions options;
  options.routes = routes;
  // Without it, MPI carries v-forms of long blocks, and adds floats in its own order.
  options.check = true;
  if (has_deadline) options.deadline = Deadline::Duration{60};
  return options;
}

}  // namespace

// Blocking calls wait inside of MPI without a deadline, and poll with one. Each half of a job's
// entries runs in one of the two ways.
TEST_CASE("the table of conformance, on every host transport, with and without a deadline") {
  const bool is_chosen = std::getenv("RANKMESH_ROUTES") != nullptr;  // only that is new here
  const int part = size() <= 4 ? 3 : 16;
  int turn = 0;
  for (const std::string routes : {"*.*:host=shm", "*.*:host=mpi", ""}) {
    if (is_chosen && !routes.empty()) continue;
    for (const bool has_deadline : {false, true}) {
      CAPTURE(routes);
      CAPTURE(has_deadline);
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", options_for(routes, has_deadline)};
      rankmesh_test::Conformance table;
      table.share = part * (routes.empty() ? 8 : 2);
      table.turn = turn;
      turn += 3;
      if (routes == "*.*:host=shm") table.order = rankmesh_test::in_shared_memory(mesh, mesh["tp"]);
      check_conformance(mesh["tp"], table);
      mesh.close();
    }
  }
}

TEST_CASE("the averages of the table of conformance are right for any number of members") {
  using conformance::reduced;
  const auto three = [](std::int64_t) { return 3; };
  CHECK(reduced<std::int8_t>(ReduceOp::avg, 5, three) == 3);
  CHECK(reduced<std::uint8_t>(ReduceOp::avg, 256, three) == 0);  // the sum wraps to 0
  CHECK(reduced<std::int8_t>(ReduceOp::avg, 128, three) == -1);  // the sum wraps to -128
  CHECK_THROWS_AS((void)conformance::check(conformance::Carrier{}, {.share = 0}), UsageError);
  CHECK_THROWS_AS((void)conformance::check(conformance::Carrier{}, {.types = {}}), UsageError);
}

// The sums of these depend on the order, which is from the first member to the last in shared
// memory and MPI's own over MPI. All members of a call get the same bits, and two members have only
// one order.
TEST_CASE("sums of floats are rounded in one order, and equal on all members") {
  for (const std::string routes : {"*.*:host=shm", "*.*:host=mpi"})
    for (const bool has_deadline : {false, true}) {
      CAPTURE(routes);
      CAPTURE(has_deadline);
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", options_for(routes, has_deadline)};
      auto& tp = mesh["tp"];
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::avg})
        for (const std::int64_t count : {1, 1000, 40000}) {
          CAPTURE(to_string(op));
          CAPTURE(count);
          const auto value = [](std::int64_t member, std::int64_t i) {
            return 1.0F + static_cast<float>((member * 7919 + i * 104729) % 1000003) / 999.0F;
          };
          std::vector<float> out;
          std::vector<float> expected;
          for (std::int64_t i = 0; i < count; ++i) {
            out.push_back(value(rank(), i));
            expected.push_back(
                reduced<float>(op, size(), [&](std::int64_t member) { return value(member, i); }));
          }
          tp.all_reduce(out, op);
          const bool is_shared = routes == "*.*:host=shm" && mesh.placement().node_count() == 1;
          if (size() <= 2 || is_shared) CHECK(out == expected);
          auto of_first = out;
          tp.broadcast(of_first, 0);
          CHECK(out == of_first);
          for (std::size_t i = 0; i < out.size(); i += 97)
            CHECK(out[i] == doctest::Approx(expected[i]).epsilon(1e-5));
        }
      mesh.close();
    }
}
