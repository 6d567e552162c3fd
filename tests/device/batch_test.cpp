// SPDX-License-Identifier: BSD-3-Clause
// What an NcclGroup promises on devices: an order of priorities, and no other.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
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
using rankmesh_test::rank;
using rankmesh_test::size;
using test_platform::on_device;

namespace {

const std::array<std::string, 3> families{"pp", "dp", "tp"};

// Returns the number of the last launch of a group.
long last_launch(GroupCoordinator& group) {
  return test_platform::nccl_hook<decltype(&fake_nccl_last_launch)>("fake_nccl_last_launch")(
      group.native_nccl());
}

}  // namespace

TEST_CASE("a batch issues families of lower priority first, whatever the order of the calls") {
  NEEDS_MULTIPLE_OF(8);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  std::array<int, 3> priorities{-1, 0, 1};
  // NCCL orders communicators inside a group by a hash, so one order might come out by chance.
  do {
    MeshOptions options = test_platform::options();
    for (std::size_t f = 0; f < 3; ++f) options.names[families[f]].priority = priorities[f];
    Mesh mesh{MPI_COMM_WORLD, "pp=2,dp=auto,tp=2", options};
    const Stream stream = Stream::create();
    const auto values = on_device<float>({1, 1, 1});
    {
      NcclGroup together{mesh};
      for (std::size_t f = 0; f < 3; ++f)
        mesh[families[f]].all_reduce(values.span().subspan(f, 1), stream);
      together.end();
    }
    for (std::size_t f = 0; f < 3; ++f)
      for (std::size_t g = 0; g < 3; ++g)
        CHECK((priorities[f] < priorities[g]) ==
              (last_launch(mesh[families[f]]) < last_launch(mesh[families[g]])));
    const auto sums = values.download(stream);
    for (std::size_t f = 0; f < 3; ++f)
      CHECK(sums[f] == static_cast<float>(mesh[families[f]].size()));
    mesh.close();
  } while (std::ranges::next_permutation(priorities).found);
}

TEST_CASE("a batch refuses a call that writes memory of another one, and goes on without it") {
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "dp=2,tp=auto" : "dp=1,tp=auto",
            test_platform::options()};
  auto& tp = mesh["tp"];
  auto& dp = mesh["dp"];
  const Stream stream = Stream::create();
  const auto n = static_cast<std::size_t>(tp.size());
  const auto a = on_device<float>({1, 2, 3}), b = on_device<float>({4, 5, 6});
  DeviceBuffer<float> out{3 * n}, sum{3};
  NcclGroup together{mesh};
  tp.all_reduce(a.span(), stream);
  const auto refused = [](auto&& call, const char* theirs, const char* mine) {
    try {
      call();
      FAIL_CHECK("no UsageError");
    } catch (const UsageError& error) {
      CHECK_CONTAINS(error.message(), theirs);
      CHECK_CONTAINS(error.message(), mine);
      CHECK_CONTAINS(error.message(), "share memory in one NcclGroup");
    }
  };
  const char* first = "tp.all_reduce(3 x float32, sum, in place, device memory)";
  refused([&] { tp.all_gather(a.span(), out.span(), stream); }, first, "tp.all_gather(3");
  refused([&] { dp.all_reduce(a.span().subspan(2, 1), stream); }, first, "dp.all_reduce(1");
  refused([&] { dp.all_reduce(b.span(), a.span(), ReduceOp::sum, stream); }, first,
          "dp.all_reduce(3");
  dp.all_reduce(b.span(), sum.span(), ReduceOp::max, stream);
  if (tp.size() > 1)
    refused([&] { tp.broadcast(b.span(), (tp.rank_in_group().value() + 1) % tp.size(), stream); },
            "dp.all_reduce(3", "tp.broadcast(3");
  tp.all_gather(b.span(), out.span(), stream);  // reading together is allowed
  std::vector<int> host{1, 2};
  Work work = tp.all_reduce_async(host);
  refused([&] { (void)dp.all_reduce_async(host); }, "tp.all_reduce(2 x int32",
          "dp.all_reduce(2 x int32");
  together.end();
  work.wait();
  CHECK(host == std::vector<int>{static_cast<int>(n), static_cast<int>(2 * n)});
  CHECK(a.download(stream) == std::vector{1.F * static_cast<float>(n), 2.F * static_cast<float>(n),
                                          3.F * static_cast<float>(n)});
  CHECK(sum.download(stream) == std::vector<float>{4, 5, 6});
  CHECK(out.download(stream)[3 * n - 1] == 6);
  {
    NcclGroup next_batch{mesh};  // nothing of the first batch is remembered
    dp.all_reduce(a.span(), ReduceOp::max, stream);
    next_batch.end();
  }
  stream.wait(Deadline{Deadline::Duration{30}});
  mesh.close();
}

TEST_CASE("the root of broadcasts sends one buffer twice in a batch") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const auto a = on_device<float>({tp.is_first() ? 7.F : 0.F}), b = on_device<float>({0});
  {
    NcclGroup together{mesh};
    tp.broadcast(a.span(), 0);
    tp.broadcast(tp.is_first() ? a.span() : b.span(), 0);
    together.end();
  }
  CHECK(a.download(StreamRef{}) == std::vector<float>{7});
  if (!tp.is_first()) CHECK(b.download(StreamRef{}) == std::vector<float>{7});
  mesh.close();
}

TEST_CASE("blocks of one batch may interleave in one buffer") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const auto n = static_cast<std::size_t>(size());
  const std::vector<std::int64_t> ones(n, 1);
  std::vector<std::int64_t> even, odd;
  for (std::int64_t k = 0; k < size(); ++k) even.push_back(2 * k), odd.push_back(2 * k + 1);
  const auto mine = on_device<std::int32_t>({rank(), -rank()});
  DeviceBuffer<std::int32_t> out{2 * n};
  {
    NcclGroup together{mesh};
    tp.all_gather_v(mine.span().subspan(0, 1), out.span(), Blocks{ones, even});
    tp.all_gather_v(mine.span().subspan(1, 1), out.span(), Blocks{ones, odd});
    CHECK_THROWS_WITH_AS(tp.all_gather_v(mine.span().subspan(1, 1), out.span(), Blocks{ones, odd}),
                         doctest::Contains("share memory"), UsageError);
    together.end();
  }
  const auto all = out.download(StreamRef{});
  for (int k = 0; k < size(); ++k) {
    CHECK(all[static_cast<std::size_t>(2 * k)] == k);
    CHECK(all[static_cast<std::size_t>(2 * k + 1)] == -k);
  }
  mesh.close();
}
