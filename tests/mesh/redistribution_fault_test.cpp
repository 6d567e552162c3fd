// SPDX-License-Identifier: BSD-3-Clause
// Members that are missing in a redistribution.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh::exchange::Redistribution;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

namespace {

// The timeout of the mesh would also end its opening, in which a busy machine may let a rank come
// late.
MeshOptions short_transfers() {
  MeshOptions options;
  options.names["tp"].timeout = size() > 2 ? 2 : 1;
  return options;
}

// Starts a transfer on all ranks but the last one. @param late  A rank that starts it when the
// others have given up.
void fails_without_the_last(int late) {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", short_transfers()};
  const auto from = TensorPlacement::parse(fmt::format("[1000,64] f32 @ tp={} : (tp, _)", size()));
  const auto to = TensorPlacement::parse(fmt::format("[1000,64] f32 @ tp={} : (_, tp)", size()));
  Redistribution move{mesh["tp"], plan_transfer(from, to), {.memory = 4096}};
  const auto count = [&](const TensorPlacement& place) {
    return static_cast<std::size_t>(place.local_count(Rank{rank()}));
  };
  std::vector<float> in(count(from), 1.0F), out(count(to));
  wait_for_all();
  if (rank() == late) wait_for_all();
  if (rank() != last()) {
    const auto error = thrown_by<TimeoutError>([&] {
      Work work = move.start(in, out);
      work.wait();
    });
    CAPTURE(error.message());
    std::vector<Rank> missing{Rank{last()}};
    if (late >= 0 && rank() != late) missing.insert(missing.begin(), Rank{late});
    CHECK(error.missing() == missing);
    CHECK_CONTAINS(error.message(), "tp.redistribution 0, transfer 0");
    CHECK(in == std::vector<float>(in.size(), 1.0F));
    CHECK_THROWS_WITH_AS((void)move.start(in, out), doctest::Contains("the group is broken"),
                         ClosedError);
  }
  if (rank() != late) wait_for_all();
  // MPI may still use the memory.
  (void)new std::vector<float>{std::move(out)};  // NOLINT
  (void)new std::vector<float>{std::move(in)};   // NOLINT
  wait_for_all();
}

}  // namespace

TEST_CASE("a rank that does not start a transfer is named, and the source is unchanged") {
  NEEDS_RANKS(2);
  fails_without_the_last(-1);
}

TEST_CASE("a rank that starts a transfer after the others have given up learns whom they missed") {
  NEEDS_RANKS(3);
  fails_without_the_last(last() - 1);
}

TEST_CASE("a rank that has done its part and goes on is not named") {
  NEEDS_RANKS(4);
  MeshOptions options = short_transfers();
  options.check = false;  // a comparison waits for both ends of a message
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  // Each rank sends all of its elements to its successor.
  const auto from = TensorPlacement::parse(fmt::format("[800] f32 @ tp={} : (tp)", size()));
  const auto to =
      TensorPlacement::parse(fmt::format("[800] f32 @ tp={} on 1-{},0 : (tp)", size(), last()));
  Redistribution move{mesh["tp"], plan_transfer(from, to)};
  const auto count = static_cast<std::size_t>(800 / size());
  std::vector<float> in(count, 1.0F), out(count);
  wait_for_all();
  if (rank() != last()) {
    Work work = move.start(in, out);
    // The message to the last rank is small, so it is complete although nobody receives it. Only
    // the first rank needs a message of the last one.
    if (rank() == 0) {
      const auto error = thrown_by<TimeoutError>([&] { work.wait(); });
      CHECK(error.missing() == std::vector<Rank>{Rank{last()}});
    } else {
      work.wait();
    }
  }
  (void)new std::vector<float>{std::move(out)};  // NOLINT: MPI may still use the memory
  (void)new std::vector<float>{std::move(in)};   // NOLINT
  wait_for_all();
}

TEST_CASE("what is read of a rank that has given up is not used") {
  NEEDS_RANKS(2);
  MeshOptions options = short_transfers();
  options.check = false;  // a comparison would find the missing rank before anything is read
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  // The first rank sends everything to the last one.
  const auto from = TensorPlacement::parse("[100000] f32 @ tp=1 : (tp)");
  const auto to = TensorPlacement::parse(fmt::format("[100000] f32 @ tp=1 on {} : (tp)", last()));
  Redistribution move{mesh["tp"], plan_transfer(from, to)};
  int reads = move.bytes_read_directly() > 0 ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &reads, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  std::vector<float> in(rank() == 0 ? 100000 : 0, 1.0F), out(rank() == last() ? 100000 : 0);
  // Without direct reads, MPI may still send what the program has changed.
  if (reads == 1) {
    if (rank() == 0) {
      Work work = move.start(in, {});
      CHECK_THROWS_AS(work.wait(), TimeoutError);
      std::fill(in.begin(), in.end(), 2.0F);
    }
    wait_for_all();
    if (rank() == last()) {
      Work work = move.start({}, out);
      CHECK_THROWS_AS(work.wait(), Error);
    }
  }
  (void)new std::vector<float>{std::move(out)};  // NOLINT: MPI may still use the memory
  (void)new std::vector<float>{std::move(in)};   // NOLINT
  wait_for_all();
}
