// SPDX-License-Identifier: BSD-3-Clause
// What the waits of a mesh say about ranks of the same node.
#include <doctest/doctest.h>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "mesh/waits_help.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/messages.hpp"
#include "support/mpi_world.hpp"
#include "support/patience.hpp"
#include "support/processes.hpp"
#include "support/scoped_variable.hpp"

using namespace rankmesh;
using rankmesh_test::barrier_in_vain;
using rankmesh_test::busy_machine;
using rankmesh_test::Clock;
using rankmesh_test::has_part;
using rankmesh_test::last;
using rankmesh_test::Messages;
using rankmesh_test::name_of;
using rankmesh_test::polling;
using rankmesh_test::rank;
using rankmesh_test::ScopedPatience;
using rankmesh_test::seconds_since;
using rankmesh_test::short_deadline;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;

TEST_CASE("a rank outside rankmesh is named half a second after the deadline at the latest") {
  NEEDS_RANKS(2);
  for (const char* transport : {"mpi", "shm"}) {
    CAPTURE(transport);
    const double deadline = short_deadline().count();
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", polling(transport, deadline)};
    // All throw what the first one finds at its deadline, also those that came later.
    double waited_since_first = std::numeric_limits<double>::max();
    double first_begin = std::numeric_limits<double>::max();
    wait_for_all();
    if (rank() != last()) {
      const auto begin = Clock::now();
      first_begin = std::chrono::duration<double>{begin.time_since_epoch()}.count();
      const TimeoutError error = barrier_in_vain(mesh);
      waited_since_first = seconds_since({});
      CHECK(seconds_since(begin) <= deadline + 0.5 + busy_machine);
      CHECK(error.missing() == std::vector<Rank>{last()});
      CHECK_CONTAINS(error.message(),
                     name_of(last()) + " is not in rankmesh: computing or blocked elsewhere");
    }
    wait_for_all();
    MPI_Allreduce(MPI_IN_PLACE, &first_begin, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    waited_since_first -= first_begin;
    CHECK(waited_since_first >= deadline);
  }
}

TEST_CASE("the first timeout says what the records of the node say") {
  NEEDS_RANKS(2);
  ScopedPatience patience;
  patience->diagnosis = Deadline::Duration{5};  // to read all records, however busy the machine is
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", polling("shm", short_deadline().count())};
  mesh["tp"].barrier();
  if (rank() == last()) mesh.mark("step 9");
  wait_for_all();
  int has_diagnosis = 0;
  if (rank() != last()) {
    // The other members may throw what one of them has found.
    const std::string hint = barrier_in_vain(mesh).hint();
    has_diagnosis = rankmesh_test::has_part(hint, "\n  diagnosis of this node: ") ? 1 : 0;
    if (has_diagnosis == 1) {
      CHECK_CONTAINS(hint, " outside rankmesh since tp.barrier()");
      CHECK_CONTAINS(hint, "the last mark is \"step 9\"");
      CHECK_LACKS(hint, "meshinfo trace");  // there are no files
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &has_diagnosis, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  CHECK(has_diagnosis == 1);
}

TEST_CASE("an error names the folder of the records, and says nothing of meshes without") {
  NEEDS_RANKS(2);
  char folder[] = "/tmp/rankmesh-XXXXXX";
  if (rank() == 0) REQUIRE(mkdtemp(folder) != nullptr);
  MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (const std::string& record : std::vector<std::string>{folder, "off"}) {
    CAPTURE(record);
    const rankmesh_test::ScopedVariable variable{"RANKMESH_RECORD", record.c_str()};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", polling("mpi", 0.6)};
    wait_for_all();
    int has_folder = 0;
    if (rank() != last())
      has_folder = rankmesh_test::has_part(barrier_in_vain(mesh).hint(),
                                           "are in " + record + ": meshinfo trace " + record)
                       ? 1
                       : 0;
    MPI_Allreduce(MPI_IN_PLACE, &has_folder, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(has_folder == (record == "off" ? 0 : 1));
  }
  wait_for_all();
  if (rank() == 0) std::filesystem::remove_all(folder);
}

TEST_CASE("a rank that a signal has stopped is named as stopped") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", polling("mpi", short_deadline().count())};
  int stopped = getpid();
  MPI_Bcast(&stopped, 1, MPI_INT, last(), MPI_COMM_WORLD);
  MPI_Comm others = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() == last() ? 1 : 0, rank(), &others);
  if (rank() == last()) {
    std::raise(SIGSTOP);
  } else {
    CHECK(rankmesh_test::is_stopped_soon(stopped));
    MPI_Barrier(others);
    const TimeoutError error = barrier_in_vain(mesh);
    MPI_Barrier(others);  // until all have seen the rank stopped
    CHECK_CONTAINS(error.message(), name_of(last()) + " is stopped");
    CHECK(error.missing() == std::vector<Rank>{last()});
    if (rank() == 0) kill(stopped, SIGCONT);
  }
  MPI_Comm_free(&others);
  wait_for_all();
  // The rank that comes back late learns that its group is broken.
  if (rank() == last()) {
    const auto begin = Clock::now();
    CHECK_THROWS_AS((mesh["tp"].barrier(), mesh["tp"].barrier()), TimeoutError);
    CHECK(seconds_since(begin) <= 1 + busy_machine);
  }
  wait_for_all();
}

TEST_CASE("a rank that waits in another mesh is named with what it waits for there") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", polling("mpi", 1.5)};
  Mesh other{MPI_COMM_WORLD, "dp=auto", polling("mpi", 30)};
  MPI_Comm others = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() == last() ? 1 : 0, rank(), &others);
  wait_for_all();
  // The second mesh uses MPI with a member that has not come, so that there is no circle.
  std::vector<int> value(1);
  if (rank() != last()) {
    CHECK_CONTAINS(barrier_in_vain(mesh).message(), name_of(last()) + " waits in dp.recv");
    MPI_Barrier(others);  // until all have seen where the rank waits
    if (rank() == 0) other["dp"].send(value, last());
  } else {
    CHECK_NOTHROW(other["dp"].recv(value, 0));
  }
  MPI_Comm_free(&others);
  other.close();
}

