// SPDX-License-Identifier: BSD-3-Clause
// The double of libnccl: how groups that do not block follow each other, and what ends, or does not
// end, when a communicator is aborted. README.md lists the file and the function of each rule.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "nccl_help.hpp"

using namespace help;
using ranks::Rank;
using ranks::Settings;

namespace {

ncclResult_t begin_init(ncclComm_t* comm, const Rank& rank, const ncclUniqueId& id) {
  ncclConfig_t config = non_blocking();
  return ncclCommInitRankConfig(comm, rank.size, id, rank.number, &config);
}

void sum_on(ncclComm_t comm, int* x, cudaStream_t stream) {
  NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream));
}

bool is_soon(const std::atomic<bool>& done) {
  for (int turn = 0; turn < 100 && !done; ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return done;
}

}  // namespace

TEST_CASE("until 2.26 a thread has one queue for groups that do not block") {
  struct Case {
    const char* version;
    ncclResult_t second;
  };
  for (const auto& [version, second] :
       {Case{"21805", ncclInvalidUsage}, Case{"21904", ncclInternalError},
        Case{"22605", ncclInternalError}, Case{"22703", ncclInProgress}}) {
    CAPTURE(version);
    CHECK_RANKS(2, (Settings{{"FAKE_NCCL_VERSION", version}}), [second = second](Rank rank) {
      ncclUniqueId ids[5];
      for (int i = 0; i < 5; ++i) ids[i] = shared_id(rank, i);
      ncclComm_t comms[4] = {}, refused = nullptr;
      REQUIRE_NCCL(begin_init(&comms[0], rank, ids[0]), ncclInProgress);
      REQUIRE_NCCL(begin_init(&refused, rank, ids[1]), second);
      const bool is_one_queue = second != ncclInProgress;
      if (!is_one_queue) REQUIRE_SAME(poll(refused), ncclSuccess);
      REQUIRE_SAME(count().overlapping_groups, second == ncclInternalError ? 1 : 0);
      REQUIRE_SAME(poll(comms[0]), ncclSuccess);
      join(comms[0]);
      NCCL_OK(ncclGroupStart());  // one group for several
      for (int i = 1; i < 3; ++i) (void)begin_init(&comms[i], rank, ids[i + 1]);
      REQUIRE_NCCL(ncclGroupEnd(), ncclInProgress);
      REQUIRE_SAME(poll(comms[1]), ncclSuccess);
      REQUIRE_NCCL(begin_init(&refused, rank, ids[4]), second);  // the other one is not polled yet
      if (!is_one_queue) REQUIRE_SAME(poll(refused), ncclSuccess);
      REQUIRE_SAME(poll(comms[2]), ncclSuccess);
      join(comms[2]);
      for (const bool together : {false, true}) {
        if (together) NCCL_OK(ncclGroupStart());
        REQUIRE_NCCL(ncclCommFinalize(comms[0]), together ? ncclSuccess : ncclInProgress);
        REQUIRE_NCCL(ncclCommFinalize(comms[1]), together ? ncclSuccess : second);
        if (together) REQUIRE_NCCL(ncclGroupEnd(), ncclInProgress);
        if (is_one_queue && !together) {
          REQUIRE_SAME(poll(comms[0]), ncclSuccess);
          (void)ncclCommDestroy(comms[0]);
          comms[0] = comms[2];
          continue;
        }
        for (ncclComm_t comm : {comms[0], comms[1]}) REQUIRE_SAME(poll(comm), ncclSuccess);
        break;
      }
      rank.barrier();
    });
  }
}

TEST_CASE("before 2.26 a poll does not join the thread of a group that does not block") {
  struct Case {
    const char* version;
    bool polls_join;
  };
  for (const auto& [version, polls_join] :
       {Case{"21805", true}, Case{"21904", false}, Case{"22105", false}, Case{"22501", false},
        Case{"22602", true}, Case{"22703", true}}) {
    CAPTURE(version);
    CHECK_RANKS(2, (Settings{{"FAKE_NCCL_VERSION", version}}), [joins = polls_join](Rank rank) {
      ncclUniqueId ids[5];
      for (int i = 0; i < 5; ++i) ids[i] = shared_id(rank, i);
      ncclComm_t a = nullptr, b = nullptr, c = nullptr, refused = nullptr;
      REQUIRE_NCCL(begin_init(&a, rank, ids[0]), ncclInProgress);
      REQUIRE_SAME(poll(a), ncclSuccess);
      if (!joins) {
        REQUIRE_NCCL(begin_init(&refused, rank, ids[1]), ncclInternalError);
        REQUIRE_NCCL(ncclCommInitRank(&refused, rank.size, ids[2], rank.number),
                     ncclInvalidArgument);
        REQUIRE_SAME(count().overlapping_groups, 1);
        join(a);
      }
      REQUIRE_NCCL(begin_init(&b, rank, ids[3]), ncclInProgress);
      REQUIRE_SAME(poll(b), ncclSuccess);
      if (!joins) join(b);
      NCCL_OK(ncclCommInitRank(&c, rank.size, ids[4], rank.number));
      REQUIRE_SAME(count().overlapping_groups, joins ? 0 : 1);
      for (const ncclComm_t comm : {a, b, c}) NCCL_OK(ncclCommAbort(comm));
      rank.barrier();
    });
  }
}

