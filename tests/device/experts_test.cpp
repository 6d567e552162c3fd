// SPDX-License-Identifier: BSD-3-Clause
// Expert dispatch on device memory, against the same reference as on the host.
#include "exchange/experts_reference.hpp"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "support/checks.hpp"

using namespace experts_reference;
using device::DeviceBuffer;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

namespace {

struct OnDevice {
  const device::Stream& on;

  template <class T>
  using Memory = DeviceBuffer<T>;
  ExpertRoute route(ExpertDispatcher& dispatcher, const std::vector<std::int32_t>& ids,
                    std::int64_t top_k) const {
    const DeviceBuffer<std::int32_t> there{std::span<const std::int32_t>{ids}};
    return dispatcher.route(DeviceSpan<const std::int32_t>{there.data(), there.size()}, top_k, on);
  }
  template <class T>
  static DeviceBuffer<T> put(const std::vector<T>& values) {
    return DeviceBuffer<T>{std::span<const T>{values}};
  }
  template <class T>
  static DeviceSpan<T> view(const DeviceBuffer<T>& buffer) {
    return buffer.span();
  }
  template <class T>
  std::vector<T> get(const DeviceBuffer<T>& buffer) const {
    return buffer.download(on);
  }
  [[nodiscard]] StreamRef stream() const { return on; }
};

}  // namespace

TEST_CASE("random steps of expert dispatch on devices equal one process") {
  Mesh mesh{MPI_COMM_WORLD, mesh_text(), test_platform::options()};
  const device::Stream stream = device::Stream::create();
  std::mt19937 random{23};
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    GroupCoordinator& ep = mesh[round % 4 == 3 ? "dp" : "ep"];
    const Shape shape = random_shape(random, ep.size());
    test_step<float>(ep, shape, random, OnDevice{stream});
    if (round % 3 == 0) test_step<double>(ep, shape, random, OnDevice{stream});
    if (round % 3 == 1) test_step<BFloat16>(ep, shape, random, OnDevice{stream});
    if (round % 3 == 2) test_step<Float16>(ep, shape, random, OnDevice{stream});
  }
  mesh.close();
}

TEST_CASE("steps of expert dispatch allocate nothing, free nothing and wait for no other stream") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto", test_platform::options()};
  auto& ep = mesh["ep"];
  const device::Stream stream = device::Stream::create();
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(2 * ep.size(), ep.size())};
  const std::int64_t experts = 2 * ep.size();
  constexpr std::int64_t tokens = 24;
  const DeviceBuffer<float> in{tokens * 8}, weights{tokens * 2}, out{tokens * 8},
      rows{static_cast<std::size_t>(tokens * 2 * ep.size() * 8)};
  std::vector<DeviceBuffer<std::int32_t>> ids;
  for (int step = 0; step < 8; ++step) {
    std::vector<std::int32_t> chosen;
    // From the third step on, each step has the sizes of one of the first two.
    for (std::int64_t i = 0; i < tokens * 2; ++i)
      chosen.push_back(static_cast<std::int32_t>((i * 7 + step % 2) % experts));
    ids.emplace_back(std::span<const std::int32_t>{chosen});
  }
  FakeCudaCounters before{};
  for (std::size_t step = 0; step < ids.size(); ++step) {
    if (step == 2) before = test_platform::cuda();
    const ExpertRoute route = dispatcher.route(
        DeviceSpan<const std::int32_t>{ids[step].data(), ids[step].size()}, 2, stream);
    const auto of_route = rows.span().subspan(0, static_cast<std::size_t>(route.rows() * 8));
    dispatcher.dispatch(route, in.span(), of_route, stream);
    dispatcher.combine(route, of_route, weights.span(), out.span(), stream);
  }
  stream.wait(Deadline{Deadline::Duration{30}});
  const FakeCudaCounters after = test_platform::cuda();
  CHECK(after.device_waits == before.device_waits);
  CHECK(after.allocations == before.allocations);
  CHECK(after.pinned == before.pinned);
  CHECK(after.pool_growths == before.pool_growths);
  mesh.close();
}

TEST_CASE("a dispatcher that is destroyed waits for the work that uses its memory") {
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  Mesh mesh{MPI_COMM_WORLD, "ep=auto", test_platform::options()};
  auto& ep = mesh["ep"];
  const device::Stream stream = device::Stream::create();
  const auto next = static_cast<std::int32_t>((ep.rank_in_group().value() + 1) % ep.size());
  const DeviceBuffer<float> tokens{std::span<const float>{std::vector<float>{4, 5}}}, rows{2},
      weights{2}, out{2};
  std::atomic<bool> is_open = false;
  std::jthread opens;
  {
    ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(ep.size(), ep.size())};
    const ExpertRoute route = OnDevice{stream}.route(dispatcher, {next, next}, 1);
    const auto step = [&] {
      dispatcher.dispatch(route, tokens.span(), rows.span(), stream);
      dispatcher.combine(route, rows.span(), weights.span(), out.span(), stream);
    };
    step();  // the members connect to each other
    stream.wait(Deadline{Deadline::Duration{30}});
    const auto hold = [](void* flag) {
      while (!*static_cast<std::atomic<bool>*>(flag))
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    };
    REQUIRE(cudaLaunchHostFunc(stream.native(), hold, &is_open) == cudaSuccess);
    step();
    wait_for_all();
    opens = std::jthread{[&] {
      std::this_thread::sleep_for(std::chrono::milliseconds{50});
      is_open = true;
    }};
  }
  CHECK(is_open);
  CHECK(stream.query());
  mesh.close();
}

