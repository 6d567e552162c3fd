// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

#include "rankmesh/mpi/error.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;

namespace {

std::int64_t sum_of(GroupCoordinator& group, std::int64_t value) {
  std::vector<std::int64_t> values{value};
  group.all_reduce(values);
  return values[0];
}

}  // namespace

TEST_CASE("rank in group equals the coordinate on a reversed communicator") {
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, size() - rank(), &reversed);
  const std::string text = size() % 2 == 0 ? "dp=auto,tp=2" : "dp=auto,tp=1";
  Mesh mesh{reversed, text};
  CHECK(mesh.rank() == Rank{size() - 1 - rank()});
  for (const char* name : {"dp", "tp"}) {
    CHECK(mesh[name].rank_in_group().value() == mesh.coordinate(name).value());
    std::int64_t expected = 0;
    for (const Rank r : mesh[name].ranks()) expected += r.value();
    CHECK(sum_of(mesh[name], mesh.rank().value()) == expected);
    int native_rank = 0;
    MPI_Comm_rank(mesh[name].native_mpi(), &native_rank);
    CHECK(native_rank == mesh.coordinate(name).value());
  }
  mesh.close();
  MPI_Comm_free(&reversed);
}

TEST_CASE("the communicator of a group belongs to the mesh, returns errors and stays the same") {
  Mesh mesh{MPI_COMM_WORLD, "dp=1,tp=auto"};
  GroupCoordinator& tp = mesh["tp"];
  const MPI_Comm native = tp.native_mpi();
  CHECK(tp.native_mpi() == native);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(native, &handler);
  CHECK((tp.size() == 1 || handler == MPI_ERRORS_RETURN));
  MPI_Errhandler_free(&handler);
  // The operations of the group go on as before, and those of MPI beside them.
  std::vector<double> values(100000, 1.0);
  Work work = tp.all_reduce_async(values);
  int sum = 1;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, native);
  CHECK(sum == size());
  CHECK(sum_of(tp, 1) == size());
  work.wait();
  CHECK(values.back() == size());
  mesh.close();
}

TEST_CASE(
    "members of a communicator have the order of the mesh, also where it is not the world's") {
  const std::string n = std::to_string(size());
  std::string reversed;
  for (int r = size() - 1; r >= 0; --r)
    reversed += (reversed.empty() ? "" : "x") + std::to_string(r);
  MeshOptions options;
  options.names["tp"].duplicates = {"side"};
  Mesh mesh{MPI_COMM_WORLD, "torch:shape=1x" + n + ",dim_names=dp.tp,rank_map=" + reversed,
            options};
  auto& tp = mesh["tp"];
  CHECK(tp.rank_in_group().value() == size() - 1 - rank());
  for (GroupCoordinator* group : {&tp, &mesh.duplicate("tp", "side")}) {
    CAPTURE(group->name());
    int native = -1;
    MPI_Comm_rank(group->native_mpi(), &native);
    CHECK(native == size() - 1 - rank());
    std::vector<int> all(static_cast<std::size_t>(size()));
    group->all_gather(std::vector<int>{rank()}, all);
    for (int k = 0; k < size(); ++k) CHECK(all[static_cast<std::size_t>(k)] == size() - 1 - k);
  }
  mesh.close();
}

TEST_CASE("several meshes at once, on the world and on parts of it") {
  Mesh whole{MPI_COMM_WORLD, "tp=auto"};
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, rank(), &half);
  Mesh part{half, "dp=auto"};
  Mesh again{MPI_COMM_WORLD, "pp=auto"};
  CHECK(sum_of(whole["tp"], 1) == size());
  CHECK(sum_of(part["dp"], 1) == (size() + (rank() % 2 == 0 ? 1 : 0)) / 2);
  CHECK(sum_of(again["pp"], 1) == size());
  part.close();
  Mesh moved = std::move(whole);
  CHECK(sum_of(moved["tp"], 1) == size());
  moved.close();
  again.close();
  MPI_Comm_free(&half);
}

