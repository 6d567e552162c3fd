// SPDX-License-Identifier: BSD-3-Clause
// The double of libcudart: what allocations, copies, pools and the loading of kernels wait for.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "cuda_help.hpp"
#include "fake_cuda.hpp"
#include "fork_ranks.hpp"
#include "gate.hpp"

using ranks::Rank;
using ranks::Settings;

TEST_CASE("free waits for queued work, free in stream order does not") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream();
    int* p;
    REQUIRE_SAME(cudaMallocAsync(reinterpret_cast<void**>(&p), 64, stream), 0);
    {
      Gate gate(stream);
      REQUIRE_SAME(cudaFreeAsync(p, stream), 0);
      REQUIRE_SAME(count().allocations, 1);
    }
    REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
    REQUIRE_SAME(count().allocations, 0);
    REQUIRE_SAME(cudaMalloc(reinterpret_cast<void**>(&p), 64), 0);
    std::atomic<bool> ran{false};
    REQUIRE_SAME(fake_cuda_enqueue(stream,
                                   [&] {
                                     std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                     ran = true;
                                   }),
                 0);
    REQUIRE_SAME(cudaFree(p), 0);
    REQUIRE_RANK(ran.load());
  });
}

TEST_CASE("free of memory from a pool waits for nothing") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream();
    int* p;
    REQUIRE_SAME(cudaMallocAsync(reinterpret_cast<void**>(&p), 64, stream), 0);
    REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
    std::atomic<bool> is_open{false}, ran{false};
    REQUIRE_SAME(fake_cuda_enqueue(stream,
                                   [&] {
                                     for (int turn = 0; turn < 60'000 && !is_open; ++turn)
                                       std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                     ran = true;
                                   }),
                 0);
    REQUIRE_SAME(cudaFree(p), 0);
    REQUIRE_RANK(!ran.load());
    REQUIRE_SAME(count().allocations, 0);
    REQUIRE_SAME(count().device_waits, 0);
    is_open = true;
    REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
  });
}

TEST_CASE("a copy in two dimensions moves rows, in stream order and inside its allocations") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    char *from = nullptr, *to = nullptr;
    REQUIRE_SAME(cudaMalloc(reinterpret_cast<void**>(&from), 6), 0);
    REQUIRE_SAME(cudaMalloc(reinterpret_cast<void**>(&to), 8), 0);
    REQUIRE_SAME(cudaMemcpy(from, "abcdef", 6, cudaMemcpyHostToDevice), 0);
    REQUIRE_SAME(cudaMemset(to, '.', 8), 0);
    const auto stream = new_stream();
    const auto copy = [&](size_t to_pitch, size_t height) {
      return cudaMemcpy2DAsync(to, to_pitch, from, 3, 2, height, cudaMemcpyDeviceToDevice, stream);
    };
    REQUIRE_SAME(copy(5, 2), 0);
    REQUIRE_SAME(copy(1, 2), cudaErrorInvalidPitchValue);
    REQUIRE_SAME(copy(5, 3), cudaErrorInvalidValue);
    REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
    std::string moved(8, ' ');
    REQUIRE_SAME(cudaMemcpy(moved.data(), to, 8, cudaMemcpyDeviceToHost), 0);
    REQUIRE_RANK(moved == "ab...de.");
  });
}

TEST_CASE("a pool gives back what it does not use at each synchronisation, unless it may keep it") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream();
    const auto round = [&](cudaMemPool_t pool) {
      void* p = nullptr;
      REQUIRE_SAME(cudaMallocFromPoolAsync(&p, 64, pool, stream), 0);
      REQUIRE_SAME(cudaFreeAsync(p, stream), 0);
      REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
      return count().pool_growths;
    };
    cudaMemPool_t given = nullptr, own = nullptr;
    REQUIRE_SAME(cudaDeviceGetDefaultMemPool(&given, 0), 0);
    const long long first = round(given);
    REQUIRE_SAME(round(given), first + 1);
    cudaMemPoolProps wanted{};
    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.location = {cudaMemLocationTypeDevice, {0}};
    REQUIRE_SAME(cudaMemPoolCreate(&own, &wanted), 0);
    std::uint64_t all = ~std::uint64_t{0};
    REQUIRE_SAME(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &all), 0);
    const long long second = round(own);
    REQUIRE_SAME(round(own), second);
    REQUIRE_SAME(cudaMemPoolTrimTo(own, 0), 0);
    REQUIRE_SAME(round(own), second + 1);
    REQUIRE_SAME(cudaMemPoolDestroy(own), 0);
    void* p = nullptr;
    REQUIRE_SAME(cudaMallocFromPoolAsync(&p, 64, own, stream), cudaErrorInvalidValue);
  });
}

