// SPDX-License-Identifier: BSD-3-Clause
// Compares opening and closing a mesh, and groups that are created later, with the same
// communicators made by hand.
//
//   scripts/run-mpi 16 build-bench/benchmarks/opening [PAIRS]
//
// The mesh is pp=2,dp=2,cp=2,ep=2,tp=N/16 on N ranks, if N is a multiple of 16. By hand:
// MPI_Comm_dup, one MPI_Comm_split per dimension, and MPI_Comm_free of all six. A later group has
// all ranks, or two: new_group() and close(), and by hand MPI_Comm_create_group, MPI_Barrier and
// MPI_Comm_free. Both run alternately in one job, PAIRS times (default 30). A time is that of the
// slowest rank. The processor time of all ranks together depends less on what else the machine
// does.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/rankmesh.hpp"

namespace {

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Returns the seconds until the last rank has finished. Adds the processor time of all ranks to
// `processor`.
double timed(const std::function<void()>& run, double& processor) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  const double before = processor_seconds();
  run();
  const double used = processor_seconds() - before;
  double mine = MPI_Wtime() - begin;
  double longest = 0;
  double of_all = 0;
  MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&used, &of_all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  processor += of_all;
  return longest;
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

void by_hand(int rank, int tp) {
  const int sizes[] = {tp, 2, 2, 2, 2};  // the last dimension varies fastest
  std::vector<MPI_Comm> comms(1);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  int stride = 1;
  for (const int size : sizes) {
    const int coordinate = rank / stride % size;
    MPI_Comm_split(comms[0], rank - coordinate * stride, coordinate, &comms.emplace_back());
    stride *= size;
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

// The times of what rankmesh does, and of the same by hand.
class Comparison {
 public:
  void add(double rankmesh, double hand) {
    if (is_first_) {  // the first pair does not count
      is_first_ = false;
      return;
    }
    rankmesh_.push_back(rankmesh);
    hand_.push_back(hand);
    ratios_.push_back(rankmesh / hand);
  }
  void print(const char* what, const char* by_hand) const {
    std::printf("  %s %.3f ms, %s %.3f ms, ratio %.2f (quartiles %.2f .. %.2f)\n", what,
                quantile(rankmesh_, 0.5) * 1e3, by_hand, quantile(hand_, 0.5) * 1e3,
                quantile(ratios_, 0.5), quantile(ratios_, 0.25), quantile(ratios_, 0.75));
  }

 private:
  bool is_first_ = true;
  std::vector<double> rankmesh_, hand_, ratios_;
};

void compare_meshes(int rank, int ranks, int pairs) {
  const int tp = ranks / 16;
  const std::string text = "pp=2,dp=2,cp=2,ep=2,tp=" + std::to_string(tp);
  rankmesh::MeshOptions options;
  options.devices = rankmesh::DeviceUse::off;
  Comparison time, processor, closing;
  for (int pair = -1; pair < pairs; ++pair) {
    double of_mesh = 0;
    double of_hand = 0;
    double open = 0;
    double close = 0;
    const auto run_mesh = [&] {
      std::optional<rankmesh::Mesh> mesh;
      open = timed([&] { mesh.emplace(MPI_COMM_WORLD, text, options); }, of_mesh);
      close = timed([&] { mesh->close(); }, of_mesh);
    };
    if (pair % 2 == 0) run_mesh();
    const double hand = timed([&] { by_hand(rank, tp); }, of_hand);
    if (pair % 2 != 0) run_mesh();
    time.add(open + close, hand);
    processor.add(of_mesh, of_hand);
    closing.add(close, hand);
  }
  if (rank != 0) return;
  std::printf("%s on %d ranks, %d pairs\n", text.c_str(), ranks, pairs);
  time.print("open and close", "by hand");
  closing.print("close alone", "by hand");
  processor.print("processor time", "by hand");
}

// @param members  Each rank is in one group of so many neighbours.
void compare_groups(int rank, int members, int pairs) {
  rankmesh::MeshOptions options;
  options.devices = rankmesh::DeviceUse::off;
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  std::vector<rankmesh::Rank> list;
  std::vector<int> numbers;
  for (int k = 0; k < members; ++k) {
    numbers.push_back(rank / members * members + k);
    list.emplace_back(numbers.back());
  }
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, members, numbers.data(), &some);
  Comparison creation, closing;
  double processor = 0;
  for (int pair = -1; pair < pairs; ++pair) {
    double times[4] = {};
    const auto by_rankmesh = [&] {
      std::shared_ptr<rankmesh::GroupCoordinator> group;
      times[0] = timed([&] { group = mesh.new_group(list); }, processor);
      times[1] = timed([&] { mesh.close(group); }, processor);
    };
    const auto by_mpi = [&] {
      MPI_Comm comm = MPI_COMM_NULL;
      times[2] = timed([&] { MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &comm); }, processor);
      times[3] = timed(
          [&] {
            MPI_Barrier(comm);
            MPI_Comm_free(&comm);
          },
          processor);
    };
    if (pair % 2 == 0) by_rankmesh();
    by_mpi();
    if (pair % 2 != 0) by_rankmesh();
    creation.add(times[0], times[2]);
    closing.add(times[1], times[3]);
  }
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  mesh.close();
  if (rank != 0) return;
  std::printf("groups of %d, %d pairs\n", members, pairs);
  creation.print("new_group", "MPI_Comm_create_group");
  closing.print("close", "MPI_Barrier and MPI_Comm_free");
}

}  // namespace

int main(int argc, char** argv) {
  const rankmesh::mpi::Environment environment{argc, argv};
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 30;
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks % 2 != 0) {
    if (rank == 0) std::fprintf(stderr, "opening: start an even number of ranks\n");
    return 2;
  }
  if (ranks % 16 == 0) compare_meshes(rank, ranks, pairs);
  compare_groups(rank, ranks, pairs);
  if (ranks > 2) compare_groups(rank, 2, pairs);
}
