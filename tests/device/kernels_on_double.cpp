// SPDX-License-Identifier: BSD-3-Clause
// The launchers of kernels on the CPU double, which runs no kernels: their host implementations,
// queued on the stream.
#include <cuda_runtime_api.h>

#include <functional>
#include <memory>

#include "device/kernels/expert_rows.hpp"
#include "rankmesh/device/cuda.hpp"

namespace rankmesh::device {
namespace {

void queue(std::function<void()> work, StreamRef stream) {
  auto kept = std::make_unique<std::function<void()>>(std::move(work));
  const auto run = [](void* data) {
    const std::unique_ptr<std::function<void()>> function{
        static_cast<std::function<void()>*>(data)};
    (*function)();
  };
  check(cudaLaunchHostFunc(static_cast<cudaStream_t>(stream.native()), run, kept.get()),
        "cudaLaunchHostFunc");
  (void)kept.release();
}

}  // namespace

void launch(const GatherRows& work, StreamRef stream) {
  queue([work] { run_on_host(work); }, stream);
}
void launch(const WeightedSum& work, StreamRef stream) {
  queue([work] { run_on_host(work); }, stream);
}

}  // namespace rankmesh::device
