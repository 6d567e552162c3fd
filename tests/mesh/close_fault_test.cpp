// SPDX-License-Identifier: BSD-3-Clause
// Groups that have ended early, and messages that nobody has received, when a group or a mesh is
// closed.
#include <doctest/doctest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "group/detail/connection.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;

namespace {

MeshOptions unchecked() {
  MeshOptions options;
  options.check = false;
  options.timeout = Deadline::Duration{10};
  return options;
}

}  // namespace

// MPI gives the identities of freed communicators to new ones, and with them their messages.
TEST_CASE("a message with another length than its receiver expects is not received in a new mesh") {
  NEEDS_RANKS(2);
  const MeshOptions options = unchecked();
  auto& large = *new std::vector<float>(5000, 1.0F);  // which MPI carries; it may still use it
  {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    const auto differ = [&](GroupCoordinator& tp) {
      if (rank() == 0) tp.send(large, 1);
      if (rank() == 1) tp.recv(std::span{large}.first(10), 0);
      tp.barrier();
    };
    CHECK_THROWS_AS(differ(mesh["tp"]), MismatchError);
    wait_for_all();
    mesh.close();
  }
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  std::vector<float> values(5000, rank() == 0 ? 2.0F : 0.0F);
  if (rank() == 0) mesh["tp"].send(values, 1);
  if (rank() == 1) mesh["tp"].recv(values, 0);
  if (rank() < 2) CHECK(values == std::vector<float>(5000, 2.0F));
  mesh.close();
}

TEST_CASE("close() does not miss a message that a group which has ended early did not send") {
  NEEDS_RANKS(2);
  MeshOptions options = unchecked();
  options.deadline = rankmesh_test::short_deadline();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  GroupCoordinator& tp = mesh["tp"];
  wait_for_all();
  if (rank() != 0) CHECK_THROWS_AS(tp.barrier(), TimeoutError);
  wait_for_all();
  const std::vector<float> values(4);
  if (rank() == 0) CHECK_THROWS_AS(tp.send(values, 1), TimeoutError);
  CHECK_NOTHROW(mesh.close());
}

TEST_CASE("close() keeps the communicators of the groups that are broken, and frees the others") {
  NEEDS_RANKS(4);
  const MeshOptions options = unchecked();
  Mesh mesh{MPI_COMM_WORLD, "dp=2,tp=auto", options};
  static int freed = 0;
  freed = 0;
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(
      MPI_COMM_NULL_COPY_FN,
      [](MPI_Comm, int, void* group, void*) {
        freed += *static_cast<const int*>(group);
        return MPI_SUCCESS;
      },
      &key, nullptr);
  int dp = 1;
  int tp = 10;
  for (auto& [name, value] : {std::pair{"dp", &dp}, std::pair{"tp", &tp}})
    MPI_Comm_set_attr(detail::GroupAccess::connection(mesh[name]).comm().native(), key, value);
  const bool is_whole = rank() >= size() / 2;
  std::vector<float> values(rank() == 0 ? 4 : 8);
  if (!is_whole) CHECK_THROWS_AS(mesh["tp"].all_reduce(values), MismatchError);
  wait_for_all();
  mesh.close();
  CHECK(freed == (is_whole ? 11 : 1));
  MPI_Comm_free_keyval(&key);
}

TEST_CASE("a member that learns in close() that the group is broken does not hold up the others") {
  NEEDS_RANKS(2);
  const MeshOptions options = unchecked();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  for (int round = 0; round < 5; ++round) {
    CAPTURE(round);
    std::vector<Rank> all;
    for (int r = 0; r < size(); ++r) all.emplace_back(r);
    const auto group = mesh.new_group(all);
    std::vector<float> values(4);
    if (rank() != last()) {
      Work work = group->all_reduce_async(values);
      CHECK_THROWS_AS(work.wait(rankmesh_test::short_deadline()), TimeoutError);
    }
    wait_for_all();
    std::string message;
    for (int attempts = 0; attempts < 2; ++attempts) try {
        mesh.close(group);
        break;
      } catch (const Error& error) {
        message = error.message();
        CHECK(attempts == 0);
      }
    CHECK_LACKS(message, "within 10 s");
  }
  mesh.close();
}
