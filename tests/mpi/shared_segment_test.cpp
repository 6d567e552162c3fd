// Segments that all members see, that leave nothing behind, and that fail on all members alike.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <numeric>

#include "rankmesh/transport/shared_segment.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

struct Ground {
  mpi::Communicator own = mpi::duplicate(mpi::CommunicatorView{MPI_COMM_WORLD});
  WaitMonitor monitor{own.view(), WaitMonitor::Audience::own,
                      [](Rank r) { return "rank " + std::to_string(r.value()); }};
  WaitPoint step{17, "the making of a segment", std::vector<int>(static_cast<std::size_t>(size()))};

  Ground() { std::iota(step.members.begin(), step.members.end(), 0); }

  SharedSegment make(std::size_t bytes, SharedSegment::Way way, double seconds = 60) {
    return {own.view(), bytes, monitor, step, Deadline{Deadline::Duration{seconds}}, way};
  }
};

// Of member 0, who makes them: other jobs may have theirs there.
int names_in_dev_shm() {
  MPI_Barrier(MPI_COMM_WORLD);  // member 0 has removed the last one
  int process = getpid();
  MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const std::string prefix = "rankmesh-" + std::to_string(process) + "-";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{"/dev/shm"})
    count += entry.path().filename().string().starts_with(prefix) ? 1 : 0;
  MPI_Barrier(MPI_COMM_WORLD);  // and has not made the next
  return count;
}

}  // namespace

TEST_CASE("all members see one another's writes, and no name is left") {
  Ground ground;
  for (const auto way : {SharedSegment::Way::automatic, SharedSegment::Way::named}) {
    // Only member 0's size counts.
    auto segment = ground.make(rank() == 0 ? 100000 : 1, way);
    CHECK(segment.size() == 100000);
    auto* values = reinterpret_cast<std::atomic<int>*>(segment.data());
    CHECK(values[rank()].load() == 0);
    values[rank()].store(rank() + 1);
    MPI_Barrier(ground.own.view().native());
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
  Ground ground;
  CHECK_THROWS_WITH_AS(ground.make(std::size_t{1} << 46, SharedSegment::Way::named),
                       doctest::Contains("member 0"), SharedMemoryError);
  CHECK(names_in_dev_shm() == 0);
  CHECK(ground.make(64, SharedSegment::Way::named).size() == 64);
}

TEST_CASE("who does not come is named, and no name is left") {
  NEEDS_RANKS(2);
  Ground ground;
  if (rank() != size() - 1) {
    try {
      (void)ground.make(64, SharedSegment::Way::named, 0.5);
      CHECK(false);
    } catch (const TimeoutError& error) {
      REQUIRE(error.missing().size() == 1);
      CHECK(error.missing()[0] == Rank{size() - 1});
    }
  }
  CHECK(names_in_dev_shm() == 0);
  // Its collectives are still under way on the communicator of this ground: the late member ends
  // them.
  if (rank() == size() - 1)
    CHECK_THROWS_AS((void)ground.make(64, SharedSegment::Way::named, 0.2), Error);
  MPI_Barrier(MPI_COMM_WORLD);
}
