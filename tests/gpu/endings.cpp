// SPDX-License-Identifier: BSD-3-Clause
// Rows about communicators that end: one that holds an error, one that shares its parent's
// resources, and those whose operations wait behind another one's.
#include "rankmesh/device/nccl/library.hpp"
#include "rankmesh/device/stream.hpp"
#include "raw_communicator.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::Mesh;
using rankmesh::device::Stream;
using rankmesh::nccl::Library;

// Gives NCCL a root that the group does not have. Only a communicator that does not block keeps the
// error (ncclEnqueueCheck in src/enqueue.cc).
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
  require(state != ncclSuccess && state != ncclInProgress, "the communicator holds no error");
  return said + fmt::format(", the communicator's state is {}", static_cast<int>(state));
}

// Closes the mesh, or aborts it if that throws. Returns how it ended.
std::string end(Mesh& mesh) {
  try {
    mesh.close();
    return "close() returned";
  } catch (const rankmesh::Error& error) {
    if (!mesh.is_closed()) mesh.abort();
    return std::string{"close() threw: "} + error.what();
  }
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

// Polls until the stream is idle, for at most `limit` seconds. Returns whether it is.
bool is_idle_within(double limit, const Stream& stream) {
  const double begin = now();
  while (!stream.query())
    if (now() - begin > limit) return false;
  return true;
}

// Two children of one parent that share its resources have one abort flag: after the abort of one,
// NCCL drops the operations of the other, or lets it wait. A program must not rely on either.
int shared_fate(const Arguments&) {
  choose_device();
  const Library& nccl = Library::load();
  const RawCommunicator parent{{.blocking = true, .max_ctas = {}, .shares = true}};
  ncclComm_t children[2] = {};
  for (ncclComm_t& child : children)
    nccl.check(nccl.CommSplit(parent.native(), 0, rank(), &child, nullptr), "ncclCommSplit");
  const Stream stream = Stream::create();
  const rankmesh::device::DeviceBuffer<float> value{10};
  const auto sum = [&](ncclComm_t comm) {
    return nccl.AllReduce(value.data(), value.data(), 10, ncclFloat, ncclSum, comm,
                          stream.native());
  };
  for (ncclComm_t child : children) nccl.check(sum(child), "ncclAllReduce");
  require(is_idle_within(20, stream), "sums on two children do not end");
  meet();
  (void)nccl.GroupStart();
  (void)nccl.CommAbort(children[0]);
  (void)nccl.GroupEnd();
  meet();
  const ncclResult_t code = sum(children[1]);
  const bool ends = is_idle_within(5, stream);
  const std::string fate =
      fmt::format("returned {} and {}", static_cast<int>(code), ends ? "ended" : "did not end");
  say("after the abort of one child, a sum on its sibling {}", fate);
  (void)nccl.GroupStart();
  (void)nccl.CommAbort(children[1]);
  (void)nccl.GroupEnd();
  summarise("after the abort of one child, a sum on its sibling {}", fate);
  return 0;
}

// An operation that never ends, since rank 0 issues it alone, and what is queued behind it.
struct Stuck {
  Mesh mesh;
  std::shared_ptr<rankmesh::GroupCoordinator> behind =
      mesh.new_group(mesh["tp"].ranks().to_vector(), "behind");
  Stream stream = Stream::create();
  rankmesh::device::DeviceBuffer<float> value{10};

  explicit Stuck(const rankmesh::MeshOptions& wanted) : mesh{MPI_COMM_WORLD, "tp=auto", wanted} {
    check_sum(mesh["tp"], {});
    check_sum(*behind, {});
    meet();
    if (rank() == 0) mesh["tp"].all_reduce(value.span(), stream);
  }
};

int abort_behind(const Arguments&) {
  choose_device();
  Stuck stuck{options()};
  if (rank() == 0)
    for (int i = 0; i < 10; ++i) stuck.behind->all_reduce(stuck.value.span(), stuck.stream);
  const double begin = now();
  stuck.mesh.abort();
  const double seconds = now() - begin;
  require(is_idle_within(10, stuck.stream), "the stream is still busy after the abort");
  require(seconds < 15, fmt::format("the abort took {:.1f} s", seconds));
  meet();
  (void)end(stuck.mesh);
  summarise("an abort of two communicators, one behind the other's stuck kernel, took {:.2f} s",
            seconds);
  return 0;
}

// Fills the launch queue behind a stuck kernel. NVIDIA does not document how long the queue is.
int full_queue(const Arguments&) {
  choose_device();
  rankmesh::MeshOptions wanted = options();
  wanted.timeout = rankmesh::Deadline::Duration{5};
  wanted.device_deadline = rankmesh::Deadline::Duration{30};  // if the queue has no end
  Stuck stuck{wanted};
  int issued = 0;
  std::string said = "no call failed";
  const double begin = now();
  if (rank() == 0) try {
      for (; issued < 100'000; ++issued) stuck.behind->all_reduce(stuck.value.span(), stuck.stream);
    } catch (const rankmesh::TimeoutError& error) {
      said = error.what();
    }
  const double seconds = now() - begin;
  say("{} operations were issued behind a stuck one; {}", issued, said);
  stuck.mesh.abort();
  require(is_idle_within(10, stuck.stream), "the stream is still busy after the abort");
  meet();
  (void)end(stuck.mesh);
  summarise("{} operations fit behind a stuck one; the next ended after {:.1f} s", issued, seconds);
  return 0;
}

const Register broken_row{"holds_error", holds_error};
const Register fate_row{"shared_fate", shared_fate};
const Register behind_row{"abort_behind", abort_behind};
const Register queue_row{"full_queue", full_queue};

}  // namespace
}  // namespace gpu_rows
