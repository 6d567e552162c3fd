// SPDX-License-Identifier: BSD-3-Clause
// Endings on devices: aborts that NCCL cannot carry out at once, limits behind other communicators,
// captures beside other calls.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "device/endings.hpp"
#include "device/test_platform.hpp"
#include "group/detail/connection.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/nccl/mode.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using device::Stream;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;
using namespace test_endings;
using test_platform::captured;
using test_platform::inject;
using test_platform::is_double;
using test_platform::on_device;

TEST_CASE("an abort does not wait for living graphs, and ends when they are destroyed") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(5);
  for (const bool by_destructor : {false, true}) {
    CAPTURE(by_destructor);
    const long before = test_platform::nccl().communicators;
    const auto warnings = std::make_shared<Warnings>();
    cudaGraphExec_t exec = nullptr;
    {
      Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", options_with(warnings, 30)};
      const Stream stream = Stream::create();
      const auto value = on_device<float>({1});
      exec = graph_of(mesh["tp"], value, stream);
      wait_for_all();
      const Deadline soon{Deadline::Duration{more}};
      if (!by_destructor) {
        mesh.abort();
        CHECK_FALSE(soon.passed());
        CHECK_THROWS_WITH_AS(mesh["tp"].all_reduce(value.span(), stream),
                             doctest::Contains("left behind: 'tp' (until the CUDA graphs"),
                             ClosedError);
      }
    }
    CHECK_CONTAINS(warnings->all(), "left behind: 'tp' (until the CUDA graphs");
    if (is_double()) CHECK(test_platform::nccl().communicators == before + 1);
    REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
    CHECK(has_freed_all_but(before));
    wait_for_all();
  }
}

TEST_CASE("a limit is kept although the operations of the call's group wait behind another group") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(5);
  SKIP_UNLESS(is_double(), "leaves a device with work that does not end");
  const long before = test_platform::nccl().communicators;
  const auto warnings = std::make_shared<Warnings>();
  {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options_with(warnings, 1.5)};
    const auto group = mesh.new_group(mesh["tp"].ranks().to_vector(), "mine");
    const Stream stream = Stream::create();
    const auto value = on_device<float>({1});
    if (rank() == 0) {
      mesh["tp"].all_reduce(value.span(), stream);  // alone: neither of both ends
      group->all_reduce(value.span(), stream);
      inject("hang");
      const bool blocks = nccl::blocks_after_creation(nccl::Library::load(), true);
      const char* const said = blocks ? "left behind: 'mine' (work that its operations are queued"
                                      : "NCCL's call on 'mine' is still in progress";
      const Deadline soon{Deadline::Duration{1.5 + limit() + more}};
      CHECK_THROWS_WITH_AS(group->all_reduce(value.span(), stream), doctest::Contains(said),
                           TimeoutError);
      CHECK_FALSE(soon.passed());
      CHECK_THROWS_AS(group->all_reduce(value.span(), stream), ClosedError);
      inject("");
      if (blocks) CHECK_CONTAINS(warnings->all(), "left behind: 'mine'");
    }
    wait_for_all();
    const Deadline soon{Deadline::Duration{more}};
    mesh.abort();
    CHECK_FALSE(soon.passed());
    REQUIRE(cudaStreamSynchronize(stream.native()) == cudaSuccess);
  }
  CHECK(has_freed_all_but(before));
  wait_for_all();
}

TEST_CASE("a call that waits in CUDA behind another group's stuck work ends at its limit") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(5);
  SKIP_UNLESS(is_double(), "leaves a device with work that does not end");
  SKIP_UNLESS(nccl::blocks_after_creation(nccl::Library::load(), true), "calls do not block");
  const FakeNcclCounters before = test_platform::nccl();
  {
    const auto warnings = std::make_shared<Warnings>();
    Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", options_with(warnings, 1.5)};
    const auto duplicate = mesh.new_group(mesh["tp"].ranks().to_vector(), "mine");
    const Stream stream = Stream::create();
    const auto value = on_device<float>({1});
    if (rank() == 0) {
      mesh["tp"].all_reduce(value.span(), stream);  // alone: it does not end
      const Deadline soon{Deadline::Duration{1.5 + 1 + limit() + more}};
      const auto fill = [&] {
        for (int i = 0; i < 1200; ++i) duplicate->all_reduce(value.span(), stream);
      };
      CHECK_THROWS_WITH_AS(fill(), doctest::Contains("NCCL's call on 'mine' is still in progress"),
                           TimeoutError);
      CHECK_FALSE(soon.passed());
      CHECK_CONTAINS(warnings->all(), "All communicators are aborted now");
      REQUIRE(cudaStreamSynchronize(stream.native()) == cudaSuccess);
      CHECK_THROWS_WITH_AS(mesh["tp"].all_reduce(value.span(), stream),
                           doctest::Contains("was aborted"), TimeoutError);
    }
    wait_for_all();
    mesh.abort();
    CHECK(test_platform::nccl().unsafe_aborts == before.unsafe_aborts);
    CHECK(test_platform::nccl().stuck_ends == before.stuck_ends);
    wait_for_all();
  }
  CHECK(test_platform::nccl().communicators == before.communicators);
  wait_for_all();
}

