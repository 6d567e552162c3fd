// SPDX-License-Identifier: BSD-3-Clause
// trace --collect in a job: one process of each node sends the records of its node to rank 0.
#include <exception>
#include <memory>

#include "launcher.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/environment.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/mpi/node.hpp"
#include "rankmesh/record/format.hpp"
#include "trace.hpp"

namespace meshinfo {
namespace {

using rankmesh::mpi::check;
using Copies = std::vector<std::vector<std::byte>>;

constexpr int record_bytes = static_cast<int>(rankmesh::record::format::total_bytes);

// The first process of each node, ordered by rank; null on the other processes.
class Leaders {
 public:
  explicit Leaders(bool is_leader) {
    check(MPI_Comm_split(MPI_COMM_WORLD, is_leader ? 0 : MPI_UNDEFINED, 0, &comm_),
          "MPI_Comm_split");
    if (comm_ == MPI_COMM_NULL) return;
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  ~Leaders() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  Leaders(const Leaders&) = delete;
  Leaders& operator=(const Leaders&) = delete;

  // Returns how many records each leader has, on rank 0.
  [[nodiscard]] std::vector<int> counts(int own) const {
    std::vector<int> all(rank_ == 0 ? static_cast<std::size_t>(size_) : 0);
    check(MPI_Gather(&own, 1, MPI_INT, all.data(), 1, MPI_INT, 0, comm_), "MPI_Gather");
    return all;
  }
  void send(const Copies& copies) const {
    for (const auto& copy : copies)
      check(MPI_Send(copy.data(), record_bytes, MPI_BYTE, 0, 0, comm_), "MPI_Send");
  }
  void receive(int leader, std::vector<std::byte>& bytes) const {
    check(MPI_Recv(bytes.data(), record_bytes, MPI_BYTE, leader, 0, comm_, MPI_STATUS_IGNORE),
          "MPI_Recv");
  }
  [[nodiscard]] bool is_first() const { return rank_ == 0; }
  [[nodiscard]] bool is_leader() const { return comm_ != MPI_COMM_NULL; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = -1;
  int size_ = 0;
};

// Receives the records of all nodes, one after the other, even if they cannot be stored. Returns
// the first error.
std::exception_ptr store_all(const Leaders& leaders, Collection& collection, const Copies& own) {
  std::exception_ptr failure;
  const auto store = [&](const std::vector<std::byte>& bytes) {
    try {
      if (failure == nullptr) collection.add(bytes);
    } catch (const rankmesh::Error&) {
      failure = std::current_exception();
    }
  };
  const std::vector<int> counts = leaders.counts(static_cast<int>(own.size()));
  for (const auto& copy : own) store(copy);
  std::vector<std::byte> bytes(rankmesh::record::format::total_bytes);
  for (std::size_t leader = 1; leader < counts.size(); ++leader)
    for (int i = 0; i < counts[leader]; ++i) {
      leaders.receive(static_cast<int>(leader), bytes);
      store(bytes);
    }
  try {
    if (failure == nullptr) collection.require_records();
  } catch (const rankmesh::Error&) {
    failure = std::current_exception();
  }
  return failure;
}

// Makes the folder on rank 0, and tells all processes whether that was possible.
std::unique_ptr<Collection> open_collection(const std::string& folder, int rank, int& is_open,
                                            std::exception_ptr& failure) {
  std::unique_ptr<Collection> collection;
  try {
    if (rank == 0) collection = std::make_unique<Collection>(folder);
  } catch (const rankmesh::Error&) {
    failure = std::current_exception();
  }
  is_open = failure == nullptr ? 1 : 0;
  check(MPI_Bcast(&is_open, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  return collection;
}

// Errors of rank 0 are returned, so that MPI is finalised before they are thrown.
std::exception_ptr collect_in_job(const TraceOptions& options, bool& prints) {
  const rankmesh::mpi::Environment environment;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  prints = rank == 0;
  std::exception_ptr failure;
  int is_open = 0;
  const auto collection = open_collection(options.collect, rank, is_open, failure);
  if (is_open == 0) return failure;
  rankmesh::mpi::Node node;
  static_cast<void>(
      rankmesh::mpi::discover_nodes(rankmesh::mpi::CommunicatorView{MPI_COMM_WORLD}, &node));
  int rank_on_node = 0;
  MPI_Comm_rank(node.comm.view().native(), &rank_on_node);
  const Leaders leaders{rank_on_node == 0};
  if (!leaders.is_leader()) return nullptr;
  const Copies copies = copies_of("");
  if (collection != nullptr) return store_all(leaders, *collection, copies);
  static_cast<void>(leaders.counts(static_cast<int>(copies.size())));
  leaders.send(copies);
  return nullptr;
}

}  // namespace

bool collect(const TraceOptions& options) {
  if (is_in_job()) {
    if (!options.target.empty())
      throw rankmesh::UsageError{
          "--collect in a job copies the records of all jobs of this user",
          "leave the process id or the folder out, or start meshinfo without mpirun"};
    bool prints = false;
    const std::exception_ptr failure = collect_in_job(options, prints);
    if (failure != nullptr) std::rethrow_exception(failure);
    return prints;
  }
  collect_here(options);
  return true;
}

}  // namespace meshinfo