TEST_CASE("a dispatcher's memory grows before a capture, not in it, and reserve() is enough") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "ep=auto", test_platform::options()};
  auto& ep = mesh["ep"];
  const device::Stream stream = device::Stream::create();
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(ep.size(), ep.size())};
  const auto next = static_cast<std::int32_t>((ep.rank_in_group().value() + 1) % ep.size());
  const ExpertRoute route = OnDevice{stream}.route(dispatcher, {next, next}, 1);
  const DeviceBuffer<float> tokens{std::span<const float>{std::vector<float>{4, 5}}},
      rows{static_cast<std::size_t>(route.rows())};
  cudaGraph_t graph = nullptr;
  const auto capture = [&] {
    return cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeThreadLocal);
  };
  REQUIRE(capture() == cudaSuccess);
  CHECK_THROWS_WITH_AS(dispatcher.dispatch(route, tokens.span(), rows.span(), stream),
                       doctest::Contains("cannot be allocated while its stream is captured"),
                       UsageError);
  REQUIRE(cudaStreamEndCapture(stream.native(), &graph) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  const FakeCudaCounters before = test_platform::cuda();
  dispatcher.reserve(route, sizeof(float), MemoryKind::device);
  CHECK(test_platform::cuda().device_waits == before.device_waits);
  wait_for_all();
  REQUIRE(capture() == cudaSuccess);
  dispatcher.dispatch(route, tokens.span(), rows.span(), stream);
  REQUIRE(cudaStreamEndCapture(stream.native(), &graph) == cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(exec, stream.native()) == cudaSuccess);
  CHECK(rows.download(stream) == std::vector<float>{4, 5});
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
  mesh.close();
}

TEST_CASE("rows in symmetric memory are exchanged like others, also with one slot per rank") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "ep=auto", test_platform::options()};
  auto& ep = mesh["ep"];
  const device::Stream stream = device::Stream::create();
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(ep.size(), ep.size())};
  const auto own = static_cast<std::int32_t>(ep.rank_in_group().value());
  const auto next = static_cast<std::int32_t>((own + 1) % ep.size());
  const ExpertRoute route = OnDevice{stream}.route(dispatcher, {next, own, next}, 1);
  const auto number = static_cast<float>(10 * own);
  const std::vector<float> values{number + 1, number + 2, number + 3};
  const DeviceBuffer<float> tokens{std::span<const float>{values}}, ordinary{3}, seen{3}, out{3},
      weights{std::span<const float>{std::vector<float>(3, 1)}};
  const auto rows = mesh.allocate_symmetric<float, MemoryKind::device>(3, {"ep"});
  dispatcher.dispatch(route, tokens.span(), ordinary.span(), stream);
  for (int turn = 0; turn < 2; ++turn) {
    dispatcher.dispatch(route, tokens.span(), rows, stream);
    device::detail::copy_on_device(seen.data(), rows.data(), 3 * sizeof(float), stream);
    CHECK(seen.download(stream) == ordinary.download(stream));
    dispatcher.combine(route, rows, weights.span(), out.span(), stream);
    CHECK(out.download(stream) == values);
    dispatcher.collect_choices(route, rows, out.span(), stream);
    CHECK(out.download(stream) == values);
  }
  wait_for_all();
  mesh.close();
}

TEST_CASE("kernels are loaded before NCCL's first operation, not in their first launch") {
  Mesh mesh{MPI_COMM_WORLD, mesh_text(), test_platform::options()};
  const device::Stream stream = device::Stream::create();
  std::mt19937 random{29};
  Shape shape = random_shape(random, mesh["ep"].size());
  shape.tokens.assign(shape.tokens.size(), 7);
  test_step<float>(mesh["ep"], shape, random, OnDevice{stream});
  test_step<Float16>(mesh["ep"], shape, random, OnDevice{stream});
  CHECK(test_platform::cuda().late_loads == 0);
  mesh.close();
}

