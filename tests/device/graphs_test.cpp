// SPDX-License-Identifier: BSD-3-Clause
// CUDA graphs that hold operations of a mesh.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using device::Stream;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;
using test_platform::captured;
using test_platform::on_device;

TEST_CASE("a mesh knows the graphs that hold its operations, and closes only after them") {
  NEEDS_AT_MOST_RANKS(4);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  tp.all_reduce(value.span(), stream);  // once before, as every program does
  stream.wait(Deadline{Deadline::Duration{30}});
  cudaGraph_t graph = captured(stream, [&] {
    tp.all_reduce(value.span(), stream);
    tp.all_reduce(value.span(), stream);
  });
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  float expected = static_cast<float>(size());
  for (int launch = 0; launch < 2; ++launch) {
    REQUIRE(cudaGraphLaunch(exec, stream.native()) == cudaSuccess);
    expected *= static_cast<float>(size() * size());
  }
  CHECK(value.download(stream) == std::vector{expected});
  if (size() > 1) {
    CHECK_THROWS_WITH_AS(
        mesh.close(),
        doctest::Contains("CUDA graphs that hold its operations are alive: 1 of 'tp'"),
        MismatchError);
    CHECK(!mesh.is_closed());
    tp.all_reduce(value.span(), stream);  // it goes on working
    stream.wait(Deadline{Deadline::Duration{30}});
  }
  wait_for_all();
  REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
  mesh.close();
}

TEST_CASE("asynchronous operations in a graph leave those outside of it alone") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  const auto sum = [&] { tp.all_reduce_async(value.span(), stream).wait(); };
  sum();
  stream.wait(Deadline{Deadline::Duration{30}});
  cudaGraph_t graph = captured(stream, sum);
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  for (int turn = 0; turn < 2; ++turn) {
    sum();
    REQUIRE(cudaGraphLaunch(exec, stream.native()) == cudaSuccess);
  }
  mesh.progress();
  const auto all = static_cast<float>(size());
  CHECK(value.download(stream) == std::vector{all * all * all * all * all});
  wait_for_all();
  REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
  mesh.close();
}

TEST_CASE("each capture counts: the mesh closes only after the graphs of all of them") {
  NEEDS_AT_MOST_RANKS(4);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  mesh["tp"].all_reduce(value.span(), stream);
  stream.wait(Deadline{Deadline::Duration{30}});
  cudaGraph_t graphs[2] = {};
  for (cudaGraph_t& graph : graphs)
    graph = captured(stream, [&] { mesh["tp"].all_reduce(value.span(), stream); });
  if (size() > 1) CHECK_THROWS_WITH_AS(mesh.close(), doctest::Contains("2 of 'tp'"), MismatchError);
  wait_for_all();
  REQUIRE(cudaGraphDestroy(graphs[0]) == cudaSuccess);
  if (size() > 1) CHECK_THROWS_WITH_AS(mesh.close(), doctest::Contains("1 of 'tp'"), MismatchError);
  wait_for_all();
  REQUIRE(cudaGraphDestroy(graphs[1]) == cudaSuccess);
  mesh.close();
  CHECK(mesh.is_closed());
}

TEST_CASE("a mesh closes after a graph is destroyed, although CUDA reports it a moment later") {
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  detail::patience_of_tests().graph_reports = Deadline::Duration{20};  // the thread may come late
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  cudaGraph_t graph = captured(stream, [&] { mesh["tp"].all_reduce(value.span(), stream); });
  std::thread cuda{[graph] {
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    (void)cudaGraphDestroy(graph);
  }};
  CHECK_NOTHROW(mesh.close());
  cuda.join();
  mesh.close();
}

TEST_CASE("graphs keep a dynamic group from closing, too") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(4);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  const auto group = mesh.new_group(mesh["tp"].ranks().to_vector(), "mine");
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  cudaGraph_t graph = captured(stream, [&] { group->all_reduce(value.span(), stream); });
  CHECK_THROWS_WITH_AS(mesh.close(*group), doctest::Contains("1 of 'mine'"), UsageError);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  mesh.close(*group);
  mesh.close();
}

