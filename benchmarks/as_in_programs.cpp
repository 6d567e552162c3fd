// SPDX-License-Identifier: BSD-3-Clause
// as_in_programs [--pairs N] [--only TEXT] [--calls N]
//
// Operations as programs combine them, by rankmesh and by hand with MPI. It measures pairs of
// batches alternately in one run; the time of a batch is that of the slowest rank. It prints the
// median time of one call by hand, the median of the ratios of the pairs (below 1: faster than
// MPI), and the goal for this ratio.
//
// --only   cases whose name contains the text
// --calls  runs each case of rankmesh so often and measures nothing, for tools that count
//          instructions; with a negative number, the case by hand
//
// scripts/bench-as-in-programs starts it with mpirun.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/exchange/stage_exchange.hpp"
#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;

namespace {

using Action = std::function<void()>;

int rank = 0;
int size = 1;
int pairs = 20;
int only_calls = 0;
std::string only;

// Returns the seconds per call of the slowest rank.
double batch(const Action& action, int calls) {
  action();  // not measured, because the batch before may have used other memory
  MPI_Barrier(MPI_COMM_WORLD);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) action();
  double time =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
  MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return time;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void compare(const std::string& name, double goal, const Action& own, const Action& by_hand) {
  if (name.find(only) == std::string::npos) return;
  if (only_calls != 0) {
    for (int i = 0; i < std::abs(only_calls); ++i) (only_calls > 0 ? own : by_hand)();
    return;
  }
  const double once = batch(by_hand, 5);
  const int calls = std::clamp(static_cast<int>(0.02 / once), 3, 2000);
  std::vector<double> times, ratios;
  for (int k = 0; k < pairs; ++k) {
    const double mine = batch(own, calls), theirs = batch(by_hand, calls);
    times.push_back(theirs);
    ratios.push_back(mine / theirs);
  }
  if (rank == 0)
    std::printf("%-44s %10.2f %8.2f %6.2f\n", name.c_str(), median(times) * 1e6, median(ratios),
                goal);
}

std::string bytes_text(std::size_t bytes) {
  if (bytes >= 1 << 20) return std::to_string(bytes >> 20) + " MiB";
  if (bytes >= 1 << 10) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

std::vector<float> floats(std::size_t bytes) {
  return std::vector<float>(bytes / sizeof(float), 1);
}

void wait_all(MPI_Request* requests, int count) {
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

// Both neighbours in a ring.
void halo(GroupCoordinator& all, std::size_t bytes) {
  auto up = floats(bytes), down = floats(bytes), from_up = floats(bytes), from_down = floats(bytes);
  exchange::StageExchange stages{all, {.ring = true}};
  const int next = (rank + 1) % size, prev = (rank + size - 1) % size;
  compare(
      "StageExchange, halo of " + bytes_text(bytes), 1.1,
      [&] {
        stages
            .start({exchange::to_next(up), exchange::from_prev(from_down), exchange::to_prev(down),
                    exchange::from_next(from_up)})
            .wait();
      },
      [&] {
        const int n = static_cast<int>(up.size());
        MPI_Request requests[4];
        MPI_Irecv(from_down.data(), n, MPI_FLOAT, prev, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(from_up.data(), n, MPI_FLOAT, next, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(up.data(), n, MPI_FLOAT, next, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(down.data(), n, MPI_FLOAT, prev, 1, MPI_COMM_WORLD, &requests[3]);
        wait_all(requests, 4);
      });
}

void ring(GroupCoordinator& all, std::size_t bytes) {
  auto in = floats(bytes), out = floats(bytes);
  compare(
      "send_recv_async, ring of " + bytes_text(bytes), 1.2,
      [&] { all.send_recv_async(in, out, next, prev).wait(); },
      [&] {
        const int n = static_cast<int>(in.size());
        MPI_Request requests[2];
        MPI_Irecv(out.data(), n, MPI_FLOAT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                  &requests[0]);
        MPI_Isend(in.data(), n, MPI_FLOAT, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
        wait_all(requests, 2);
      });
}

void broadcasts(GroupCoordinator& all, std::size_t bytes) {
  auto a = floats(bytes), b = floats(bytes);
  compare(
      "two broadcasts in flight, " + bytes_text(bytes), 1.05,
      [&] {
        auto first = all.broadcast_async(a, 0);
        auto second = all.broadcast_async(b, 1);
        first.wait();
        second.wait();
      },
      [&] {
        const int n = static_cast<int>(a.size());
        MPI_Request requests[2];
        MPI_Ibcast(a.data(), n, MPI_FLOAT, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Ibcast(b.data(), n, MPI_FLOAT, 1, MPI_COMM_WORLD, &requests[1]);
        wait_all(requests, 2);
      });
}

// A block of columns of each member becomes a matrix.
void columns(GroupCoordinator& all, int rows, int width) {
  auto in = std::vector<float>(static_cast<std::size_t>(rows * width), 1);
  auto out = std::vector<float>(in.size() * static_cast<std::size_t>(size));
  MPI_Datatype strided = MPI_DATATYPE_NULL, block = MPI_DATATYPE_NULL;
  MPI_Type_vector(rows, width, width * size, MPI_FLOAT, &strided);
  MPI_Type_create_resized(strided, 0, static_cast<MPI_Aint>(sizeof(float)) * width, &block);
  MPI_Type_commit(&block);
  compare(
      "all_gather along axis 1, " + bytes_text(in.size() * sizeof(float)), 1.05,
      [&] {
        all.all_gather(in, out, Axis{{rows, width}, 1});
      },
      [&] {
        MPI_Allgather(in.data(), rows * width, MPI_FLOAT, out.data(), 1, block, MPI_COMM_WORLD);
      });
  MPI_Type_free(&block);
  MPI_Type_free(&strided);
}

void gather(GroupCoordinator& all) {
  std::vector<double> one(1), of_all(static_cast<std::size_t>(size));
  compare(
      "gather of 8 B", 1.0, [&] { all.gather(one, of_all, 0); },
      [&] {
        MPI_Gather(one.data(), 1, MPI_DOUBLE, of_all.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      });
}

void all_to_all(GroupCoordinator& all, std::size_t bytes) {
  auto in = floats(bytes), out = floats(bytes);
  compare(
      "all_to_all of " + bytes_text(bytes), 0.9, [&] { all.all_to_all(in, out); },
      [&] {
        const int n = static_cast<int>(in.size()) / size;
        MPI_Alltoall(in.data(), n, MPI_FLOAT, out.data(), n, MPI_FLOAT, MPI_COMM_WORLD);
      });
}

// Rows become columns. By hand, the blocks are packed for one MPI_Alltoall.
void redistribute(GroupCoordinator& all, std::size_t bytes) {
  std::size_t n = 1;
  while (4 * n * n * sizeof(float) <= bytes * static_cast<std::size_t>(size)) n *= 2;
  const auto members = static_cast<std::size_t>(size);
  const std::size_t part = n / members;
  const std::string shape = "[" + std::to_string(n) + "," + std::to_string(n) +
                            "] f32 @ tp=" + std::to_string(size) + " : ";
  const auto from = TensorPlacement::parse(shape + "(tp, _)");
  const auto to = TensorPlacement::parse(shape + "(_, tp)");
  exchange::Redistribution move{all, plan_transfer(from, to)};
  std::vector<float> rows(part * n, 1), own(n * part), packed(rows.size()), arrived(rows.size());
  compare(
      "Redistribution of " + bytes_text(rows.size() * sizeof(float)), size == 2 ? 1.0 : 1.1,
      [&] { move.start(rows, own).wait(); },
      [&] {
        for (std::size_t k = 0; k < members; ++k)
          for (std::size_t i = 0; i < part; ++i)
            std::memcpy(&packed[(k * part + i) * part], &rows[i * n + k * part],
                        part * sizeof(float));
        const int count = static_cast<int>(part * part);
        MPI_Alltoall(packed.data(), count, MPI_FLOAT, arrived.data(), count, MPI_FLOAT,
                     MPI_COMM_WORLD);
        std::memcpy(own.data(), arrived.data(), own.size() * sizeof(float));
      });
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--pairs") pairs = std::stoi(argv[i + 1]);
    if (name == "--only") only = argv[i + 1];
    if (name == "--calls") only_calls = std::stoi(argv[i + 1]);
  }
  const mpi::Environment environment{argc, argv};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  GroupCoordinator& all = mesh["tp"];
  rank = static_cast<int>(mesh.rank().value());
  size = static_cast<int>(mesh.size());
  if (rank == 0 && only_calls == 0)
    std::printf("%d ranks, %d pairs\n%-44s %10s %8s %6s\n", size, pairs, "", "by hand us", "ratio",
                "goal");
  for (const std::size_t bytes : {512, 8 << 10, 128 << 10, 1 << 20}) halo(all, bytes);
  for (const std::size_t bytes : {512, 64 << 10}) ring(all, bytes);
  for (const std::size_t bytes : {4 << 10, 64 << 10, 1 << 20}) broadcasts(all, bytes);
  columns(all, 64, 256);
  columns(all, 512, 256);
  gather(all);
  all_to_all(all, 32 << 10);
  redistribute(all, 8 << 20);
  mesh.close();
  return 0;
}
