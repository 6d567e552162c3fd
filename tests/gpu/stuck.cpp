// SPDX-License-Identifier: BSD-3-Clause
// Rows about operations that do not end on the device, and aborts that NCCL cannot carry out at
// once: every call of rankmesh ends at its limit, and the next mesh works.
#include <cuda_runtime_api.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "rankmesh/device/nccl/mode.hpp"
#include "rankmesh/device/stream.hpp"
#include "raw_communicator.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::Mesh;
using rankmesh::device::check;
using rankmesh::device::DeviceBuffer;
using rankmesh::device::Stream;

constexpr double abort_limit = 5;  // seconds that an abort waits at most
constexpr double margin = 3;       // what a deadline may be missed by

// The warnings of a mesh, which may come from other threads.
struct Heard {
  std::mutex mutex{};
  std::string text{};
};

std::string warnings_of(Heard& heard) {
  const std::lock_guard lock{heard.mutex};
  return heard.text;
}

rankmesh::MeshOptions hearing_options(Heard& heard, double timeout) {
  rankmesh::MeshOptions wanted = options();
  wanted.timeout = rankmesh::Deadline::Duration{timeout};
  wanted.check = false;  // a comparison of the calls would wait instead of NCCL
  wanted.log = [&heard](rankmesh::LogLevel level, std::string_view line) {
    if (level != rankmesh::LogLevel::warning) return;
    const std::lock_guard lock{heard.mutex};
    heard.text += line;
  };
  return wanted;
}

DeviceBuffer<float> stuck_value() {
  return DeviceBuffer<float>{std::span<const float>{std::vector<float>(1000, 1)}};
}

