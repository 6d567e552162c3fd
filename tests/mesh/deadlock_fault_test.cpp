// SPDX-License-Identifier: BSD-3-Clause
// Ranks of one node that wait for each other in different groups or meshes learn it without a
// deadline. Programs that are only slow do not.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/patience.hpp"
#include "support/watchdog.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::ScopedPatience;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;
using rankmesh_test::Watchdog;

namespace {

using Clock = std::chrono::steady_clock;

// Runs calls that end in a deadlock, and checks that the error names all of them in time.
void check_deadlock(const std::vector<std::string>& parts, const std::function<void()>& calls,
                    std::string* hint = nullptr) {
  const Watchdog watchdog{50, "a deadlock that was not found"};
  const auto begin = Clock::now();
  std::string text;
  try {
    calls();
  } catch (const Error& error) {
    text = error.message();
    if (hint != nullptr) *hint = error.hint();
  }
  CHECK(Clock::now() - begin < std::chrono::seconds{10});
  CHECK_CONTAINS(text, "these calls wait for each other: rank ");
  for (const std::string& part : parts) CHECK_CONTAINS(text, part);
  wait_for_all();
}

// Checks that a rank has all parts in its hint. The others may have left their waits before it has
// read their records, so a rank without a core for a moment knows less.
void check_some_hint(const std::string& hint, const std::vector<std::string>& parts) {
  CAPTURE(hint);
  const auto is_there = [&](const std::string& part) {
    return rankmesh_test::has_part(hint, part);
  };
  int has_all = std::ranges::all_of(parts, is_there) ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &has_all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  CHECK(has_all == 1);
}

// Meshes are kept, because their groups are broken.
Mesh& kept_mesh(const char* text) {
  static auto* const meshes = new std::vector<std::unique_ptr<Mesh>>;
  return *meshes->emplace_back(std::make_unique<Mesh>(MPI_COMM_WORLD, text));
}

}  // namespace

