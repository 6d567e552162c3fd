// SPDX-License-Identifier: BSD-3-Clause
// A communicator of NCCL over all ranks of the job, used without rankmesh. It shows what NCCL
// itself does and what a call of it costs.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <optional>

namespace gpu_rows {

/// Chooses a device for this rank and makes it current: the number of the rank on its node modulo
/// the number of devices. Meshes keep to this choice. Collective; every row calls it at most once.
void choose_device();

struct RawOptions {
  bool blocking = true;
  std::optional<int> max_ctas{};
  bool shares = false;  ///< Whether children that are split from it share its resources.
};

/// Move-only would be enough, but no row moves one.
class RawCommunicator {
 public:
  /// Collective over MPI_COMM_WORLD.
  explicit RawCommunicator(const RawOptions& options);
  ~RawCommunicator();
  RawCommunicator(const RawCommunicator&) = delete;
  RawCommunicator& operator=(const RawCommunicator&) = delete;

  [[nodiscard]] ncclComm_t native() const { return comm_; }
  /// Sums floats, as a program without rankmesh would: on a non-blocking communicator it polls
  /// until NCCL has taken the operation.
  void all_reduce(const float* in, float* out, std::size_t count, cudaStream_t stream) const;
  /// Polls until NCCL has taken what was called before. @throws NcclError
  void settle(ncclResult_t code, const char* function) const;

 private:
  ncclComm_t comm_ = nullptr;
  bool blocking_ = true;
};

}  // namespace gpu_rows
