// SPDX-License-Identifier: BSD-3-Clause
// The double of libcudart: streams, events, graphs.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "fake_cuda.hpp"
#include "fork_ranks.hpp"
#include "gate.hpp"

using ranks::Rank;
using ranks::Settings;

namespace {

cudaStream_t new_stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  REQUIRE_SAME(cudaStreamCreateWithFlags(&stream, flags), 0);
  return stream;
}

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  REQUIRE_SAME(cudaEventCreate(&event), 0);
  return event;
}

void push(cudaStream_t stream, std::vector<int>& list, int value) {
  REQUIRE_SAME(fake_cuda_enqueue(stream, [&list, value] { list.push_back(value); }), 0);
}

FakeCudaCounters count() {
  FakeCudaCounters counters;
  fake_cuda_counters(&counters);
  return counters;
}

}  // namespace

TEST_CASE("calls return before the work is done, and the work runs in order") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream();
    std::vector<int> seen;
    {
      Gate gate(stream);
      for (int i = 0; i < 20; ++i) push(stream, seen, i);
      REQUIRE_SAME(cudaStreamQuery(stream), cudaErrorNotReady);
      REQUIRE_RANK(seen.empty());
    }
    REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
    REQUIRE_SAME(cudaStreamQuery(stream), 0);
    REQUIRE_SAME(seen.size(), 20);
    for (int i = 0; i < 20; ++i) REQUIRE_SAME(seen[static_cast<std::size_t>(i)], i);
  });
}

TEST_CASE("every operation can be slowed down") {
  CHECK_RANKS(1, (Settings{{"FAKE_CUDA_DELAY_US", "20000"}}), [](Rank) {
    const auto stream = new_stream();
    const auto start = std::chrono::steady_clock::now();
    REQUIRE_SAME(fake_cuda_enqueue(stream, [] {}), 0);
    REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
    REQUIRE_RANK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(20));
  });
}

TEST_CASE("two streams do not wait for each other, unless an event says so") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto a = new_stream(), b = new_stream();
    const auto event = new_event();
    std::vector<int> seen;
    Gate gate(a);
    push(b, seen, 1);
    REQUIRE_SAME(cudaStreamSynchronize(b), 0);
    REQUIRE_SAME(seen.size(), 1);
    REQUIRE_SAME(cudaEventRecord(event, a), 0);
    REQUIRE_SAME(cudaStreamWaitEvent(b, event, 0), 0);
    push(b, seen, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    REQUIRE_SAME(cudaStreamQuery(b), cudaErrorNotReady);
    REQUIRE_SAME(seen.size(), 1);
    gate.open();
    REQUIRE_SAME(cudaStreamSynchronize(b), 0);
    REQUIRE_SAME(seen.size(), 2);
  });
}

TEST_CASE("events tell when they are reached, and the time between them") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream();
    const auto start = new_event(), end = new_event();
    float ms = 0;
    REQUIRE_SAME(cudaEventQuery(start), 0);  // never recorded counts as reached
    REQUIRE_SAME(cudaEventElapsedTime(&ms, start, end), cudaErrorInvalidResourceHandle);
    REQUIRE_SAME(cudaEventRecord(start, stream), 0);
    REQUIRE_SAME(cudaEventSynchronize(start), 0);
    {
      Gate gate(stream);
      REQUIRE_SAME(cudaEventRecord(end, stream), 0);
      REQUIRE_SAME(cudaEventQuery(end), cudaErrorNotReady);
      REQUIRE_SAME(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    REQUIRE_SAME(cudaEventSynchronize(end), 0);
    REQUIRE_SAME(cudaEventElapsedTime(&ms, start, end), 0);
    REQUIRE_RANK(ms >= 9.0f && ms < 3000.0f);
    REQUIRE_SAME(cudaEventDestroy(start), 0);
    REQUIRE_SAME(cudaEventDestroy(start), cudaErrorInvalidResourceHandle);
  });
}

TEST_CASE("the default stream and blocking streams wait for each other") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto blocking = new_stream(cudaStreamDefault), free = new_stream();
    std::vector<int> seen;
    Gate gate(blocking);
    push(nullptr, seen, 1);
    push(free, seen, 2);
    REQUIRE_SAME(cudaStreamSynchronize(free), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    REQUIRE_SAME(seen.size(), 1);
    REQUIRE_SAME(seen[0], 2);
    gate.open();
    REQUIRE_SAME(cudaDeviceSynchronize(), 0);
    REQUIRE_SAME(seen.size(), 2);
  });
}

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

