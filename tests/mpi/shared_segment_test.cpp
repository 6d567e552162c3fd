// SPDX-License-Identifier: BSD-3-Clause
// Segments that all members share, that leave no name behind, and that fail on all members alike.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/detail/log.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/patience.hpp"
#include "transport/detail/node_segments.hpp"
#include "wait/detail/control_plane.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::ScopedPatience;
using rankmesh_test::short_deadline;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;

namespace {

struct SegmentWorld {
  mpi::Communicator own = mpi::duplicate(mpi::CommunicatorView{MPI_COMM_WORLD});

  SharedSegment make(std::size_t bytes, SharedSegment::Backing backing, double seconds = 60) {
    detail::ControlPlane control{own.view(),
                                 0,
                                 RankNames{},
                                 Deadline::Duration{seconds},
                                 Deadline::Duration{60},
                                 std::make_shared<const detail::Log>(LogSink{}, LogChoice::off)};
    detail::NodeSegment made = std::move(
        detail::make_node_segments({control, own.view(), RankSet::range(0, size()), "a test"},
                                   {{"the creation of a segment", bytes}}, backing)
            .front());
    if (made.error) throw SharedMemoryError{*made.error};
    return std::move(made.segment);
  }
};

// Counts the names of member 0, which creates them: other jobs may have names there.
int names_in_dev_shm() {
  MPI_Barrier(MPI_COMM_WORLD);  // member 0 has removed the last one
  int process = getpid();
  MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const std::string prefix = "rankmesh-" + std::to_string(process) + "-";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{"/dev/shm"})
    count += entry.path().filename().string().starts_with(prefix) ? 1 : 0;
  MPI_Barrier(MPI_COMM_WORLD);  // and has not created the next
  return count;
}

}  // namespace

TEST_CASE("all members see one another's writes, and no name is left") {
  SegmentWorld world;
  for (const auto backing : {SharedSegment::Backing::automatic, SharedSegment::Backing::named}) {
    auto segment = world.make(100000, backing);
    CHECK(segment.size() == 100000);
    auto* values = reinterpret_cast<std::atomic<int>*>(segment.data());
    CHECK(values[rank()].load() == 0);
    values[rank()].store(rank() + 1);
    MPI_Barrier(world.own.view().native());
    for (int r = 0; r < size(); ++r) CHECK(values[r].load() == r + 1);
    CHECK(segment.data()[99999] == std::byte{0});
    CHECK(names_in_dev_shm() == 0);

    SharedSegment moved{std::move(segment)};
    CHECK(!segment);  // NOLINT: that is the point
    CHECK(reinterpret_cast<std::atomic<int>*>(moved.data())[rank()].load() == rank() + 1);
    segment = std::move(moved);
    CHECK(segment.size() == 100000);
  }
}

TEST_CASE("more memory than there is fails on every member") {
  SegmentWorld world;
  CHECK_THROWS_WITH_AS(world.make(std::size_t{1} << 46, SharedSegment::Backing::named),
                       doctest::Contains("member 0"), SharedMemoryError);
  CHECK(names_in_dev_shm() == 0);
  CHECK(world.make(64, SharedSegment::Backing::named).size() == 64);
}

TEST_CASE("a member that does not come is named, and no name is left") {
  NEEDS_RANKS(2);
  SegmentWorld world;
  ScopedPatience patience;
  patience.wait_for_answers(0.3);
  wait_for_all();
  if (rank() != size() - 1) {
    try {
      (void)world.make(64, SharedSegment::Backing::named, short_deadline().count());
      CHECK(false);
    } catch (const TimeoutError& error) {
      REQUIRE(error.missing().size() == 1);
      CHECK(error.missing()[0] == Rank{size() - 1});
    }
  }
  wait_for_all();
  CHECK(names_in_dev_shm() == 0);
  // The late member finds that nobody waits any more.
  if (rank() == size() - 1)
    CHECK_THROWS_AS((void)world.make(64, SharedSegment::Backing::named, 0.2), Error);
  MPI_Barrier(MPI_COMM_WORLD);
}
