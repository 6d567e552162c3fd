// SPDX-License-Identifier: BSD-3-Clause
// Rows about captures: eager calls of a mesh while the program captures, and operations along an
// axis in graphs, which allocate memory there.
#include <cuda_runtime_api.h>

#include <future>

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

constexpr std::size_t captured_elements = 1000;
const rankmesh::Deadline::Duration capture_limit{60};

DeviceBuffer<float> filled(std::size_t count, float value) {
  return DeviceBuffer<float>{std::span<const float>{std::vector<float>(count, value)}};
}

// A graph that a capture has become.
class Graph {
 public:
  explicit Graph(cudaGraph_t graph) {
    check(cudaGraphInstantiate(&exec_, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  ~Graph() { (void)cudaGraphExecDestroy(exec_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(const Stream& stream) const {
    check(cudaGraphLaunch(exec_, stream.native()), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

void begin(const Stream& stream, cudaStreamCaptureMode mode) {
  check(cudaStreamBeginCapture(stream.native(), mode), "cudaStreamBeginCapture");
}
// Returns nothing if the capture became invalid.
cudaGraph_t end(const Stream& stream) {
  cudaGraph_t graph = nullptr;
  const cudaError_t code = cudaStreamEndCapture(stream.native(), &graph);
  if (code == cudaErrorStreamCaptureInvalidated || code == cudaErrorStreamCaptureUnsupported) {
    (void)cudaGetLastError();
    return nullptr;
  }
  check(code, "cudaStreamEndCapture");
  return graph;
}

// Captures `inside` in another thread, and runs `beside` in this one meanwhile.
cudaGraph_t captured_elsewhere(const Stream& stream, cudaStreamCaptureMode mode,
                               const std::function<void()>& inside,
                               const std::function<void()>& beside) {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  std::promise<void> has_begun;
  std::promise<void> may_end;
  std::future<cudaGraph_t> graph = std::async(std::launch::async, [&]() -> cudaGraph_t {
    check(cudaSetDevice(device), "cudaSetDevice");
    begin(stream, mode);
    inside();
    has_begun.set_value();
    may_end.get_future().wait();
    return end(stream);
  });
  has_begun.get_future().wait();
  std::exception_ptr failure;
  try {
    beside();
  } catch (...) {
    failure = std::current_exception();
  }
  may_end.set_value();
  cudaGraph_t result = graph.get();
  if (failure != nullptr) std::rethrow_exception(failure);
  return result;
}

cudaGraph_t captured_here(const Stream& stream, cudaStreamCaptureMode mode,
                          const std::function<void()>& inside,
                          const std::function<void()>& beside) {
  begin(stream, mode);
  inside();
  beside();
  return end(stream);
}

// Asks for nothing that CUDA forbids during a capture; the mesh must not either.
class EagerCalls {
 public:
  explicit EagerCalls(Mesh& mesh) : mesh_{&mesh} { run(); }
  void run() {
    auto& tp = (*mesh_)["tp"];
    for (int i = 0; i < 20; ++i) {
      tp.all_reduce(value_.span(), stream_);
      auto work = tp.all_reduce_async(other_.span(), rankmesh::ReduceOp::sum, stream_);
      (void)work.test();
      work.wait();
      mesh_->progress();
    }
  }
  void wait() const { stream_.wait(rankmesh::Deadline{capture_limit}); }
  /// Every sum of zeros is zero.
  void verify() const {
    require(
        value_.download(stream_)[0] == 0 && other_.download(stream_)[captured_elements - 1] == 0,
        "an eager sum beside a capture is wrong");
  }

 private:
  Mesh* mesh_;
  Stream stream_ = Stream::create();
  DeviceBuffer<float> value_ = filled(captured_elements, 0);
  DeviceBuffer<float> other_ = filled(captured_elements, 0);
};

struct CaptureMode {
  const char* name;
  cudaStreamCaptureMode mode;
  decltype(&captured_here) capture;
};

bool is_true_everywhere(bool condition) {
  int result = condition ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &result, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return result == 1;
}

// Whether NCCL alone leaves a capture intact that holds an operation of a communicator, while the
// communicator is also used outside of it. NCCL 2.28.9 asks about an event then, in the capture
// mode of the thread (ncclLaunchPrepare in src/enqueue.cc).
bool nccl_keeps(const RawCommunicator& raw, const CaptureMode& way) {
  const Stream captured = Stream::create();
  const Stream eager = Stream::create();
  const DeviceBuffer<float> one = filled(captured_elements, 0);
  const DeviceBuffer<float> other = filled(captured_elements, 0);
  const auto sum = [&](const DeviceBuffer<float>& value, const Stream& stream) {
    raw.all_reduce(value.data(), value.data(), captured_elements, stream.native());
  };
  sum(other, eager);
  eager.wait(rankmesh::Deadline{capture_limit});
  const cudaGraph_t graph = way.capture(
      captured, way.mode, [&] { sum(one, captured); },
      [&] {
        for (int i = 0; i < 20; ++i) sum(other, eager);
      });
  eager.wait(rankmesh::Deadline{capture_limit});
  if (graph != nullptr) check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return is_true_everywhere(graph != nullptr);
}

int beside_capture(const Arguments&) {
  choose_device();
  const RawCommunicator raw{{}};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options()};
  auto& tp = mesh["tp"];
  EagerCalls eager{mesh};
  eager.wait();
  const Stream stream = Stream::create();
  const DeviceBuffer<float> from = filled(captured_elements, 1);
  const DeviceBuffer<float> to = filled(captured_elements, 0);
  tp.all_reduce(to.span(), stream);
  stream.wait(rankmesh::Deadline{capture_limit});
  int invalidated_by_nccl = 0;
  const CaptureMode ways[] = {
      {"a thread-local capture of this thread", cudaStreamCaptureModeThreadLocal, captured_here},
      {"a global capture of this thread", cudaStreamCaptureModeGlobal, captured_here},
      {"a global capture of another thread", cudaStreamCaptureModeGlobal, captured_elsewhere}};
  for (const bool has_operation : {false, true})
    for (const CaptureMode& way : ways) {
      meet();
      const auto inside = [&] {
        check(cudaMemcpyAsync(to.data(), from.data(), captured_elements * sizeof(float),
                              cudaMemcpyDeviceToDevice, stream.native()),
              "cudaMemcpyAsync");
        if (has_operation) tp.all_reduce(to.span(), stream);
      };
      const cudaGraph_t made = way.capture(stream, way.mode, inside, [&] { eager.run(); });
      const std::string what =
          fmt::format("{} that holds {}", way.name, has_operation ? "a sum" : "a copy");
      eager.wait();
      if (!is_true_everywhere(made != nullptr)) {
        require(has_operation && !nccl_keeps(raw, way), "eager calls have invalidated " + what);
        say("eager calls beside {}: NCCL alone invalidates it, too", what);
        ++invalidated_by_nccl;
        continue;
      }
      const Graph graph{made};
      for (int launch = 0; launch < 3; ++launch) graph.launch(stream);
      const float expected = has_operation ? static_cast<float>(size()) : 1;
      require(to.download(stream)[captured_elements - 1] == expected, "wrong results: " + what);
      eager.verify();
      say("eager calls beside {}: right", what);
    }
  meet();
  mesh.close();
  summarise("rankmesh leaves the captures of the program intact in all modes; NCCL spoils {} of 6",
            invalidated_by_nccl);
  return 0;
}

// The array of all ranks along axis 1: element (row, column) has a value of its own.
float value_at(std::size_t row, std::size_t column, int launch) {
  return static_cast<float>((row * 31 + column * 7 + static_cast<std::size_t>(launch) * 3) % 1009);
}

// This rank's part of the array: `columns` columns of each row.
std::vector<float> part_of_array(std::size_t rows, std::size_t columns, int launch) {
  std::vector<float> result;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < columns; ++i)
      result.push_back(value_at(row, static_cast<std::size_t>(rank()) * columns + i, launch));
  return result;
}

int axis_graph(const Arguments&) {
  constexpr int launches = 10;
  choose_device();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto n = static_cast<std::size_t>(size());
  for (const std::size_t columns : {std::size_t{3}, std::size_t{1} << 14}) {
    constexpr std::size_t rows = 16;
    DeviceBuffer<float> part{rows * columns};
    const DeviceBuffer<float> whole{rows * columns * n};
    const DeviceBuffer<float> sums{rows * columns};
    const std::vector<std::int64_t> shape{rows, static_cast<std::int64_t>(columns)};
    const rankmesh::Axis axis{shape, 1};
    const auto queue = [&] {
      tp.all_gather(part.span(), whole.span(), axis, stream);
      tp.reduce_scatter(whole.span(), sums.span(), axis, rankmesh::ReduceOp::sum, stream);
    };
    part.upload(part_of_array(rows, columns, 0), stream);
    queue();
    stream.wait(rankmesh::Deadline{capture_limit});
    begin(stream, cudaStreamCaptureModeThreadLocal);
    queue();
    const cudaGraph_t made = end(stream);
    require(made != nullptr, "operations along an axis have invalidated their capture");
    const Graph graph{made};
    for (int launch = 0; launch < launches; ++launch) {
      std::vector<float> expected = part_of_array(rows, columns, launch);
      part.upload(expected, stream);
      graph.launch(stream);
      if (launch % 3 == 2) queue();  // eager calls use other memory
      const std::vector<float> gathered = whole.download(stream);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < gathered.size(); ++i)
        if (gathered[i] != value_at(i / (columns * n), i % (columns * n), launch)) ++wrong;
      require(wrong == 0,
              fmt::format("launch {}: {} of {} elements of a gather along axis 1 are wrong", launch,
                          wrong, gathered.size()));
      for (float& value : expected) value *= static_cast<float>(n);
      require(sums.download(stream) == expected,
              fmt::format("launch {}: a sum that is scattered along axis 1 is wrong", launch));
    }
    say("rows of {} floats per rank: {} launches were right", columns, launches);
    meet();
  }
  mesh.close();
  summarise("graphs with a gather and a scattered sum along axis 1 are right");
  return 0;
}

const Register beside_row{"beside_capture", beside_capture};
const Register axis_row{"axis_graph", axis_graph};

}  // namespace
}  // namespace gpu_rows
