// SPDX-License-Identifier: BSD-3-Clause
// The double of libcudart: devices, errors, memory.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "fake_cuda.hpp"
#include "fork_ranks.hpp"
#include "gate.hpp"

using ranks::Rank;
using ranks::Settings;

TEST_CASE("without a driver the count fails and leaves its output") {
  CHECK_RANKS(1, (Settings{{"FAKE_CUDA_DEVICES", "none"}}), [](Rank) {
    int count = 77, version = 77;
    REQUIRE_SAME(cudaGetDeviceCount(&count), 35);
    REQUIRE_SAME(count, 77);
    REQUIRE_SAME(cudaDriverGetVersion(&version), 0);
    REQUIRE_SAME(version, 0);
    REQUIRE_SAME(cudaRuntimeGetVersion(&version), 0);
    REQUIRE_SAME(version, CUDART_VERSION);
    void* p = nullptr;
    REQUIRE_SAME(cudaMalloc(&p, 16), cudaErrorInsufficientDriver);
  });
}

TEST_CASE("the symbols have the version that programs linked with the real runtime ask for") {
  CHECK(
      (dlvsym(RTLD_DEFAULT, "cudaFree", "libcudart.so.13") == reinterpret_cast<void*>(&cudaFree)));
}

TEST_CASE("a driver without a device") {
  CHECK_RANKS(1, (Settings{{"FAKE_CUDA_DEVICES", "0"}}), [](Rank) {
    int count = 77, version = 0;
    REQUIRE_SAME(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    REQUIRE_SAME(cudaDriverGetVersion(&version), 0);
    REQUIRE_RANK(version > 0);
  });
}

TEST_CASE(
    "a driver of an older major release than the runtime is insufficient, and tells its version") {
  const std::string minor = std::to_string(CUDART_VERSION / 1000 * 1000);
  for (const std::string& version : {std::string{"12040"}, minor}) {
    CHECK_RANKS(1, (Settings{{"FAKE_CUDA_DRIVER_VERSION", version}}), [=](Rank) {
      int count = 77, found = 0;
      const cudaError_t answer = version == minor ? cudaSuccess : cudaErrorInsufficientDriver;
      REQUIRE_SAME(cudaGetDeviceCount(&count), answer);
      REQUIRE_RANK((count == 77) == (answer != cudaSuccess));
      REQUIRE_SAME(cudaDriverGetVersion(&found), 0);
      REQUIRE_SAME(found, std::stoi(version));
      void* p = nullptr;
      REQUIRE_SAME(cudaMalloc(&p, 16), answer);
    });
  }
}

TEST_CASE("the compute capability can be given for each device") {
  CHECK_RANKS(1, (Settings{{"FAKE_CUDA_COMPUTE_CAPABILITIES", "90,86"}}), [](Rank) {
    for (int device = 0; device < 3; ++device) {
      cudaDeviceProp properties;
      int major = 0;
      REQUIRE_SAME(cudaGetDeviceProperties(&properties, device), cudaSuccess);
      REQUIRE_SAME(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), 0);
      REQUIRE_SAME(10 * properties.major + properties.minor, device == 0 ? 90 : 86);
      REQUIRE_SAME(major, properties.major);
    }
  });
}

TEST_CASE("a driver's error is what every call answers") {
  CHECK_RANKS(1, (Settings{{"FAKE_CUDA_ERROR", "802"}}), [](Rank) {
    int count = 77, version = 0;
    REQUIRE_SAME(cudaGetDeviceCount(&count), cudaErrorSystemNotReady);
    REQUIRE_SAME(count, 77);
    REQUIRE_SAME(cudaDriverGetVersion(&version), 0);
    REQUIRE_RANK(version > 0);
    cudaStream_t stream;
    REQUIRE_SAME(cudaStreamCreate(&stream), cudaErrorSystemNotReady);
  });
}

