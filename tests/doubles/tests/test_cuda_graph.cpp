// SPDX-License-Identifier: BSD-3-Clause
// The double of libcudart: captures and graphs.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "cuda_help.hpp"
#include "fake_cuda.hpp"
#include "fork_ranks.hpp"

using ranks::Rank;
using ranks::Settings;

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

TEST_CASE("a wait for the device spoils the captures of its streams, in every mode") {
  CHECK_RANKS(1, (Settings{{"FAKE_CUDA_DEVICES", "2"}}), [](Rank) {
    const auto stream = new_stream();
    // Waits in another thread, which is relaxed, for a device.
    const auto wait_for = [](int device) {
      cudaError_t answer = cudaErrorUnknown;
      std::thread([&] {
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        REQUIRE_SAME(cudaThreadExchangeStreamCaptureMode(&mode), 0);
        REQUIRE_SAME(cudaSetDevice(device), 0);
        answer = cudaDeviceSynchronize();
      }).join();
      return answer;
    };
    for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                            cudaStreamCaptureModeRelaxed}) {
      cudaGraph_t graph;
      REQUIRE_SAME(cudaStreamBeginCapture(stream, mode), 0);
      REQUIRE_SAME(wait_for(1), 0);
      REQUIRE_SAME(wait_for(0), cudaErrorStreamCaptureUnsupported);
      REQUIRE_SAME(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
      REQUIRE_SAME(wait_for(0), 0);
    }
  });
}

TEST_CASE("a pool cannot be created or changed during a capture, unless the thread is relaxed") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream();
    cudaGraph_t graph;
    cudaMemPool_t pool = nullptr;
    cudaMemPoolProps wanted{};
    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.location = {cudaMemLocationTypeDevice, {0}};
    std::uint64_t all = ~std::uint64_t{0};
    const auto set = [&] {
      return cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all);
    };
    REQUIRE_SAME(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), 0);
    REQUIRE_SAME(cudaMemPoolCreate(&pool, &wanted), cudaErrorStreamCaptureUnsupported);
    REQUIRE_SAME(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    REQUIRE_SAME(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), 0);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    REQUIRE_SAME(cudaThreadExchangeStreamCaptureMode(&mode), 0);
    REQUIRE_SAME(cudaMemPoolCreate(&pool, &wanted), 0);
    REQUIRE_SAME(set(), 0);
    REQUIRE_SAME(cudaThreadExchangeStreamCaptureMode(&mode), 0);
    REQUIRE_SAME(cudaStreamEndCapture(stream, &graph), 0);
    REQUIRE_SAME(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), 0);
    REQUIRE_SAME(set(), cudaErrorStreamCaptureUnsupported);
    REQUIRE_SAME(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
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
    REQUIRE_SAME(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), 0);
    REQUIRE_SAME(cudaStreamQuery(nullptr), cudaErrorStreamCaptureImplicit);
    REQUIRE_SAME(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  });
}

TEST_CASE("questions to any stream or event spoil captures, unless the thread is relaxed") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream(), other = new_stream();
    const auto event = new_event();
    REQUIRE_SAME(cudaEventRecord(event, other), 0);
    REQUIRE_SAME(cudaStreamSynchronize(other), 0);
    const std::vector<std::function<cudaError_t()>> questions{
        [&] { return cudaEventQuery(event); }, [&] { return cudaEventSynchronize(event); },
        [&] { return cudaStreamQuery(other); }, [&] { return cudaStreamSynchronize(other); }};
    // Who asks: the capturing thread, or another one; in the given mode.
    const auto ask = [&](cudaStreamCaptureMode capture, bool elsewhere, cudaStreamCaptureMode own,
                         const auto& question) {
      REQUIRE_SAME(cudaStreamBeginCapture(stream, capture), 0);
      cudaError_t answer = cudaErrorUnknown;
      const auto body = [&] {
        cudaStreamCaptureMode mode = own;
        REQUIRE_SAME(cudaThreadExchangeStreamCaptureMode(&mode), 0);
        answer = question();
        REQUIRE_SAME(cudaThreadExchangeStreamCaptureMode(&mode), 0);
      };
      if (elsewhere)
        std::thread(body).join();
      else
        body();
      cudaGraph_t graph = nullptr;
      const bool is_allowed = answer == cudaSuccess;
      REQUIRE_SAME(cudaStreamEndCapture(stream, &graph),
                   is_allowed ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
      REQUIRE_SAME(answer, is_allowed ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
      return is_allowed;
    };
    constexpr auto global = cudaStreamCaptureModeGlobal, relaxed = cudaStreamCaptureModeRelaxed,
                   own = cudaStreamCaptureModeThreadLocal;
    for (const auto& question : questions) {
      for (const auto mode : {global, own}) {
        REQUIRE_RANK(!ask(mode, false, global, question));
        REQUIRE_RANK(!ask(mode, false, own, question));
        REQUIRE_RANK(ask(mode, false, relaxed, question));
      }
      REQUIRE_RANK(!ask(global, true, global, question));
      REQUIRE_RANK(ask(global, true, own, question));
      REQUIRE_RANK(ask(own, true, global, question));
      REQUIRE_RANK(ask(relaxed, false, global, question));
    }
  });
}

TEST_CASE("memory that a capture allocates belongs to its graph") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    const auto stream = new_stream();
    void *kept = nullptr, *foreign = nullptr;
    REQUIRE_SAME(cudaMallocAsync(&foreign, 64, stream), 0);
    const long before = count().allocations;
    for (const bool is_freed : {true, false}) {
      cudaGraph_t graph;
      cudaGraphExec_t exec;
      REQUIRE_SAME(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), 0);
      REQUIRE_SAME(cudaMallocAsync(&kept, 64, stream), 0);
      REQUIRE_SAME(cudaMemsetAsync(kept, 1, 64, stream), 0);
      REQUIRE_SAME(cudaFreeAsync(foreign, stream), cudaErrorInvalidValue);
      if (is_freed) REQUIRE_SAME(cudaFreeAsync(kept, stream), 0);
      REQUIRE_SAME(cudaStreamEndCapture(stream, &graph), 0);
      REQUIRE_SAME(cudaGraphInstantiate(&exec, graph, 0), 0);
      REQUIRE_SAME(cudaGraphDestroy(graph), 0);
      REQUIRE_SAME(count().allocations, before + 1);
      REQUIRE_SAME(cudaGraphLaunch(exec, stream), 0);
      REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
      REQUIRE_SAME(*static_cast<unsigned char*>(kept), is_freed ? 0xA5 : 1);
      REQUIRE_SAME(cudaGraphLaunch(exec, stream), is_freed ? cudaSuccess : cudaErrorInvalidValue);
      REQUIRE_SAME(cudaStreamSynchronize(stream), 0);
      REQUIRE_SAME(cudaGraphExecDestroy(exec), 0);
      REQUIRE_SAME(count().allocations, before);
    }
  });
}