TEST_CASE("an operation beside captures asks about an event in the mode of its thread") {
  struct Case {
    const char* version;
    bool asks;
  };
  for (const auto& [version, asks] :
       {Case{"22605", false}, Case{"22703", true}, Case{"22809", true}}) {
    CAPTURE(version);
    CHECK_RANKS(1, (Settings{{"FAKE_NCCL_VERSION", version}}), [asks = asks](Rank rank) {
      const ncclComm_t comm = make_comm(rank, 0), other = make_comm(rank, 1);
      int* x = device(std::vector<int>{1});
      const cudaStream_t captured = make_stream(), beside = make_stream();
      const auto ends = [&](cudaStreamCaptureMode mode, ncclComm_t eager, bool is_relaxed) {
        cudaGraph_t graph = nullptr;
        CUDA_OK(cudaStreamBeginCapture(captured, mode));
        sum_on(comm, x, captured);
        cudaStreamCaptureMode mine = cudaStreamCaptureModeRelaxed;
        if (is_relaxed) CUDA_OK(cudaThreadExchangeStreamCaptureMode(&mine));
        sum_on(eager, x, beside);
        if (is_relaxed) CUDA_OK(cudaThreadExchangeStreamCaptureMode(&mine));
        const cudaError_t end = cudaStreamEndCapture(captured, &graph);
        if (graph != nullptr) CUDA_OK(cudaGraphDestroy(graph));
        (void)cudaGetLastError();
        return end == cudaSuccess;
      };
      REQUIRE_SAME(ends(cudaStreamCaptureModeGlobal, comm, false), !asks);
      REQUIRE_SAME(ends(cudaStreamCaptureModeThreadLocal, comm, false), !asks);
      REQUIRE_SAME(ends(cudaStreamCaptureModeGlobal, comm, true), true);
      REQUIRE_SAME(ends(cudaStreamCaptureModeRelaxed, comm, false), true);
      REQUIRE_SAME(ends(cudaStreamCaptureModeGlobal, other, false), true);
      for (const ncclComm_t ended : {comm, other}) NCCL_OK(ncclCommDestroy(ended));
    });
  }
}

TEST_CASE("a group of inits succeeds or fails as a whole") {
  CHECK_RANKS(2, (Settings{{"FAKE_NCCL_FAULTS", "init:rank=1,comm=1,code=2"}}), [](Rank rank) {
    const ncclUniqueId ids[2] = {shared_id(rank, 0), shared_id(rank, 1)};
    ncclComm_t comms[2];
    NCCL_OK(ncclGroupStart());
    for (int i = 0; i < 2; ++i) (void)begin_init(&comms[i], rank, ids[i]);
    REQUIRE_NCCL(ncclGroupEnd(), ncclInProgress);
    if (rank.number == 1)
      for (ncclComm_t comm : comms) REQUIRE_SAME(poll(comm), ncclSystemError);
    rank.barrier();  // the aborts of rank 0 are another error for rank 1
    NCCL_OK(ncclGroupStart());
    for (ncclComm_t comm : comms) NCCL_OK(ncclCommAbort(comm));
    NCCL_OK(ncclGroupEnd());
    REQUIRE_SAME(count().communicators, 0);
    rank.barrier();
  });
}