TEST_CASE("visible devices are chosen and ordered by the environment") {
  CHECK_RANKS(1, (Settings{{"FAKE_CUDA_DEVICES", "4"}, {"CUDA_VISIBLE_DEVICES", "2,0"}}), [](Rank) {
    int count = 0;
    REQUIRE_SAME(cudaGetDeviceCount(&count), 0);
    REQUIRE_SAME(count, 2);
    char bus[32];
    REQUIRE_SAME(cudaDeviceGetPCIBusId(bus, 32, 0), 0);
    REQUIRE_RANK(std::string(bus) == "0000:12:00.0");
    int device = -1;
    REQUIRE_SAME(cudaDeviceGetByPCIBusId(&device, "0000:10:00.0"), 0);
    REQUIRE_SAME(device, 1);
    REQUIRE_SAME(cudaSetDevice(2), cudaErrorInvalidDevice);
    REQUIRE_SAME(cudaSetDevice(1), 0);
    REQUIRE_SAME(cudaGetDevice(&device), 0);
    REQUIRE_SAME(device, 1);
    cudaDeviceProp zero, one;
    REQUIRE_SAME(cudaGetDeviceProperties(&zero, 0), 0);
    REQUIRE_SAME(cudaGetDeviceProperties(&one, 1), 0);
    REQUIRE_RANK(std::memcmp(&zero.uuid, &one.uuid, 16) != 0);
    REQUIRE_SAME(zero.pciBusID, 0x12);
    int value = 0;
    REQUIRE_SAME(cudaDeviceGetAttribute(&value, cudaDevAttrPciBusId, 0), 0);
    REQUIRE_SAME(value, 0x12);
  });
}

TEST_CASE("the UUIDs can be given, so that devices look shared or sliced") {
  const std::string a(32, 'a'), b(32, 'b');
  CHECK_RANKS(1, (Settings{{"FAKE_CUDA_DEVICES", "2"}, {"FAKE_CUDA_UUIDS", a + "," + b}}),
              [](Rank) {
                cudaDeviceProp prop;
                REQUIRE_SAME(cudaGetDeviceProperties(&prop, 1), 0);
                for (char byte : prop.uuid.bytes)
                  REQUIRE_SAME(static_cast<unsigned char>(byte), 0xbb);
              });
}

TEST_CASE("the last error stays until it is taken") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    REQUIRE_SAME(cudaSetDevice(99), cudaErrorInvalidDevice);
    int device;
    REQUIRE_SAME(cudaGetDevice(&device), 0);
    REQUIRE_SAME(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    REQUIRE_SAME(cudaGetLastError(), cudaErrorInvalidDevice);
    REQUIRE_SAME(cudaGetLastError(), 0);
    REQUIRE_RANK(std::string(cudaGetErrorName(cudaErrorInvalidDevice)) == "cudaErrorInvalidDevice");
    REQUIRE_RANK(std::string(cudaGetErrorString(cudaSuccess)) == "no error");
  });
}

