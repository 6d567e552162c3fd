// SPDX-License-Identifier: BSD-3-Clause
// The double of libnccl: non-blocking communicators.
#include <doctest/doctest.h>

#include "nccl_help.hpp"

using namespace help;
using ranks::Rank;
using ranks::Settings;

TEST_CASE("a non-blocking communicator is in progress after every call, until polled") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    ncclConfig_t config = non_blocking();
    ncclComm_t comm = nullptr;
    const ncclUniqueId id = shared_id(rank);
    REQUIRE_NCCL(ncclCommInitRankConfig(&comm, 2, id, rank.number, &config), ncclInProgress);
    REQUIRE_RANK(comm != nullptr);
    int value;
    REQUIRE_NCCL(ncclCommCount(comm, &value), ncclInvalidArgument);
    REQUIRE_SAME(poll(comm), ncclSuccess);
    NCCL_OK(ncclCommCount(comm, &value));
    const cudaStream_t stream = make_stream();
    int* x = device(std::vector<int>{1});
    for (int turn = 1; turn <= 3; ++turn) {
      REQUIRE_NCCL(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream), ncclInProgress);
      REQUIRE_NCCL(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream), ncclInvalidArgument);
      REQUIRE_RANK(says(nullptr, "before the previous call was polled"));
      ncclResult_t state;
      NCCL_OK(ncclCommGetAsyncError(comm, &state));
      REQUIRE_SAME(state, ncclInProgress);
      CUDA_OK(cudaStreamSynchronize(stream));  // whoever waits before polling misses the operation
      REQUIRE_SAME(host(x, 1)[0], 1 << (turn - 1));
      REQUIRE_SAME(poll(comm), ncclSuccess);
      CUDA_OK(cudaStreamSynchronize(stream));
      REQUIRE_SAME(host(x, 1)[0], 1 << turn);
    }
    REQUIRE_NCCL(ncclCommFinalize(comm), ncclInProgress);
    REQUIRE_SAME(poll(comm), ncclSuccess);
    NCCL_OK(ncclCommDestroy(comm));
  });
}

TEST_CASE("the number of polls in progress can be set") {
  CHECK_RANKS(1, (Settings{{"FAKE_NCCL_POLLS", "5"}}), [](Rank rank) {
    const ncclComm_t comm = make_non_blocking_comm(rank);
    int* x = device(std::vector<int>{1});
    REQUIRE_NCCL(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr), ncclInProgress);
    ncclResult_t state;
    for (int turn = 0; turn < 5; ++turn) {
      NCCL_OK(ncclCommGetAsyncError(comm, &state));
      REQUIRE_SAME(state, turn < 4 ? ncclInProgress : ncclSuccess);
    }
  });
}

TEST_CASE("many non-blocking inits go on together, in any order of polling") {
  CHECK_RANKS(4, Settings{}, [](Rank rank) {
    constexpr int many = 6;
    ncclUniqueId ids[many];
    ncclComm_t comms[many];
    for (int i = 0; i < many; ++i) ids[i] = shared_id(rank, i);
    ncclConfig_t config = non_blocking();
    for (int i = 0; i < many; ++i) {
      const int which = rank.number % 2 == 0 ? i : many - 1 - i;
      REQUIRE_NCCL(ncclCommInitRankConfig(&comms[which], 4, ids[which], rank.number, &config),
                   ncclInProgress);
    }
    for (ncclComm_t comm : comms) REQUIRE_SAME(poll(comm), ncclSuccess);
    REQUIRE_SAME(count().inits, many);
  });
}

TEST_CASE("a group of non-blocking communicators makes all of them busy") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t a = make_non_blocking_comm(rank, 0), b = make_non_blocking_comm(rank, 1);
    int* x = device(std::vector<int>{1, 1});
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, a, nullptr));
    NCCL_OK(ncclAllReduce(x + 1, x + 1, 1, ncclInt32, ncclSum, b, nullptr));
    REQUIRE_NCCL(ncclGroupEnd(), ncclInProgress);
    int value;
    REQUIRE_NCCL(ncclCommCount(a, &value), ncclInvalidArgument);
    REQUIRE_NCCL(ncclCommCount(b, &value), ncclInvalidArgument);
    REQUIRE_SAME(poll(a), ncclSuccess);
    REQUIRE_SAME(poll(b), ncclSuccess);
    REQUIRE_SAME(host(x, 2)[1], 2);
  });
}

TEST_CASE("a non-blocking split keeps the handle null until the parent is polled to success") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_non_blocking_comm(rank);
    ncclComm_t child = comm;
    REQUIRE_NCCL(ncclCommSplit(comm, 0, 0, &child, nullptr), ncclInProgress);
    REQUIRE_RANK(child == nullptr);
    REQUIRE_SAME(poll(comm), ncclSuccess);
    REQUIRE_RANK(child != nullptr);
    int size;
    NCCL_OK(ncclCommCount(child, &size));
    REQUIRE_SAME(size, 2);
  });
}

TEST_CASE("abort and destroy of non-blocking communicators can answer in progress, too") {
  CHECK_RANKS(1, (Settings{{"FAKE_NCCL_END_IN_PROGRESS", "1"}}), [](Rank rank) {
    REQUIRE_NCCL(ncclCommAbort(make_non_blocking_comm(rank, 0)), ncclInProgress);
    REQUIRE_NCCL(ncclCommDestroy(make_non_blocking_comm(rank, 1)), ncclInProgress);
    NCCL_OK(ncclCommDestroy(make_comm(rank, 2)));
    REQUIRE_SAME(count().communicators, 0);
  });
}
