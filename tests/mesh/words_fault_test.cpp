// SPDX-License-Identifier: BSD-3-Clause
// What errors say about the cause of a wait or of a difference, and where to look for it.
#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rankmesh/exchange/control_queue.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/patience.hpp"
#include "support/watchdog.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;
using rankmesh_test::Watchdog;

namespace {

std::string tp_rank(int rank) {
  return "rank " + std::to_string(rank) + " (tp=" + std::to_string(rank) + ")";
}

}  // namespace

TEST_CASE("the hint of a TimeoutError names the setting that ended the wait") {
  const Watchdog watchdog{50, "hints"};
  for (const char* transport : {"shm", "mpi"})
    for (const bool has_deadline : {false, true}) {
      MeshOptions options;
      options.routes = std::string{"*.*:host="} + transport;
      if (has_deadline) options.deadline = Deadline::Duration{0.3};
      if (!has_deadline) options.names["tp"].timeout = 1;  // that of the mesh also ends its opening
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
      if (rank() != last()) {
        const auto error = thrown_by<TimeoutError>([&] {
          if (has_deadline)
            mesh["tp"].barrier();
          else
            mesh["tp"].barrier_async().wait();
        });
        // A rank that is late learns that another one has given up already.
        if (error.hint().find("the rank that gave up") == std::string::npos)
          CHECK_CONTAINS(error.hint(), has_deadline ? "RANKMESH_DEADLINE" : "RANKMESH_TIMEOUT");
      }
      wait_for_all();
    }
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  if (rank() != last()) {
    Work work = mesh["tp"].barrier_async();
    const auto error = thrown_by<TimeoutError>([&] { work.wait(std::chrono::milliseconds{300}); });
    if (error.hint().find("the rank that gave up") == std::string::npos)
      CHECK_CONTAINS(error.hint(), "the argument of the call");
  }
  wait_for_all();
}

TEST_CASE("a ring in which one rank sends the other way lists what every rank waits in") {
  NEEDS_RANKS(3);
  const Watchdog watchdog{50, "a ring"};
  MeshOptions options;
  options.check = true;
  options.deadline = Deadline::Duration{1};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  std::vector<float> in(10), out(10);
  auto& tp = mesh["tp"];
  wait_for_all();
  const auto exchange = [&] {
    if (rank() == last())
      tp.send_recv(in, out, rankmesh::prev, rankmesh::next);
    else
      tp.send_recv(in, out, rankmesh::next, rankmesh::prev);
  };
  // An exchange between other ranks may end, or may wait for one that does not end.
  if (rank() > 0 && rank() < last() - 1) {
    try {
      exchange();
    } catch (const TimeoutError& error) {
      CHECK_LACKS(error.message(), "all of its ranks wait in it");
    }
  } else {
    CHECK_LACKS(thrown_by<TimeoutError>(exchange).message(), "all of its ranks wait in it");
  }
  wait_for_all();
}

TEST_CASE("an error that progress() finds is thrown by the wait for the operation") {
  NEEDS_RANKS(2);
  const Watchdog watchdog{50, "progress"};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  std::vector<float> values(rank() == last() ? 5000 : 5001);
  Work work = mesh["tp"].all_reduce_async(values);
  for (int i = 0; i < 300; ++i) {
    mesh.progress();
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  CHECK_CONTAINS(thrown_by<MismatchError>([&] { work.wait(); }).message(), "5001 x float32");
  CHECK_THROWS_AS(work.wait(), ClosedError);
  wait_for_all();
}

TEST_CASE("a rank that differs is listed before a rank that has not come yet") {
  NEEDS_RANKS(3);
  const Watchdog watchdog{50, "a late rank"};
  // The rank that finds the difference waits so long for the other calls, and the others wait for
  // its text.
  rankmesh_test::ScopedPatience patience;
  patience->calls = Deadline::Duration{1.5};
  patience->finding = Deadline::Duration{20};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  std::vector<float> values(rank() == last() ? 3 : 4);
  wait_for_all();
  if (rank() == 1) wait_for_all();  // until the others have the error
  const auto error = thrown_by<MismatchError>([&] { mesh["tp"].all_reduce(values); });
  CHECK(error.message().starts_with(tp_rank(last())));
  CHECK_CONTAINS(error.message(), "; " + tp_rank(1) + ": it has not made call 1 of tp yet");
  if (rank() != 1) wait_for_all();
  wait_for_all();
}

TEST_CASE("a rank that an exception of the program ends has left the mesh by an exception") {
  NEEDS_RANKS(2);
  const Watchdog watchdog{50, "an exception"};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  if (rank() == last()) {
    try {
      const Mesh inner = std::move(mesh);
      throw std::runtime_error{"user code fails"};
    } catch (const std::runtime_error&) {
    }
  } else {
    std::vector<int> values(3);
    const auto error = thrown_by<PeerError>([&] { mesh["tp"].all_reduce(values); });
    CHECK_CONTAINS(error.message(), "left the mesh by an exception");
  }
  wait_for_all();
}

TEST_CASE("different counts of symmetric memory have a hint about the call") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const auto error = thrown_by<MismatchError>(
      [&] { (void)mesh.allocate_symmetric<float>(rank() == last() ? 4096 : 8192, {"tp"}); });
  CHECK_CONTAINS(error.hint(), "allocate_symmetric");
  mesh.close();
}

TEST_CASE("a wait in a control queue is seen, and ends if its peer has left") {
  NEEDS_RANKS(2);
  const Watchdog watchdog{50, "a control queue"};
  for (const bool writer_leaves : {true, false}) {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto | dp=auto"};
    exchange::ControlQueue queue{mesh["tp"], 0, {.slots = 2}};
    const exchange::Bytes message(8);
    wait_for_all();
    const auto write = [&] {
      for (int i = 0; i < 5; ++i) queue.write(message);
    };
    if ((rank() == 0) == writer_leaves) {
      std::this_thread::sleep_for(std::chrono::milliseconds{300});
      if (rank() == last() && !writer_leaves)
        CHECK_CONTAINS(thrown_by<TimeoutError>([&] {
                         mesh["dp"].barrier_async().wait(std::chrono::milliseconds{1000});
                       }).message(),
                       "waits in write of message 2 of the control queue of 'tp'");
      else
        std::this_thread::sleep_for(std::chrono::milliseconds{writer_leaves ? 700 : 1500});
      try {
        const Mesh inner = std::move(mesh);
        throw std::runtime_error{"user code fails"};
      } catch (const std::runtime_error&) {
      }
    } else {
      const auto error = thrown_by<PeerError>([&] {
        if (rank() == 0)
          write();
        else
          (void)queue.read();
      });
      CHECK_CONTAINS(error.message(), writer_leaves
                                          ? "read of message 0 of the control queue of 'tp' cannot "
                                            "end; rank 0 (tp=0,dp=0) has left the mesh by"
                                          : "write of message 2 of the control queue of 'tp'");
    }
    wait_for_all();
  }
}
