// SPDX-License-Identifier: BSD-3-Clause
// Large collectives in which members read each other's ordinary buffers, and what happens where the
// system refuses this.
#include <doctest/doctest.h>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "group/conformance.hpp"
#include "group/shared_cases.hpp"
#include "rankmesh/rankmesh.hpp"
#include "rankmesh/transport/shared_segment.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/processes.hpp"
#include "support/scoped_variable.hpp"

using namespace shared_cases;
using rankmesh_test::last;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

namespace {

// Larger than the least size of direct reads, and no multiple of anything.
constexpr std::size_t large = 150'001;

std::string how(Mesh& mesh) { return mesh["tp"].explain(Operation::reduce_scatter, 1 << 20).how; }

// A process that must not be read by others of its user. As root, the readers may read it
// nevertheless, unless they give up the capability for it.
class Unreadable {
 public:
  explicit Unreadable(bool is_this_process) {
    set_capability(false);
    if (is_this_process) ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  }
  ~Unreadable() {
    ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    set_capability(true);
  }
  Unreadable(const Unreadable&) = delete;
  Unreadable& operator=(const Unreadable&) = delete;

 private:
  static void set_capability(bool is_set) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    ::syscall(SYS_capget, &header, data);
    constexpr std::uint32_t bit = 1U << CAP_SYS_PTRACE;
    data[0].effective = is_set ? data[0].permitted : data[0].effective & ~bit;
    ::syscall(SYS_capset, &header, data);
  }
};

// Reduces integers, so the result is the same in every order.
void sums_are_right(Mesh& mesh) {
  GroupCoordinator& tp = mesh["tp"];
  const std::int64_t n = tp.size();
  const auto self = tp.rank_in_group().value();
  const auto value = [](std::int64_t member, std::size_t i) {
    return static_cast<std::int64_t>(i) * 3 + member * 1000;
  };
  std::vector<std::int64_t> in(large * static_cast<std::size_t>(n)), out(large);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(self, i);
  tp.reduce_scatter(in, out);
  bool is_right = true;
  for (std::size_t i = 0; i < large; ++i)
    is_right = is_right && out[i] == n * value(0, large * static_cast<std::size_t>(self) + i) +
                                         1000 * n * (n - 1) / 2;
  CHECK(is_right);
}

}  // namespace

TEST_CASE("large reductions: types, sizes, in place, several at once") {
  Mesh mesh{MPI_COMM_WORLD, layout(), routed("*.*:host=shm")};
  int turn = 0;
  for (const std::string& name : names(mesh)) {
    rankmesh_test::Conformance table;
    table.operations = {Operation::all_reduce, Operation::reduce, Operation::reduce_scatter};
    table.types = {DataType::int64, DataType::float32, DataType::float16};
    table.counts = {40'009, 65'537, 83'333};
    table.share = size() > 4 ? 12 : 6;
    table.turn = turn++;
    table.order = rankmesh_test::in_shared_memory(mesh, mesh[name]);
    check_conformance(mesh[name], table);
  }
  mesh.close();
}

TEST_CASE(
    "RANKMESH_SINGLE_COPY says whether members read each other's buffers, and explain shows it") {
  for (const char* choice : {"off", "auto", "allow"}) {
    CAPTURE(choice);
    std::optional<rankmesh_test::ScopedVariable> variable;
    // One rank suffices to turn it off.
    if (std::string{choice} != "off" || rank() == last())
      variable.emplace("RANKMESH_SINGLE_COPY", choice);
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed("*.*:host=shm")};
    if (size() > 1 && mesh.placement().node_count() == 1 && std::string{choice} == "off")
      CHECK(how(mesh) == "in pieces through slots: RANKMESH_SINGLE_COPY is off on rank " +
                             std::to_string(last()));
    if (size() > 1) CHECK(mesh["tp"].explain(Operation::reduce_scatter, 1024).how.empty());
    // Two members are faster through slots.
    if (size() == 2) CHECK(mesh["tp"].explain(Operation::reduce, 1 << 20).how.empty());
    if (size() > 2) CHECK(mesh["tp"].explain(Operation::reduce, 1 << 20).how == how(mesh));
    sums_are_right(mesh);
    mesh.close();
  }
  const rankmesh_test::ScopedVariable wrong{"RANKMESH_SINGLE_COPY", "yes"};
  CHECK_THROWS_AS((Mesh{MPI_COMM_WORLD, "tp=auto"}), Error);
}

TEST_CASE("if one process must not be read, all members copy through slots") {
  NEEDS_RANKS(2);
  const Unreadable unreadable{rank() == last()};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed("*.*:host=shm")};
  SKIP_UNLESS(mesh.placement().node_count() == 1, "needs one node");
  CHECK_CONTAINS(how(mesh), "in pieces through slots: rank ");
  CHECK_CONTAINS(how(mesh), " cannot read the memory of rank " + std::to_string(last()));
  sums_are_right(mesh);
  mesh.close();
}

TEST_CASE("a read that fails ends the operation on all members, and gives no data") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed("*.*:host=shm")};
  SKIP_UNLESS(mesh.placement().node_count() == 1, "needs one node");
  const bool is_direct = how(mesh) == "members read each other's buffers directly";
  SKIP_UNLESS(is_direct, how(mesh));
  sums_are_right(mesh);
  wait_for_all();
  const Unreadable unreadable{rank() == last()};
  wait_for_all();
  const std::vector<float> values(large * static_cast<std::size_t>(size()), 1.0F);
  std::vector<float> sums(large);
  // Those that cannot read find it out themselves or learn it from each other.
  const auto reduce = [&] { mesh["tp"].reduce_scatter(values, sums); };
  const Error error = [&]() -> Error {
    if (rank() == last()) return thrown_by<PeerError>(reduce);
    if (size() == 2) return thrown_by<SharedMemoryError>(reduce);
    try {
      reduce();
    } catch (const SharedMemoryError& own) {
      return own;
    } catch (const PeerError& of_other) {
      return of_other;
    }
    return Error{"no error"};
  }();
  CHECK_CONTAINS(error.message(), "cannot read the memory of rank " + std::to_string(last()));
  CHECK_CONTAINS(error.message(), "Operation not permitted");
  wait_for_all();
}

TEST_CASE("a member that is stopped in a large reduction ends it by an error") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(size() <= 3, "needs at most 3 ranks, because it waits for a deadline");
  MeshOptions options = routed("*.*:host=shm");
  options.deadline = rankmesh_test::short_deadline();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  SKIP_UNLESS(mesh.placement().node_count() == 1, "needs one node, to let a rank continue");
  int stopped = getpid();
  MPI_Bcast(&stopped, 1, MPI_INT, last(), MPI_COMM_WORLD);
  const std::vector<float> values(large * static_cast<std::size_t>(size()), 1.0F);
  std::vector<float> sums(large);
  // It begins first, so that it cannot read the others' buffers before it is stopped. They can read
  // its buffer, but they cannot know that it has finished with theirs.
  Work work;
  if (rank() == last()) work = mesh["tp"].reduce_scatter_async(std::span{values}, std::span{sums});
  wait_for_all();
  if (rank() == last()) {
    std::raise(SIGSTOP);
    CHECK_THROWS_AS(work.wait(), TimeoutError);
  } else {
    CHECK(rankmesh_test::is_stopped_soon(stopped));
    const auto error = thrown_by<TimeoutError>([&] { mesh["tp"].reduce_scatter(values, sums); });
    CHECK(error.missing() == std::vector<Rank>{last()});
    if (rank() == 0) kill(stopped, SIGCONT);
  }
  wait_for_all();
}
