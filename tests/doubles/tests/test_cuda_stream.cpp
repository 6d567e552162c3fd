// SPDX-License-Identifier: BSD-3-Clause
// The double of libcudart: streams and events.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "cuda_help.hpp"
#include "fake_cuda.hpp"
#include "fork_ranks.hpp"
#include "gate.hpp"

using ranks::Rank;
using ranks::Settings;

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
    REQUIRE_RANK(ms >= 9.0f);
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

TEST_CASE("a launch waits while the queue of its stream is full") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream();
    Gate gate(stream);
    std::atomic<int> launched{0};
    std::thread caller([&] {
      for (int i = 0; i < 1030; ++i) {
        REQUIRE_SAME(fake_cuda_enqueue(stream, [] {}), 0);
        ++launched;
      }
    });
    for (int turn = 0; turn < 10'000 && launched < 1023; ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    REQUIRE_SAME(launched, 1023);  // and no more
    gate.open();
    caller.join();
    REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
  });
}
