// SPDX-License-Identifier: BSD-3-Clause
// Waits of several meshes inside each other, and threads that follow each other.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "progress_job.hpp"
#include "rankmesh/rankmesh.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;

// Other tests have the same names.
namespace progress_nested_test {
namespace {

MeshOptions options_with(const char* routes = "") {
  return progress_test::options_with(false, routes);
}

// What the broadcasts of a transport do. Only the functions that are set are supported.
struct Functions {
  std::function<bool()> test{};
  std::function<void()> run{};
  std::function<void()> give_up{};
};

class FunctionPending final : public Pending {
 public:
  explicit FunctionPending(std::shared_ptr<Functions> functions)
      : functions_{std::move(functions)} {}
  bool test() override { return functions_->test(); }

 private:
  std::shared_ptr<Functions> functions_;
};

class FunctionTransport final : public Transport {
 public:
  explicit FunctionTransport(std::shared_ptr<Functions> functions)
      : functions_{std::move(functions)} {}
  [[nodiscard]] bool supports(const Call& call) const override {
    return call.operation == Operation::broadcast &&
           (call.is_async ? functions_->test != nullptr : functions_->run != nullptr);
  }
  void run(const Call&, Waiter&) override { functions_->run(); }
  [[nodiscard]] bool has_async_forms() const override { return functions_->test != nullptr; }
  [[nodiscard]] std::unique_ptr<Pending> start(const Call&) override {
    return std::make_unique<FunctionPending>(functions_);
  }
  void give_up(const Error&) override {
    if (functions_->give_up) functions_->give_up();
  }

 private:
  std::shared_ptr<Functions> functions_;
};

// The broadcasts of the group `tp` call the functions.
Mesh open_with(const std::shared_ptr<Functions>& functions) {
  MeshOptions options = options_with("*.broadcast=functions");
  options.transports["functions"] = [=](const TransportGroup&) {
    return std::make_unique<FunctionTransport>(functions);
  };
  return Mesh{MPI_COMM_WORLD, "tp=auto", options};
}

// A group of all ranks whose collectives block in MPI.
struct Adopted {
  explicit Adopted(Mesh& mesh) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    group = mesh.adopt(comm, "adopted");
  }
  // Every rank calls it. Before, a rank completes the polled collectives that it has in flight.
  void block_in_mpi() const {
    std::vector<int> one(1, 1);
    group->all_reduce(std::span{one});
    CHECK(one[0] == size());
  }
  MPI_Comm comm = MPI_COMM_NULL;
  std::shared_ptr<GroupCoordinator> group;
};

void be_late(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
}

}  // namespace

TEST_CASE("a blocking call advances what a thread that has ended issued in its mesh") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options_with("*.*:host=shm")};
  auto second = mesh.new_group(progress_test::Job::everyone(), "second");
  std::vector<int> values(1 << 21, 1);  // more than the slots of shared memory hold
  Work work;
  const auto issue = [&] { work = mesh["tp"].all_reduce_async(std::span{values}); };
  if (rank() == 0) {
    std::thread{issue}.join();
    second->barrier();
    work.wait();
  } else {
    issue();
    work.wait();
    second->barrier();
  }
  CHECK(values[0] == size());
  mesh.close();
}

TEST_CASE("a call that completes another mesh's collectives advances its own messages") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options_with("*.*:host=shm")};
  Mesh other{MPI_COMM_WORLD, "dp=auto", options_with("*.*:host=shm")};
  const Adopted adopted{mesh};
  std::vector<int> values(1 << 21, 1);
  // More messages than the queue between two ranks holds.
  std::vector<std::vector<int>> messages(400, std::vector<int>(60, 7));
  if (rank() == 1) {
    be_late(200);  // rank 0 is in the call of the adopted group
    for (auto& message : messages) {
      message.assign(message.size(), 0);
      mesh["tp"].recv(std::span{message}, 0);
    }
    CHECK(messages.back().back() == 7);
  }
  std::vector<Work> sends;
  if (rank() == 0)
    for (auto& message : messages) sends.push_back(mesh["tp"].send_async(std::span{message}, 1));
  Work work = other["dp"].all_reduce_async(std::span{values});
  if (rank() == 1) work.wait();
  adopted.block_in_mpi();
  work.wait();
  for (Work& send : sends) send.wait();
  CHECK(values[0] == size());
  other.close();
  mesh.close();
}

