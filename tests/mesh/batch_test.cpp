// SPDX-License-Identifier: BSD-3-Clause
// Batches of host operations, which are issued in the order of their priorities.
#include <doctest/doctest.h>

#include <optional>

#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/iterations.hpp"
#include "support/mpi_world.hpp"

namespace {

std::vector<MPI_Comm> gathers_seen;  // communicators of MPI_Igather, in the order of issue

}  // namespace

// Replaces MPI's function, and calls it.
extern "C" int MPI_Igather(const void* in, int in_count, MPI_Datatype in_type, void* out,
                           int out_count, MPI_Datatype out_type, int root, MPI_Comm comm,
                           MPI_Request* request) {
  gathers_seen.push_back(comm);
  return PMPI_Igather(in, in_count, in_type, out, out_count, out_type, root, comm, request);
}

using namespace rankmesh;
using rankmesh_test::size;

TEST_CASE("asynchronous operations on the host are issued at the end of their batch, by priority") {
  NEEDS_MULTIPLE_OF(4);
  MeshOptions options;
  options.devices = DeviceUse::off;
  options.routes = "*.*:host=mpi";  // this test replaces functions of MPI
  for (const bool dp_first : {false, true}) {
    if (dp_first) options.names["dp"].priority = -1;
    options.check = false;  // which starts MPI's operations after the end of the batch
    Mesh mesh{MPI_COMM_WORLD, size() == 8 ? "pp=2,dp=2,cp=auto" : "pp=2,dp=2,cp=1", options};
    std::vector<std::vector<int>> out(4, std::vector<int>(2));
    std::vector<Work> works;
    gathers_seen.clear();
    NcclGroup together{mesh};
    for (const char* name : {"dp", "pp", "cp", "dp"}) {
      if (mesh[name].size() == 1) continue;
      works.push_back(mesh[name].gather_async(std::vector<int>{1}, out[works.size()], 0));
    }
    std::vector<std::int64_t> counts{1, 1};
    std::vector<int> pair(2);
    works.push_back(
        mesh["pp"].all_gather_v_async(std::vector<int>{7}, pair, std::vector<std::int64_t>{1, 1}));
    CHECK(gathers_seen.empty());
    CHECK(!works.front().test());
    CHECK_THROWS_AS(mesh.progress(), UsageError);
    CHECK_THROWS_WITH_AS(works.front().wait(), doctest::Contains("waited for inside its NcclGroup"),
                         UsageError);
    CHECK_THROWS_WITH_AS(mesh["pp"].barrier(), doctest::Contains("on host memory inside"),
                         UsageError);
    CHECK_THROWS_WITH_AS(mesh["pp"].broadcast(pair, RankInGroup{0}),
                         doctest::Contains("on host memory inside"), UsageError);
    CHECK_THROWS_WITH_AS(mesh["pp"].send(pair, next), doctest::Contains("on host memory inside"),
                         UsageError);
    CHECK_THROWS_AS((NcclGroup{mesh}), UsageError);
    together.end();
    const MPI_Comm pp = mesh["pp"].native_mpi(), dp = mesh["dp"].native_mpi();
    std::vector<MPI_Comm> expected{pp, dp, dp};
    if (mesh["cp"].size() > 1) expected.insert(expected.begin(), mesh["cp"].native_mpi());
    if (dp_first) {
      expected.erase(expected.end() - 2, expected.end());
      expected.insert(expected.begin(), {dp, dp});
    }
    CHECK(gathers_seen == expected);
    for (Work& work : works) work.wait();
    CHECK(pair == std::vector<int>{7, 7});
    mesh.close();
  }
}

TEST_CASE("families that share a connection have its earliest place in a batch") {
  SKIP_UNLESS(size() == 4, "needs 4 ranks");
  MeshOptions options;
  options.devices = DeviceUse::off;
  options.routes = "*.*:host=mpi";
  options.check = false;
  Mesh mesh{MPI_COMM_WORLD, "dp=2,pp=2 | tp=2,cp=2", options};
  const MPI_Comm dp = mesh["dp"].native_mpi(), pp = mesh["pp"].native_mpi();
  CHECK(dp == mesh["tp"].native_mpi());
  std::vector<int> out(2), other(2);
  gathers_seen.clear();
  NcclGroup together{mesh};
  // As tp, dp goes with cp; alone it would come after pp.
  Work first = mesh["dp"].gather_async(std::vector<int>{1}, out, 0);
  Work second = mesh["pp"].gather_async(std::vector<int>{1}, other, 0);
  together.end();
  CHECK(gathers_seen == std::vector<MPI_Comm>{dp, pp});
  first.wait();
  second.wait();
  mesh.close();
}

