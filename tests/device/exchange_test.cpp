// SPDX-License-Identifier: BSD-3-Clause
// What is made of collectives, through device memory.
#include <doctest/doctest.h>

#include <numeric>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/exchange/bucket.hpp"
#include "rankmesh/exchange/stage_exchange.hpp"
#include "rankmesh/exchange/tensor_dict.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using device::Stream;
using exchange::Tensor;
using exchange::TensorDict;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

DeviceBuffer<float> on_device(const std::vector<float>& host) {
  return DeviceBuffer<float>{std::span<const float>{host}};
}

std::vector<float> values(std::int64_t seed, std::size_t n) {
  std::vector<float> result(n);
  for (std::size_t i = 0; i < n; ++i)
    result[i] = static_cast<float>(seed * 100 + static_cast<int>(i % 97));
  return result;
}

std::vector<float> downloaded(const Tensor& tensor, StreamRef stream) {
  std::vector<float> host(static_cast<std::size_t>(tensor.count()));
  device::detail::copy(host.data(), tensor.device<float>().data(), host.size() * sizeof(float),
                       device::detail::Direction::to_host, stream);
  return host;
}

}  // namespace

TEST_CASE(
    "stages exchange in both directions as one batch, on the open pipeline and around the ring") {
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "pp=auto,dp=2" : "pp=auto", test_platform::options()};
  auto& pp = mesh["pp"];
  const std::int64_t self = pp.rank_in_group().value();
  const std::int64_t n = pp.size();
  const Stream stream = Stream::create();
  for (const bool ring : {false, true}) {
    CAPTURE(ring);
    exchange::StageExchange stages{pp, {.ring = ring}};
    const auto activations = on_device(values(self, 300)),
               gradients = on_device(values(self + 50, 300));
    const auto from_prev = on_device(values(-1, 300)), from_next = on_device(values(-2, 300));
    std::vector<int> mine{static_cast<int>(self)}, theirs{-1};  // host memory along with it
    // Backward first, then forward: in a ring of two both lead to one rank.
    stages.run({exchange::to_prev(gradients.span()), exchange::to_next(activations.span()),
                exchange::from_next(from_next.span()), exchange::from_prev(from_prev.span()),
                exchange::to_next(mine), exchange::from_prev(theirs)},
               stream);
    const bool has_prev = ring || self > 0, has_next = ring || self + 1 < n;
    CHECK(from_prev.download(stream) == values(has_prev ? (self + n - 1) % n : -1, 300));
    CHECK(from_next.download(stream) == values(has_next ? (self + 1) % n + 50 : -2, 300));
    CHECK(theirs[0] == (has_prev ? static_cast<int>((self + n - 1) % n) : -1));
  }
  // As part of the program's own batch.
  if (n > 1) {
    exchange::StageExchange stages{pp};
    const auto activations = on_device(values(self, 10)), received = on_device(values(-1, 10));
    const auto one = on_device({1});
    const FakeNcclCounters before = test_platform::nccl();
    NcclGroup together{mesh};
    stages.send_forward_recv_forward(activations.span(), received.span(), stream);
    pp.all_reduce(one.span(), stream);
    together.end();
    if (test_platform::is_double()) CHECK(test_platform::nccl().launches - before.launches == 1);
    CHECK(received.download(stream) == values(self > 0 ? self - 1 : -1, 10));
    CHECK(one.download(stream)[0] == static_cast<float>(n));
  }
  stream.wait(Deadline{Deadline::Duration{30}});
  mesh.close();
}