TEST_CASE("names with equal groups share one communicator; other names have their own") {
  NEEDS_MULTIPLE_OF(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto,tp=2 | edp=auto,etp=2 ; both=dp*tp"};
  CHECK(mesh["tp"].native_mpi() == mesh["etp"].native_mpi());
  CHECK(mesh["tp"].name() == "tp");
  CHECK(mesh["etp"].name() == "etp");
  if (size() > 2) CHECK(mesh["dp"].native_mpi() == mesh["edp"].native_mpi());
  if (size() > 2) CHECK(mesh["both"].native_mpi() != mesh["tp"].native_mpi());
  mesh.close();
}

TEST_CASE("groups of one have no communicator of their own and still work") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto,tp=1"};
  CHECK(mesh["tp"].native_mpi() == MPI_COMM_SELF);
  CHECK(sum_of(mesh["tp"], 5) == 5);
  CHECK(mesh.plan().communicators(mesh.rank()).size() == (size() > 1 ? 1 : 0));
  mesh.close();
}

TEST_CASE("unknown names, and use after close") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  try {
    (void)mesh["tpp"];
    FAIL("no exception");
  } catch (const UnknownName& error) {
    CHECK_CONTAINS(error.hint(), "tp");
  }
  auto& tp = mesh["tp"];
  mesh.close();
  mesh.close();
  CHECK(mesh.is_closed());
  CHECK_THROWS_AS(tp.barrier(), ClosedError);
  CHECK_THROWS_AS((void)tp.native_mpi(), ClosedError);
  const std::vector<Rank> me{rank()};
  CHECK_THROWS_AS((void)mesh.new_group(me), ClosedError);
  CHECK_THROWS_AS((void)mesh["world"], ClosedError);  // tp has the same ranks
}

TEST_CASE("a description that is invalid on all ranks throws SpecError on all ranks") {
  CHECK_THROWS_WITH_AS((Mesh{MPI_COMM_WORLD, "tp=0"}),
                       doctest::Contains("must be at least 1, got 0"), SpecError);
  CHECK_THROWS_AS((Mesh{MPI_COMM_WORLD, "tp=1000"}), SpecError);
  CHECK_THROWS_AS((Mesh{MPI_COMM_WORLD, "no/such.toml"}), SpecError);
  unsetenv("RANKMESH");
  CHECK_THROWS_AS(Mesh::from_environment(MPI_COMM_WORLD), SpecError);
  setenv("RANKMESH", "ep=auto", 1);
  Mesh mesh = Mesh::from_environment(MPI_COMM_WORLD);
  CHECK(mesh["ep"].size() == size());
  mesh.close();
  unsetenv("RANKMESH");
  CHECK_THROWS_AS((Mesh{MPI_COMM_NULL, "tp=1"}), UsageError);
}

TEST_CASE("the log goes to the callback") {
  std::vector<std::string> lines;
  MeshOptions options;
  options.log = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  REQUIRE(lines.size() == 1);
  CHECK_CONTAINS(lines[0], "opened mesh tp=auto");
  mesh.close();
}

TEST_CASE("dynamic groups: any ranks in any order, closed one by one") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  std::vector<Rank> ranks;  // last, first, and every third in between
  ranks.emplace_back(size() - 1);
  if (size() > 1) ranks.emplace_back(0);
  for (int r = 3; r < size() - 1; r += 3) ranks.emplace_back(r);
  const bool is_member = std::ranges::find(ranks, mesh.rank()) != ranks.end();
  if (is_member) {
    const auto group = mesh.new_group(ranks, "odd ones");
    CHECK(group->name() == "odd ones");
    CHECK(group->ranks().to_vector() == ranks);
    CHECK(sum_of(*group, 1) == static_cast<std::int64_t>(ranks.size()));
    mesh.close(*group);
    CHECK_CONTAINS(thrown_by<ClosedError>([&] { group->barrier(); }).hint(),
                   "close the group after its last operation");
    CHECK_CONTAINS(thrown_by<ClosedError>([&] { mesh.close(*group); }).message(),
                   "close of 'odd ones': the group is already closed");
    CHECK_CONTAINS(thrown_by<UsageError>([&] { mesh.close(mesh["tp"]); }).message(),
                   "'tp' is not a dynamic group");
  } else {
    CHECK_THROWS_WITH_AS((void)mesh.new_group(ranks), doctest::Contains("not in the group"),
                         UsageError);
  }
  CHECK_THROWS_WITH_AS((void)mesh.new_group(std::vector<Rank>{}), doctest::Contains("empty list"),
                       UsageError);
  const std::vector<Rank> outside{mesh.rank(), Rank{size()}};
  CHECK_THROWS_AS((void)mesh.new_group(outside), UsageError);
  const std::vector<Rank> twice{mesh.rank(), mesh.rank()};
  CHECK_THROWS_AS((void)mesh.new_group(twice), SpecError);
  CHECK_THROWS_AS(mesh.close(mesh["tp"]), UsageError);
  mesh.close();
}

