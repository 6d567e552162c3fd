// SPDX-License-Identifier: BSD-3-Clause
// Rows about communicators that end: one that shares its parent's resources, one that holds an
// error, and one whose peers abort.
#include "rankmesh/device/nccl/library.hpp"
#include "rankmesh/device/stream.hpp"
#include "raw_communicator.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::Mesh;
using rankmesh::device::Stream;
using rankmesh::nccl::Library;

// Gives NCCL a root that the group does not have. Only a communicator that does not block keeps
// this error (ncclEnqueueCheck in src/enqueue.cc), and it keeps it for good.
std::string break_communicator(rankmesh::GroupCoordinator& group) {
  const Library& nccl = Library::load();
  const rankmesh::device::DeviceBuffer<float> value{10};
  ncclComm_t comm = group.native_nccl();
  const ncclResult_t code =
      nccl.Broadcast(value.data(), value.data(), 10, ncclFloat, size() + 5, comm, nullptr);
  ncclResult_t state = ncclInProgress;
  for (const double begin = now(); state == ncclInProgress && now() - begin < 10;)
    if (nccl.CommGetAsyncError(comm, &state) != ncclSuccess) break;
  const std::string said = fmt::format("the call returned {}, the communicator's state is {}",
                                       static_cast<int>(code), static_cast<int>(state));
  require(state != ncclSuccess && state != ncclInProgress,
          "a communicator that does not block does not keep an error: " + said);
  return said;
}

int holds_error(const Arguments&) {
  choose_device();
  rankmesh::MeshOptions wanted = options();
  wanted.names["tp"].blocking = false;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", wanted};
  check_sum(mesh["tp"], {});
  say("a broadcast from a rank that does not exist: {}", break_communicator(mesh["tp"]));
  meet();
  const double begin = now();
  const std::string ended = end_mesh(mesh);
  const double seconds = now() - begin;
  say("{} after {:.2f} s", ended, seconds);
  check_next_mesh();
  summarise("a mesh whose communicator held an error ended in {:.2f} s, and the next one worked",
            seconds);
  return 0;
}

// Communicators that block get an error only from outside. All ranks but one abort the mesh while
// that one waits for them: NCCL tells it over the sockets between hosts, and nothing inside a host.
int peer_aborts(const Arguments&) {
  choose_device();
  rankmesh::MeshOptions wanted = options();
  wanted.timeout = rankmesh::Deadline::Duration{10};
  wanted.check = false;  // a comparison of the calls would wait instead of NCCL
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", wanted};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const rankmesh::device::DeviceBuffer<float> value{1000};
  check_sum(tp, stream);
  meet();
  std::string error;
  double seconds = 0;
  if (rank() == 0) {
    const double begin = now();
    try {
      tp.all_reduce(value.span(), stream);
      tp.wait(stream);
    } catch (const rankmesh::Error& failure) {
      error = failure.what();
    }
    seconds = now() - begin;
  }
  mesh.abort();
  stream.wait(rankmesh::Deadline{rankmesh::Deadline::Duration{30}});
  meet();
  say("a wait for a rank that aborts ended after {:.2f} s: {}", seconds, error);
  require(rank() != 0 || !error.empty(), "a sum over ranks that had aborted was complete");
  (void)end_mesh(mesh);
  check_next_mesh();
  summarise("a wait for a rank that aborts ended after {:.2f} s, and the next mesh worked",
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

// Says what NCCL alone makes of a child whose sibling was aborted.
std::string fate_without_rankmesh() {
  const Library& nccl = Library::load();
  RawCommunicator parent{{.splits_share = true}};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 1;
  ncclComm_t children[2] = {};
  for (ncclComm_t& child : children)
    parent.settle(nccl.CommSplit(parent.native(), 0, rank(), &child, &config), "ncclCommSplit");
  const Stream stream = Stream::create();
  const rankmesh::device::DeviceBuffer<float> value{
      std::span<const float>{std::vector<float>(1000, 1)}};
  const auto sum = [&] {
    return nccl.AllReduce(value.data(), value.data(), value.size(), ncclFloat, ncclSum, children[1],
                          stream.native());
  };
  parent.settle(sum(), "ncclAllReduce");
  stream.wait(rankmesh::Deadline{rankmesh::Deadline::Duration{10}});
  (void)nccl.CommAbort(children[0]);
  meet();
  std::string fate = fmt::format("answers {}", static_cast<int>(sum()));
  ncclResult_t state = ncclSuccess;
  (void)nccl.CommGetAsyncError(children[1], &state);
  fate += fmt::format(", has the state {}", static_cast<int>(state));
  try {
    stream.wait(rankmesh::Deadline{rankmesh::Deadline::Duration{10}});
    const bool is_right = value.download(stream)[999] == static_cast<float>(size() * size());
    fate += is_right ? ", and is right" : ", and does nothing";
  } catch (const rankmesh::TimeoutError&) {
    fate += ", and does not end";
  }
  meet();
  (void)nccl.CommAbort(children[1]);
  parent.abort();
  return fate;
}

// Two children of one parent that share its resources: the abort of one can end the kernels of the
// other. A program may lose the family, but it must not wait for it without end.
int shared_fate(const Arguments&) {
  choose_device();
  rankmesh::MeshOptions wanted = options();
  wanted.timeout = rankmesh::Deadline::Duration{10};
  wanted.names["child"] = {
      .split_from = "all", .share_resources = true, .blocking = false, .duplicates = {"sibling"}};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp,child=tp", wanted};
  auto& sibling = mesh.duplicate("child", "sibling");
  for (auto* group : {&mesh["all"], &mesh["child"], &sibling}) check_sum(*group, {});
  say("the child, after an error of its own: {}", break_communicator(mesh["child"]));
  meet();
  const std::string child = use(mesh["child"]);
  say("the child {}", child);
  require(child != "works", "a communicator that holds an error was used");
  const double begin = now();
  const std::string fate = use(sibling);
  const double seconds = now() - begin;
  say("its sibling {}, after {:.2f} s", fate, seconds);
  mesh.abort();
  (void)end_mesh(mesh);
  check_next_mesh();
  require(seconds < 30, "the sibling of an aborted communicator let a call wait");
  say("NCCL alone: a sum on a child whose sibling was aborted {}", fate_without_rankmesh());
  meet();
  summarise("the sibling of a child that held an error {}", fate.substr(0, fate.find(':')));
  return 0;
}

const Register broken_row{"holds_error", holds_error};
const Register peer_row{"peer_aborts", peer_aborts};
const Register fate_row{"shared_fate", shared_fate};

}  // namespace
}  // namespace gpu_rows
