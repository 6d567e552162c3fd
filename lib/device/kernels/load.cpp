// SPDX-License-Identifier: BSD-3-Clause
#include "device/kernels/load.hpp"

#include <utility>

#include "rankmesh/base/error.hpp"

namespace rankmesh::device {
namespace {

constinit const KernelsToLoad* first = nullptr;

}  // namespace

KernelsToLoad::KernelsToLoad(void (*load)() noexcept) noexcept
    : load_{load}, next_{std::exchange(first, this)} {}

void load_kernels() noexcept {
  for (const KernelsToLoad* kernels = first; kernels != nullptr; kernels = kernels->next_)
    kernels->load_();
}

void refuse_without_kernels() {
  throw NoDeviceError{
      "an expert dispatcher cannot use device memory: rankmesh was built without CUDA's compiler",
      "use host memory, or build rankmesh on a machine with nvcc"};
}

}  // namespace rankmesh::device