TEST_CASE("a wait for a stream that reaches its limit ends what the stream waits for") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(5);
  for (const bool is_behind_another : {false, true}) {
    CAPTURE(is_behind_another);
    const long before = test_platform::nccl().communicators;
    {
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", options_with(std::make_shared<Warnings>(), 1)};
      const auto group = mesh.new_group(mesh["tp"].ranks().to_vector(), "mine");
      const Stream stream = Stream::create();
      const auto value = on_device<float>({1});
      if (rank() == 0) {
        mesh["tp"].all_reduce(value.span(), stream);  // alone: it does not end
        if (is_behind_another) group->all_reduce(value.span(), stream);
        GroupCoordinator& waiting = is_behind_another ? *group : mesh["tp"];
        CHECK_THROWS_WITH_AS(waiting.wait(stream), doctest::Contains("did not end within 1 s"),
                             TimeoutError);
        CHECK_NOTHROW(stream.wait(Deadline{Deadline::Duration{more}}));
      }
      wait_for_all();
      mesh.abort();
      wait_for_all();
    }
    CHECK(has_freed_all_but(before));
    wait_for_all();
  }
}

TEST_CASE("a call on a communicator of the program that ends late is not an error") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(5);
  SKIP_UNLESS(is_double(), "faults are injected into the double");
  SKIP_UNLESS(nccl::blocks_after_creation(nccl::Library::load(), true), "calls do not block");
  Mesh owner{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", options_with(std::make_shared<Warnings>(), 1)};
    const auto adopted = mesh.adopt(MPI_COMM_WORLD, "theirs", owner["tp"].native_nccl());
    // A large sum needs connections that the warm-up has not made, so it waits for all ranks.
    const std::vector<float> many(100'000, 1);
    const auto value = on_device(many);
    if (rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1800});
    CHECK_NOTHROW(adopted->all_reduce(value.span()));
    CHECK(value.download(StreamRef{}).back() == static_cast<float>(size()));
    CHECK_NOTHROW(adopted->all_reduce(value.span()));
    wait_for_all();
    mesh.abort();
    wait_for_all();
  }
  owner.close();
}

TEST_CASE("close of a group that reaches its limit aborts the group's communicator, and no other") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(5);
  for (const bool is_async : {false, true}) {
    CAPTURE(is_async);
    const auto warnings = std::make_shared<Warnings>();
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options_with(warnings, 1)};
    auto& tp = mesh["tp"];
    const auto group = mesh.new_group(tp.ranks().to_vector(), "mine");
    const Stream stream = Stream::create();
    const auto value = on_device<float>({1});
    if (rank() == 0) {
      std::optional<Work> work;
      if (is_async)
        work = group->all_reduce_async(value.span(), stream);  // alone: it does not end
      else
        group->all_reduce(value.span(), stream);
      const StreamRef used = is_async ? group->stream() : StreamRef{stream};
      const Deadline soon{Deadline::Duration{1.5 + more}};
      CHECK_THROWS_AS(mesh.close(group), TimeoutError);
      REQUIRE(cudaStreamSynchronize(static_cast<cudaStream_t>(used.native())) == cudaSuccess);
      CHECK_FALSE(soon.passed());
      if (work) CHECK_THROWS_AS((void)work->test(), ClosedError);
      CHECK_THROWS_AS(group->all_reduce(value.span(), stream), ClosedError);
      CHECK(warnings->all().find("left behind") == std::string::npos);
    }
    wait_for_all();
    const auto one = on_device<float>({1});
    tp.all_reduce(one.span(), stream);
    CHECK(one.download(stream) == std::vector<float>{static_cast<float>(size())});
    wait_for_all();
    mesh.abort();
    wait_for_all();
  }
}

TEST_CASE("what an abort ends is not complete, also if the abort has no reason") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(5);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options_with(std::make_shared<Warnings>(), 30)};
  auto& tp = mesh["tp"];
  DeviceTransport& transport = *detail::GroupAccess::connection(tp).device();
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  std::unique_ptr<Pending> alone;
  if (rank() == 0) {
    const auto use = [](StreamRef) {};
    alone = transport.queue_after(stream, use);
    CHECK(alone->wait(Deadline{Deadline::Duration{30}}));
    tp.all_reduce(value.span(), stream);  // alone: it does not end
    alone = transport.queue_after(stream, use);
    CHECK_FALSE(alone->test());
  }
  wait_for_all();
  mesh.abort();
  REQUIRE(cudaStreamSynchronize(stream.native()) == cudaSuccess);
  const auto says = doctest::Contains("the communicator of 'tp' was aborted");
  if (alone) CHECK_THROWS_WITH_AS((void)alone->test(), says, ClosedError);
  CHECK_THROWS_WITH_AS(transport.wait(stream, Deadline{Deadline::Duration{1}}, [] {}), says,
                       ClosedError);
  wait_for_all();
}

