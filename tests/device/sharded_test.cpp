// SPDX-License-Identifier: BSD-3-Clause
// Sharded buffers in device memory, while the stream goes on.
#include <doctest/doctest.h>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/exchange/sharded_buffer.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using device::Stream;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

using DeviceShards = exchange::ShardedBuffer<float, MemoryKind::device>;
const std::vector<std::int64_t> tensor_counts{5, 3, 40, 1, 7, 2};  // buckets: 5+3, 40, 1+7, 2

std::vector<float> tensor_on_host(std::int64_t tensor, int seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < tensor_counts[static_cast<std::size_t>(tensor)]; ++i)
    values.push_back(static_cast<float>(tensor * 100 + i + seed));
  return values;
}

template <class T>
std::vector<float> fetched(DeviceSpan<T> span, StreamRef stream) {
  std::vector<float> values(span.size());
  device::detail::copy(values.data(), span.data(), span.size() * sizeof(float),
                       device::detail::Direction::to_host, stream);
  return values;
}

void store(DeviceSpan<float> span, const std::vector<float>& values, StreamRef stream) {
  device::detail::copy(span.data(), values.data(), values.size() * sizeof(float),
                       device::detail::Direction::to_device, stream);
}

}  // namespace

TEST_CASE("sharded buffers of device memory are gathered and reduced, and allocate once") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto", test_platform::options()};
  auto& dp = mesh["dp"];
  const Stream stream = Stream::create();
  for (const bool keep_whole : {false, true}) {
    CAPTURE(keep_whole);
    DeviceShards weights{
        dp,
        tensor_counts,
        {.bytes = 48, .keep_whole = keep_whole, .op = ReduceOp::sum, .stream = stream}};
    auto gradients = weights.like({.keep_whole = keep_whole, .op = ReduceOp::sum});
    REQUIRE(weights.buckets() == 4);
    for (std::int64_t i = 0; i < weights.tensors(); ++i) {
      const DeviceBuffer<float> values{std::span<const float>{tensor_on_host(i, 0)}};
      weights.load(i, values.span());
      stream.wait(Deadline{Deadline::Duration{30}});
    }
    int added = 0;
    FakeCudaCounters before{};
    for (int step = 1; step <= 3; ++step) {
      if (step == 2) before = test_platform::cuda();
      for (std::int64_t i = 0; i < weights.tensors(); ++i) {
        CHECK(fetched(weights.gather(i), stream) == tensor_on_host(i, added));
        weights.release(i);
      }
      // Each member's gradient is rank() + step.
      for (std::int64_t i = weights.tensors() - 1; i >= 0; --i) {
        const auto gradient = gradients.local(i);
        CHECK(fetched(gradient, stream) == std::vector<float>(gradient.size()));
        store(gradient, std::vector<float>(gradient.size(), static_cast<float>(rank() + step)),
              stream);
        gradients.reduce(i);
      }
      const int sum = size() * (size() - 1) / 2 + step * size();
      for (std::int64_t b = 0; b < weights.buckets(); ++b) {
        auto mine = fetched(weights.mine(b), stream);
        const auto change = fetched(gradients.mine(b), stream);
        CHECK(std::ranges::all_of(change,
                                  [&](float g) { return g == 0 || g == static_cast<float>(sum); }));
        for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += change[i];
        store(weights.mine(b), mine, stream);
      }
      added += sum;
      weights.changed();
    }
    // After the first step, the memory is there.
    CHECK(test_platform::cuda().allocations == before.allocations);
    CHECK(test_platform::cuda().device_waits == before.device_waits);
    stream.wait(Deadline{Deadline::Duration{30}});
  }
  mesh.close();
}
