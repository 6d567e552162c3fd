// SPDX-License-Identifier: BSD-3-Clause
// Meshes whose ranks cannot map the memory of their node, or not in the first way.
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;

namespace {

// While it exists, this process can open no further file.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    REQUIRE(next >= 0);
    ::close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

void check_sum(GroupCoordinator& group) {
  std::vector<int> values{rank()};
  group.all_reduce(values);
  CHECK(values.front() == size() * (size() - 1) / 2);
}

// Opens a mesh while one rank can open no file, and checks that all ranks use MPI for this reason.
void check_without_memory(int failing) {
  MeshOptions options;
  options.log = [](LogLevel, std::string_view) {};
  Mesh{MPI_COMM_WORLD, "tp=auto"}.close();  // reads what names the node
  std::optional<NoMoreFiles> limit;
  if (rank() == failing) limit.emplace();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  limit.reset();
  const std::string reason =
      "member " + std::to_string(failing) + " of " + std::to_string(size()) + " failed: Too many";
  CHECK_CONTAINS(mesh["tp"].explain(Operation::all_reduce, 8).to_string(), reason);
  check_sum(mesh["tp"]);
  // Later messages between the ranks of the node do not meet those of the failed creation.
  auto memory = mesh.allocate_symmetric<int>(100, {"tp"});
  memory[0] = rank();
  mesh["tp"].all_reduce(memory);
  CHECK(memory[0] == size() * (size() - 1) / 2);
  mesh.close();
}

}  // namespace

TEST_CASE("a node whose memory one rank cannot map uses MPI, for the same reason on all ranks") {
  NEEDS_RANKS(2);
  check_without_memory(last());
  if (size() > 2) check_without_memory(1);
}

TEST_CASE("a node whose first rank cannot create memory uses MPI") {
  NEEDS_RANKS(2);
  check_without_memory(0);
}

TEST_CASE("a node without shared memory compares calls, by messages") {
  NEEDS_RANKS(2);
  Mesh{MPI_COMM_WORLD, "tp=auto"}.close();
  std::optional<NoMoreFiles> limit;
  if (rank() == last()) limit.emplace();
  MeshOptions options;
  options.check = false;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  limit.reset();
  check_sum(mesh["tp"]);
  static std::vector<int> values(4);  // MPI may still use it after the failure
  const auto error = thrown_by<MismatchError>(
      [&] { mesh["tp"].all_reduce(values, rank() == last() ? ReduceOp::max : ReduceOp::sum); });
  CHECK_CONTAINS(error.message(), "tp.all_reduce(4 x int32, max");
  CHECK_CONTAINS(error.message(), "tp.all_reduce(4 x int32, sum");
}

TEST_CASE("ranks that cannot open the memory through /proc open it by a name") {
  NEEDS_RANKS(2);
  // Without the rights of root, other processes cannot look into /proc/PID/fd of this one.
  if (rank() == 0) ::prctl(PR_SET_DUMPABLE, 0);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  CHECK_CONTAINS(mesh["tp"].explain(Operation::all_reduce, 8).to_string(), "on the host: shm");
  check_sum(mesh["tp"]);
  mesh.close();
  if (rank() == 0) ::prctl(PR_SET_DUMPABLE, 1);
}
