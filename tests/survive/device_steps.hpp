// SPDX-License-Identifier: BSD-3-Clause
// What ranks do with device memory until some of them die.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "../doubles/fake_nccl.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/rankmesh.hpp"

namespace rankmesh_test {

inline void require(bool condition, const char* what) {
  if (condition) return;
  fmt::print("WRONG: {}\n", what);
  std::fflush(stdout);
  std::_Exit(3);
}

/// Returns how often this process has called NCCL.
inline long long calls_of_nccl() {
  FakeNcclCounters counters{};
  void* const nccl = ::dlopen(std::getenv("RANKMESH_NCCL_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  if (nccl == nullptr) return 0;
  reinterpret_cast<decltype(&fake_nccl_counters)>(::dlsym(nccl, "fake_nccl_counters"))(&counters);
  return counters.entries;
}

/// Waits until this process calls NCCL again.
inline void await_nccl() {
  for (const long long before = calls_of_nccl(); calls_of_nccl() == before;) ::usleep(100);
}

/// From now on, CUDA returns an error from each call.
inline void break_device() {
  constexpr int illegal_address = 700;
  reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "fake_cuda_fault"))(illegal_address);
}

/// Captures a stream that waits for the default stream, as long as the object exists.
class CapturedStream {
 public:
  CapturedStream() {
    constexpr int relaxed = 2;
    require(function<int(void**)>("cudaStreamCreate")(&stream_) == 0, "a stream is created");
    require(function<int(void*, int)>("cudaStreamBeginCapture")(stream_, relaxed) == 0,
            "the stream is captured");
  }
  ~CapturedStream() {
    void* graph = nullptr;
    require(function<int(void*, void**)>("cudaStreamEndCapture")(stream_, &graph) == 0,
            "the capture is intact");
  }
  CapturedStream(const CapturedStream&) = delete;
  CapturedStream& operator=(const CapturedStream&) = delete;

 private:
  template <class Function>
  static Function* function(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
  }
  void* stream_ = nullptr;
};

/// Sums in device memory over `dp`. After a loss, NCCL ends the operation with wrong elements, so
/// each kind of step ends with a call that throws then.
inline void device_step(rankmesh::Mesh& mesh, const std::string& kind) {
  using namespace rankmesh;
  using Values = device::DeviceBuffer<float>;
  const auto on_device = [&] {
    const std::vector<float> host(1000, static_cast<float>(mesh.rank().value() + 1));
    return Values{std::span<const float>{host}};
  };
  std::shared_ptr<GroupCoordinator> made;
  if (kind == "device group") made = mesh.new_group(mesh["dp"].ranks().to_vector(), "made");
  GroupCoordinator& group = made ? *made : mesh["dp"];
  const Values values = on_device(), more = on_device();
  const StreamRef stream = group.stream();
  std::vector<float> host;
  if (kind == "device async") {
    Work work = group.all_reduce_async(values.span(), stream);
    work.wait(Deadline::Duration{20});
  } else if (kind == "device order") {
    Work work = group.all_reduce_async(values.span(), stream);
    work.wait();
  } else if (kind == "device batch") {
    NcclGroup batch{mesh};
    group.all_reduce(values.span(), stream);
    group.broadcast(more.span(), RankInGroup{0}, stream);
    batch.end();
  } else {
    group.all_reduce(values.span(), stream);
  }
  // The program's own wait knows nothing of losses.
  if (kind == "device, own wait") host = values.download(stream);
  group.wait(stream);
  host = values.download(stream);
  float sum = 0;
  for (const Rank member : group.ranks()) sum += static_cast<float>(member.value() + 1);
  require(host.front() == sum && host.back() == sum, "the sum in device memory");
  if (made) mesh.close(made);
}

}  // namespace rankmesh_test
