// SPDX-License-Identifier: BSD-3-Clause
// The option `check`: collectives that are compared by messages of MPI.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "mesh/check_help.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/patience.hpp"

using namespace rankmesh;
using rankmesh_test::Adopted;
using rankmesh_test::checked;
using rankmesh_test::is_last;
using rankmesh_test::last;
using rankmesh_test::message_of;
using rankmesh_test::others;
using rankmesh_test::rank;
using rankmesh_test::ScopedPatience;
using rankmesh_test::short_deadline;
using rankmesh_test::size;
using rankmesh_test::the_last;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

TEST_CASE("check: correct calls of a group without shared memory pass") {
  Adopted a{checked()};
  auto& g = *a.group;
  const auto n = static_cast<std::size_t>(size());
  for (int round = 0; round < 20; ++round) {
    std::vector<int> one{1};
    g.all_reduce(one);
    CHECK(one[0] == size());
    std::vector<std::int64_t> first{rank()}, second{2 * rank()};
    Work w1 = g.all_reduce_async(first, ReduceOp::max);
    Work w2 = g.broadcast_async(second, last());
    if (round % 2 == 0) {
      w2.wait();  // in another order than they were started
      w1.wait();
    } else {
      std::vector<int> between{1};
      g.all_reduce(between);
      CHECK(between[0] == size());
      w1.wait();
      w2.wait();
    }
    CHECK(first[0] == last());
    CHECK(second[0] == 2 * last());
    std::vector<std::int64_t> counts(n);
    std::int64_t total = 0;
    for (std::size_t k = 0; k < n; ++k) total += counts[k] = static_cast<std::int64_t>(k % 3);
    std::vector<int> own(static_cast<std::size_t>(counts[static_cast<std::size_t>(rank())]),
                         rank());
    std::vector<int> gathered(static_cast<std::size_t>(total));
    g.all_gather_v(own, gathered, Blocks{counts});
    g.barrier();
  }
  a.mesh.close();
  MPI_Comm_free(&a.comm);
}

TEST_CASE("check: one member uses the form with _async") {
  NEEDS_RANKS(2);
  Adopted a{checked()};
  std::vector<int> one{1};
  if (is_last())
    a.group->all_reduce_async(one).wait();
  else
    a.group->all_reduce(one);
  CHECK(one[0] == size());
  a.mesh.close();
  MPI_Comm_free(&a.comm);
}

TEST_CASE("check: different counts are named on all members, small and large, _async or not") {
  NEEDS_RANKS(2);
  for (const bool is_async : {false, true})
    for (const std::size_t count : {std::size_t{12}, std::size_t{300000}}) {
      Adopted a{checked()};
      std::vector<float> values(is_last() ? count : count - 2, 1.0F);
      std::vector<float> before{1.0F};
      a.group->all_reduce(before);
      const std::string message = message_of<MismatchError>([&] {
        is_async ? a.group->all_reduce_async(values).wait() : a.group->all_reduce(values);
      });
      CHECK(message == the_last() + ": all.all_reduce(" + std::to_string(count) +
                           " x float32, sum, in place), call 2; " + others() + ": all.all_reduce(" +
                           std::to_string(count - 2) + " x float32, sum, in place), call 2");
      CHECK_THROWS_AS(a.group->barrier(), ClosedError);
      wait_for_all();
    }
}

TEST_CASE("check: different operations, types, reductions and roots are named") {
  NEEDS_RANKS(2);
  const auto differ = [](auto&& usual, auto&& other, const char* of_last, const char* of_others) {
    Adopted a{checked()};
    const std::string message =
        message_of<MismatchError>([&] { is_last() ? other(*a.group) : usual(*a.group); });
    CHECK_CONTAINS(message, the_last() + ": all." + of_last + ", call 1");
    CHECK_CONTAINS(message, others() + ": all." + of_others + ", call 1");
    wait_for_all();
  };
  std::vector<float> floats(4);
  std::vector<int> ints(4);
  const auto sum = [&](GroupCoordinator& g) { g.all_reduce(floats); };
  const char* sum_text = "all_reduce(4 x float32, sum, in place)";
  differ(
      sum, [](GroupCoordinator& g) { g.barrier(); }, "barrier()", sum_text);
  differ(
      sum, [&](GroupCoordinator& g) { g.all_reduce(ints); }, "all_reduce(4 x int32, sum, in place)",
      sum_text);
  differ(
      sum, [&](GroupCoordinator& g) { g.all_reduce(floats, ReduceOp::max); },
      "all_reduce(4 x float32, max, in place)", sum_text);
  differ([&](GroupCoordinator& g) { g.broadcast(floats, 0); },
         [&](GroupCoordinator& g) { g.broadcast(floats, 1); }, "broadcast(4 x float32, root 1)",
         "broadcast(4 x float32, root 0)");
}

