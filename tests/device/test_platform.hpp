// SPDX-License-Identifier: BSD-3-Clause
// The platform of the device suite: the CPU doubles, one device that all ranks share, or a device
// per rank.
#pragma once

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <span>
#include <vector>

#include "base/detail/patience.hpp"
#include "fake_cuda.hpp"
#include "fake_nccl.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/mesh/options.hpp"

namespace test_platform {

// Returns a hook of the NCCL double, from the library that rankmesh opened; null for the real NCCL.
template <class Function>
Function nccl_hook(const char* name) {
  void* handle = dlopen(rankmesh::nccl::Library::load().path().c_str(), RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(handle, name));
}

inline bool is_double() { return nccl_hook<void*>("fake_nccl_counters") != nullptr; }

// Counts the existing objects of NCCL. On real devices, all counters are zero.
inline FakeNcclCounters nccl() {
  FakeNcclCounters result{};
  if (is_double()) nccl_hook<decltype(&fake_nccl_counters)>("fake_nccl_counters")(&result);
  return result;
}

// Returns a hook of the CUDA double; null for the real CUDA.
template <class Function>
Function cuda_hook(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

inline FakeCudaCounters cuda() {
  FakeCudaCounters result{};
  const auto hook = cuda_hook<decltype(&fake_cuda_counters)>("fake_cuda_counters");
  if (hook != nullptr) hook(&result);
  return result;
}

// Whether 16 ranks can choose devices of their own, as they can on the double by default.
inline bool has_16_devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count >= 16;
}

// Makes calls of the double fail. It does not work on real devices.
inline void inject(const char* faults) {
  CHECK(nccl_hook<decltype(&fake_nccl_inject)>("fake_nccl_inject")(faults) == 0);
}

// On the doubles, what does not end is left behind sooner than in programs.
inline void be_impatient() {
  if (!is_double()) return;
  rankmesh::detail::Patience& times = rankmesh::detail::patience_of_tests();
  times.abort = rankmesh::Deadline::Duration{1};
  times.aborted_call = rankmesh::Deadline::Duration{0.3};
  times.graph_reports = rankmesh::Deadline::Duration{0.2};
}

// The environment variable tells that all ranks share one device.
inline rankmesh::MeshOptions options() {
  be_impatient();
  rankmesh::MeshOptions options;
  options.share_devices = std::getenv("RANKMESH_TEST_SHARE_DEVICES") != nullptr;
  return options;
}

// Questions about events and streams return this error from now on. Only on the double.
inline void fault_of_device(cudaError_t error) {
  const auto hook = cuda_hook<decltype(&fake_cuda_fault)>("fake_cuda_fault");
  REQUIRE((hook != nullptr));
  hook(error);
}

inline rankmesh::MeshOptions short_timeout() {
  rankmesh::MeshOptions result = options();
  result.timeout = rankmesh::Deadline::Duration{is_double() ? 3 : 60};
  return result;
}

template <class T>
rankmesh::device::DeviceBuffer<T> on_device(const std::vector<T>& host) {
  return rankmesh::device::DeviceBuffer<T>{std::span<const T>{host}};
}

// Captures what `calls` issues on the stream.
template <class Calls>
cudaGraph_t captured(const rankmesh::device::Stream& stream, Calls&& calls) {
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream.native(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  calls();
  REQUIRE(cudaStreamEndCapture(stream.native(), &graph) == cudaSuccess);
  return graph;
}

}  // namespace test_platform