cudaGraphExec_t graph_with_sum(rankmesh::GroupCoordinator& group, const DeviceBuffer<float>& value,
                               const Stream& stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check(cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  group.all_reduce(value.span(), stream);
  check(cudaStreamEndCapture(stream.native(), &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  check(cudaGraphLaunch(exec, stream.native()), "cudaGraphLaunch");
  stream.wait(rankmesh::Deadline{rankmesh::Deadline::Duration{60}});
  return exec;
}

// NCCL's abort waits until the graphs that hold operations of the communicator are destroyed.
int abort_with_graph(const Arguments&) {
  choose_device();
  const DeviceBuffer<float> value = stuck_value();
  const Stream stream = Stream::create();
  Heard heard;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", hearing_options(heard, 60)};
  check_sum(mesh["tp"], stream);
  cudaGraphExec_t exec = graph_with_sum(mesh["tp"], value, stream);
  meet();
  const double begin = now();
  mesh.abort();
  const double seconds = now() - begin;
  say("an abort with a living graph: {:.2f} s; {}", seconds, warnings_of(heard));
  require(seconds < margin, "an abort waited for a graph");
  require(warnings_of(heard).find("left behind: 'tp'") != std::string::npos,
          "nothing says that the communicator was left behind");
  check(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
  (void)end_mesh(mesh);
  check_next_mesh();
  summarise("an abort with a living graph took {:.2f} s, and the next mesh worked", seconds);
  return 0;
}

// The second communicator's operations are queued behind the first one's, which never ends. NCCL's
// abort of the second one waits for them, so both have to be aborted at the same time.
int abort_behind(const Arguments&) {
  choose_device();
  Heard heard;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", hearing_options(heard, 60)};
  const auto behind = mesh.new_group(mesh["tp"].ranks().to_vector(), "behind");
  const Stream stream = Stream::create();
  const DeviceBuffer<float> value = stuck_value();
  check_sum(mesh["tp"], stream);
  check_sum(*behind, stream);
  meet();
  if (rank() == 0) {
    mesh["tp"].all_reduce(value.span(), stream);  // alone: it never ends
    for (int i = 0; i < 10; ++i) behind->all_reduce(value.span(), stream);
  } else {
    meet();  // the others abort after rank 0, which might learn of their aborts
  }
  const double begin = now();
  mesh.abort();
  const double seconds = now() - begin;
  stream.wait(rankmesh::Deadline{rankmesh::Deadline::Duration{30}});
  if (rank() == 0) meet();
  require(warnings_of(heard).empty(), "an abort left something behind: " + warnings_of(heard));
  meet();
  (void)end_mesh(mesh);
  check_next_mesh();
  summarise("an abort of two communicators, one behind the other's operation, took {:.2f} s",
            seconds);
  return 0;
}

// Rank 0 queues calls of one group behind an operation of another one that never ends, until a call
// waits inside CUDA or NCCL. The abort of the call's own communicator cannot end this wait.
int behind_another(const Arguments&) {
  constexpr double timeout = 10;
  constexpr int most_calls = 20'000;
  if (!rankmesh::nccl::blocks_after_creation(rankmesh::nccl::Library::load(), true))
    return skip("calls on communicators do not block before NCCL 2.23");
  choose_device();
  Heard heard;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", hearing_options(heard, timeout)};
  const auto mine = mesh.new_group(mesh["tp"].ranks().to_vector(), "mine");
  const Stream stream = Stream::create();
  const DeviceBuffer<float> value = stuck_value();
  check_sum(*mine, stream);
  check_sum(mesh["tp"], stream);
  meet();
  std::string error;
  int calls = 0;
  double seconds = 0;
  if (rank() == 0) {
    mesh["tp"].all_reduce(value.span(), stream);  // alone: it never ends
    double last = now();
    try {
      for (; calls < most_calls; ++calls, last = now()) mine->all_reduce(value.span(), stream);
      mine->wait(stream);
    } catch (const rankmesh::TimeoutError& failure) {
      error = failure.what();
    }
    seconds = now() - last;
    say("after {} calls, the next one ended in {:.2f} s: {}", calls, seconds, error);
    say("{}", warnings_of(heard));
    require(!error.empty(), "a call behind an operation that never ends was complete");
    require(seconds < timeout + 1 + abort_limit + margin, "a call did not end at its limit");
  }
  meet();
  mesh.abort();
  stream.wait(rankmesh::Deadline{rankmesh::Deadline::Duration{30}});
  (void)end_mesh(mesh);
  check_next_mesh();
  summarise("call {} waited behind another group's operation, and ended after {:.2f} s", calls + 1,
            seconds);
  return 0;
}

// All ranks but rank 1 wait for it, by a function of CUDA that has no limit.
int device_deadline(const Arguments&) {
  constexpr double limit_on_device = 5;
  choose_device();
  Heard heard;
  rankmesh::MeshOptions wanted = hearing_options(heard, 60);
  wanted.device_deadline = rankmesh::Deadline::Duration{limit_on_device};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", wanted};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const DeviceBuffer<float> value = stuck_value();
  check_sum(tp, stream);
  meet();
  const double begin = now();
  if (rank() != 1) {
    tp.all_reduce(value.span(), stream);
    check(cudaStreamSynchronize(stream.native()), "cudaStreamSynchronize");
  }
  const double seconds = now() - begin;
  // Rank 1 learns of it from the board of the node.
  const rankmesh::Deadline soon{rankmesh::Deadline::Duration{limit_on_device + margin}};
  while (warnings_of(heard).empty() && !soon.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  meet();
  std::string error;
  try {
    tp.all_reduce(value.span(), stream);
  } catch (const rankmesh::Error& failure) {
    error = failure.what();
  }
  say("cudaStreamSynchronize returned after {:.2f} s; the next call: {}", seconds, error);
  require(seconds < limit_on_device + abort_limit + margin, "the limit of the device was not kept");
  for (const char* part : {"all_reduce of 'tp'", "has not ended on the device", "missing: rank 1"})
    require(error.find(part) != std::string::npos,
            fmt::format("the error does not say \"{}\": {}", part, error));
  mesh.abort();
  (void)end_mesh(mesh);
  check_next_mesh();
  summarise("an operation that did not end was aborted after {:.2f} s, and the next mesh worked",
            seconds);
  return 0;
}

const Register abort_behind_row{"abort_behind", abort_behind};
const Register graph_abort_row{"abort_with_graph", abort_with_graph};
const Register behind_row{"behind_another", behind_another};
const Register deadline_row{"device_deadline", device_deadline};

}  // namespace
}  // namespace gpu_rows