TEST_CASE("an older error of the program is not taken for the error of a launch") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto", test_platform::options()};
  auto& ep = mesh["ep"];
  const device::Stream stream = device::Stream::create();
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(ep.size(), ep.size())};
  const ExpertRoute route = OnDevice{stream}.route(dispatcher, {0}, 1);
  const DeviceBuffer<float> token{std::span<const float>{std::vector<float>{5}}},
      weight{std::span<const float>{std::vector<float>{1}}}, out{1},
      rows{static_cast<std::size_t>(route.rows())};
  CHECK(cudaSetDevice(9999) != cudaSuccess);  // CUDA keeps the error until cudaGetLastError
  dispatcher.dispatch(route, token.span(), rows.span(), stream);
  dispatcher.combine(route, rows.span(), weight.span(), out.span(), stream);
  (void)cudaGetLastError();
  CHECK(out.download(stream) == std::vector<float>{5});
  mesh.close();
}

TEST_CASE(
    "sums of rows that are aligned for wide loads, and of rows that are not, equal the host's") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto", test_platform::options()};
  auto& ep = mesh["ep"];
  const device::Stream stream = device::Stream::create();
  std::mt19937 random{31};
  for (const std::int64_t hidden : {8, 16, 264, 12, 1}) {
    CAPTURE(hidden);
    Shape shape = random_shape(random, ep.size());
    shape.tokens.assign(shape.tokens.size(), 7);
    shape.hidden = hidden;
    test_step<BFloat16>(ep, shape, random, OnDevice{stream});
    test_step<Float16>(ep, shape, random, OnDevice{stream});
    test_step<float>(ep, shape, random, OnDevice{stream});
    test_step<double>(ep, shape, random, OnDevice{stream});
  }
  mesh.close();
}

TEST_CASE("rows at addresses that are not aligned for wide loads") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto", test_platform::options()};
  auto& ep = mesh["ep"];
  const device::Stream stream = device::Stream::create();
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(ep.size(), ep.size())};
  const auto self = static_cast<std::int32_t>(ep.rank_in_group().value());
  const ExpertRoute route = OnDevice{stream}.route(dispatcher, {self}, 1);
  const DeviceBuffer<float> token{
      std::span<const float>{std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8}}},
      weight{std::span<const float>{std::vector<float>{2}}}, rows{9}, out{9};
  const auto but_first = [](const DeviceBuffer<float>& buffer) {
    return buffer.span().subspan(1, 8);
  };
  dispatcher.dispatch(route, but_first(token), but_first(rows), stream);
  dispatcher.combine(route, but_first(rows), weight.span(), but_first(out), stream);
  const std::vector<float> result = out.download(stream);
  CHECK(std::vector<float>(result.begin() + 1, result.end()) ==
        std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16});
  mesh.close();
}

TEST_CASE(
    "a route of ids in host memory works on host memory only; one of device memory works on both") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto", test_platform::options()};
  auto& ep = mesh["ep"];
  const device::Stream stream = device::Stream::create();
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(4, ep.size())};
  const std::vector<std::int32_t> ids{0, 1};
  const ExpertRoute of_host = dispatcher.route(ids, 1);
  const DeviceBuffer<float> tokens{std::span<const float>{std::vector<float>{1, 2}}};
  const DeviceBuffer<float> rows{static_cast<std::size_t>(of_host.rows())};
  CHECK_THROWS_WITH_AS(dispatcher.dispatch(of_host, tokens.span(), rows.span(), stream),
                       doctest::Contains("ids in host memory"), UsageError);

  const ExpertRoute of_device = OnDevice{stream}.route(dispatcher, ids, 1);
  dispatcher.reserve(of_device, sizeof(float), MemoryKind::device);
  std::vector<float> host_rows(static_cast<std::size_t>(of_device.rows())), out(2);
  dispatcher.dispatch(of_device, std::vector<float>{1, 2}, host_rows);
  dispatcher.combine(of_device, host_rows, std::vector<float>{2, 3}, out);
  CHECK(out == std::vector<float>{2, 6});
  mesh.close();
}

TEST_CASE("an expert dispatcher refuses calls inside a batch") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto", test_platform::options()};
  auto& ep = mesh["ep"];
  const device::Stream stream = device::Stream::create();
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(2 * ep.size(), ep.size())};
  const OnDevice there{stream};
  const ExpertRoute route = there.route(dispatcher, {0, 1}, 1);
  const auto tokens = OnDevice::put(std::vector<float>(2 * 4, 1.0F));
  const DeviceBuffer<float> rows{static_cast<std::size_t>(route.rows() * 4)};
  NcclGroup batch{mesh};
  CHECK_CONTAINS(thrown_by<UsageError>([&] {
                   dispatcher.dispatch(route, tokens.span(), rows.span(), stream);
                 }).message(),
                 "it is called inside an NcclGroup");
  batch.end();
  dispatcher.dispatch(route, tokens.span(), rows.span(), stream);
  CHECK(rows.download(stream) ==
        std::vector<float>(static_cast<std::size_t>(route.rows() * 4), 1.0F));
  mesh.close();
}
