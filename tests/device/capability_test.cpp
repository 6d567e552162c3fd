// SPDX-License-Identifier: BSD-3-Clause
// What depends on the compute capability of the devices.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

namespace {

// A program's own type of 8-bit floats.
struct Octet {
  std::uint8_t bits;
};

constexpr Octet one{0x38}, two{0x40};

}  // namespace

template <>
struct rankmesh::DataTypeOf<Octet> {
  static constexpr DataType value = DataType::float8_e4m3;
};

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using test_platform::on_device;

namespace {

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

TEST_CASE("8-bit floats are reduced where all devices of the group can, and refused elsewhere") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(nccl::Library::load().version() >= 22400, "needs NCCL 2.24");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const std::vector<int> all = capabilities();
  const auto test = [&](GroupCoordinator& group, int least) {
    const auto values = on_device<Octet>({one, one});
    const auto floats = on_device<float>({1});
    if (least >= 90) {
      group.all_reduce(values.span(), ReduceOp::max);
      CHECK(values.download(StreamRef{})[1].bits == one.bits);
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
    CHECK(values.download(StreamRef{})[1].bits == one.bits);
  };
  test(tp, std::ranges::min(all));
  if (rank() < 2) {
    const std::vector<Rank> members{0, 1};
    const auto pair = mesh.new_group(members);
    test(*pair, std::min(all[0], all[1]));
    if (std::min(all[0], all[1]) >= 90) {
      const auto values = on_device<Octet>({one});
      pair->all_reduce(values.span());
      CHECK(values.download(StreamRef{})[0].bits == two.bits);
    }
    mesh.close(*pair);
  }
  mesh.close();
}
