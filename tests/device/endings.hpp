// SPDX-License-Identifier: BSD-3-Clause
// What the tests of endings on devices share.
#pragma once

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"

namespace test_endings {

// What a test allows for more than a deadline.
inline constexpr double more = 3;
// How long an abort waits.
inline double limit() { return rankmesh::detail::patience().abort.count(); }

// The warnings of a mesh, which may come from other threads.
struct Warnings {
  std::mutex mutex;
  std::string text;
  [[nodiscard]] std::string all() {
    const std::lock_guard lock{mutex};
    return text;
  }
};

inline rankmesh::MeshOptions options_with(std::shared_ptr<Warnings> warnings, double timeout) {
  rankmesh::MeshOptions options = test_platform::options();
  options.timeout = rankmesh::Deadline::Duration{timeout};
  options.check = false;
  options.log = [warnings = std::move(warnings)](rankmesh::LogLevel level, std::string_view line) {
    if (level != rankmesh::LogLevel::warning) return;
    const std::lock_guard lock{warnings->mutex};
    warnings->text += line;
  };
  return options;
}

// Waits until NCCL has freed all communicators but `count`; false after a while.
inline bool has_freed_all_but(long count) {
  const rankmesh::Deadline deadline{rankmesh::Deadline::Duration{more}};
  while (test_platform::nccl().communicators != count && !deadline.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  return test_platform::nccl().communicators == count;
}

// Captures an operation of the group, and instantiates the graph.
inline cudaGraphExec_t graph_of(rankmesh::GroupCoordinator& group,
                                const rankmesh::device::DeviceBuffer<float>& value,
                                const rankmesh::device::Stream& stream) {
  cudaGraph_t graph =
      test_platform::captured(stream, [&] { group.all_reduce(value.span(), stream); });
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  return exec;
}

}  // namespace test_endings