TEST_CASE("operations behind one that cannot be issued fail with its reason") {
  NEEDS_RANKS(2);
  MeshOptions options;
  options.devices = DeviceUse::off;
  options.check = false;  // which starts MPI's operations after the end of the batch
  options.routes = "*.*:host=mpi";
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  // Counts that MPI cannot take. They are refused before any memory is touched, so there is none.
  constexpr std::int64_t count = std::int64_t{1} << 31;
  const Blocks blocks{std::vector<std::int64_t>(static_cast<std::size_t>(size()), count)};
  std::byte memory{};
  const Buffer out{&memory, size() * count, DataType::int8, MemoryKind::host};
  const Call too_large{.operation = Operation::all_gather,
                       .in = out.slice(tp.rank_in_group().value() * count, count).as_input(),
                       .out = out,
                       .out_blocks = &blocks};
  NcclGroup together{mesh};
  Work first = rankmesh::detail::GroupAccess::start(tp, too_large, nullptr);
  Work second = tp.barrier_async();
  CHECK_THROWS_WITH_AS(together.end(), doctest::Contains("does not fit MPI's int"),
                       UnsupportedError);
  CHECK_THROWS_WITH_AS(first.wait(), doctest::Contains("does not fit MPI's int"), ClosedError);
  std::vector<Work> works(1);
  works[0] = std::move(second);
  CHECK_THROWS_WITH_AS((void)wait_any(works), doctest::Contains("does not fit MPI's int"),
                       ClosedError);
  CHECK(!wait_any(works));  // it returned the failure once
  tp.barrier();
  mesh.close();
}

TEST_CASE("a batch ends with its mesh") {
  MeshOptions options;
  options.devices = DeviceUse::off;
  std::optional<Mesh> mesh{std::in_place, MPI_COMM_WORLD, "tp=auto", options};
  NcclGroup together{*mesh};
  Work barrier = (*mesh)["tp"].barrier_async();
  mesh.reset();
  CHECK_THROWS_WITH_AS(barrier.wait(), doctest::Contains("the mesh is gone"), ClosedError);
  CHECK_NOTHROW(together.end());
}

TEST_CASE("too little memory in a batch is an error of its operation, on all members") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(!rankmesh_test::is_sanitized(), "AddressSanitizer ends a program without memory");
  MeshOptions options;
  options.devices = DeviceUse::off;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  // The copies in float32 have no memory, and nothing is touched before.
  std::byte memory{};
  const Buffer out{&memory, std::int64_t{1} << 47, DataType::bfloat16, MemoryKind::host};
  NcclGroup together{mesh};
  Work first = rankmesh::detail::GroupAccess::start(
      tp, Call{.operation = Operation::all_reduce, .in = out.as_input(), .out = out}, nullptr);
  Work second = tp.barrier_async();
  CHECK_THROWS_WITH_AS(together.end(), doctest::Contains("too little memory"), Error);
  CHECK_THROWS_WITH_AS(first.wait(), doctest::Contains("too little memory"), ClosedError);
  CHECK_THROWS_WITH_AS(second.wait(), doctest::Contains("too little memory"), ClosedError);
}

TEST_CASE("groups whose calls a batch did not issue are broken, because their members may have") {
  NEEDS_MULTIPLE_OF(4);
  MeshOptions options;
  options.devices = DeviceUse::off;
  options.check = false;
  options.routes = "*.*:host=mpi";
  options.timeout = std::chrono::seconds{5};
  Mesh mesh{MPI_COMM_WORLD, "dp=2,tp=auto", options};
  auto& tp = mesh["tp"];
  auto& dp = mesh["dp"];
  constexpr std::int64_t count = std::int64_t{1} << 31;
  const Blocks blocks{std::vector<std::int64_t>(static_cast<std::size_t>(tp.size()), count)};
  std::byte memory{};
  const Buffer out{&memory, tp.size() * count, DataType::int8, MemoryKind::host};
  const Call too_large{.operation = Operation::all_gather,
                       .in = out.slice(tp.rank_in_group().value() * count, count).as_input(),
                       .out = out,
                       .out_blocks = &blocks};
  if (dp.is_first()) {  // the ranks of one tp group
    std::vector<int> sum{1};
    NcclGroup together{mesh};
    Work first = rankmesh::detail::GroupAccess::start(tp, too_large, nullptr);
    Work second = dp.all_reduce_async(sum);
    CHECK_THROWS_AS(together.end(), UnsupportedError);
    CHECK_THROWS_AS(second.wait(), ClosedError);
    CHECK_THROWS_WITH_AS(dp.all_reduce(sum), doctest::Contains("a batch did not issue"),
                         ClosedError);
  }
  rankmesh_test::wait_for_all();
}
