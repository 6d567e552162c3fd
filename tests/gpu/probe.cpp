// SPDX-License-Identifier: BSD-3-Clause
// The first rows, in one process without MPI: how many devices there are, and which versions of the
// driver, the runtime and NCCL this program finds. The probe also uses the device once.
#include <cuda_runtime_api.h>

#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::device::check;

int print_count(const Arguments&) {
  say("{}", rankmesh::device::cuda_versions().devices);
  return 0;
}

// Throws if it cannot be opened; the error says where it was looked for.
int print_nccl(const Arguments&) {
  const auto& nccl = rankmesh::nccl::Library::load();
  say("NCCL {} from {}", nccl.version_text(), nccl.path());
  return 0;
}

std::string version(int code) { return fmt::format("{}.{}", code / 1000, code % 1000 / 10); }

void print_device(int number) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
  std::string uuid;
  for (const char byte : properties.uuid.bytes)
    uuid += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  check(cudaSetDevice(number), "cudaSetDevice");
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  say("device {}: {}, compute capability {}.{}, {} of {} MiB free, UUID {}", number,
      properties.name, properties.major, properties.minor, free >> 20, total >> 20, uuid);
}

int probe(const Arguments&) {
  const auto cuda = rankmesh::device::cuda_versions();
  say("CUDA: built with runtime {}, the driver offers {}, {} devices", version(cuda.runtime),
      version(cuda.driver), cuda.devices);
  const auto& nccl = rankmesh::nccl::Library::load();
  say("NCCL: {} from {}", nccl.version_text(), nccl.path());
  say("NCCL offers: window registration {}, scalable init {}, memory allocator {}",
      nccl.CommWindowRegister != nullptr, nccl.CommInitRankScalable != nullptr,
      nccl.MemAlloc != nullptr);
  for (int number = 0; number < cuda.devices; ++number) print_device(number);
  if (cuda.devices == 0) return skip("needs 1 GPU");
  const std::vector<int> values{1, 2, 3};
  const rankmesh::device::DeviceBuffer<int> buffer{std::span<const int>{values}};
  require(buffer.download({}) == values, "a copy to the device and back changed the values");
  summarise("CUDA driver {}, NCCL {}, {} device{}", version(cuda.driver), nccl.version_text(),
            cuda.devices, cuda.devices == 1 ? "" : "s");
  return 0;
}

const Register count_row{"count", print_count};
const Register nccl_row{"nccl", print_nccl};
const Register probe_row{"probe", probe};

}  // namespace
}  // namespace gpu_rows
