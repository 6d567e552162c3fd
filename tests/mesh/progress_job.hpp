// SPDX-License-Identifier: BSD-3-Clause
// The meshes of progress_test.cpp, and a transport of the program for them.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rankmesh/exchange/control_queue.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"

namespace progress_test {

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

// A sum that proceeds in test() only: it sends in the first test(), and there is a barrier behind
// it that begins in the test() that has received everything.
class SteppingSum final : public Pending {
 public:
  SteppingSum(MPI_Comm comm, const Call& call)
      : comm_{comm}, call_{call}, from_(static_cast<std::size_t>(size())) {}
  bool test() override {
    const int count = static_cast<int>(call_.out.count);
    if (step_ == 0) {
      mine_.assign(count_of(call_.in.data), count_of(call_.in.data) + count);
      for (int r = 0; r < size(); ++r) {
        auto& values = from_[static_cast<std::size_t>(r)];
        values.resize(static_cast<std::size_t>(count));
        MPI_Irecv(values.data(), count, MPI_INT, r, 0, comm_, &requests_.emplace_back());
        MPI_Isend(mine_.data(), count, MPI_INT, r, 0, comm_, &requests_.emplace_back());
      }
      step_ = 1;
    }
    int done = 0;
    if (step_ == 1) {
      MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
      if (done == 0) return false;
      MPI_Ibarrier(comm_, &barrier_);
      step_ = 2;
    }
    MPI_Test(&barrier_, &done, MPI_STATUS_IGNORE);
    if (done == 0) return false;
    auto* const out = reinterpret_cast<std::int32_t*>(call_.out.data);
    for (int i = 0; i < count; ++i) {
      out[i] = 0;
      for (const auto& values : from_) out[i] += values[static_cast<std::size_t>(i)];
    }
    return true;
  }

 private:
  static const std::int32_t* count_of(const std::byte* data) {
    return reinterpret_cast<const std::int32_t*>(data);
  }
  MPI_Comm comm_;
  Call call_;
  std::vector<std::int32_t> mine_;
  std::vector<std::vector<std::int32_t>> from_;
  std::vector<MPI_Request> requests_;
  MPI_Request barrier_ = MPI_REQUEST_NULL;
  int step_ = 0;
};

class SteppingTransport final : public Transport {
 public:
  explicit SteppingTransport(MPI_Comm comm) { MPI_Comm_dup(comm, &comm_); }
  ~SteppingTransport() override {
    if (mpi::is_active()) MPI_Comm_free(&comm_);
  }
  [[nodiscard]] bool supports(const Call& call) const override {
    return call.is_async && call.operation == Operation::all_reduce && call.is_plain() &&
           call.reduction == ReduceOp::sum && call.out.type == DataType::int32;
  }
  void run(const Call&, Waiter&) override { FAIL("only asynchronous calls are supported"); }
  [[nodiscard]] bool has_async_forms() const override { return true; }
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override {
    return std::make_unique<SteppingSum>(comm_, call);
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

inline MeshOptions options_with(bool check, const char* routes = "") {
  MeshOptions options;
  options.timeout = Deadline::Duration{20};
  options.check = check;
  options.routes = routes;
  return options;
}

inline MeshOptions with_transport(bool check) {
  MeshOptions options = options_with(check, "*.*=steps");
  options.transports["steps"] = [](const TransportGroup& group) {
    return std::make_unique<SteppingTransport>(group.comm.native());
  };
  return options;
}

// The meshes of the test, and what one case prepares.
struct Job {
  explicit Job(bool check)
      : mesh{MPI_COMM_WORLD, "tp=auto", options_with(check)},
        other{MPI_COMM_WORLD, "dp=auto", options_with(check)},
        by_mpi{MPI_COMM_WORLD, "dp=auto", options_with(check, "*.*:host=mpi")},
        steps{MPI_COMM_WORLD, "dp=auto", with_transport(check)} {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    waits = mesh.new_group(everyone(), "waits");
    adopted = mesh.adopt(comm, "adopted");
  }
  void close() {
    for (Mesh* open : {&steps, &by_mpi, &other, &mesh}) open->close();
    MPI_Comm_free(&comm);
  }
  static std::vector<Rank> everyone() {
    std::vector<Rank> ranks;
    for (int r = 0; r < size(); ++r) ranks.emplace_back(r);
    return ranks;
  }

  Mesh mesh, other, by_mpi, steps;
  MPI_Comm comm = MPI_COMM_NULL;
  std::shared_ptr<GroupCoordinator> waits;  // of the waits
  std::shared_ptr<GroupCoordinator> adopted, spare;
  std::unique_ptr<Mesh> spare_mesh;
  std::unique_ptr<exchange::ControlQueue> queue;
  std::unique_ptr<exchange::Redistribution> move;
};

}  // namespace progress_test
