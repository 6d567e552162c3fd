// SPDX-License-Identifier: BSD-3-Clause
// Along every axis on devices, against the host.
#include <doctest/doctest.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using test_platform::on_device;

namespace {

using Values = std::vector<float>;

device::DeviceBuffer<float> there(const Values& values) {
  return device::DeviceBuffer<float>{std::span<const float>{values}};
}

std::string grid_of_axis_test() { return rankmesh_test::size() == 4 ? "dp=2,tp=2" : "tp=auto"; }

}  // namespace

TEST_CASE("gathering and scattering along every axis on devices equals the host's") {
  Mesh mesh{MPI_COMM_WORLD, grid_of_axis_test(), test_platform::options()};
  auto& tp = mesh["tp"];
  const device::Stream stream = device::Stream::create();
  const auto n = static_cast<std::size_t>(tp.size());
  const std::vector<std::int64_t> shape{3, 2, 5};
  for (std::int64_t k = 0; k < 3; ++k) {
    CAPTURE(k);
    const Axis axis{shape, k};
    Values block, whole, expected_whole(30 * n), expected_block(30);
    for (std::size_t i = 0; i < 30; ++i)
      block.push_back(static_cast<float>(tp.rank_in_group().value() * 100) + static_cast<float>(i));
    for (std::size_t i = 0; i < 30 * n; ++i) whole.push_back(static_cast<float>(i % 37));
    const auto block_there = there(block), whole_there = there(whole);
    const device::DeviceBuffer<float> out{30 * n}, part{30};

    tp.all_gather(block, expected_whole, axis);
    tp.all_gather(block_there.span(), out.span(), axis, stream);
    CHECK(out.download(stream) == expected_whole);
    tp.gather(block_there.span(), out.span(), axis, 0, stream);
    if (tp.is_first()) CHECK(out.download(stream) == expected_whole);
    auto work = tp.all_gather_async(block_there.span(), out.span(), axis, stream);
    work.wait();
    CHECK(out.download(stream) == expected_whole);

    tp.scatter(whole, expected_block, axis, tp.size() - 1);
    tp.scatter(whole_there.span(), part.span(), axis, tp.size() - 1, stream);
    CHECK(part.download(stream) == expected_block);
    tp.reduce_scatter(whole, expected_block, axis);
    tp.reduce_scatter(whole_there.span(), part.span(), axis, ReduceOp::sum, stream);
    CHECK(part.download(stream) == expected_block);

    if (k > 0 && tp.size() > 1) {
      NcclGroup together{mesh};
      CHECK_THROWS_AS(tp.all_gather(block_there.span(), out.span(), axis, stream), UsageError);
      together.end();
    }
  }
  mesh.close();
}

TEST_CASE("the stream may follow at once if the reduction or the tag is left out") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const device::Stream stream = device::Stream::create();
  const auto n = static_cast<std::int32_t>(tp.size());
  const auto self = static_cast<std::int32_t>(tp.rank_in_group().value());
  const std::vector<std::int32_t> one{self};
  const auto in = on_device(one);
  device::DeviceBuffer<std::int32_t> out{1};
  tp.send_recv(in.span(), out.span(), next, prev, stream);
  CHECK(out.download(stream) == std::vector{(self + n - 1) % n});
  tp.all_reduce(in.span(), out.span(), stream);
  CHECK(out.download(stream) == std::vector{n * (n - 1) / 2});
  tp.reduce(in.span(), out.span(), 0, stream);
  tp.reduce_async(in.span(), out.span(), 0, stream).wait();
  if (tp.is_first()) CHECK(out.download(stream) == std::vector{n * (n - 1) / 2});
  const auto wide = on_device(std::vector<std::int32_t>(static_cast<std::size_t>(n), 1));
  tp.reduce_scatter(wide.span(), out.span(), stream);
  tp.reduce_scatter_v(wide.span(), out.span(), std::vector<int>(wide.size(), 1), stream);
  CHECK(out.download(stream) == std::vector{n});
  if (n > 1 && self == 0) tp.send(in.span(), next, stream);
  if (n > 1 && self == 1) tp.recv(out.span(), prev, stream);
  if (self == 1) CHECK(out.download(stream) == std::vector{0});
  mesh.close();
}

TEST_CASE("structs in device memory are moved as bytes") {
  struct Token {
    std::int16_t id = 0;
    bool is_last = false;
    bool operator==(const Token&) const = default;
  };
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const device::Stream stream = device::Stream::create();
  const auto self = static_cast<std::int16_t>(tp.rank_in_group().value());
  const std::vector<Token> mine{{self, tp.is_last()}, {self, false}};
  const auto in = on_device(mine);
  device::DeviceBuffer<Token> all{2 * static_cast<std::size_t>(tp.size())};
  tp.all_gather(in.span(), all.span(), stream);
  const auto received = all.download(stream);
  CHECK(received.front() == Token{0, tp.size() == 1});
  CHECK(received[received.size() - 2] == Token{static_cast<std::int16_t>(tp.size() - 1), true});
  mesh.close();
}