TEST_CASE("a tensor dictionary of host and device memory is broadcast, and sent in slices") {
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "pp=2,tp=auto" : "pp=auto,tp=1",
            test_platform::options()};
  auto& pp = mesh["pp"];
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto filled = [&](std::int64_t seed, std::int64_t own) {
    TensorDict dict;
    const auto fill = [&](const char* name, std::vector<std::int64_t> shape, std::int64_t s) {
      const Tensor& tensor =
          dict.add(name, Tensor::allocate(DataType::float32, std::move(shape), MemoryKind::device));
      const auto host = values(s, static_cast<std::size_t>(tensor.count()));
      device::detail::copy(tensor.device<float>().data(), host.data(), host.size() * sizeof(float),
                           device::detail::Direction::to_device, stream);
    };
    fill("hidden", {tp.size(), 6}, seed);
    fill("odd", {tp.size() + 1}, seed + 1);
    fill("own", {tp.size(), 2}, own);
    fill("empty", {0}, 0);
    dict.add("lengths", Tensor::allocate(DataType::int64, {tp.size()})).host<std::int64_t>()[0] =
        seed;
    return dict;
  };
  const auto check = [&](TensorDict& dict, std::int64_t seed, std::int64_t own) {
    REQUIRE(dict.size() == 5);
    CHECK(dict["hidden"].kind() == MemoryKind::device);
    CHECK(downloaded(dict["hidden"], stream) ==
          values(seed, static_cast<std::size_t>(tp.size() * 6)));
    CHECK(downloaded(dict["odd"], stream) ==
          values(seed + 1, static_cast<std::size_t>(tp.size() + 1)));
    CHECK(downloaded(dict["own"], stream) == values(own, static_cast<std::size_t>(tp.size() * 2)));
    CHECK(dict["empty"].count() == 0);
    CHECK(dict["lengths"].host<std::int64_t>()[0] == seed);
  };
  TensorDict dict;
  if (tp.is_last()) dict = filled(7, 8);
  exchange::broadcast_tensor_dict(tp, dict, tp.size() - 1, stream);
  check(dict, 7, 8);

  const exchange::TensorDictOptions options{.all_gather = &tp, .whole = {"own"}, .stream = stream};
  const float* before = dict["hidden"].device<float>().data();
  if (pp.is_first()) dict = filled(3, rank());
  if (!pp.is_first()) exchange::recv_tensor_dict(pp, dict, prev, options);
  if (!pp.is_last()) exchange::send_tensor_dict(pp, dict, next, options);
  check(dict, 3, pp.first_rank().value());
  if (!pp.is_first()) CHECK(dict["hidden"].device<float>().data() == before);  // used again
  stream.wait(Deadline{Deadline::Duration{30}});
  mesh.close();
}

TEST_CASE("buckets of device buffers, while the stream goes on") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto", test_platform::options()};
  auto& dp = mesh["dp"];
  const Stream stream = Stream::create();
  exchange::Bucket bucket{dp, {.bytes = 100, .op = ReduceOp::sum, .stream = stream}};
  std::vector<DeviceBuffer<float>> gradients;
  for (const std::size_t n : {4, 6, 3, 40, 2, 2}) gradients.push_back(on_device(values(1, n)));
  std::vector<float> host{1};
  for (int round = 1; round <= 2; ++round) {
    for (DeviceBuffer<float>& gradient : gradients) {
      gradient.upload(values(rank() + round, gradient.size()), stream);
      bucket.add(gradient.span());
    }
    bucket.add(host);
    bucket.wait();
    for (const DeviceBuffer<float>& gradient : gradients) {
      std::vector<float> expected(gradient.size());
      for (int r = 0; r < size(); ++r)
        for (std::size_t i = 0; i < expected.size(); ++i)
          expected[i] += values(r + round, gradient.size())[i];
      CHECK(gradient.download(stream) == expected);
    }
  }
  CHECK(host[0] == static_cast<float>(size() * size()));
  stream.wait(Deadline{Deadline::Duration{30}});
  mesh.close();
}

TEST_CASE("each member gets its part of device buffers, divisible or not") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto", test_platform::options()};
  auto& dp = mesh["dp"];
  const Stream stream = Stream::create();
  exchange::Bucket bucket{dp, {.bytes = 100, .op = ReduceOp::sum, .stream = stream}};
  std::vector<DeviceBuffer<float>> gradients, mine;
  for (const std::size_t n :
       {std::size_t{4}, std::size_t{7}, 12 * static_cast<std::size_t>(size())}) {
    gradients.push_back(on_device(values(1, n)));
    mine.push_back(on_device(std::vector<float>(
        static_cast<std::size_t>(Slice{static_cast<std::int64_t>(n), dp}.size()))));
  }
  for (int round = 1; round <= 2; ++round) {
    for (std::size_t g = 0; g < gradients.size(); ++g) {
      gradients[g].upload(values(rank() + round, gradients[g].size()), stream);
      bucket.add(gradients[g].span(), mine[g].span());
    }
    bucket.wait();
    for (std::size_t g = 0; g < gradients.size(); ++g) {
      const Slice slice{static_cast<std::int64_t>(gradients[g].size()), dp};
      std::vector<float> expected(mine[g].size());
      for (int r = 0; r < size(); ++r)
        for (std::size_t i = 0; i < expected.size(); ++i)
          expected[i] +=
              values(r + round, gradients[g].size())[i + static_cast<std::size_t>(slice.begin())];
      CHECK(mine[g].download(stream) == expected);
    }
  }
  stream.wait(Deadline{Deadline::Duration{30}});
  mesh.close();
}