TEST_CASE("the group of all ranks may be closed and created again; references to it stay valid") {
  NEEDS_MULTIPLE_OF(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=2,tp=auto"};
  GroupCoordinator& first = mesh["world"];
  const bool is_family = size() == 2;  // then it is the group of dp, which stays
  if (!is_family) mesh.close(first);
  CHECK(sum_of(mesh["world"], 1) == size());
  if (!is_family) CHECK_THROWS_AS(first.barrier(), ClosedError);
  mesh.close();
}

TEST_CASE("overlapping pairs around a ring, each rank naming its own pair first") {
  NEEDS_RANKS(3);
  MeshOptions options;
  options.timeout = Deadline::Duration{20};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  const Rank left{(rank() + size() - 1) % size()};
  const Rank right{(rank() + 1) % size()};
  for (int round = 0; round < 3; ++round) {
    const std::vector<std::vector<Rank>> pairs{{mesh.rank(), right}, {left, mesh.rank()}};
    const auto groups = mesh.new_groups(pairs);
    CHECK(sum_of(*groups[rank() % 2 == 0 ? 0 : 1], rank()) > 0);
    CHECK(sum_of(*groups[rank() % 2 == 0 ? 1 : 0], rank()) >= 0);
  }
  mesh.close();
}

TEST_CASE("a hundred dynamic groups come and go") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  std::vector<Rank> everyone;
  for (int r = 0; r < size(); ++r) everyone.emplace_back(r);
  for (int round = 0; round < 100; ++round) {
    const auto group = mesh.new_group(everyone);
    CHECK(sum_of(*group, 1) == size());
    mesh.close(*group);
  }
  mesh.close();
}

TEST_CASE("a communicator of the program can be adopted, and still belongs to the program") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  MPI_Comm theirs = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() % 3, -rank(), &theirs);
  const auto group = mesh.adopt(theirs, "theirs");
  CHECK(group->native_mpi() == theirs);
  int expected = 0;
  MPI_Comm_rank(theirs, &expected);
  CHECK(group->rank_in_group().value() == expected);
  CHECK(sum_of(*group, 1) == group->size());
  mesh.close();
  int still = 0;
  CHECK(MPI_Comm_size(theirs, &still) == MPI_SUCCESS);
  MPI_Comm_free(&theirs);
}

TEST_CASE("a communicator with ranks outside the mesh is not adopted") {
  NEEDS_RANKS(2);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, rank(), &half);
  Mesh mesh{half, "tp=auto"};
  CHECK_THROWS_WITH_AS((void)mesh.adopt(MPI_COMM_WORLD, "all"),
                       doctest::Contains("is not in the mesh"), UsageError);
  mesh.close();
  MPI_Comm_free(&half);
}

