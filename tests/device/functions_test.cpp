// SPDX-License-Identifier: BSD-3-Clause
// Which functions of NCCL carry an operation, and which connections these find.
#include <doctest/doctest.h>

#include <vector>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using rankmesh_test::rank;
using rankmesh_test::size;
using test_platform::on_device;

namespace {

// Returns how often a function of NCCL was called since `before`.
long long calls_since(const FakeNcclCounters& before, FakeNcclCall which) {
  return test_platform::nccl().calls[which] - before.calls[which];
}

}  // namespace

TEST_CASE("all_to_all, gather and scatter are one call of NCCL where it has them") {
  NEEDS_RANKS(2);
  for (const bool copy_engines : {false, true}) {
    MeshOptions options = test_platform::options();
    if (copy_engines) options.names["tp"].cta_policy = 2;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    const auto n = static_cast<std::size_t>(size());
    std::vector<std::int16_t> mine(2 * n);
    for (std::size_t i = 0; i < mine.size(); ++i)
      mine[i] = static_cast<std::int16_t>(100 * rank() + static_cast<int>(i));
    const auto in = on_device(mine);
    DeviceBuffer<std::int16_t> out{2 * n}, all{2 * n * n}, part{2};
    const FakeNcclCounters before = test_platform::nccl();
    tp.all_to_all(in.span(), out.span());
    tp.gather(in.span(), all.span(), 0);
    tp.scatter(in.span(), part.span(), 0);
    const auto received = out.download(StreamRef{});
    for (int from = 0; from < size(); ++from)
      for (std::size_t i = 0; i < 2; ++i)
        CHECK(received[2 * static_cast<std::size_t>(from) + i] ==
              100 * from + 2 * rank() + static_cast<int>(i));
    if (tp.is_first())
      CHECK(all.download(StreamRef{})[2 * n * n - 1] == 100 * (size() - 1) + 2 * size() - 1);
    CHECK(part.download(StreamRef{})[1] == 2 * rank() + 1);
    if (test_platform::is_double()) {
      const bool has_them = nccl::Library::load().AlltoAll != nullptr;
      CHECK(calls_since(before, fake_all_to_all) == (has_them ? 1 : 0));
      CHECK(calls_since(before, fake_gather) == (has_them && copy_engines ? 1 : 0));
      CHECK(calls_since(before, fake_scatter) == (has_them && copy_engines ? 1 : 0));
      if (has_them && copy_engines) CHECK(calls_since(before, fake_send) == 0);
    }
    // Along an axis, the root passes other memory than the program, so the members must not.
    const Axis axis{{2, 2}, 1};
    const DeviceBuffer<std::int16_t> columns{4 * n}, own{4};
    const FakeNcclCounters before_axis = test_platform::nccl();
    tp.gather(own.span(), columns.span(), axis, 0);
    tp.scatter(columns.span(), own.span(), axis, 0);
    (void)own.download(StreamRef{});
    if (test_platform::is_double()) {
      CHECK(calls_since(before_axis, fake_gather) == 0);
      CHECK(calls_since(before_axis, fake_scatter) == 0);
    }
    mesh.close();
  }
}

TEST_CASE("a larger warm-up makes the connections of all sizes up to its own") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  constexpr std::int64_t largest = 1 << 20;
  for (const bool is_warm : {false, true}) {
    MeshOptions options = test_platform::options();
    if (is_warm) options.names["tp"].warm_up_bytes = largest;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    const auto n = static_cast<std::size_t>(size());
    const DeviceBuffer<float> whole{static_cast<std::size_t>(largest) / sizeof(float) / n * n};
    const long before = test_platform::nccl().connections;
    for (const std::size_t count : {n, whole.size()}) {
      const auto part = whole.span().subspan(0, count);
      const auto own = part.subspan(static_cast<std::size_t>(rank()) * (count / n), count / n);
      tp.all_reduce(part, ReduceOp::max);
      tp.all_gather(own, part);
      tp.reduce_scatter(part, own, ReduceOp::max);
      tp.broadcast(part, 0);
    }
    const long made = test_platform::nccl().connections - before;
    const bool connects_late = nccl::Library::load().version() >= 22200;
    CHECK((made > 0) == (connects_late && !is_warm));
    mesh.close();
  }
}
