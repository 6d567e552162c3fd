// SPDX-License-Identifier: BSD-3-Clause
// The option `check`: calls on device memory are compared before NCCL gets them.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using device::Stream;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::wait_for_all;
using test_platform::on_device;

namespace {

MeshOptions checked() {
  MeshOptions options = test_platform::short_timeout();
  options.check = true;
  return options;
}

template <class Action>
std::string mismatch_of(Action&& action) {
  try {
    action();
  } catch (const MismatchError& error) {
    return error.message();
  }
  FAIL_CHECK("no MismatchError");
  return {};
}

}  // namespace

TEST_CASE("check: different counts on device memory are named, alone, in a batch and captured") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  for (const std::string form : {"alone", "async", "batch", "captured"}) {
    CAPTURE(form);
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", checked()};
    auto& tp = mesh["tp"];
    const Stream stream = Stream::create();
    const std::size_t count = rank() == last() ? 12 : 10;
    const DeviceBuffer<float> values{count};
    const long launches = test_platform::nccl().launches;
    const std::string message = mismatch_of([&] {
      if (form == "alone") tp.all_reduce(values.span(), stream);
      if (form == "async") tp.all_reduce_async(values.span(), stream).wait();
      if (form == "batch") {
        NcclGroup together{mesh};
        tp.all_reduce(values.span(), stream);
        together.end();
      }
      if (form == "captured") {
        REQUIRE(cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeThreadLocal) ==
                cudaSuccess);
        try {
          tp.all_reduce(values.span(), stream);
        } catch (...) {
          cudaGraph_t graph = nullptr;
          (void)cudaStreamEndCapture(stream.native(), &graph);
          if (graph != nullptr) (void)cudaGraphDestroy(graph);
          throw;
        }
      }
    });
    CHECK_CONTAINS(message, "tp.all_reduce(12 x float32, sum, in place, device memory), call 1");
    CHECK_CONTAINS(message, "tp.all_reduce(10 x float32, sum, in place, device memory), call 1");
    CHECK(test_platform::nccl().launches == launches);
    wait_for_all();
  }
}

TEST_CASE("check: host memory on one member and device memory on another is named") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", checked()};
  const auto values = on_device<float>({1, 2});
  std::vector<float> on_host{1, 2};
  const std::string message = mismatch_of([&] {
    rank() == last() ? mesh["tp"].all_reduce(on_host) : mesh["tp"].all_reduce(values.span());
  });
  CHECK_CONTAINS(message, "tp.all_reduce(2 x float32, sum, in place), call 1");
  CHECK_CONTAINS(message, "tp.all_reduce(2 x float32, sum, in place, device memory), call 1");
  wait_for_all();
}

TEST_CASE("check: device messages of a batch are compared, in any order of the calls") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  for (const bool is_wrong : {false, true}) {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", checked()};
    auto& tp = mesh["tp"];
    const auto sent = on_device<float>({static_cast<float>(rank())});
    const DeviceBuffer<float> received{is_wrong && rank() == 1 ? std::size_t{2} : std::size_t{1}};
    const auto exchange = [&] {
      NcclGroup together{mesh};
      if (rank() == 0) {
        tp.send(sent.span(), 1);
        tp.recv(received.span(), 1);
      }
      if (rank() == 1) {
        tp.send(sent.span(), 0);
        tp.recv(received.span(), 0);
      }
      together.end();
    };
    if (!is_wrong) {
      exchange();
      if (rank() < 2)
        CHECK(received.download(StreamRef{}) == std::vector{static_cast<float>(1 - rank())});
      mesh.close();
    } else if (rank() < 2) {
      const std::string message = mismatch_of(exchange);
      CHECK_CONTAINS(message,
                     "rank 0 (tp=0): tp.send(1 x float32 to rank 1, device memory); "
                     "rank 1 (tp=1): tp.recv(2 x float32 from rank 0, device memory)");
    }
    wait_for_all();
  }
}