TEST_CASE("groups that use their own streams without an order are warned of, once") {
  NEEDS_RANKS(2);
  const bool has_variable = nccl::Library::load().version() >= 22600;
  for (const char* const order : {"waited", "none", "by NCCL"}) {
    CAPTURE(order);
    const bool is_implicit = std::string{order} == "by NCCL";
    if (is_implicit) setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1);
    const auto warnings = std::make_shared<Warnings>();
    Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", options_with(warnings, 30)};
    if (is_implicit) unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    const auto group = mesh.new_group(mesh["tp"].ranks().to_vector(), "mine");
    const Stream stream = Stream::create();
    const auto a = on_device<float>({1}), b = on_device<float>({1});
    for (int turn = 0; turn < 2; ++turn) {
      Work first = mesh["tp"].all_reduce_async(a.span(), stream);
      if (std::string{order} == "waited") first.wait();
      Work second = group->all_reduce_async(b.span(), stream);
      first.wait();
      second.wait();
    }
    stream.wait(Deadline{Deadline::Duration{30}});
    const std::string said = warnings->all();
    const bool warns = std::string{order} == "none" || (is_implicit && !has_variable);
    CHECK((said.find("'tp' and 'mine' run on streams of their own") != std::string::npos) == warns);
    CHECK(said.find("run on streams") == said.rfind("run on streams"));
    wait_for_all();
    mesh.close();
  }
}

TEST_CASE("questions about operations leave the captures of the program alone") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const Stream other = Stream::create();
  const auto value = on_device<float>({1});
  const auto beside = on_device<float>({1});
  tp.all_reduce(value.span(), stream);
  stream.wait(Deadline{Deadline::Duration{30}});
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
    CAPTURE(static_cast<int>(mode));
    Work before = tp.all_reduce_async(beside.span(), other);
    // Another thread captures while this one asks, or this one does both.
    std::atomic<bool> is_captured{false};
    cudaError_t ended = cudaErrorUnknown;
    std::jthread capturing{[&](const std::stop_token& may_end) {
      cudaGraph_t graph = nullptr;
      const Stream own = Stream::create();
      if (cudaStreamBeginCapture(own.native(), mode) != cudaSuccess) return;
      is_captured = true;
      while (!may_end.stop_requested()) std::this_thread::yield();
      ended = cudaStreamEndCapture(own.native(), &graph);
      if (ended == cudaSuccess) (void)cudaGraphDestroy(graph);
    }};
    while (!is_captured) std::this_thread::yield();
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream.native(), mode) == cudaSuccess);
    tp.all_reduce(value.span(), stream);
    for (int i = 0; i < 20; ++i) tp.all_reduce(beside.span(), other);
    mesh.progress();
    before.wait(Deadline::Duration{30});
    CHECK(before.test());
    if (size() > 1) tp.wait(other);
    other.wait(Deadline{Deadline::Duration{30}});
    CHECK(cudaStreamEndCapture(stream.native(), &graph) == cudaSuccess);
    capturing.request_stop();
    capturing.join();
    CHECK(ended == cudaSuccess);
    if (graph != nullptr) REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
    (void)cudaGetLastError();
    wait_for_all();
  }
  mesh.close();
}

TEST_CASE("operations along any axis can be captured") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto n = static_cast<std::size_t>(size());
  std::vector<float> block;
  for (std::size_t i = 0; i < 6; ++i)
    block.push_back(static_cast<float>(100 * rank()) + static_cast<float>(i));
  const auto in = on_device(block);
  const DeviceBuffer<float> out{6 * n}, part{6};
  const Axis axis{{2, 3}, 1};
  const auto calls = [&] {
    tp.all_gather(in.span(), out.span(), axis, stream);
    tp.reduce_scatter(out.span(), part.span(), axis, ReduceOp::sum, stream);
  };
  calls();
  const auto expected = part.download(stream);
  const auto gathered = out.download(stream);
  cudaGraph_t graph = captured(stream, calls);
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  for (int launch = 0; launch < 2; ++launch) {
    REQUIRE(cudaMemsetAsync(out.data(), 0, 6 * n * sizeof(float), stream.native()) == cudaSuccess);
    REQUIRE(cudaMemsetAsync(part.data(), 0, 6 * sizeof(float), stream.native()) == cudaSuccess);
    REQUIRE(cudaGraphLaunch(exec, stream.native()) == cudaSuccess);
    CHECK(out.download(stream) == gathered);
    CHECK(part.download(stream) == expected);
  }
  wait_for_all();
  REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
  mesh.close();
}
