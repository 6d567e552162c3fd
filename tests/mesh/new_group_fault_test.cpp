// SPDX-License-Identifier: BSD-3-Clause
// new_group with different lists: the members learn it at once. Groups that overlap, late members
// and repeated attempts are no mistake.
#include <doctest/doctest.h>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/patience.hpp"
#include "support/watchdog.hpp"

using namespace rankmesh;
using rankmesh_test::is_same_as_on_first;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;
using rankmesh_test::Watchdog;

namespace {

// Creates a group, and returns the text of the MismatchError; "" if there was none.
std::string text_of(Mesh& mesh, const std::vector<Rank>& ranks, const std::string& name = {}) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    mesh.new_group(ranks, name)->barrier();
  } catch (const MismatchError& error) {
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{10});
    return error.message();
  }
  return {};
}

std::vector<Rank> first_ranks(int count) {
  std::vector<Rank> ranks;
  for (int r = 0; r < count; ++r) ranks.emplace_back(r);
  return ranks;
}

void sleep(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
}

// Lets a conflict last long enough to be known to all ranks of a busy machine, so that its text
// lists all of them and comes from the lowest one, before a look finds that they wait in a circle.
class LongConflicts {
 public:
  LongConflicts() {
    patience_->conflict_of_lowest = Deadline::Duration{1};
    patience_->conflict_of_others = Deadline::Duration{4};
    patience_->check = Deadline::Duration{10};
  }

 private:
  rankmesh_test::ScopedPatience patience_;
};

}  // namespace

TEST_CASE("a rank that lists other members: all members get one text, and a later attempt works") {
  NEEDS_RANKS(2);
  const Watchdog watchdog{50, "new_group with different lists"};
  const LongConflicts patience;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const std::vector<Rank> everybody = first_ranks(size());
  const std::vector<Rank> other =
      size() == 2 ? std::vector<Rank>{1, 0} : std::vector<Rank>{0, last()};
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    const bool is_odd = rank() == last();
    wait_for_all();
    const std::string text = text_of(mesh, is_odd ? other : everybody, round == 1 ? "pool" : "");
    CHECK(is_same_as_on_first(text));
    const std::string name = round == 1 ? " named 'pool'" : "";
    CHECK(text.starts_with(fmt::format("rank {0} (tp={0}): new_group({1}){2}; ", last(),
                                       size() == 2 ? "1,0" : fmt::format("0,{}", last()), name)));
    CHECK_CONTAINS(text, fmt::format(": new_group(0-{}){}", last(), name));
    CHECK_CONTAINS(text, size() == 2 ? std::string{"; rank 0 (tp=0): "}
                                     : fmt::format("; ranks 0-{}: ", last() - 1));
    if (round == 1) wait_for_all();  // in the other rounds, the next attempt begins at once
    CHECK(text_of(mesh, everybody) == "");
  }
  mesh.close();
}

TEST_CASE("a pause of the whole machine does not make members report different texts") {
  NEEDS_RANKS(3);
  const Watchdog watchdog{50, "new_group during a pause"};
  rankmesh_test::ScopedPatience patience;
  patience->conflict_of_lowest = Deadline::Duration{1};
  patience->conflict_of_others = Deadline::Duration{2.5};
  patience->check = Deadline::Duration{10};
  // Before the pause, the last rank knows of the first one alone.
  if (rank() != 0 && rank() != last()) patience->first_note = Deadline::Duration{1};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  SKIP_UNLESS(mesh.placement().node_count() == 1, "stops the ranks of one node");
  std::vector<int> processes(static_cast<std::size_t>(size()));
  const int own = getpid();
  MPI_Allgather(&own, 1, MPI_INT, processes.data(), 1, MPI_INT, MPI_COMM_WORLD);
  wait_for_all();
  std::FILE* shell = nullptr;
  if (rank() == 0)
    shell = popen(
        fmt::format("sleep 0.4; kill -STOP {0}; sleep 3; kill -CONT {0}", fmt::join(processes, " "))
            .c_str(),
        "r");
  wait_for_all();
  const std::string text =
      text_of(mesh, rank() == last() ? std::vector<Rank>{0, last()} : first_ranks(size()));
  CHECK(is_same_as_on_first(text));
  CHECK_CONTAINS(text, fmt::format("rank {0} (tp={0}): new_group(0,{0}); ", last()));
  if (rank() == 0) CHECK(pclose(shell) == 0);
  wait_for_all();  // until the shell lets all continue
  mesh.close();
}

TEST_CASE("pairs of groups in another order") {
  NEEDS_RANKS(3);
  const Watchdog watchdog{50, "groups in different orders"};
  const LongConflicts patience;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const std::vector<Rank> left{0, 1, 2}, right{0, 1};
  wait_for_all();
  // Rank 2 is a member of one list only, and has to learn it from the others.
  if (rank() < 2) {
    const std::string text = text_of(mesh, rank() == 0 ? left : right);
    CHECK_CONTAINS(text, "rank 1 (tp=1): new_group(0-1)");
    CHECK_CONTAINS(text, "new_group(0-2)");
  } else if (rank() == 2) {
    CHECK_CONTAINS(text_of(mesh, left), "rank 1 (tp=1): new_group(0-1)");
  }
  wait_for_all();
  if (rank() < 3) CHECK(text_of(mesh, left) == "");
  if (rank() < 2) CHECK(text_of(mesh, right) == "");
  mesh.close();
}

TEST_CASE("groups that overlap, late members and chains are no mistake") {
  NEEDS_RANKS(2);
  const Watchdog watchdog{50, "groups that overlap"};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  std::mt19937 random{static_cast<unsigned>(rank()) + 5};
  const auto be_late = [&] { sleep(static_cast<int>(random() % 3) * 250); };
  const std::vector<Rank> everybody = first_ranks(size());
  for (int round = 0; round < 2; ++round) {
    // Each rank with the next one, then the first k ranks, each list in the same order.
    for (int r = 0; r + 1 < size(); ++r)
      if (rank() == r || rank() == r + 1) {
        if (r < 3) be_late();
        CHECK(text_of(mesh, {r, r + 1}) == "");
      }
    for (int count = 2; count <= size(); ++count)
      if (rank() < count) {
        if (count < 4) be_late();
        CHECK(text_of(mesh, first_ranks(count)) == "");
      }
  }
  std::vector<std::vector<Rank>> ring;
  for (int r = 0; r < size(); ++r) ring.push_back({r, (r + 1) % size()});
  if (size() > 2) (void)mesh.new_groups(ring);
  if (rank() == last()) sleep(700);  // the others wait for it in one list
  CHECK(text_of(mesh, everybody) == "");
  mesh.close();
}
