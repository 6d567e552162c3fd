// SPDX-License-Identifier: BSD-3-Clause
// Rows about communicators that end: one that shares its parent's resources, and one that holds an
// error.
#include "rankmesh/device/nccl/library.hpp"
#include "rankmesh/device/stream.hpp"
#include "raw_communicator.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::Mesh;
using rankmesh::nccl::Library;

// Gives NCCL a root that the group does not have. A non-blocking communicator keeps the error.
std::string break_communicator(rankmesh::GroupCoordinator& group) {
  const Library& nccl = Library::load();
  const rankmesh::device::DeviceBuffer<float> value{10};
  ncclComm_t comm = group.native_nccl();
  ncclResult_t state =
      nccl.Broadcast(value.data(), value.data(), 10, ncclFloat, size() + 5, comm, nullptr);
  std::string said = fmt::format("the call returned {}", static_cast<int>(state));
  for (int poll = 0; poll < 1000; ++poll) {
    if (nccl.CommGetAsyncError(comm, &state) != ncclSuccess || state != ncclInProgress) break;
  }
  return said + fmt::format(", the communicator's state is {}", static_cast<int>(state));
}

// Closes the mesh, or aborts it if that throws. Returns how it ended.
std::string end(Mesh& mesh) {
  try {
    mesh.close();
    return "close() returned";
  } catch (const rankmesh::Error& error) {
    mesh.abort();
    return std::string{"close() threw: "} + error.what();
  }
}

int holds_error(const Arguments&) {
  choose_device();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options()};
  check_sum(mesh["tp"], {});
  say("a broadcast from a rank that does not exist: {}", break_communicator(mesh["tp"]));
  meet();
  const double begin = now();
  const std::string ended = end(mesh);
  const double seconds = now() - begin;
  say("{} after {:.2f} s", ended, seconds);
  meet();
  Mesh next{MPI_COMM_WORLD, "tp=auto", options()};
  check_sum(next["tp"], {});
  next.close();
  summarise("a mesh whose communicator held an error ended in {:.2f} s, and the next one worked",
            seconds);
  return 0;
}

// Uses the group, and says how that ended.
std::string use(rankmesh::GroupCoordinator& group) {
  try {
    check_sum(group, {});
    return "works";
  } catch (const rankmesh::Error& error) {
    return std::string{"throws: "} + error.what();
  }
}

// Two children of one parent that share its resources: the abort of one can end the kernels of the
// other. A program may lose the family, but it must not wait for it without end.
int shared_fate(const Arguments&) {
  choose_device();
  rankmesh::MeshOptions wanted = options();
  wanted.timeout = rankmesh::Deadline::Duration{10};
  wanted.names["child"] = {.split_from = "all", .share_resources = true, .duplicates = {"sibling"}};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp,child=tp", wanted};
  auto& sibling = mesh.duplicate("child", "sibling");
  for (auto* group : {&mesh["all"], &mesh["child"], &sibling}) check_sum(*group, {});
  say("the child, after an error of its own: {}", break_communicator(mesh["child"]));
  meet();
  say("the child {}", use(mesh["child"]));
  const double begin = now();
  const std::string fate = use(sibling);
  const double seconds = now() - begin;
  say("its sibling {}, after {:.2f} s", fate, seconds);
  mesh.abort();
  (void)end(mesh);
  meet();
  Mesh next{MPI_COMM_WORLD, "tp=auto", options()};
  check_sum(next["tp"], {});
  next.close();
  require(seconds < 30, "the sibling of an aborted communicator let a call wait");
  summarise("the sibling of a child that held an error {}", fate.substr(0, fate.find(':')));
  return 0;
}

const Register broken_row{"holds_error", holds_error};
const Register fate_row{"shared_fate", shared_fate};

}  // namespace
}  // namespace gpu_rows
