// SPDX-License-Identifier: BSD-3-Clause
// Streams, events and buffers.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "fake_cuda.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "rankmesh/device/stream.hpp"
#include "support/checks.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using device::Event;
using device::Stream;

TEST_CASE("buffers upload and download values, and move") {
  const std::vector<float> values{1, 2, 3};
  DeviceBuffer<float> buffer{std::span<const float>{values}};
  CHECK(buffer.download(StreamRef{}) == values);
  DeviceBuffer<float> moved = std::move(buffer);
  CHECK(buffer.data() == nullptr);  // NOLINT: that is the point
  CHECK(moved.size() == 3);
  CHECK_THROWS_AS(moved.upload(std::vector<float>(4), StreamRef{}), UsageError);
  CHECK(DeviceBuffer<float>{0}.data() == nullptr);
}

TEST_CASE("events order streams; adopted streams are not destroyed") {
  Stream first = Stream::create();
  Stream second = Stream::create();
  DeviceBuffer<int> buffer{1};
  buffer.upload(std::vector<int>{5}, first);
  Event event;
  event.record(first);
  event.make_wait(second);
  second.wait(Deadline{Deadline::Duration{10}});
  CHECK(event.query());
  {
    const Stream adopted = Stream::adopt(second.native());
    CHECK(adopted.query());
  }
  CHECK(second.query());
}

TEST_CASE("copies wait for their stream with the deadline of all waits") {
  using Enqueue = decltype(&fake_cuda_enqueue);
  const auto enqueue = reinterpret_cast<Enqueue>(dlsym(RTLD_DEFAULT, "fake_cuda_enqueue"));
  SKIP_UNLESS(enqueue != nullptr, "needs the CPU double of CUDA");
  const Stream stream = Stream::create();
  DeviceBuffer<int> buffer{1};
  const char* before = std::getenv("RANKMESH_TIMEOUT");
  const std::string kept = before == nullptr ? "600" : before;
  setenv("RANKMESH_TIMEOUT", "0.1", 1);
  static std::atomic<bool> may_end{false};
  REQUIRE(enqueue(stream.native(), [] {
            for (int i = 0; i < 20'000 && !may_end; ++i)
              std::this_thread::sleep_for(std::chrono::milliseconds{1});
          }) == cudaSuccess);
  CHECK_THROWS_AS((void)buffer.download(stream), TimeoutError);
  may_end = true;
  setenv("RANKMESH_TIMEOUT", kept.c_str(), 1);
  buffer.upload(std::vector<int>{3}, stream);
  CHECK(buffer.download(stream) == std::vector<int>{3});
}

TEST_CASE("errors keep CUDA's code") {
  try {
    device::check(cudaSetDevice(1000), "cudaSetDevice");
    FAIL("no exception");
  } catch (const device::CudaError& error) {
    CHECK(error.code() == cudaErrorInvalidDevice);
    CHECK_CONTAINS(error.message(), "cudaSetDevice failed");
  }
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("the library that was opened is known by version and path") {
  const nccl::Library& library = nccl::Library::load();
  CHECK(library.version() >= 21800);
  CHECK_CONTAINS(library.path(), "nccl");
  CHECK(&library == &nccl::Library::load());
}