TEST_CASE("an exception on one rank ends the waits of the others at once, with its reason") {
  NEEDS_RANKS(2);
  for (const char* transport : {"mpi", "shm"}) {
    CAPTURE(transport);
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", polling(transport, 30)};
    wait_for_all();
    if (rank() == last()) {
      try {
        const Mesh inner = std::move(mesh);
        throw DataError{"the shard is empty"};
      } catch (const DataError&) {
      }
    } else {
      const auto begin = Clock::now();
      const PeerError error = barrier_in_vain<PeerError>(mesh);
      CHECK(seconds_since(begin) <= 1 + busy_machine);
      CHECK_CONTAINS(error.message(), "tp.barrier");
      CHECK_CONTAINS(error.message(), name_of(last()));
      CHECK_CONTAINS(error.message(), "left the mesh");
      CHECK_CONTAINS(error.message(), "the shard is empty");
    }
    wait_for_all();
  }
}

TEST_CASE(
    "ranks that leave because of another one pass on the first cause, and no chain of errors") {
  NEEDS_RANKS(3);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", polling("shm", 30)};
  const auto near = rank() < 2 ? mesh.new_group({0, 1}) : nullptr;
  const std::vector<int> ends{1, static_cast<int>(last())};
  const auto far = rank() == 1 || rank() == last() ? mesh.new_group(ends) : nullptr;
  wait_for_all();
  std::string message;
  try {
    const Mesh inner = std::move(mesh);
    if (rank() == last()) throw DataError{"the shard is empty"};
    if (rank() < 2) (rank() == 0 ? near : far)->barrier();
  } catch (const Error& error) {
    message = error.message();
  }
  if (rank() == 0) {
    CHECK_CONTAINS(message, "left the mesh by an exception: because " + name_of(last()));
    CHECK(message.find("probably") == message.rfind("probably"));
  }
  wait_for_all();
}

