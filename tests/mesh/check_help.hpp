// SPDX-License-Identifier: BSD-3-Clause
// A group whose calls the option `check` compares by messages of MPI. An adopted communicator has
// no shared memory, so inside one node it stands for a group that spans nodes.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "rankmesh/mpi/native.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

namespace rankmesh_test {

// `deadline` is that of the calls. However busy the machine is, the ranks open and close the mesh
// in time.
inline rankmesh::MeshOptions checked(rankmesh::OptionalDuration deadline = {}) {
  rankmesh::MeshOptions options;
  options.timeout = std::chrono::seconds{20};
  options.deadline = deadline;
  options.check = true;
  return options;
}

// A mesh, and a group of all ranks without shared memory.
struct Adopted {
  explicit Adopted(rankmesh::MeshOptions options)
      : mesh{MPI_COMM_WORLD, "tp=auto", std::move(options)} {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    group = mesh.adopt(comm, "all");
  }
  rankmesh::Mesh mesh;
  MPI_Comm comm = MPI_COMM_NULL;  // not freed after a failure: an operation may be in flight
  std::shared_ptr<rankmesh::GroupCoordinator> group;
};

inline bool is_last() { return rank() == last(); }

// The ranks except the last one, as messages name them.
inline std::string others() {
  return size() == 2 ? "rank 0 (tp=0)" : "ranks 0-" + std::to_string(last() - 1);
}
inline std::string the_last() {
  return "rank " + std::to_string(last()) + " (tp=" + std::to_string(last()) + ")";
}

// Runs an action that must throw `Expected`, and returns its message.
template <class Expected, class Action>
std::string message_of(Action&& action) {
  return thrown_by<Expected>(action).message();
}

}  // namespace rankmesh_test
