// SPDX-License-Identifier: BSD-3-Clause
// What waits and test() do with the operations in flight that call functions of the program.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rankmesh/exchange/work_list.hpp"
#include "rankmesh/rankmesh.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;

// Other tests have the same names.
namespace progress_functions_test {
namespace {

MeshOptions options_with(const char* routes = "") {
  MeshOptions options;
  options.timeout = Deadline::Duration{20};
  options.check = false;
  options.routes = routes;
  return options;
}

struct Tests {
  int entered = 0;                    // test() calls that have not returned
  int deepest = 0;                    // how often one was entered before another one had returned
  int all = 0;                        // test() calls
  int left = 0;                       // until the operations are complete
  std::set<std::thread::id> threads;  // that have called test()
  std::function<void()> inside{};     // is called in each test()
};

class Counted final : public Pending {
 public:
  explicit Counted(std::shared_ptr<Tests> tests) : tests_{std::move(tests)} {}
  bool test() override {
    tests_->deepest = std::max(tests_->deepest, ++tests_->entered);
    tests_->threads.insert(std::this_thread::get_id());
    ++tests_->all;
    struct Leave {
      Tests& tests;
      ~Leave() { --tests.entered; }
    } const leave{*tests_};
    if (tests_->inside) tests_->inside();
    return --tests_->left < 0;
  }

 private:
  std::shared_ptr<Tests> tests_;
};

class CountedTransport final : public Transport {
 public:
  explicit CountedTransport(std::shared_ptr<Tests> tests) : tests_{std::move(tests)} {}
  [[nodiscard]] bool supports(const Call& call) const override {
    return call.is_async && call.operation == Operation::broadcast;
  }
  void run(const Call&, Waiter&) override {}
  [[nodiscard]] bool has_async_forms() const override { return true; }
  [[nodiscard]] std::unique_ptr<Pending> start(const Call&) override {
    return std::make_unique<Counted>(tests_);
  }

 private:
  std::shared_ptr<Tests> tests_;
};

Mesh open_counted(const std::shared_ptr<Tests>& tests) {
  MeshOptions options = options_with("*.broadcast=counted");
  options.transports["counted"] = [=](const TransportGroup&) {
    return std::make_unique<CountedTransport>(tests);
  };
  return Mesh{MPI_COMM_WORLD, "tp=auto", options};
}

// Waits until the members have compared the calls, after which test() is called.
void wait_for_tests(Mesh& mesh, const Tests& tests) {
  while (tests.all == 0) mesh.progress();
}

}  // namespace

TEST_CASE("a failure of another operation is kept for its own Work") {
  NEEDS_RANKS(2);
  const auto tests = std::make_shared<Tests>();
  Mesh mesh = open_counted(tests);
  Mesh other{MPI_COMM_WORLD, "dp=auto", options_with()};
  tests->inside = [] { throw 7; };
  std::vector<int> values(10, 1);
  Work work = mesh["tp"].broadcast_async(std::span{values}, 0);
  for (int i = 0; i < 50; ++i) {
    other["dp"].barrier_async().wait();
    CHECK(!other["dp"].probe(next));
  }
  // The first rank that fails throws the TransportError, and the others may learn its reason.
  CHECK_CONTAINS(thrown_by<Error>([&] { work.wait(); }).message(),
                 "transport 'counted': an exception that is not a std::exception");
  CHECK_THROWS_AS(work.wait(), ClosedError);
  CHECK(tests->all <= 1);
  other.close();
}

TEST_CASE("no function of an operation is entered twice, and it may use other meshes") {
  NEEDS_RANKS(2);
  const auto tests = std::make_shared<Tests>();
  Mesh mesh = open_counted(tests);
  Mesh inner{MPI_COMM_WORLD, "dp=auto", options_with()};
  std::vector<int> sums(3, 1);
  Work of_inner;
  bool has_refused = false;
  tests->left = 200;
  tests->inside = [&] {
    (void)of_inner.test();
    (void)inner["dp"].probe(next);
    std::vector<int> one(1, rank()), got(1);
    inner["dp"].send_recv(one, got, inner["dp"].rank_in_group(), inner["dp"].rank_in_group());
    try {
      mesh.progress();
    } catch (const UsageError&) {
      has_refused = true;  // its own mesh
    }
  };
  of_inner = inner["dp"].all_reduce_async(std::span{sums});
  std::vector<int> values(10, 1);
  Work work = mesh["tp"].broadcast_async(std::span{values}, 0);
  // Waits in the mesh that test() uses, and in its own one.
  for (int i = 0; i < 20; ++i) {
    inner["dp"].barrier_async().wait();
    mesh["tp"].barrier();
  }
  work.wait();
  of_inner.wait();
  CHECK(sums[0] == size());
  CHECK(tests->deepest == 1);
  CHECK(has_refused);
  mesh.close();
  inner.close();
}

TEST_CASE("a test() tests a few other operations, however many are in flight") {
  NEEDS_RANKS(2);
  const auto tests = std::make_shared<Tests>();
  Mesh mesh = open_counted(tests);
  Mesh other{MPI_COMM_WORLD, "dp=auto", options_with()};
  tests->left = 100'000;
  std::vector<std::vector<int>> values(500, std::vector<int>(1, 1));
  exchange::WorkList works;
  for (auto& value : values) works.add(mesh["tp"].broadcast_async(std::span{value}, 0));
  for (int i = 0; i < 10; ++i) mesh.progress();  // all of them have begun
  wait_for_tests(mesh, *tests);
  std::vector<int> value(1);
  Work receive = other["dp"].recv_async(value, prev);
  for (int i = 0; i < 10; ++i) {
    const int before = tests->all;
    if (receive.test()) break;
    CHECK(tests->all - before <= 8);
  }
  other["dp"].send(std::vector{1}, next);
  receive.wait();
  tests->left = 0;
  works.wait();
  other.close();
  mesh.close();
}

TEST_CASE("a thread leaves the operations of other threads alone") {
  NEEDS_RANKS(2);
  const auto tests = std::make_shared<Tests>();
  Mesh mesh = open_counted(tests);
  tests->left = 1000;
  std::vector<int> values(10, 1);
  Work work = mesh["tp"].broadcast_async(std::span{values}, 0);
  wait_for_tests(mesh, *tests);
  const int before = tests->all;
  std::thread{[] {
    int polls = 0;  // of a wait that needs no MPI
    CHECK(poll_until([&] { return ++polls > 100; }, Deadline{Deadline::Duration{20}}));
  }}.join();
  CHECK(tests->all == before);
  int polls = 0;
  CHECK(poll_until([&] { return ++polls > 100; }, Deadline{Deadline::Duration{20}}));
  CHECK(tests->all > before);
  work.wait();
  CHECK(tests->threads == std::set{std::this_thread::get_id()});
  mesh.close();
}

TEST_CASE("a mesh that is destroyed takes its operations with it, and other waits go on") {
  NEEDS_RANKS(2);
  const auto tests = std::make_shared<Tests>();
  Mesh other{MPI_COMM_WORLD, "dp=auto", options_with()};
  tests->left = 1'000'000;
  std::vector<int> values(10, 1);
  Work work;
  {
    Mesh mesh = open_counted(tests);
    work = mesh["tp"].broadcast_async(std::span{values}, 0);
    wait_for_tests(mesh, *tests);
    mesh["tp"].barrier();
  }
  const int before = tests->all;
  for (int i = 0; i < 10; ++i) other["dp"].barrier_async().wait();
  CHECK(tests->all == before);
  CHECK_THROWS_AS(work.wait(), ClosedError);
  other.close();
}

}  // namespace progress_functions_test
