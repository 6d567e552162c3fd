// SPDX-License-Identifier: BSD-3-Clause
// Wrong calls and missing ranks in groups on two levels. Run on emulated hosts
// (tests/hosts/hierarchical); elsewhere the cases are skipped.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "group/two_levels.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::spans_levels;
using rankmesh_test::two_levels;
using rankmesh_test::wait_for_all;

namespace {

// Calls that cannot end well: makes the call, then a barrier, and returns the error of the first
// one that throws it.
template <class Expected, class Action>
Expected first_error(GroupCoordinator& group, Action&& action) {
  return rankmesh_test::thrown_by<Expected>([&] {
    action();
    group.barrier();
  });
}

std::string words_of(int of_rank) { return "rank " + std::to_string(of_rank) + " ("; }

}  // namespace

TEST_CASE("two levels: calls that differ are named on all members, on whichever node they are") {
  using Action = std::function<void(GroupCoordinator&)>;
  std::vector<float> three(3), four(4), large(100001), larger(100003);
  std::vector<int> ints(4);
  struct Difference {
    Action usual, other;
    const char *of_usual, *of_other;
  };
  const Difference differences[] = {
      {[&](auto& g) { g.all_reduce(four); }, [&](auto& g) { g.all_reduce(three); },
       "tp.all_reduce(4 x float32, sum, in place), call 2",
       "tp.all_reduce(3 x float32, sum, in place), call 2"},
      {[&](auto& g) { g.all_reduce(large); }, [&](auto& g) { g.all_reduce(larger); },
       "tp.all_reduce(100001 x float32, sum, in place), call 2",
       "tp.all_reduce(100003 x float32, sum, in place), call 2"},
      {[&](auto& g) { g.all_reduce(four); }, [&](auto& g) { g.barrier(); },
       "tp.all_reduce(4 x float32, sum, in place), call 2", "tp.barrier(), call 2"},
      {[&](auto& g) { g.all_reduce_async(four).wait(); }, [&](auto& g) { g.all_reduce(ints); },
       "tp.all_reduce(4 x float32, sum, in place), call 2",
       "tp.all_reduce(4 x int32, sum, in place), call 2"},
      {[&](auto& g) { g.broadcast(large, 0); }, [&](auto& g) { g.all_reduce(large); },
       "tp.broadcast(100001 x float32, root 0), call 2",
       "tp.all_reduce(100001 x float32, sum, in place), call 2"},
  };
  for (const int odd : {0, last()})
    for (const Difference& d : differences) {
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", two_levels(20)};
      SKIP_UNLESS(spans_levels(mesh), "needs several nodes, and two ranks on one of them");
      GroupCoordinator& group = mesh["tp"];
      group.barrier();
      wait_for_all();  // a difference that is found early would end this barrier on late ranks
      const auto error = first_error<MismatchError>(
          group, [&] { rank() == odd ? d.other(group) : d.usual(group); });
      CHECK_CONTAINS(error.message(), words_of(odd));
      CHECK_CONTAINS(error.message(), d.of_usual);
      CHECK_CONTAINS(error.message(), d.of_other);
      CHECK_THROWS_AS(group.barrier(), ClosedError);
      wait_for_all();
    }
}

// MPI gives the identities of freed communicators to new ones, and with them their messages.
TEST_CASE("two levels: a message of calls that differ is not received in a new mesh") {
  MeshOptions options = two_levels(20);
  options.check = false;  // it would compare the calls before any of these messages
  const auto broadcast = [](GroupCoordinator& group, float value) {
    std::vector<float> values(4, rank() == last() ? value : 0.0F);
    group.broadcast(values, last());
    return values;
  };
  {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    SKIP_UNLESS(spans_levels(mesh), "needs several nodes, and two ranks on one of them");
    GroupCoordinator& group = mesh["tp"];
    (void)first_error<MismatchError>(group, [&] {
      if (rank() == 0)
        group.barrier();
      else
        (void)broadcast(group, 1.0F);
    });
    wait_for_all();
    mesh.close();
  }
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  CHECK(broadcast(mesh["tp"], 2.0F) == std::vector<float>(4, 2.0F));
  mesh.close();
}

TEST_CASE("two levels: a member that does not come is named at the deadline, in every wait") {
  // Rank 0 is a carrier. Where the last rank is none, its node waits for it, the other nodes for
  // that node's carrier, and all other members for theirs.
  for (const int missing : {0, last()}) {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", two_levels(1)};
    SKIP_UNLESS(spans_levels(mesh), "needs several nodes, and two ranks on one of them");
    mesh["tp"].barrier();
    wait_for_all();
    if (rank() != missing) {
      std::vector<float> values(missing == 0 ? 3 : 100000, 1.0F);
      const auto error = rankmesh_test::thrown_by<TimeoutError>([&] {
        mesh["tp"].all_reduce(values);
        mesh["tp"].barrier();
      });
      CHECK_CONTAINS(error.message(), words_of(missing));
      new std::vector<float>(std::move(values));  // MPI may still use it
    }
    wait_for_all();
  }
}