TEST_CASE("a transport that is built on a mesh makes progress in blocking calls of this mesh") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto", options_with()};
  const Adopted adopted{mesh};
  Work inner;
  const auto functions = std::make_shared<Functions>();
  functions->test = [&] { return inner.test(); };
  Mesh layered = open_with(functions);
  inner = mesh["dp"].barrier_async();
  std::vector<int> values(4, 1);
  Work work = layered["tp"].broadcast_async(std::span{values}, 0);
  if (rank() == 1) be_late(200);
  adopted.block_in_mpi();
  work.wait();
  layered.close();
  mesh.close();
}

TEST_CASE("a test() inside a function of the program enters no other function") {
  NEEDS_RANKS(2);
  // `middle` is over `lowest`, and `highest` is over `middle`.
  Mesh lowest{MPI_COMM_WORLD, "dp=auto", options_with()};
  const auto of_middle = std::make_shared<Functions>();
  Work barrier;
  bool has_begun = false;
  const Deadline late{std::chrono::milliseconds{300}};  // rank 0 tests the barrier meanwhile
  of_middle->test = [&] {
    if (!has_begun && (rank() == 0 || late.passed())) {
      barrier = lowest["dp"].barrier_async();
      has_begun = true;
    }
    return has_begun && barrier.test();
  };
  Mesh middle = open_with(of_middle);
  const auto of_highest = std::make_shared<Functions>();
  int looks = 0;
  of_highest->test = [&] {
    CHECK(!middle["tp"].probe(next));
    return ++looks > 1000;
  };
  Mesh highest = open_with(of_highest);
  std::vector<int> first(4, 1), second(4, 1);
  Work of_first = highest["tp"].broadcast_async(std::span{first}, 0);
  Work of_second = middle["tp"].broadcast_async(std::span{second}, 0);
  of_second.wait();
  of_first.wait();
  highest.close();
  middle.close();
  lowest.close();
}

TEST_CASE("a transport whose run() waits in another mesh enters no other function") {
  NEEDS_RANKS(2);
  Mesh lowest{MPI_COMM_WORLD, "dp=auto", options_with()};
  const auto of_middle = std::make_shared<Functions>();
  int runs = 0;
  of_middle->run = [&] {
    ++runs;
    if (rank() == 1) be_late(200);
    lowest["dp"].barrier();
  };
  Mesh middle = open_with(of_middle);
  Work inner;
  const auto of_highest = std::make_shared<Functions>();
  of_highest->test = [&] { return inner.test(); };
  Mesh highest = open_with(of_highest);
  inner = middle["tp"].barrier_async();
  std::vector<int> first(4, 1), second(4, 1);
  Work work = highest["tp"].broadcast_async(std::span{first}, 0);
  middle["tp"].broadcast(std::span{second}, 0);
  CHECK(runs == 1);
  work.wait();
  CHECK(inner.test());
  highest.close();
  middle.close();
  lowest.close();
}

TEST_CASE("the exception of a give_up() is dropped, also in the wait of another mesh") {
  NEEDS_RANKS(2);
  const auto functions = std::make_shared<Functions>();
  functions->test = []() -> bool { throw std::runtime_error{"the link is down"}; };
  functions->give_up = [] { throw std::runtime_error{"the socket is closed"}; };
  Mesh mesh = open_with(functions);
  Mesh other{MPI_COMM_WORLD, "dp=auto", options_with()};
  std::vector<int> values(4, 1);
  Work work = mesh["tp"].broadcast_async(std::span{values}, 0);
  if (rank() == 1) be_late(200);
  other["dp"].barrier();
  // An operation that has failed leaves the list of a wait_any.
  std::vector<int> got(1);
  std::vector<Work> works{work, other["dp"].recv_async(std::span{got}, prev)};
  CHECK_CONTAINS(thrown_by<Error>([&] { (void)wait_any(works); }).message(), "the link is down");
  other["dp"].send(std::vector{1}, next);
  CHECK(wait_any(works) == std::size_t{1});
  CHECK(!wait_any(works));
  other.close();
}

