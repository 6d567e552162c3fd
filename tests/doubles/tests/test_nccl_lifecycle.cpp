// SPDX-License-Identifier: BSD-3-Clause
// The double of libnccl: the end of communicators, and what is counted.
#include <doctest/doctest.h>

#include "entries.hpp"
#include "nccl_help.hpp"

using namespace help;
using ranks::Rank;
using ranks::Settings;

TEST_CASE("after finalize only destroy, abort and polling are left") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>(1));
    NCCL_OK(ncclCommFinalize(comm));
    REQUIRE_NCCL(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument);
    REQUIRE_RANK(says(nullptr, "after ncclCommFinalize"));
    REQUIRE_NCCL(ncclCommFinalize(comm), ncclInvalidArgument);
    ncclResult_t state;
    NCCL_OK(ncclCommGetAsyncError(comm, &state));
    REQUIRE_SAME(state, ncclSuccess);
    NCCL_OK(ncclCommDestroy(comm));
  });
}

TEST_CASE("finalize waits for every rank") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    if (rank.number == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      rank.set(0);
    }
    NCCL_OK(ncclCommFinalize(comm));
    REQUIRE_SAME(rank.shared->flags[0], 1);
  });
}

TEST_CASE("finalize and destroy wait for queued work") {
  for (const bool with_finalize : {true, false}) {
    CHECK_RANKS(2, (Settings{{"FAKE_CUDA_DELAY_US", "20000"}}), [with_finalize](Rank rank) {
      const ncclComm_t comm = make_comm(rank);
      const cudaStream_t stream = make_stream();
      int* x = device(std::vector<int>{1});
      NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream));
      if (with_finalize) NCCL_OK(ncclCommFinalize(comm));
      NCCL_OK(ncclCommDestroy(comm));
      REQUIRE_SAME(*x, 2);  // read without waiting for the stream: fake device memory allows it
    });
  }
}

TEST_CASE("registered memory, windows and NCCL's own memory are counted") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    void *memory, *handle;
    ncclWindow_t window;
    NCCL_OK(ncclMemAlloc(&memory, 8192));
    NCCL_OK(ncclCommRegister(comm, memory, 8192, &handle));
    REQUIRE_NCCL(ncclCommRegister(comm, memory, 8193, &handle), ncclInvalidArgument);
    if (rank.number == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      rank.set(0);
    }
    NCCL_OK(ncclCommWindowRegister(comm, memory, 8192, &window, NCCL_WIN_COLL_SYMMETRIC));
    REQUIRE_SAME(rank.shared->flags[0], 1);  // it is collective
    REQUIRE_NCCL(ncclCommWindowRegister(comm, static_cast<char*>(memory) + 8, 100, &window, 0),
                 ncclInvalidArgument);
    REQUIRE_SAME(count().memory, 1);
    REQUIRE_SAME(count().registrations, 1);
    REQUIRE_SAME(count().windows, 1);
    int* x = device(std::vector<int>{1});
    if (rank.number == 0) {
      NCCL_OK(ncclAllReduce(x, x, 1, ncclInt, ncclSum, comm, nullptr));
      REQUIRE_NCCL(ncclCommWindowDeregister(comm, window), ncclInvalidUsage);  // waits for rank 1
    }
    rank.barrier();
    if (rank.number == 1) NCCL_OK(ncclAllReduce(x, x, 1, ncclInt, ncclSum, comm, nullptr));
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaFree(x));
    NCCL_OK(ncclCommWindowDeregister(comm, window));
    REQUIRE_NCCL(ncclCommWindowDeregister(comm, window), ncclInvalidArgument);
    NCCL_OK(ncclCommDeregister(comm, handle));
    NCCL_OK(ncclMemFree(memory));
    REQUIRE_NCCL(ncclMemFree(memory), ncclInvalidArgument);
    REQUIRE_SAME(count().memory + count().registrations + count().windows, 0);
  });
}

TEST_CASE("NCCL's memory is freed at once, although the device has work that uses it") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    void* memory = nullptr;
    NCCL_OK(ncclMemAlloc(&memory, 64));
    CUDA_OK(cudaMemset(memory, 1, 64));
    unsigned char* x = device(std::vector<unsigned char>{0});
    const cudaStream_t stream = make_stream();
    CUDA_OK(fake_cuda_enqueue(stream,
                              [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }));
    CUDA_OK(cudaMemcpyAsync(x, memory, 1, cudaMemcpyDeviceToDevice, stream));
    NCCL_OK(ncclMemFree(memory));
    CUDA_OK(cudaStreamSynchronize(stream));
    REQUIRE_SAME(host(x, 1).front(), 0xA5);
    REQUIRE_SAME(count().memory, 0);
  });
}

TEST_CASE("hundreds of communicators come and go, and nothing is left") {
  CHECK_RANKS(2, (Settings{{"FAKE_NCCL_MEMORY", "1000"}}), [](Rank rank) {
    const ncclComm_t parent = make_comm(rank);
    size_t free_before, free_after, total;
    CUDA_OK(cudaMemGetInfo(&free_before, &total));
    int files = 0, threads = 0;
    int* x = device(std::vector<int>{1});
    for (int turn = 0; turn < 210; ++turn) {
      ncclComm_t comm = nullptr;
      if (turn % 3 == 0) {
        NCCL_OK(ncclCommSplit(parent, 0, 0, &comm, nullptr));
      } else {
        ncclUniqueId id{};
        if (rank.number == 0) NCCL_OK(ncclGetUniqueId(&id));
        id = rank.share(id, 0, turn % 2);
        ncclConfig_t config = non_blocking();
        config.blocking = turn % 3 == 1;
        const ncclResult_t result = ncclCommInitRankConfig(&comm, 2, id, rank.number, &config);
        REQUIRE_SAME(result, turn % 3 == 1 ? ncclSuccess : ncclInProgress);
        REQUIRE_SAME(poll(comm), ncclSuccess);
      }
      NCCL_OK(ncclCommFinalize(comm) == ncclInProgress ? poll(comm) : ncclSuccess);
      NCCL_OK(ncclCommDestroy(comm));
      if (turn == 9) files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    }
    for (int turn = 0; turn < 1000 && count().threads > 0; ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE_SAME(count().communicators, 1);
    REQUIRE_SAME(count().segments, 1);
    REQUIRE_SAME(count().threads + count().roots, 0);
    REQUIRE_RANK(entries("/proc/self/fd") <= files);
    for (int turn = 0; turn < 1000 && entries("/proc/self/task") > threads; ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE_RANK(entries("/proc/self/task") <= threads);
    CUDA_OK(cudaFree(x));
    CUDA_OK(cudaMemGetInfo(&free_after, &total));
    REQUIRE_SAME(free_before, free_after);
  });
}