TEST_CASE("host functions, priorities and flags") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    int least, greatest, priority;
    unsigned flags;
    REQUIRE_SAME(cudaDeviceGetStreamPriorityRange(&least, &greatest), 0);
    REQUIRE_RANK(greatest < least);
    cudaStream_t stream;
    REQUIRE_SAME(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -99), 0);
    REQUIRE_SAME(cudaStreamGetPriority(stream, &priority), 0);
    REQUIRE_SAME(priority, greatest);
    REQUIRE_SAME(cudaStreamGetFlags(stream, &flags), 0);
    REQUIRE_SAME(flags, cudaStreamNonBlocking);
    int value = 0;
    REQUIRE_SAME(cudaLaunchHostFunc(
                     stream, [](void* data) { *static_cast<int*>(data) = 5; }, &value),
                 0);
    REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
    REQUIRE_SAME(value, 5);
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

TEST_CASE("streams, events and their threads are counted and end") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    std::vector<cudaStream_t> streams;
    for (int i = 0; i < 10; ++i) {
      streams.push_back(new_stream());
      REQUIRE_SAME(fake_cuda_enqueue(streams.back(), [] {}), 0);
    }
    const auto event = new_event();
    REQUIRE_SAME(count().streams, 10);
    REQUIRE_SAME(count().threads, 10);
    REQUIRE_SAME(count().events, 1);
    for (auto stream : streams) {
      REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
      REQUIRE_SAME(cudaStreamDestroy(stream), 0);
    }
    REQUIRE_SAME(cudaStreamDestroy(streams[0]), cudaErrorInvalidResourceHandle);
    REQUIRE_SAME(cudaEventDestroy(event), 0);
    REQUIRE_SAME(count().streams + count().threads + count().events, 0);
  });
}

TEST_CASE("a capture records instead of running, and a graph runs again at each launch") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream(), other = new_stream();
    std::vector<int> seen;
    int prepared = 0;
    REQUIRE_SAME(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), 0);
    cudaStreamCaptureStatus status;
    REQUIRE_SAME(cudaStreamIsCapturing(stream, &status), 0);
    REQUIRE_SAME(status, cudaStreamCaptureStatusActive);
    push(stream, seen, 1);
    REQUIRE_SAME(fake_cuda_submit(stream,
                                  [&]() -> FakeCudaWork {
                                    const int turn = ++prepared;
                                    return [&seen, turn] { seen.push_back(100 * turn); };
                                  }),
                 0);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    REQUIRE_SAME(cudaStreamEndCapture(stream, &graph), 0);
    REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
    REQUIRE_RANK(seen.empty() && prepared == 0);
    REQUIRE_SAME(cudaGraphInstantiate(&exec, graph, 0), 0);
    REQUIRE_SAME(count().graphs, 1);
    REQUIRE_SAME(count().graph_execs, 1);
    REQUIRE_SAME(cudaGraphDestroy(graph), 0);
    REQUIRE_SAME(cudaGraphLaunch(exec, other), 0);
    REQUIRE_SAME(cudaGraphLaunch(exec, other), 0);
    REQUIRE_SAME(cudaStreamSynchronize(other), 0);
    REQUIRE_RANK(seen == std::vector<int>{1, 100, 1, 200});
    REQUIRE_SAME(cudaGraphExecDestroy(exec), 0);
    REQUIRE_SAME(count().graphs + count().graph_execs, 0);
  });
}

TEST_CASE("a user object lives as long as the last graph that came of a capture") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream();
    static int destroyed = 0;
    const auto retain = [&] {
      cudaStreamCaptureStatus status;
      cudaGraph_t captured;
      REQUIRE_SAME(
          cudaStreamGetCaptureInfo(stream, &status, nullptr, &captured, nullptr, nullptr, nullptr),
          0);
      cudaUserObject_t object;
      REQUIRE_SAME(cudaUserObjectCreate(
                       &object, &destroyed, [](void* p) { ++*static_cast<int*>(p); }, 1,
                       cudaUserObjectNoDestructorSync),
                   0);
      REQUIRE_SAME(cudaGraphRetainUserObject(captured, object, 1, cudaGraphUserObjectMove), 0);
    };
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    REQUIRE_SAME(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), 0);
    retain();
    REQUIRE_SAME(cudaStreamEndCapture(stream, &graph), 0);
    REQUIRE_SAME(cudaGraphInstantiate(&exec, graph, 0), 0);
    REQUIRE_SAME(cudaGraphDestroy(graph), 0);
    REQUIRE_SAME(destroyed, 0);
    REQUIRE_SAME(cudaGraphExecDestroy(exec), 0);
    REQUIRE_SAME(destroyed, 1);
    // A capture that comes to nothing lets its objects go.
    REQUIRE_SAME(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), 0);
    retain();
    REQUIRE_SAME(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    REQUIRE_SAME(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    REQUIRE_SAME(destroyed, 2);
  });
}