TEST_CASE("an abort waits for what its operations queue behind, and a group of aborts does not") {
  for (const bool together : {false, true})
    CHECK_RANKS(2, Settings{}, [together](Rank rank) {
      const ncclComm_t stuck = make_comm(rank, 0), behind = make_comm(rank, 1);
      int* x = device(std::vector<int>{1});
      const cudaStream_t stream = make_stream();
      if (rank.number == 1) return rank.barrier();
      sum_on(stuck, x, stream);  // rank 1 does not take part
      sum_on(behind, x, stream);
      std::atomic<bool> done{false};
      if (together) {
        NCCL_OK(ncclGroupStart());
        NCCL_OK(ncclCommAbort(behind));
        NCCL_OK(ncclCommAbort(stuck));
        NCCL_OK(ncclGroupEnd());
      } else {
        std::thread aborts([&] {
          NCCL_OK(ncclCommAbort(behind));
          done = true;
        });
        REQUIRE_RANK(!is_soon(done));
        NCCL_OK(ncclCommAbort(stuck));
        aborts.join();
      }
      CUDA_OK(cudaStreamSynchronize(stream));
      REQUIRE_SAME(count().communicators + count().stuck_ends, 0);
      rank.barrier();
    });
}

TEST_CASE("before 2.22, a group of aborts carries them out one after the other") {
  for (const char* version : {"21805", "22203"}) {
    CAPTURE(version);
    const bool at_once = std::string(version) == "21805";
    CHECK_RANKS(2, (Settings{{"FAKE_NCCL_VERSION", version}}), [at_once](Rank rank) {
      const ncclComm_t stuck = make_comm(rank, 0), behind = make_comm(rank, 1);
      int* x = device(std::vector<int>{1});
      const cudaStream_t stream = make_stream();
      if (rank.number == 1) return rank.barrier();
      sum_on(stuck, x, stream);
      sum_on(behind, x, stream);
      std::atomic<bool> done{false};
      std::thread aborts([&] {
        NCCL_OK(ncclGroupStart());
        NCCL_OK(ncclCommAbort(behind));  // before 2.22, it waits here
        NCCL_OK(ncclCommAbort(stuck));
        NCCL_OK(ncclGroupEnd());
        done = true;
      });
      if (at_once) {
        REQUIRE_RANK(!is_soon(done));
        rank.barrier();
        _exit(0);  // the thread waits for ever
      }
      aborts.join();
      rank.barrier();
    });
  }
}

TEST_CASE("kernels that do not fit on the device wait for each other, whatever their streams") {
  for (const char* kernels : {"1", "2"})
    CHECK_RANKS(2, (Settings{{"FAKE_NCCL_KERNELS", kernels}}), [kernels](Rank rank) {
      const ncclComm_t comms[2] = {make_comm(rank, 0), make_comm(rank, 1)};
      int* x = device(std::vector<int>{1, 1});
      const cudaStream_t streams[2] = {make_stream(), make_stream()};
      const auto run = [&](int which) { sum_on(comms[which], x + which, streams[which]); };
      run(rank.number);  // the ranks begin with different ones
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      rank.barrier();
      run(1 - rank.number);
      const bool fits = std::string(kernels) == "2";
      if (fits) {
        REQUIRE_SAME(cudaStreamSynchronize(streams[0]), cudaSuccess);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        REQUIRE_SAME(cudaStreamQuery(streams[0]), cudaErrorNotReady);
      }
      rank.barrier();
      for (ncclComm_t comm : comms)
        if (fits) NCCL_OK(ncclCommDestroy(comm));
      if (!fits) {
        NCCL_OK(ncclGroupStart());
        for (ncclComm_t comm : comms) NCCL_OK(ncclCommAbort(comm));
        NCCL_OK(ncclGroupEnd());
      }
    });
}

TEST_CASE(
    "a launch into a full queue waits, and an abort of its own communicator does not end it") {
  CHECK_RANKS(2, (Settings{{"FAKE_CUDA_LAUNCH_QUEUE", "8"}}), [](Rank rank) {
    const ncclComm_t stuck = make_comm(rank, 0), other = make_comm(rank, 1);
    int* x = device(std::vector<int>{1});
    const cudaStream_t stream = make_stream();
    if (rank.number == 1) return rank.barrier();
    std::atomic<bool> done{false};
    sum_on(stuck, x, stream);
    std::thread caller([&] {
      CUDA_OK(cudaSetDevice(rank.number));
      for (int i = 0; i < 10; ++i) sum_on(other, x, stream);
      done = true;
    });
    REQUIRE_RANK(!is_soon(done));
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclCommAbort(other));
    REQUIRE_RANK(!is_soon(done));
    NCCL_OK(ncclCommAbort(stuck));
    caller.join();  // the queue has space when the stuck kernel ends
    NCCL_OK(ncclGroupEnd());
    rank.barrier();
  });
}
