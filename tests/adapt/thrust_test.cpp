// SPDX-License-Identifier: BSD-3-Clause
// Without CUDA, Thrust's device system is the host.
#include "rankmesh/adapt/thrust.hpp"

#include "arrays.hpp"

using namespace rankmesh;
using rankmesh_test::size;

TEST_CASE("vectors of Thrust") {
  static_assert(!detail::is_borrowed<thrust::device_vector<float>>);
  static_assert(!WritableMemory<const thrust::host_vector<float>&>);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  thrust::host_vector<float> on_host(4, 1.0F);
  thrust::device_vector<float> on_device(4, 2.0F);
  dp.all_reduce(on_host);
  dp.all_reduce(on_device);
  CHECK(on_host[3] == static_cast<float>(size()));
  CHECK(on_device[3] == 2.0F * static_cast<float>(size()));
  auto work = dp.all_reduce_async(std::move(on_device), ReduceOp::max);
  CHECK(work.take()[0] == 2.0F * static_cast<float>(size()));
  mesh.close();
}
