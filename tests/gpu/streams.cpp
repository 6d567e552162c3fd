// SPDX-License-Identifier: BSD-3-Clause
// Rows about streams and captures: the per-thread default stream, captures that become invalid, and
// graphs that hold operations of two communicators.
#include <cuda_runtime_api.h>

#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/stream.hpp"
#include "raw_communicator.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::Mesh;
using rankmesh::device::check;
using rankmesh::device::DeviceBuffer;
using rankmesh::device::Stream;

constexpr std::size_t elements = std::size_t{1} << 22;
constexpr int rounds = 20;

// Writes ones on the per-thread default stream, then reduces on it at once. The result is wrong if
// the reduction runs on another thread's stream and does not wait for the write.
template <class Reduce>
int wrong_rounds(const Reduce& reduce) {
  DeviceBuffer<float> buffer{elements};
  const std::vector<float> zeros(elements, 0);
  const std::vector<float> ones(elements, 1);
  const DeviceBuffer<float> source{std::span<const float>{ones}};
  std::vector<float> result(elements);
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    buffer.upload(zeros, {});
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    meet();
    check(cudaMemcpyAsync(buffer.data(), source.data(), elements * sizeof(float),
                          cudaMemcpyDeviceToDevice, cudaStreamPerThread),
          "cudaMemcpyAsync");
    reduce(buffer.span());
    check(cudaMemcpyAsync(result.data(), buffer.data(), elements * sizeof(float),
                          cudaMemcpyDeviceToHost, cudaStreamPerThread),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    for (const float value : result) {
      if (value == static_cast<float>(size())) continue;
      ++wrong;
      break;
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return wrong;
}

int per_thread_stream(const Arguments&) {
  choose_device();
  for (const bool blocking : {true, false}) {
    const RawCommunicator raw{{.blocking = blocking}};
    const int wrong = wrong_rounds([&](auto span) {
      raw.all_reduce(span.data(), span.data(), span.size(), cudaStreamPerThread);
    });
    say("NCCL alone, {}: {} of {} rounds wrong", blocking ? "blocking" : "non-blocking", wrong,
        rounds);
  }
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options()};
  int wrong = 0;
  const Outcome outcome = try_call([&] {
    wrong = wrong_rounds([&](auto span) { mesh["tp"].all_reduce(span, cudaStreamPerThread); });
  });
  say("rankmesh: {}", outcome.refused ? outcome.text : fmt::format("{} rounds wrong", wrong));
  require(wrong == 0, "a reduction on the per-thread default stream did not wait for the stream");
  check_sum(mesh["tp"], {});
  mesh.close();
  summarise("cudaStreamPerThread is {}", outcome.refused ? "refused" : "right in all rounds");
  return 0;
}

int invalid_capture(const Arguments&) {
  choose_device();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options()};
  const Stream stream = Stream::create();
  const DeviceBuffer<float> value{std::span<const float>{std::vector<float>{1}}};
  check_sum(mesh["tp"], stream);
  check(cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  // To wait for a stream that is being captured is not allowed, and makes the capture invalid.
  say("a wait for the captured stream: {}",
      cudaGetErrorString(cudaStreamSynchronize(stream.native())));
  (void)cudaGetLastError();
  const Outcome outcome = try_call([&] { mesh["tp"].all_reduce(value.span(), stream); });
  cudaGraph_t graph = nullptr;
  say("the end of the capture: {}",
      cudaGetErrorString(cudaStreamEndCapture(stream.native(), &graph)));
  (void)cudaGetLastError();
  say("rankmesh, in the invalid capture: {}", outcome.refused ? outcome.text : "accepted the call");
  require(outcome.refused, "a call was accepted on a stream whose capture is invalid");
  check_sum(mesh["tp"], stream);
  mesh.close();
  summarise("a call in an invalid capture is refused, and the group goes on working");
  return 0;
}

// One graph with operations of two communicators, which NCCL may order as it likes.
int two_in_a_graph(const Arguments&) {
  choose_device();
  rankmesh::MeshOptions wanted = options();
  wanted.names["tp"].duplicates = {"side"};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", wanted};
  auto& tp = mesh["tp"];
  auto& side = mesh.duplicate("tp", "side");
  const Stream stream = Stream::create();
  DeviceBuffer<float> one{1000};
  DeviceBuffer<float> other{1000};
  check_sum(tp, stream);
  check_sum(side, stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check(cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  tp.all_reduce(one.span(), stream);
  side.all_reduce(other.span(), stream);
  tp.all_reduce(other.span(), stream);
  check(cudaStreamEndCapture(stream.native(), &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  const std::vector<float> ones(1000, 1);
  const auto n = static_cast<float>(size());
  for (int launch = 0; launch < rounds; ++launch) {
    one.upload(ones, stream);
    other.upload(ones, stream);
    check(cudaGraphLaunch(exec, stream.native()), "cudaGraphLaunch");
    require(one.download(stream)[999] == n && other.download(stream)[999] == n * n,
            fmt::format("launch {} of a graph over two communicators is wrong", launch));
  }
  check(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
  meet();
  mesh.close();
  summarise("{} launches of a graph over two communicators were right", rounds);
  return 0;
}

const Register per_thread_row{"per_thread_stream", per_thread_stream};
const Register capture_row{"invalid_capture", invalid_capture};
const Register graph_row{"two_in_a_graph", two_in_a_graph};

}  // namespace
}  // namespace gpu_rows
