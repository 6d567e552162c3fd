// SPDX-License-Identifier: BSD-3-Clause
// The environment variables that change how a mesh waits.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/scoped_variable.hpp"

using namespace rankmesh;
using rankmesh_test::has_part;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::ScopedVariable;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

TEST_CASE("a bad variable on all ranks is a UsageError, also if an option replaces it") {
  MeshOptions options;
  options.timeout = Deadline::Duration{20};
  options.deadline = Deadline::Duration{20};
  options.stall = Deadline::Duration{20};
  options.log = [](LogLevel, std::string_view) {};
  for (const char* name : {"RANKMESH_TIMEOUT", "RANKMESH_DEADLINE", "RANKMESH_STALL",
                           "RANKMESH_WATCHDOG", "RANKMESH_CHECK", "RANKMESH_LOG"}) {
    const ScopedVariable variable{name, "nonsense"};
    CHECK_THROWS_WITH_AS((Mesh{MPI_COMM_WORLD, "tp=auto", options}),
                         doctest::Contains((std::string{name} + " must be").c_str()), UsageError);
  }
}

TEST_CASE("a bad variable on one rank is reported on all ranks") {
  NEEDS_RANKS(2);
  const ScopedVariable variable{"RANKMESH_LOG"};
  if (rank() == last()) variable.set("nonsense");
  CHECK_THROWS_WITH_AS((Mesh{MPI_COMM_WORLD, "tp=auto"}),
                       doctest::Contains("RANKMESH_LOG must be off, debug, info or warning"),
                       MismatchError);
}

TEST_CASE("RANKMESH_DEADLINE sets the deadline, and the option in code wins") {
  NEEDS_RANKS(2);
  for (const bool has_option : {false, true}) {
    const ScopedVariable variable{"RANKMESH_DEADLINE", has_option ? "50" : "0.5"};
    MeshOptions options;
    options.routes = "*.*:host=mpi";
    if (has_option) options.deadline = Deadline::Duration{0.5};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    wait_for_all();
    if (rank() != last()) {
      const auto error = thrown_by<TimeoutError>([&] { mesh["tp"].barrier(); });
      // A rank that comes late learns that another one has given up.
      if (!has_part(error.message(), " gave up ")) CHECK_CONTAINS(error.message(), "within 0.5 s");
    }
    wait_for_all();
  }
}

TEST_CASE("an Environment accepts MPI that the program has initialised for one thread") {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  SKIP_UNLESS(level == MPI_THREAD_SINGLE, "MPI was initialised for several threads");
  const mpi::Environment environment;
  CHECK(environment.thread_level() == mpi::ThreadLevel::single);
  CHECK_THROWS_WITH_AS(mpi::Environment{mpi::ThreadLevel::multiple},
                       doctest::Contains("MPI offers MPI_THREAD_SINGLE"), UsageError);
}

TEST_CASE("RANKMESH_DEADLINE is part of the agreement") {
  NEEDS_RANKS(2);
  const ScopedVariable variable{"RANKMESH_DEADLINE", rank() == last() ? "7" : "8"};
  CHECK_THROWS_WITH_AS((Mesh{MPI_COMM_WORLD, "tp=auto"}), doctest::Contains("option deadline:"),
                       MismatchError);
}

TEST_CASE("a thread that may not call MPI opens no mesh") {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  SKIP_UNLESS(level < MPI_THREAD_SERIALIZED, "MPI was initialised for all threads");
  std::string message;
  std::thread{[&] {
    message = thrown_by<UsageError>([] { Mesh{MPI_COMM_WORLD, "tp=auto"}; }).message();
  }}.join();
  CHECK_CONTAINS(message, "opened in a thread that may not call MPI");
}

TEST_CASE("one communicator opens one mesh at a time") {
  const ScopedVariable variable{"RANKMESH_LOG", "info"};
  std::string message;
  MeshOptions options;
  options.log = [&](LogLevel, std::string_view) {
    if (message.empty())
      message = thrown_by<UsageError>([] { Mesh{MPI_COMM_WORLD, "tp=auto"}; }).message();
  };
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  CHECK_CONTAINS(message, "on the same communicator at the same time");
  Mesh another{MPI_COMM_WORLD, "tp=auto"};
  another.close();
  mesh.close();
}