TEST_CASE("a capture spreads by events and must be joined again") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto a = new_stream(), b = new_stream();
    const auto fork = new_event(), join = new_event();
    std::vector<int> seen;
    cudaGraph_t graph;
    for (const bool joined : {true, false}) {
      REQUIRE_SAME(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed), 0);
      push(a, seen, 1);
      REQUIRE_SAME(cudaEventRecord(fork, a), 0);
      REQUIRE_SAME(cudaEventQuery(fork), cudaErrorCapturedEvent);
      REQUIRE_SAME(cudaStreamWaitEvent(b, fork, 0), 0);
      push(b, seen, 2);
      REQUIRE_SAME(cudaEventRecord(join, b), 0);
      if (joined) REQUIRE_SAME(cudaStreamWaitEvent(a, join, 0), 0);
      push(a, seen, 3);
      REQUIRE_SAME(cudaStreamEndCapture(a, &graph),
                   joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
      cudaStreamCaptureStatus status;
      REQUIRE_SAME(cudaStreamIsCapturing(b, &status), 0);
      REQUIRE_SAME(status, cudaStreamCaptureStatusNone);
      if (joined) {
        cudaGraphExec_t exec;
        REQUIRE_SAME(cudaGraphInstantiate(&exec, graph, 0), 0);
        REQUIRE_SAME(cudaGraphLaunch(exec, a), 0);
        REQUIRE_SAME(cudaStreamSynchronize(a), 0);
        REQUIRE_RANK(seen == std::vector<int>{1, 2, 3});
      }
    }
  });
}

TEST_CASE("waiting for a captured stream, or allocating meanwhile, spoils the capture") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream();
    cudaGraph_t graph;
    void* p;
    REQUIRE_SAME(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), 0);
    REQUIRE_SAME(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    REQUIRE_SAME(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    REQUIRE_SAME(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), 0);
    REQUIRE_SAME(cudaMalloc(&p, 16), cudaErrorStreamCaptureUnsupported);
    REQUIRE_SAME(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    REQUIRE_SAME(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), 0);
    REQUIRE_SAME(cudaMalloc(&p, 16), 0);
    REQUIRE_SAME(cudaStreamEndCapture(stream, &graph), 0);
  });
}

TEST_CASE("cudaStreamPerThread is the stream of the thread that calls") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    unsigned long long mine = 0, theirs = 0;
    REQUIRE_SAME(cudaStreamGetId(cudaStreamPerThread, &mine), 0);
    std::vector<int> seen;
    const auto blocked = new_stream();
    const auto event = new_event();
    Gate gate(blocked);
    REQUIRE_SAME(cudaEventRecord(event, blocked), 0);
    REQUIRE_SAME(cudaStreamWaitEvent(cudaStreamPerThread, event, 0), 0);
    push(cudaStreamPerThread, seen, 1);
    std::thread{[&] {  // does not wait for this thread's stream, and outlives its thread
      cudaStreamGetId(cudaStreamPerThread, &theirs);
      fake_cuda_enqueue(cudaStreamPerThread, [&] { seen.push_back(2); });
      cudaStreamSynchronize(cudaStreamPerThread);
    }}
        .join();
    REQUIRE_RANK(mine != theirs);
    REQUIRE_SAME(seen.size(), 1);
    REQUIRE_SAME(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
    gate.open();
    REQUIRE_SAME(cudaDeviceSynchronize(), 0);
    REQUIRE_SAME(seen.size(), 2);
  });
}

TEST_CASE("the default stream cannot be used while a stream that waits for it is captured") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    cudaStreamCaptureStatus status;
    cudaGraph_t graph = nullptr;
    const auto blocking = new_stream(cudaStreamDefault), other = new_stream();
    REQUIRE_SAME(cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal), 0);
    REQUIRE_SAME(cudaStreamIsCapturing(nullptr, &status), 0);
    REQUIRE_SAME(fake_cuda_enqueue(nullptr, [] {}), 0);
    REQUIRE_SAME(cudaStreamEndCapture(other, &graph), 0);
    REQUIRE_SAME(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeThreadLocal), 0);
    REQUIRE_SAME(cudaStreamIsCapturing(nullptr, &status), cudaErrorStreamCaptureImplicit);
    REQUIRE_SAME(cudaStreamIsCapturing(blocking, &status), 0);
    REQUIRE_SAME(status, cudaStreamCaptureStatusActive);
    REQUIRE_SAME(fake_cuda_enqueue(nullptr, [] {}), cudaErrorStreamCaptureImplicit);
    REQUIRE_SAME(cudaStreamIsCapturing(blocking, &status), 0);
    REQUIRE_SAME(status, cudaStreamCaptureStatusInvalidated);
    REQUIRE_SAME(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
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
