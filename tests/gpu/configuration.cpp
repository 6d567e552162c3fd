// SPDX-License-Identifier: BSD-3-Clause
// Rows about what NCCL and CUDA accept when something is created: configurations, element types,
// devices.
#include <cstdlib>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "raw_communicator.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::GroupOptions;
using rankmesh::Mesh;

// NCCL compares minCTAs with maxCTAs before it fills in defaults, so one without the other may be
// refused.
int limits(const Arguments&) {
  for (const auto& [name, wanted] :
       {std::pair{"min_ctas alone", GroupOptions{.min_ctas = 1}},
        std::pair{"max_ctas alone", GroupOptions{.max_ctas = 4}},
        std::pair{"both", GroupOptions{.min_ctas = 1, .max_ctas = 4}}}) {
    Mesh mesh = two_names(wanted);
    check_sum(mesh["all"], {});
    mesh.close();
    say("{}: the mesh opened, and a sum was right", name);
  }
  summarise("communicators open with min_ctas alone, max_ctas alone, and both");
  return 0;
}

// Reductions of 8-bit floats need compute capability 9.0 on all devices.
template <class T>
void reduce_narrow(Mesh& mesh, bool can_reduce) {
  const std::string type{rankmesh::to_string(rankmesh::DataTypeOf<T>::value)};
  const rankmesh::device::DeviceBuffer<T> buffer{
      std::span<const T>{std::vector<T>(100, static_cast<T>(1.0F))}};
  try {
    mesh["tp"].all_reduce(buffer.span());
    const float sum = static_cast<float>(buffer.download({})[99]);
    require(sum == static_cast<float>(size()), fmt::format("a sum of {} is {}", type, sum));
    require(can_reduce, type + " was reduced below compute capability 9.0");
    say("{}: the sum was right", type);
  } catch (const rankmesh::UnsupportedError& error) {
    require(!can_reduce, type + " was refused: " + error.what());
    say("{}: refused: {}", type, error.what());
  }
  check_sum(mesh["tp"], {});  // the communicator goes on working
}

int fp8(const Arguments&) {
  choose_device();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options()};
  int device = 0;
  cudaDeviceProp properties{};
  rankmesh::device::check(cudaGetDevice(&device), "cudaGetDevice");
  rankmesh::device::check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  int least = properties.major;
  MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  reduce_narrow<rankmesh::Float8E4M3>(mesh, least >= 9);
  reduce_narrow<rankmesh::Float8E5M2>(mesh, least >= 9);
  mesh.close();
  summarise("least compute capability {}.x: sums of 8-bit floats {}", least,
            least >= 9 ? "are right" : "are refused, and the group goes on working");
  return 0;
}

// A program without a device gets the error that README promises. Several ranks are not needed.
int no_device(const Arguments&) {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  try {
    const rankmesh::device::DeviceBuffer<float> buffer{10};
  } catch (const rankmesh::NoDeviceError& error) {
    say("DeviceBuffer: NoDeviceError: {}", error.what());
    Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
    std::vector<float> values(10, 1);
    mesh["tp"].all_reduce(values);
    require(values[9] == static_cast<float>(size()), "a sum in host memory is wrong");
    mesh.close();
    summarise("DeviceBuffer throws NoDeviceError, and a mesh works on host memory");
    return 0;
  }
  throw rankmesh::Error{"a DeviceBuffer was allocated although no device is visible"};
}

// Two ranks on one device without any setting: rankmesh names them, and NCCL says what it says.
int duplicate(const Arguments&) {
  if (rankmesh::device::cuda_versions().devices >= size())
    return skip("needs more ranks than GPUs");
  unsetenv("NCCL_HOSTID");  // with it, NCCL takes the ranks for different hosts
  rankmesh::MeshOptions wanted = options();
  wanted.share_devices = false;
  std::string refusal = "nothing";
  try {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", wanted};
    mesh.close();
  } catch (const rankmesh::Error& error) {
    refusal = error.what();
  }
  say("without share_devices: {}", refusal);
  require(refusal.find("device") != std::string::npos, "ranks shared a device without being asked");
  wanted.share_devices = true;
  std::string shared = "works";
  try {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", wanted};
    check_sum(mesh["tp"], {});
    mesh.close();
  } catch (const rankmesh::Error& error) {
    shared = error.what();
  }
  say("with share_devices, on one host: {}", shared);
  meet();
  summarise("rankmesh names the ranks; with share_devices on one host NCCL {}",
            shared == "works" ? "works" : "refuses");
  return 0;
}

const Register limits_row{"limits", limits};
const Register fp8_row{"fp8", fp8};
const Register no_device_row{"no_device", no_device};
const Register duplicate_row{"duplicate", duplicate};

}  // namespace
}  // namespace gpu_rows
