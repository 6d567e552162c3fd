// SPDX-License-Identifier: BSD-3-Clause
// Operations on host memory make progress while a function for devices waits.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/nccl/mode.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using device::Stream;
using rankmesh_test::rank;
using rankmesh_test::size;
using test_platform::on_device;

namespace {

// More than fits into the memory between two ranks, so each of them has to copy many times.
constexpr std::size_t large = 1'000'000;

// A limit that only a wait reaches that advances nothing.
MeshOptions patient() {
  MeshOptions options = test_platform::options();
  options.timeout = Deadline::Duration{15};
  return options;
}

// Makes the stream wait for a value that is not 0, for at most 30 s.
void make_wait(const Stream& stream, float& value) {
  const auto wait_for_value = [](void* pointer) {
    const std::atomic_ref<float> last{*static_cast<float*>(pointer)};
    const Deadline end{Deadline::Duration{30}};
    while (last.load() == 0 && !end.passed()) std::this_thread::yield();
  };
  REQUIRE(cudaLaunchHostFunc(stream.native(), wait_for_value, &value) == cudaSuccess);
}

}  // namespace

TEST_CASE("the wait for an idle device advances operations on host memory") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(3);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", patient()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  std::vector<float> message(large, 1);
  std::optional<Work> work;
  if (rank() == 0) work = tp.recv_async(message, 1);
  if (rank() == 1) work = tp.send_async(message, 0);
  if (rank() == 0) {
    message.back() = 0;
    make_wait(stream, message.back());  // and new_group waits for the device
  }
  std::shared_ptr<GroupCoordinator> group;
  CHECK_NOTHROW(group = mesh.new_group(tp.ranks().to_vector(), "mine"));
  if (work) work->wait();
  CHECK(message.back() == 1);
  mesh.close();
}

TEST_CASE("a call that NCCL has not accepted yet advances operations on host memory") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(5);
  for (const bool is_batch : {false, true}) {
    CAPTURE(is_batch);
    MeshOptions options = patient();
    options.check = false;  // the comparison would wait for the other members first
    options.names["tp"].blocking = false;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    std::vector<float> message(large, 1);
    // A large sum needs connections that the warm-up has not made, so it waits for all ranks.
    const auto value = on_device(std::vector<float>(100'000, 1));
    std::optional<Work> work;
    if (rank() == 0) work = tp.recv_async(message, 1);
    if (rank() == 1) tp.send(message, 0);
    std::optional<NcclGroup> together;
    if (is_batch) together.emplace(mesh);
    const auto add = [&] {
      tp.all_reduce(value.span());
      if (together) together->end();
    };
    CHECK_NOTHROW(add());
    if (work) work->wait();
    CHECK(value.download(StreamRef{}).back() == static_cast<float>(size()));
    mesh.close();
  }
}

TEST_CASE("close of a group that waits for its operations advances operations on host memory") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(5);
  SKIP_UNLESS(!nccl::blocks_after_creation(nccl::Library::load(), true), "calls block");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", patient()};
  auto& tp = mesh["tp"];
  const auto group = mesh.new_group(tp.ranks().to_vector(), "mine");
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  std::vector<float> message(large, 1);
  std::optional<Work> work;
  if (rank() == 0) {
    message.back() = 0;
    work = tp.recv_async(message, 1);
    make_wait(stream, message.back());
  }
  if (rank() == 1) work = tp.send_async(message, 0);
  group->all_reduce(value.span(), stream);
  CHECK_NOTHROW(mesh.close(group));
  if (work) work->wait();
  CHECK(value.download(stream) == std::vector<float>{static_cast<float>(size())});
  mesh.close();
}