TEST_CASE("a stream or event of another device than the current one is refused and counted") {
  CHECK_RANKS(1, (Settings{{"FAKE_CUDA_DEVICES", "2"}}), [](Rank) {
    cudaStream_t stream;
    cudaEvent_t event;
    void* p;
    REQUIRE_SAME(cudaStreamCreate(&stream), 0);
    REQUIRE_SAME(cudaMalloc(&p, 16), 0);
    REQUIRE_SAME(cudaSetDevice(1), 0);
    REQUIRE_SAME(cudaEventCreate(&event), 0);
    REQUIRE_SAME(cudaMemsetAsync(p, 0, 16, stream), cudaErrorInvalidResourceHandle);
    REQUIRE_SAME(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
    REQUIRE_SAME(cudaSetDevice(0), 0);
    REQUIRE_SAME(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    FakeCudaCounters counters;
    fake_cuda_counters(&counters);
    REQUIRE_SAME(counters.wrong_device, 2);
  });
}

TEST_CASE("a context is created on the current device, which is device 0 in a new thread") {
  const auto create_in_thread = [](auto call) { std::thread(call).join(); };
  CHECK_RANKS(1, (Settings{{"FAKE_CUDA_DEVICES", "3"}}), [=](Rank) {
    int device = -1;
    cudaDeviceProp properties;
    REQUIRE_SAME(cudaGetDevice(&device), 0);
    REQUIRE_SAME(cudaGetDeviceProperties(&properties, 2), 0);
    for (int d = 0; d < 3; ++d) REQUIRE_RANK(!fake_cuda_has_context(d));
    REQUIRE_SAME(cudaSetDevice(1), 0);
    REQUIRE_RANK(fake_cuda_has_context(1) && !fake_cuda_has_context(0));
    const auto set = [] { REQUIRE_SAME(cudaSetDevice(2), 0); };
    const auto relax = [] {
      cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
      REQUIRE_SAME(cudaThreadExchangeStreamCaptureMode(&mode), 0);
    };
    create_in_thread([=] { set(), relax(); });
    REQUIRE_RANK(fake_cuda_has_context(2) && !fake_cuda_has_context(0));
    create_in_thread([=] { relax(), set(); });
    REQUIRE_RANK(fake_cuda_has_context(0));
    fake_cuda_forget_contexts();
    void* p;
    REQUIRE_SAME(cudaMalloc(&p, 16), 0);
    REQUIRE_RANK(fake_cuda_has_context(1) && !fake_cuda_has_context(0));
  });
}

TEST_CASE("memory is counted, limited, and known by its address") {
  CHECK_RANKS(1, (Settings{{"FAKE_CUDA_MEMORY", "1000000"}}), [](Rank) {
    size_t before, after, total;
    REQUIRE_SAME(cudaMemGetInfo(&before, &total), 0);
    REQUIRE_SAME(total, 1000000);
    char* p;
    REQUIRE_SAME(cudaMalloc(reinterpret_cast<void**>(&p), 600000), 0);
    REQUIRE_SAME(cudaMemGetInfo(&after, &total), 0);
    REQUIRE_SAME(before - after, 600000);
    void* q;
    REQUIRE_SAME(cudaMalloc(&q, 600000), cudaErrorMemoryAllocation);
    cudaPointerAttributes attributes;
    REQUIRE_SAME(cudaPointerGetAttributes(&attributes, p + 599999), 0);
    REQUIRE_SAME(attributes.type, cudaMemoryTypeDevice);
    REQUIRE_SAME(cudaPointerGetAttributes(&attributes, &q), 0);
    REQUIRE_SAME(attributes.type, cudaMemoryTypeUnregistered);
    void* pinned;
    REQUIRE_SAME(cudaMallocHost(&pinned, 100), 0);
    REQUIRE_SAME(cudaPointerGetAttributes(&attributes, pinned), 0);
    REQUIRE_SAME(attributes.type, cudaMemoryTypeHost);
    fake_cuda_charge(0, 1000);
    FakeCudaCounters counters;
    fake_cuda_counters(&counters);
    REQUIRE_SAME(counters.allocations, 1);
    REQUIRE_SAME(counters.pinned, 1);
    REQUIRE_SAME(counters.bytes, 601000);
    REQUIRE_SAME(cudaFree(p + 1), cudaErrorInvalidValue);
    REQUIRE_SAME(cudaFree(p), 0);
    REQUIRE_SAME(cudaFree(p), cudaErrorInvalidValue);
    REQUIRE_SAME(cudaFreeHost(pinned), 0);
    REQUIRE_SAME(cudaFree(nullptr), 0);
    fake_cuda_counters(&counters);
    REQUIRE_SAME(counters.allocations + counters.pinned, 0);
  });
}

TEST_CASE("copies outside an allocation, or of the wrong kind, are refused") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    char* p;
    char host[64] = "hello";
    REQUIRE_SAME(cudaMalloc(reinterpret_cast<void**>(&p), 32), 0);
    REQUIRE_SAME(cudaMemcpy(p, host, 33, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    REQUIRE_SAME(cudaMemcpy(p + 16, host, 17, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    REQUIRE_SAME(cudaMemcpy(host, host + 32, 8, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    REQUIRE_SAME(cudaMemcpy(p, host, 32, cudaMemcpyHostToDevice), 0);
    char back[64] = {};
    REQUIRE_SAME(cudaMemcpy(back, p, 32, cudaMemcpyDeviceToHost), 0);
    REQUIRE_RANK(std::string(back) == "hello");
    REQUIRE_SAME(cudaMemset(p, 'x', 32), 0);
    REQUIRE_SAME(cudaMemcpy(back, p, 32, cudaMemcpyDefault), 0);
    REQUIRE_RANK(std::string(back) == std::string(32, 'x'));
  });
}

TEST_CASE("a pageable source is done with when the call returns, a pinned one is not") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    cudaStream_t stream;
    int *device, *pinned, pageable = 1, back = 0;
    REQUIRE_SAME(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), 0);
    REQUIRE_SAME(cudaMalloc(reinterpret_cast<void**>(&device), 2 * sizeof(int)), 0);
    REQUIRE_SAME(cudaMallocHost(reinterpret_cast<void**>(&pinned), sizeof(int)), 0);
    *pinned = 1;
    {
      Gate gate(stream);
      REQUIRE_SAME(cudaMemcpyAsync(device, &pageable, sizeof(int), cudaMemcpyHostToDevice, stream),
                   0);
      REQUIRE_SAME(cudaMemcpyAsync(device + 1, pinned, sizeof(int), cudaMemcpyHostToDevice, stream),
                   0);
      pageable = *pinned = 2;
    }
    REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
    REQUIRE_SAME(cudaMemcpy(&back, device, sizeof(int), cudaMemcpyDeviceToHost), 0);
    REQUIRE_SAME(back, 1);
    REQUIRE_SAME(cudaMemcpy(&back, device + 1, sizeof(int), cudaMemcpyDeviceToHost), 0);
    REQUIRE_SAME(back, 2);
  });
}