TEST_CASE("a function that uses its own mesh is refused wherever its operation is tested") {
  NEEDS_RANKS(2);
  const auto functions = std::make_shared<Functions>();
  Mesh* own = nullptr;
  int tests = 0;
  functions->test = [&] {
    if (++tests < 50) return false;
    own->progress();
    return true;
  };
  Mesh other{MPI_COMM_WORLD, "dp=auto", options_with()};
  const Adopted adopted{other};
  std::vector<int> values(4, 1);
  // What a function of the transport throws breaks the group, so each wait has a mesh of its own.
  // The other members may hear of it before their own function throws.
  const auto refused = [&](const std::function<void(Work&)>& wait) {
    Mesh mesh = open_with(functions);
    own = &mesh;
    tests = 0;
    Work work = mesh["tp"].broadcast_async(std::span{values}, 0);
    CHECK_CONTAINS(thrown_by<Error>([&] { wait(work); }).message(),
                   "a function that an operation calls uses a mesh that is in a call (rank ");
  };
  refused([](Work& work) { work.wait(); });
  refused([](Work& work) {
    while (!work.test()) {
    }
  });
  refused([&](Work& work) {  // in calls of another mesh, which go on
    while (tests < 50) CHECK(!other["dp"].probe(next));
    work.wait();
  });
  // In a call of another mesh that completes collectives. This mesh has two operations in flight.
  Mesh mesh = open_with(functions);
  own = &mesh;
  tests = 0;
  std::vector<int> got(1);
  Work receive = mesh["tp"].recv_async(std::span{got}, prev);
  Work work = mesh["tp"].broadcast_async(std::span{values}, 0);
  CHECK_THROWS_AS(adopted.block_in_mpi(), Error);
  adopted.block_in_mpi();
  other.close();
}

TEST_CASE("the end of a mesh waits for a thread that advances its operations") {
  NEEDS_RANKS(2);
  std::atomic<bool> is_inside{false}, has_returned{false};
  int tests = 0;
  const auto functions = std::make_shared<Functions>();
  functions->test = [&] {
    if (++tests != 5) return false;
    is_inside = true;
    be_late(300);  // meanwhile the mesh is destroyed
    has_returned = true;
    return true;
  };
  auto mesh = std::make_unique<Mesh>(open_with(functions));
  Work work;
  std::thread other{[&] {
    std::vector<int> values(4, 1);
    work = (*mesh)["tp"].broadcast_async(std::span{values}, 0);
    while (tests == 0) mesh->progress();  // the members compare their calls with MPI
    // A wait of something else, without MPI.
    CHECK(poll_until([&] { return has_returned.load(); }, Deadline{Deadline::Duration{20}}));
  }};
  while (!is_inside) std::this_thread::yield();
  mesh.reset();
  CHECK(has_returned);
  other.join();
}

TEST_CASE("a function may test the Work for which its thread waits") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto", options_with()};
  Work inner;
  const auto functions = std::make_shared<Functions>();
  functions->test = [&] { return inner.test(); };
  Mesh layered = open_with(functions);
  std::vector<int> values(4, 1);
  for (int round = 0; round < 30; ++round) {
    if (rank() == 1) be_late(5);
    inner = mesh["dp"].barrier_async();
    Work work = layered["tp"].broadcast_async(std::span{values}, 0);
    if (round % 3 == 0) inner.wait();
    if (round % 3 == 1) inner.wait(std::chrono::seconds{20});
    if (round % 3 == 2)
      while (!inner.test()) {
      }
    work.wait();
    CHECK(inner.test());
  }
  layered.close();
  mesh.close();
}

}  // namespace progress_nested_test