TEST_CASE("check: counts of a v-form that do not fit are named on all members") {
  NEEDS_RANKS(2);
  const auto n = static_cast<std::size_t>(size());
  for (const bool gathers_all : {true, false}) {
    Adopted a{checked()};
    std::vector<std::int64_t> counts(n, 2);
    if (is_last()) counts[n - 1] = 3;
    std::vector<int> own(static_cast<std::size_t>(counts[static_cast<std::size_t>(rank())]));
    std::vector<int> gathered(2 * n + 1);
    const std::string message = message_of<MismatchError>([&] {
      if (gathers_all)
        a.group->all_gather_v(own, std::span{gathered}.first(is_last() ? 2 * n + 1 : 2 * n),
                              Blocks{counts});
      else
        a.group->gather_v(own, gathered, Blocks{counts}, 0);
    });
    CHECK_CONTAINS(message, the_last() + ": all." + (gathers_all ? "all_gather_v" : "gather_v"));
    wait_for_all();
  }
}

TEST_CASE("check: a member that skips the last call is named") {
  NEEDS_RANKS(2);
  Adopted a{checked()};
  std::vector<float> values(4);
  a.group->all_reduce(values);
  std::string message;
  if (is_last()) {
    message = message_of<MismatchError>([&] { a.mesh.close(); });
  } else {
    // A MismatchError, or a PeerError if another member has noticed it and left the mesh before.
    message = message_of<Error>([&] { a.group->all_reduce(values); });
    CHECK_CONTAINS(message, the_last() + ": close of all after 1 calls");
    CHECK_CONTAINS(message, "all.all_reduce(4 x float32, sum, in place), call 2");
    // The last one may have given up its close() before, and then this one does not succeed alone.
    // If all have come before, all close the mesh, and the last one throws nevertheless.
    try {
      a.mesh.close();
    } catch (const PeerError& error) {
      CHECK_CONTAINS(error.message(), the_last() + ": close of all after 1 calls");
    }
  }
  if (is_last()) CHECK_CONTAINS(message, the_last() + ": close of all after 1 calls");
  wait_for_all();
}

TEST_CASE("check: a missing member is named") {
  NEEDS_RANKS(2);
  ScopedPatience patience;
  patience.wait_for_answers(0.3);  // on two hosts
  Adopted a{checked(short_deadline())};
  wait_for_all();
  if (!is_last()) {
    std::vector<float> values(4);
    try {
      a.group->all_reduce(values);
      FAIL_CHECK("no error");
    } catch (const TimeoutError& error) {
      CHECK(error.missing() == std::vector<Rank>{Rank{last()}});
    }
  }
  wait_for_all();
}

// The other members have sent their part of the comparison, so the late one finds equal calls.
TEST_CASE("check: a member that comes after the others have given up does not wait for ever") {
  NEEDS_RANKS(2);
  static std::vector<int> values(4);  // MPI may still use it after the failure
  ScopedPatience patience;
  patience.wait_for_answers(0.3);  // on two hosts
  for (const bool has_function : {false, true}) {
    Adopted a{checked(short_deadline())};
    const auto call = [&] {
      if (has_function)
        a.group->all_reduce(values, [](int left, int right) { return left + right; });
      else
        a.group->all_reduce(values);
    };
    wait_for_all();
    if (!is_last())
      CHECK(thrown_by<TimeoutError>(call).missing() == std::vector<Rank>{Rank{last()}});
    wait_for_all();
    if (is_last())
      CHECK_CONTAINS(message_of<TimeoutError>(call), "gave up all.all_reduce(4 x int32");
    wait_for_all();
    CHECK_THROWS_AS(call(), ClosedError);
  }
}

TEST_CASE("check: a function that throws on one member ends the calls of all of them") {
  NEEDS_RANKS(2);
  static std::vector<int> values(4);  // MPI may still use it after the failure
  for (const int thrower : {1, last()}) {
    Adopted a{checked(std::chrono::milliseconds{2500})};
    wait_for_all();
    const auto sum = [&](int left, int right) {
      if (rank() == thrower) throw std::range_error{"no"};
      return left + right;
    };
    // Each member needs only those before it, so the thrower may be the first to end.
    const auto calls = [&] {
      a.group->scan(values, sum);
      a.group->barrier();
    };
    if (rank() == thrower)
      CHECK_CONTAINS(message_of<UsageError>(calls), "threw on this rank: no");
    else
      CHECK(!thrown_by<Error>(calls).message().empty());
    wait_for_all();
  }
}