TEST_CASE("a build without kernels copies along an axis, and refuses rows that CUDA cannot copy") {
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const device::Stream stream = device::Stream::create();
  const auto n = static_cast<std::size_t>(tp.size());
  const Axis axis{{3, 5}, 1};
  const auto mine = there(Values(15, static_cast<float>(tp.rank_in_group().value())));
  const device::DeviceBuffer<float> whole{15 * n}, part{15}, copied{15 * n};
  tp.all_gather(mine.span(), whole.span(), axis, stream);
  setenv("RANKMESH_TEST_NO_KERNELS", "1", 1);
  tp.all_gather(mine.span(), copied.span(), axis, stream);
  CHECK(copied.download(stream) == whole.download(stream));
  tp.scatter(whole.span(), part.span(), axis, 0, stream);
  CHECK(part.download(stream) == mine.download(stream));
  setenv("FAKE_CUDA_MAX_PITCH", "20", 1);  // instead of the 2^31 - 1 bytes of a device
  const FakeNcclCounters before = test_platform::nccl();
  CHECK_THROWS_WITH_AS(tp.all_gather(mine.span(), copied.span(), axis, stream),
                       doctest::Contains("but CUDA copies at most 20"), UnsupportedError);
  CHECK(test_platform::nccl().launches == before.launches);
  unsetenv("RANKMESH_TEST_NO_KERNELS");
  tp.all_gather(mine.span(), copied.span(), axis, stream);  // the kernel has no such limit
  CHECK(copied.download(stream) == whole.download(stream));
  unsetenv("FAKE_CUDA_MAX_PITCH");
  mesh.close();
}

TEST_CASE("pieces of every width and alignment are moved") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const device::Stream stream = device::Stream::create();
  const auto n = static_cast<std::size_t>(tp.size());
  for (const std::size_t width : {1UL, 2UL, 4UL, 16UL, 48UL, 4112UL}) {
    CAPTURE(width);
    std::vector<std::uint8_t> block(3 * width), expected(3 * width * n);
    for (std::size_t i = 0; i < block.size(); ++i)
      block[i] =
          static_cast<std::uint8_t>(i * 5 + static_cast<std::size_t>(tp.rank_in_group().value()));
    const Axis axis{{3, static_cast<std::int64_t>(width)}, 1};
    tp.all_gather(block, expected, axis);
    const device::DeviceBuffer<std::uint8_t> in{std::span<const std::uint8_t>{block}},
        out{expected.size() + 1};
    for (const std::size_t shift : {0UL, 1UL}) {
      const auto to = out.span().subspan(shift, expected.size());
      tp.all_gather(in.span(), to, axis, stream);
      const auto all = out.download(stream);
      CHECK(std::equal(expected.begin(), expected.end(),
                       all.begin() + static_cast<std::ptrdiff_t>(shift)));
    }
  }
  mesh.close();
}

TEST_CASE("few long pieces are shared by many blocks of threads") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(8);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const device::Stream stream = device::Stream::create();
  constexpr std::size_t row = 1 << 16;  // floats: 64 blocks of 256 threads that load 16 bytes each
  Values mine(2 * row), expected(mine.size() * static_cast<std::size_t>(tp.size()));
  for (std::size_t i = 0; i < mine.size(); ++i)
    mine[i] = static_cast<float>(tp.rank_in_group().value()) + static_cast<float>(i % 1000);
  const Axis axis{{2, row}, 1};
  tp.all_gather(mine, expected, axis);
  const auto in = there(mine);
  const device::DeviceBuffer<float> whole{expected.size()}, part{mine.size()};
  const long long before = test_platform::cuda().blocks;
  tp.all_gather(in.span(), whole.span(), axis, stream);
  CHECK(test_platform::cuda().blocks - before == 2 * 64 * tp.size());
  CHECK(whole.download(stream) == expected);
  tp.scatter(whole.span(), part.span(), axis, 0, stream);
  CHECK(part.download(stream) == mine);
  mesh.close();
}

TEST_CASE("memory along an axis stays in the pool between synchronisations") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const device::Stream stream = device::Stream::create();
  const auto mine = there(Values(15, 1));
  const device::DeviceBuffer<float> whole{15 * static_cast<std::size_t>(tp.size())};
  FakeCudaCounters before{};
  for (int step = 0; step < 4; ++step) {
    if (step == 1) before = test_platform::cuda();
    tp.all_gather(mine.span(), whole.span(), Axis{{3, 5}, 1}, stream);
    REQUIRE(cudaStreamSynchronize(stream.native()) == cudaSuccess);
  }
  CHECK(test_platform::cuda().pool_growths == before.pool_growths);
  CHECK(test_platform::cuda().device_waits == before.device_waits);
  mesh.close();
}