TEST_CASE("a pool may make a stream wait for memory that another stream frees") {
  for (const int allowed : {1, 0}) {
    CHECK_RANKS(1, Settings{}, [=](Rank) {
      const auto a = new_stream(), b = new_stream();
      cudaMemPool_t pool = nullptr;
      int value = allowed;
      REQUIRE_SAME(cudaDeviceGetDefaultMemPool(&pool, 0), 0);
      REQUIRE_SAME(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &value),
                   0);
      void *p = nullptr, *q = nullptr;
      REQUIRE_SAME(cudaMallocAsync(&p, 64, a), 0);
      Gate gate(a);
      REQUIRE_SAME(cudaFreeAsync(p, a), 0);
      REQUIRE_SAME(cudaMallocAsync(&q, 64, b), 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      REQUIRE_SAME(cudaStreamQuery(b), allowed == 1 ? cudaErrorNotReady : cudaSuccess);
      gate.open();
      REQUIRE_SAME(cudaDeviceSynchronize(), 0);
    });
  }
}

TEST_CASE("the first launch of a kernel loads it, and waits for the device before") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    static const char kernels[2] = {};  // what counts is the address
    const auto a = new_stream(), b = new_stream();
    cudaLaunchConfig_t config{};
    config.gridDim = config.blockDim = dim3{1};
    config.stream = b;
    bool is_over = false, saw_end = false;
    REQUIRE_SAME(fake_cuda_enqueue(a,
                                   [&] {
                                     std::this_thread::sleep_for(std::chrono::milliseconds(50));
                                     is_over = true;
                                   }),
                 0);
    REQUIRE_SAME(fake_cuda_launch(&kernels[0], &config, [&] { saw_end = is_over; }), 0);
    REQUIRE_SAME(cudaStreamSynchronize(b), 0);
    REQUIRE_RANK(saw_end);
    REQUIRE_SAME(count().late_loads, 1);
    cudaFuncAttributes attributes;
    REQUIRE_SAME(cudaFuncGetAttributes(&attributes, &kernels[1]), 0);
    REQUIRE_SAME(count().device_waits, 2);
    Gate gate(a);
    for (const char& kernel : kernels)  // loaded: they wait for nothing
      REQUIRE_SAME(fake_cuda_launch(&kernel, &config, [] {}), 0);
    REQUIRE_SAME(cudaStreamSynchronize(b), 0);
    REQUIRE_SAME(count().late_loads, 1);
    config.blockDim = dim3{2048};
    REQUIRE_SAME(fake_cuda_launch(&kernels[0], &config, [] {}), cudaErrorInvalidConfiguration);
    REQUIRE_SAME(fake_cuda_launch(nullptr, &config, [] {}), cudaErrorInvalidDeviceFunction);
  });
}

TEST_CASE("an allocation waits for queued work") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream();
    bool is_over = false;
    void *p = nullptr, *q = nullptr;
    for (const bool pinned : {false, true}) {
      is_over = false;
      REQUIRE_SAME(fake_cuda_enqueue(stream,
                                     [&] {
                                       std::this_thread::sleep_for(std::chrono::milliseconds(30));
                                       is_over = true;
                                     }),
                   0);
      REQUIRE_SAME(pinned ? cudaMallocHost(&p, 16) : cudaMalloc(&q, 16), 0);
      REQUIRE_RANK(is_over);
    }
    REQUIRE_SAME(count().device_waits, 2);
  });
}

TEST_CASE("a copy in two dimensions has a largest pitch") {
  CHECK_RANKS(1, (Settings{{"FAKE_CUDA_MAX_PITCH", "64"}}), [](Rank) {
    int most = 0;
    REQUIRE_SAME(cudaDeviceGetAttribute(&most, cudaDevAttrMaxPitch, 0), 0);
    REQUIRE_SAME(most, 64);
    char *from = nullptr, *to = nullptr;
    REQUIRE_SAME(cudaMalloc(reinterpret_cast<void**>(&from), 256), 0);
    REQUIRE_SAME(cudaMalloc(reinterpret_cast<void**>(&to), 256), 0);
    for (const size_t pitch : {64UL, 65UL})
      REQUIRE_SAME(cudaMemcpy2DAsync(to, 4, from, pitch, 4, 2, cudaMemcpyDeviceToDevice, nullptr),
                   pitch > 64 ? cudaErrorInvalidPitchValue : cudaSuccess);
  });
}