TEST_CASE("a mesh that is destroyed without close() leaves MPI usable") {
  { const Mesh dropped{MPI_COMM_WORLD, "tp=auto"}; }
  CHECK_NOTHROW(mpi::check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"));
}

TEST_CASE("a group that the program keeps when it drops its mesh is closed") {
  std::shared_ptr<GroupCoordinator> kept;
  {
    Mesh dropped{MPI_COMM_WORLD, "tp=auto"};
    std::vector<Rank> everyone;
    for (int r = 0; r < size(); ++r) everyone.emplace_back(r);
    kept = dropped.new_group(everyone);
    CHECK(sum_of(*kept, 1) == size());
  }
  CHECK_THROWS_AS(kept->barrier(), ClosedError);
  std::vector<int> value{1};
  CHECK_THROWS_AS(kept->all_reduce(value), ClosedError);
  CHECK_THROWS_AS((void)kept->all_reduce_async(value), ClosedError);
}

TEST_CASE("messages of the program on the communicator are not received, whatever their tag") {
  NEEDS_RANKS(2);
  for (const int tag : {32764, 32765, 32766, 32767}) {
    const int sent = 42;
    if (rank() == 0) MPI_Send(&sent, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
    Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
    mesh.close();
    int received = 0;
    if (rank() == 1) {
      MPI_Recv(&received, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(received == sent);
    }
  }
}

TEST_CASE("invalid durations and counts throw UsageError") {
  for (const double seconds : {0.0, -1.0, std::nan("")}) {
    MeshOptions options;
    options.timeout = Deadline::Duration{seconds};
    CHECK_THROWS_AS((Mesh{MPI_COMM_WORLD, "tp=auto", options}), UsageError);
    options.timeout.reset();
    options.deadline = Deadline::Duration{seconds};
    CHECK_THROWS_AS((Mesh{MPI_COMM_WORLD, "tp=auto", options}), UsageError);
  }
  MeshOptions options;
  options.largest_count = 0;
  CHECK_THROWS_AS((Mesh{MPI_COMM_WORLD, "tp=auto", options}), UsageError);
  MeshOptions for_ever;
  for_ever.timeout = Deadline::Duration{INFINITY};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", for_ever};
  mesh.close();
}

TEST_CASE("a moved-from mesh throws ClosedError") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  Mesh moved = std::move(mesh);
  CHECK(mesh.is_closed());                          // NOLINT: that is the point
  CHECK_THROWS_AS((void)mesh["tp"], ClosedError);   // NOLINT
  CHECK_THROWS_AS((void)mesh.plan(), ClosedError);  // NOLINT
  CHECK_NOTHROW(mesh.close());                      // NOLINT
  moved.close();
}

TEST_CASE("a family without all ranks works on the ranks that it has") {
  NEEDS_RANKS(3);
  Mesh mesh{MPI_COMM_WORLD, "megatron:tp=1,pp=" + std::to_string(size())};
  if (rank() == 0 || rank() == size() - 1)
    CHECK(sum_of(mesh["embd"], 1) == 2);
  else
    CHECK_THROWS_WITH_AS((void)mesh["embd"], doctest::Contains("is in no group of 'embd'"),
                         NotMember);
  CHECK(sum_of(mesh["pp"], 1) == size());
  mesh.close();
}

TEST_CASE("a mesh is reordered without another launch") {
  // Process p takes rank (p + 1) % size of the mesh.
  MeshOptions options;
  for (int r = 0; r < size(); ++r) options.reorder.push_back((r + size() - 1) % size());
  const std::string text = size() % 2 == 0 ? "dp=auto,tp=2" : "dp=auto,tp=1";
  Mesh mesh{MPI_COMM_WORLD, text, options};
  CHECK(mesh.rank() == Rank{(rank() + 1) % size()});
  for (const char* name : {"dp", "tp"}) {
    CHECK(mesh[name].rank_in_group().value() == mesh.coordinate(name).value());
    std::int64_t processes = 0;  // of the group, by their ranks in the program's communicator
    for (const Rank r : mesh[name].ranks()) processes += options.reorder[r.to_size()];
    CHECK(sum_of(mesh[name], rank()) == processes);
  }
  // A group of all ranks in the order of the mesh.
  CHECK(mesh["world"].rank_in_group().value() == mesh.rank().value());
  mesh.close();
}

TEST_CASE("a wrong order is refused on every rank") {
  MeshOptions options;
  options.reorder.assign(static_cast<std::size_t>(size()), 0);
  const auto open = [&] { Mesh mesh{MPI_COMM_WORLD, "dp=auto", options}; };
  if (size() > 1) CHECK_THROWS_AS(open(), UsageError);
  options.reorder = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  CHECK_THROWS_AS(open(), UsageError);
  if (size() > 2) {  // rank 0 has another order
    options.reorder.clear();
    for (int r = 0; r < size(); ++r) options.reorder.push_back(r);
    if (rank() == 0) std::swap(options.reorder[0], options.reorder[1]);
    CHECK_THROWS_AS(open(), MismatchError);
  }
}
