// SPDX-License-Identifier: BSD-3-Clause
// A row about averages: NCCL multiplies by 1/n, rounded to the element type, before it sums; the
// host sums first.
#include <cmath>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "raw_communicator.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::Mesh;
using rankmesh::ReduceOp;
using rankmesh::device::DeviceBuffer;

// Values of this rank: from 1 to 2, others on each rank.
template <class T>
std::vector<T> values_of(int of_rank) {
  std::vector<T> result;
  for (int i = 0; i < 128; ++i)
    result.push_back(static_cast<T>(1 + static_cast<float>((i * 7 + of_rank * 29) % 128) / 128));
  return result;
}

// The largest relative difference from the exact averages.
template <class T>
double largest_error(const std::vector<T>& averages) {
  double largest = 0;
  for (std::size_t i = 0; i < averages.size(); ++i) {
    double exact = 0;
    for (int r = 0; r < size(); ++r)
      exact += static_cast<double>(static_cast<float>(values_of<T>(r)[i])) / size();
    largest = std::max(largest,
                       std::abs(static_cast<double>(static_cast<float>(averages[i])) / exact - 1));
  }
  return largest;
}

// Returns the largest error of the averages, or a negative number if the type is refused.
template <class T>
double of_rankmesh(Mesh& mesh) {
  const auto mine = values_of<T>(rank());
  const DeviceBuffer<T> buffer{std::span<const T>{mine}};
  try {
    mesh["tp"].all_reduce(buffer.span(), ReduceOp::avg);
    return largest_error(buffer.download({}));
  } catch (const rankmesh::UnsupportedError& error) {
    say("refused: {}", error.what());
    return -1;
  }
}

template <class T>
double of_nccl(const RawCommunicator& raw, ncclDataType_t type) {
  const auto& nccl = rankmesh::nccl::Library::load();
  const auto mine = values_of<T>(rank());
  const DeviceBuffer<T> buffer{std::span<const T>{mine}};
  raw.settle(nccl.AllReduce(buffer.data(), buffer.data(), buffer.size(), type, ncclAvg,
                            raw.native(), nullptr),
             "ncclAllReduce");
  return largest_error(buffer.download({}));
}

template <class T>
void compare(Mesh& mesh, const RawCommunicator& raw, ncclDataType_t type, int digits,
             bool nccl_can) {
  const double ours = of_rankmesh<T>(mesh);
  std::vector<T> host = values_of<T>(rank());
  mesh["tp"].all_reduce(host, ReduceOp::avg);
  say("{:<12} largest relative error: rankmesh {:.5f}, host memory {:.5f}, ncclAvg {:.5f}",
      rankmesh::to_string(rankmesh::DataTypeOf<T>::value), ours, largest_error(host),
      nccl_can ? of_nccl<T>(raw, type) : -1.0);
  // Half a unit in the last place for the sum of each further rank, and half a one for the factor.
  const double allowed = std::ldexp(0.5, -digits) * (size() + 1);
  require(ours <= allowed,
          fmt::format("an average is off by {:.5f}, allowed are {:.5f}", ours, allowed));
}

int averages(const Arguments&) {
  choose_device();
  int device = 0;
  cudaDeviceProp properties{};
  rankmesh::device::check(cudaGetDevice(&device), "cudaGetDevice");
  rankmesh::device::check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options()};
  const RawCommunicator raw{{}};
  compare<float>(mesh, raw, ncclFloat, 23, true);
  compare<rankmesh::Float16>(mesh, raw, ncclHalf, 10, true);
  compare<rankmesh::BFloat16>(mesh, raw, ncclBfloat16, 7, true);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
  compare<rankmesh::Float8E4M3>(mesh, raw, ncclFloat8e4m3, 3, properties.major >= 9);
#endif
  mesh.close();
  summarise("averages over {} ranks are as exact as the types allow", size());
  return 0;
}

const Register averages_row{"averages", averages};

}  // namespace
}  // namespace gpu_rows