TEST_CASE("two groups in different orders") {
  SKIP_UNLESS(size() == 4, "needs 4 ranks");
  ScopedPatience patience;
  patience->diagnosis = Deadline::Duration{5};
  for (const std::size_t count : {4, 100'000}) {  // in shared memory, and over MPI
    CAPTURE(count);
    Mesh& mesh = kept_mesh("dp=auto,tp=2");
    std::vector<float> a(count), b(count);
    const bool is_tp_first = (rank() / 2 + rank()) % 2 == 0;
    mesh["tp"].barrier();
    std::string hint;
    check_deadlock(
        {"tp.all_reduce(", "dp.all_reduce(", ", for rank "},
        [&] {
          if (is_tp_first) mesh["tp"].all_reduce(a);
          mesh["dp"].all_reduce(b);
          if (!is_tp_first) mesh["tp"].all_reduce(a);
        },
        &hint);
    check_some_hint(hint,
                    {"diagnosis of this node: The ranks call these groups in different orders",
                     "called tp.all_reduce, call"});
  }
}

TEST_CASE("two groups without names have different ones") {
  SKIP_UNLESS(size() == 2, "needs 2 ranks");
  ScopedPatience patience;
  patience->diagnosis = Deadline::Duration{5};
  Mesh& mesh = kept_mesh("dp=auto");
  const auto in_order = [&](GroupCoordinator& first, GroupCoordinator& second) {
    (rank() == 0 ? first : second).barrier();
    (rank() == 0 ? second : first).barrier();
  };
  const auto one = mesh.new_group({0, 1});
  const auto two = mesh.new_group({0, 1});
  check_deadlock({"group(0-1).barrier(), call 1", "group(0-1)#2.barrier(), call 1"},
                 [&] { in_order(*one, *two); });
  Mesh& other = kept_mesh("tp=auto");
  const auto up = other.new_group({0, 1});
  const auto down = other.new_group({1, 0});
  up->barrier();
  std::string hint;
  check_deadlock(
      {"group(0-1).barrier(), call 2", "group(1,0).barrier(), call 1"},
      [&] { in_order(*up, *down); }, &hint);
  check_some_hint(
      hint, {"After group(0-1).barrier, call 1, rank ", " called group(1,0).barrier, call 1"});
}

TEST_CASE("two meshes in different orders") {
  NEEDS_RANKS(2);
  Mesh& first = kept_mesh("tp=auto");
  Mesh& second = kept_mesh("dp=auto");
  std::vector<float> a(3), b(5);
  check_deadlock({"tp.all_reduce(3 x float32", "dp.all_reduce(5 x float32", "(in another mesh)"},
                 [&] {
                   if (rank() != last()) first["tp"].all_reduce(a);
                   second["dp"].all_reduce(b);
                   if (rank() == last()) first["tp"].all_reduce(a);
                 });
}

TEST_CASE("a rank that does not create a group, and the same with Work::wait") {
  NEEDS_RANKS(2);
  for (const bool is_async : {false, true}) {
    CAPTURE(is_async);
    Mesh& mesh = kept_mesh("tp=auto");
    std::vector<Rank> everybody;
    for (int r = 0; r < size(); ++r) everybody.emplace_back(r);
    std::vector<float> a(3);
    check_deadlock({"tp.all_reduce(3 x float32", "new_group "}, [&] {
      if (rank() != last()) (void)mesh.new_group(everybody);
      if (is_async)
        mesh["tp"].all_reduce_async(a).wait();
      else
        mesh["tp"].all_reduce(a);
    });
  }
}

TEST_CASE("meshes that are closed in different orders") {
  NEEDS_RANKS(2);
  Mesh& first = kept_mesh("tp=auto");
  Mesh& second = kept_mesh("dp=auto");
  const bool is_last = rank() == last();
  check_deadlock({"close of the mesh, for rank ", "close of the mesh (in another mesh), for rank "},
                 [&] {
                   (is_last ? second : first).close();
                   (is_last ? first : second).close();
                 });
}

TEST_CASE("groups that are closed in different orders") {
  NEEDS_RANKS(2);
  Mesh& mesh = kept_mesh("tp=auto");
  std::vector<Rank> everybody;
  for (int r = 0; r < size(); ++r) everybody.emplace_back(r);
  const auto first = mesh.new_group(everybody, "first");
  const auto second = mesh.new_group(everybody, "second");
  const bool is_last = rank() == last();
  check_deadlock({"close of first, for rank ", "close of second, for rank "}, [&] {
    mesh.close(is_last ? second : first);
    mesh.close(is_last ? first : second);
  });
}

TEST_CASE("slow ranks and operations in flight are no deadlock") {
  const Watchdog watchdog{100, "legal programs with slow ranks"};
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "dp=auto,tp=2 | ep=auto" : "dp=auto,tp=1 | ep=auto"};
  Mesh other{MPI_COMM_WORLD, "world=auto"};
  std::mt19937 shared{7};  // the same on all ranks
  std::mt19937 own{static_cast<unsigned>(rank())};
  std::vector<std::vector<float>> memory;
  std::vector<Work> started;
  for (int round = 0; round < 16; ++round) {
    CAPTURE(round);
    if (own() % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{own() % 300});
    const auto choice = shared() % 4;
    GroupCoordinator& group = choice == 3 ? other["world"]
                                          : mesh[choice == 0   ? "tp"
                                                 : choice == 1 ? "dp"
                                                               : "ep"];
    std::vector<float>& values =
        memory.emplace_back(shared() % 2 == 0 ? 8 : 60'000, static_cast<float>(rank() + 1));
    const auto kind = shared() % 3;
    if (kind == 0) {
      group.broadcast(values, 0);
      CHECK(values.back() == static_cast<float>(group.ranks().at(0).value() + 1));
    } else {
      float sum = 0;
      for (const Rank member : group.ranks()) sum += static_cast<float>(member.value() + 1);
      if (kind == 1 || &group == &other["world"]) {
        group.all_reduce(values);
        CHECK(values.back() == sum);
      } else {
        started.push_back(group.all_reduce_async(values));
      }
    }
    if (round % 5 == 4) {
      for (Work& work : started) work.wait();
      started.clear();
    }
  }
  for (Work& work : started) work.wait();
  other.close();
  mesh.close();
}