TEST_CASE(
    "an operation in a capture that is invalidated throws before NCCL sees it, and the group goes "
    "on") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  const DeviceBuffer<float> all{static_cast<std::size_t>(size())};
  tp.all_reduce(value.span(), stream);
  stream.wait(Deadline{Deadline::Duration{30}});
  const FakeNcclCounters before = test_platform::nccl();
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream.native()) != cudaSuccess);  // not allowed during a capture
  (void)cudaGetLastError();
  const auto is_refused = doctest::Contains("the capture of the stream is invalidated");
  CHECK_THROWS_WITH_AS(tp.all_reduce(value.span(), stream), is_refused, UsageError);
  CHECK_THROWS_WITH_AS((void)tp.all_reduce_async(value.span(), stream), is_refused, UsageError);
  CHECK_THROWS_WITH_AS(tp.all_gather(value.span(), all.span(), Axis{{1, 1}, 1}, stream), is_refused,
                       UsageError);
  {
    NcclGroup together{mesh};
    if (size() > 1)
      CHECK_THROWS_WITH_AS(tp.all_reduce(value.span(), stream), is_refused, UsageError);
    together.end();
  }
  CHECK(cudaStreamEndCapture(stream.native(), &graph) == cudaErrorStreamCaptureInvalidated);
  (void)cudaGetLastError();
  CHECK(test_platform::nccl().launches == before.launches);
  wait_for_all();
  tp.all_reduce(value.span(), stream);
  CHECK(value.download(stream) == std::vector{static_cast<float>(size() * size())});
  mesh.close();
}

TEST_CASE("a wait for a stream that is captured is refused, and leaves the capture and the group") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  cudaGraph_t graph = captured(stream, [&] {
    CHECK_THROWS_WITH_AS(tp.wait(stream),
                         doctest::Contains("cannot wait for a stream that is being captured"),
                         UsageError);
    tp.all_reduce(value.span(), stream);
  });
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  tp.all_reduce(value.span(), stream);
  tp.wait(stream);
  CHECK(value.download(stream) == std::vector{static_cast<float>(size())});
  mesh.close();
}

TEST_CASE("a group that is created during a capture throws on all members, and the mesh goes on") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(4);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  const Stream stream = Stream::create();
  cudaGraph_t graph = nullptr;
  if (rank() == 0)
    REQUIRE(cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK_THROWS_WITH_AS((void)mesh.new_group(mesh["tp"].ranks().to_vector(), "mine"),
                       doctest::Contains("cudaDeviceSynchronize failed"), MismatchError);
  if (rank() == 0)
    CHECK(cudaStreamEndCapture(stream.native(), &graph) == cudaErrorStreamCaptureInvalidated);
  (void)cudaGetLastError();
  const auto group = mesh.new_group(mesh["tp"].ranks().to_vector(), "mine");
  const auto value = on_device<float>({1});
  group->all_reduce(value.span(), stream);
  CHECK(value.download(stream) == std::vector{static_cast<float>(size())});
  mesh.close();
}

TEST_CASE("the first operation along an axis may be captured") {
  NEEDS_AT_MOST_RANKS(4);
  SKIP_UNLESS(test_platform::is_double() && test_platform::has_16_devices(),
              "needs the CPU doubles of CUDA and NCCL, with 16 devices");
  int current = 0;
  (void)cudaGetDevice(&current);
  MeshOptions options = test_platform::short_timeout();
  options.device = 8 + rank();  // on which no other test makes such operations
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto n = static_cast<std::size_t>(size());
  const auto mine = on_device(std::vector<float>(6, static_cast<float>(rank() + 1)));
  const DeviceBuffer<float> all{6 * n};
  cudaGraph_t graph = captured(stream, [&] {
    tp.all_gather(mine.span(), all.span(), Axis{{2, 3}, 1}, stream);
  });
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(exec, stream.native()) == cudaSuccess);
  const std::vector<float> gathered = all.download(stream);
  for (std::size_t r = 0; r < n; ++r) CHECK(gathered[3 * r] == static_cast<float>(r + 1));
  wait_for_all();
  REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
  mesh.close();
  (void)cudaSetDevice(current);
}

TEST_CASE("the default stream is refused while a stream that waits for it is captured") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  const auto value = on_device<float>({1});
  mesh["tp"].all_reduce(value.span());
  REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
  cudaStream_t blocking = nullptr;
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamCreate(&blocking) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK_THROWS_WITH_AS(mesh["tp"].all_reduce(value.span()),
                       doctest::Contains("the default stream cannot be used"), UsageError);
  CHECK_THROWS_WITH_AS(mesh["tp"].wait(StreamRef{}),
                       doctest::Contains("the default stream cannot be used"), UsageError);
  REQUIRE(cudaStreamEndCapture(blocking, &graph) == cudaSuccess);  // the capture is intact
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(blocking) == cudaSuccess);
  wait_for_all();
  mesh["tp"].all_reduce(value.span());
  CHECK(value.download(StreamRef{}) == std::vector{static_cast<float>(size() * size())});
  mesh.close();
}