TEST_CASE("check: a function that throws ends the waits of the others, also if test() finds it") {
  NEEDS_RANKS(2);
  static std::vector<int> values(4);  // MPI may still use it after the failure
  Adopted a{checked(std::chrono::seconds{10})};
  const auto sum = [&](int left, int right) {
    if (is_last()) throw std::range_error{"no"};
    return left + right;
  };
  Work work = a.group->scan_async(values, sum);
  if (is_last())
    CHECK_CONTAINS(message_of<UsageError>([&] {
                     while (!work.test()) {
                     }
                   }),
                   "threw on this rank: no");
  else
    CHECK_CONTAINS(thrown_by<Error>([&] { work.wait(); }).message(), "threw on this rank: no");
  wait_for_all();
}

TEST_CASE("check: the option must be the same on all ranks") {
  NEEDS_RANKS(2);
  MeshOptions options;
  options.check = is_last();
  const std::string message =
      message_of<MismatchError>([&] { Mesh mesh(MPI_COMM_WORLD, "tp=auto", options); });
  CHECK_CONTAINS(message, "option check");
}

TEST_CASE("check: other values of RANKMESH_CHECK are refused on all ranks") {
  const char* before = std::getenv("RANKMESH_CHECK");
  const std::string kept = before == nullptr ? "" : before;
  setenv("RANKMESH_CHECK", "yes", 1);
  const std::string message = message_of<UsageError>([] { Mesh mesh(MPI_COMM_WORLD, "tp=auto"); });
  CHECK_CONTAINS(message, "the environment variable RANKMESH_CHECK must be 0 or 1, got 'yes'");
  setenv("RANKMESH_CHECK", kept.c_str(), 1);
}

// Without the option, what MPI itself finds is thrown. MPI raises errors of non-blocking
// collectives on MPI_COMM_WORLD, whose handler ends the job by default.
TEST_CASE("check: without it, MPI's errors are thrown and never end the job") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(size() == 2, "needs 2 ranks");
  for (const bool is_async : {true, false}) {
    int found = 0;  // which of the two mistakes MPI finds depends on the library
    for (const Operation operation : {Operation::all_reduce, Operation::broadcast}) {
      MeshOptions options = checked();
      options.check = false;
      if (is_async)
        options.timeout = std::chrono::seconds{2};
      else
        options.deadline = std::chrono::seconds{2};  // polls too
      Adopted a{options};                            // its communicator has MPI's default handler
      std::vector<float> values(is_last() ? 150000 : 300000, 1.0F);
      int failed = 0;
      try {
        if (operation == Operation::broadcast)
          is_async ? a.group->broadcast_async(values, 0).wait() : a.group->broadcast(values, 0);
        else
          is_async ? a.group->all_reduce_async(values).wait() : a.group->all_reduce(values);
      } catch (const Error&) {
        failed = 1;
      }
      int any = 0;
      MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      found += any;
      MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
      MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
      CHECK(handler == MPI_ERRORS_ARE_FATAL);
      wait_for_all();
    }
    CHECK(found > 0);
  }
}

namespace {
int program_errors = 0;
void count_error(MPI_Comm*, int*, ...) { ++program_errors; }
}  // namespace

TEST_CASE("check: errors of the program's communicators reach the program's handler") {
  MPI_Errhandler counting = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(count_error, &counting);
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_set_errhandler(own, counting);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
  program_errors = 0;
  const int value = 0;
  {
    MeshOptions options = checked();
    options.check = false;
    Adopted a{options};
    std::vector<int> ones{1};
    Work work = a.group->all_reduce_async(ones);
    (void)work.test();
    MPI_Send(&value, 1, MPI_INT, size() + 1, 0, own);
    MPI_Send(&value, 1, MPI_INT, size() + 1, 0, MPI_COMM_WORLD);
    CHECK(program_errors == 2);
    work.wait();
    CHECK(ones[0] == size());
    MPI_Send(&value, 1, MPI_INT, size() + 1, 0, MPI_COMM_WORLD);
    a.mesh.close();
    MPI_Comm_free(&a.comm);
  }
  MPI_Send(&value, 1, MPI_INT, size() + 1, 0, MPI_COMM_WORLD);
  CHECK(program_errors == 4);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free(&own);
  MPI_Errhandler_free(&counting);
}