TEST_CASE("an exception after an earlier error is not taken for that error") {
  NEEDS_RANKS(2);
  enum { handled_now, handled_before } which = handled_now;
  SUBCASE("in its handler") {}
  SUBCASE("after a call that succeeded") { which = handled_before; }
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", polling("shm", 30)};
  std::vector<int> few(1), value(4, 1);
  std::exception_ptr kept;
  try {
    mesh["tp"].all_gather(value, few);
  } catch (const UsageError&) {
    kept = std::current_exception();
    if (which == handled_now && rank() == last()) {
      try {
        const Mesh inner = std::move(mesh);
        throw std::runtime_error{"no disk"};
      } catch (const std::runtime_error&) {
      }
    }
  }
  if (which == handled_before) mesh["tp"].all_reduce(value);
  if (which == handled_before && rank() == last()) {
    try {
      const Mesh inner = std::move(mesh);
      throw std::runtime_error{"no disk"};
    } catch (const std::runtime_error&) {
    }
  }
  if (rank() != last()) {
    const PeerError error = barrier_in_vain<PeerError>(mesh);
    CHECK_CONTAINS(error.message(), "left the mesh");
    CHECK_LACKS(error.message(), "all_gather");
  }
  wait_for_all();
}

TEST_CASE("a mesh that is destroyed without an exception does not end the waits of the others") {
  NEEDS_RANKS(3);
  auto mesh = std::make_unique<Mesh>(MPI_COMM_WORLD, "tp=auto", polling("mpi", 30));
  std::vector<int> value{1};
  // Rank 0 has done its part when it leaves: it sends, and the others pass the message on.
  if (rank() != 0) (*mesh)["tp"].recv(value, rank() - 1);
  if (rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds{600});
  if (rank() != last()) (*mesh)["tp"].send(value, rank() + 1);
  mesh.reset();
  CHECK(value[0] == 1);
  wait_for_all();
}

TEST_CASE("a stall is reported once, and again at doubled intervals, with who is missing") {
  NEEDS_RANKS(2);
  Messages messages;
  MeshOptions options = polling("mpi", 30);
  options.stall = Deadline::Duration{0.8};
  options.log = messages.sink();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  wait_for_all();
  if (rank() == last()) std::this_thread::sleep_for(std::chrono::milliseconds{3000});
  const auto begin = Clock::now();
  mesh["tp"].barrier();  // reports after 0.8 and 1.6 s, and again after 3.2 s, ...
  const double seconds = seconds_since(begin);
  // On a busy machine the opening of the mesh may be reported too.
  std::vector<std::string> reports = messages.texts();
  std::erase_if(reports, [](const auto& text) { return !has_part(text, " in tp.barrier"); });
  if (rank() != last()) CHECK(reports.size() >= 2);
  if (!reports.empty()) CHECK(0.8 * static_cast<double>(1 << (reports.size() - 1)) <= seconds);
  for (const std::string& report : reports) {
    CHECK_CONTAINS(report, name_of(rank()) + " has waited for");
    if (rank() != last()) CHECK_CONTAINS(report, name_of(last()) + " is not in rankmesh");
  }
  mesh.close();
}

TEST_CASE("a stall of a subgroup also says what the other ranks of the node do") {
  SKIP_UNLESS(size() == 4, "needs 4 ranks");
  Messages messages;
  MeshOptions options = polling("mpi", 30);
  options.stall = Deadline::Duration{0.4};
  options.log = messages.sink();
  Mesh mesh{MPI_COMM_WORLD, "dp=2,tp=2", options};
  wait_for_all();
  // Rank 0 reports several times, and once the other two have come to close().
  if (rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds{2000});
  if (rank() < 2) mesh["tp"].barrier();
  if (rank() == 0) CHECK(messages.count("others on this node: ranks 2 (dp=1,tp=0), 3") >= 1);
  mesh.close();
}

TEST_CASE("a mesh leaves no message in the program's communicator, however late a rank opens it") {
  NEEDS_RANKS(2);
  ScopedPatience patience;
  MeshOptions options;
  options.timeout = Deadline::Duration{3};
  SUBCASE("after a report of a stall") { options.stall = Deadline::Duration{0.2}; }
  SUBCASE("after the questions before the deadline") {
    patience->before_deadline = Deadline::Duration{1.5};
  }
  Messages messages;
  options.log = messages.sink();
  wait_for_all();
  if (rank() == last()) std::this_thread::sleep_for(std::chrono::milliseconds{1700});
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  const auto begin = Clock::now();
  int messages_left = 0;
  while (seconds_since(begin) < 0.1) {
    int is_there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    messages_left += is_there;
  }
  CHECK(messages_left == 0);
  mesh.close();
}
