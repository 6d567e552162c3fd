// SPDX-License-Identifier: BSD-3-Clause
// What depends on the compute capability of the devices.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/test_platform.hpp"
#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using test_platform::on_device;

namespace {

const Float8E4M3 one{1}, two{2};

// Returns the compute capability of each rank's device.
std::vector<int> capabilities() {
  int device = 0, major = 0, minor = 0;
  REQUIRE(cudaGetDevice(&device) == cudaSuccess);
  REQUIRE(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess);
  REQUIRE(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess);
  const int mine = 10 * major + minor;
  std::vector<int> all(static_cast<std::size_t>(size()));
  MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
  return all;
}

}  // namespace

TEST_CASE(
    "averages of 8-bit floats are those of NCCL, and refused where the factor has no digits") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(nccl::Library::load().version() >= 22400, "needs NCCL 2.24");
  SKIP_UNLESS(std::ranges::min(capabilities()) >= 90, "needs compute capability 9.0");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const auto average = [&]<class T>(float value) {
    const auto values = on_device<T>({T{value}});
    tp.all_reduce(values.span(), ReduceOp::avg);
    return static_cast<float>(values.download(StreamRef{})[0]);
  };
  if (size() <= 64) {
    // The rounded factor and the rounded products are at most an eighth too large or too small.
    CHECK(std::abs(average.operator()<Float8E4M3>(1.75F) - 1.75F) <= 1.75F / 8);
    CHECK(std::abs(average.operator()<Float8E4M3>(16) - 16) <= 2);
  } else {
    CHECK_THROWS_WITH_AS((void)average.operator()<Float8E4M3>(1), doctest::Contains("digits"),
                         UnsupportedError);
    const auto ones = on_device<Float8E4M3>({Float8E4M3{1}});
    tp.all_reduce(ones.span(), ReduceOp::max);
    CHECK(ones.download(StreamRef{})[0] == Float8E4M3{1});
  }
  CHECK(std::abs(average.operator()<Float8E5M2>(1.75F) - 1.75F) <= 1.75F / 4);
  CHECK(std::abs(average.operator()<BFloat16>(1.75F) - 1.75F) <= 1.75F / 64);
  mesh.close();
}

TEST_CASE("8-bit floats are reduced where all devices of the group can, and refused elsewhere") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(nccl::Library::load().version() >= 22400, "needs NCCL 2.24");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const std::vector<int> all = capabilities();
  const auto test = [&](GroupCoordinator& group, int least) {
    const auto values = on_device<Float8E4M3>({one, one});
    const auto floats = on_device<float>({1});
    if (least >= 90) {
      group.all_reduce(values.span(), ReduceOp::max);
      CHECK(values.download(StreamRef{})[1] == one);
      return;
    }
    CHECK_THROWS_WITH_AS(group.all_reduce(values.span()), doctest::Contains("compute capability"),
                         UnsupportedError);
    {
      NcclGroup together{mesh};
      CHECK_THROWS_AS(group.all_reduce(values.span()), UnsupportedError);
      group.broadcast(values.span(), 0);  // moving is no arithmetic
      group.all_reduce(floats.span());
      together.end();
    }
    CHECK(floats.download(StreamRef{}) == std::vector{static_cast<float>(group.size())});
    CHECK(values.download(StreamRef{})[1] == one);
  };
  test(tp, std::ranges::min(all));
  if (rank() < 2) {
    const std::vector<Rank> members{0, 1};
    const auto pair = mesh.new_group(members);
    test(*pair, std::min(all[0], all[1]));
    if (std::min(all[0], all[1]) >= 90) {
      const auto values = on_device<Float8E4M3>({one});
      pair->all_reduce(values.span());
      CHECK(values.download(StreamRef{})[0] == two);
    }
    mesh.close(*pair);
  }
  mesh.close();
}
