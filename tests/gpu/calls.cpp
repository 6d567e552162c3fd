// SPDX-License-Identifier: BSD-3-Clause
// The cost of a call: all_reduce by NCCL alone and by rankmesh, on blocking and on non-blocking
// communicators, eager and in a CUDA graph. All ways take turns, so that all see the same machine.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <thread>

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

// Fewer large calls at once, so that the row ends in time where ranks share a device.
int calls_per_round(std::size_t elements) { return elements <= 16384 ? 20 : 4; }
constexpr double seconds_per_size = 2;

struct Way {
  std::string name;
  std::function<void(float*, std::size_t, cudaStream_t)> all_reduce;
  std::vector<double> host{};   // seconds until the host has issued a call
  std::vector<double> eager{};  // seconds per call until the device has finished them
  std::vector<double> graph{};  // the same for a launch of a graph that holds the calls
  cudaGraphExec_t exec = nullptr;
};

void capture(Way& way, float* values, std::size_t count, const Stream& stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  for (int i = 0; i < calls_per_round(count); ++i) way.all_reduce(values, count, stream.native());
  check(cudaStreamEndCapture(stream.native(), &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&way.exec, graph, 0), "cudaGraphInstantiate");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

void measure_once(Way& way, float* values, std::size_t count, const Stream& stream) {
  const rankmesh::Deadline deadline{rankmesh::Deadline::Duration{60}};
  const int calls = calls_per_round(count);
  meet();
  const double begin = now();
  for (int i = 0; i < calls; ++i) way.all_reduce(values, count, stream.native());
  way.host.push_back((now() - begin) / calls);
  stream.wait(deadline);
  way.eager.push_back((now() - begin) / calls);
  meet();
  const double launched = now();
  check(cudaGraphLaunch(way.exec, stream.native()), "cudaGraphLaunch");
  stream.wait(deadline);
  way.graph.push_back((now() - launched) / calls);
}

// Returns the number of the thread that is created next, nearly: it tells how many were created.
int next_thread() {
  int number = 0;
  std::thread{[&] { number = gettid(); }}.join();
  return number;
}

void measure(std::vector<Way>& ways, std::size_t bytes, const Stream& stream) {
  const std::size_t count = bytes / sizeof(float);
  const DeviceBuffer<float> zeros{std::span<const float>{std::vector<float>(count, 0)}};
  for (Way& way : ways) {
    way.host.clear();
    way.eager.clear();
    way.graph.clear();
    way.all_reduce(zeros.data(), count, stream.native());  // connects
    stream.wait(rankmesh::Deadline{rankmesh::Deadline::Duration{60}});
    capture(way, zeros.data(), count, stream);
  }
  const double begin = now();
  for (int more = 1; more != 0;) {
    for (Way& way : ways) measure_once(way, zeros.data(), count, stream);
    more = now() - begin < seconds_per_size && ways[0].host.size() < 200 ? 1 : 0;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  for (Way& way : ways) {
    const int threads = next_thread();
    const int calls = calls_per_round(count);
    for (int i = 0; i < calls; ++i) way.all_reduce(zeros.data(), count, stream.native());
    const int created = next_thread() - threads - 1;
    stream.wait(rankmesh::Deadline{rankmesh::Deadline::Duration{60}});
    check(cudaGraphExecDestroy(way.exec), "cudaGraphExecDestroy");
    say("{:>10} B  {:<24} {:8.1f} {:8.1f} {:8.1f}   {:5.1f}   {}", bytes, way.name,
        1e6 * median(way.host), 1e6 * median(way.eager), 1e6 * median(way.graph),
        static_cast<double>(created) / calls, way.host.size());
  }
}

int calls(const Arguments&) {
  choose_device();
  Mesh mesh = two_names({.blocking = true});
  const RawCommunicator blocking{{}};
  const RawCommunicator polled{{.blocking = false}};
  const auto by_nccl = [](const RawCommunicator& raw) {
    return [&raw](float* values, std::size_t count, cudaStream_t stream) {
      raw.all_reduce(values, values, count, stream);
    };
  };
  const auto by_mesh = [](rankmesh::GroupCoordinator& group) {
    return [&group](float* values, std::size_t count, cudaStream_t stream) {
      group.all_reduce(rankmesh::DeviceSpan<float>{values, count}, stream);
    };
  };
  std::vector<Way> ways{{"NCCL, blocking", by_nccl(blocking)},
                        {"NCCL, non-blocking", by_nccl(polled)},
                        {"rankmesh, blocking", by_mesh(mesh["all"])},
                        {"rankmesh", by_mesh(mesh["tp"])}};
  const Stream stream = Stream::create();
  say("microseconds per all_reduce over {} ranks, medians: host = until the call has returned,",
      size());
  say("eager and graph = until the device has finished, 20 calls at once, or 4 above 64 KiB;");
  say("threads = created per call on this machine");
  say("{:>12}  {:<24} {:>8} {:>8} {:>8} {:>7}   rounds", "size", "way", "host", "eager", "graph",
      "threads");
  double extra = 0;
  for (const std::size_t bytes : {4UL, 1024UL, 65536UL, 1048576UL, 16777216UL}) {
    measure(ways, bytes, stream);
    if (bytes == 4) extra = 1e6 * (median(ways[3].host) - median(ways[0].host));
  }
  meet();
  mesh.close();
  summarise("a call of rankmesh takes {:.1f} us more than a blocking call of NCCL (4 B, host)",
            extra);
  return 0;
}

const Register calls_row{"calls", calls};

}  // namespace
}  // namespace gpu_rows
