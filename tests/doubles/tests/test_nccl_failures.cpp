// SPDX-License-Identifier: BSD-3-Clause
// The double of libnccl: mismatches, deadlines, aborts, dead processes, faults on order.
#include <doctest/doctest.h>

#include "entries.hpp"
#include "nccl_help.hpp"

using namespace help;
using ranks::Rank;
using ranks::Settings;

TEST_CASE("ranks that issue different collectives wait until they abort") {
  struct Case {
    const char* words;  // what the double says when it gives up
    std::function<ncclResult_t(Rank, int*, ncclComm_t)> call;
  };
  const std::vector<Case> cases{
      {"AllReduce(count 5",
       [](Rank r, int* x, ncclComm_t c) {
         return ncclAllReduce(x, x, r.number == 0 ? 4 : 5, ncclInt32, ncclSum, c, nullptr);
       }},
      {"root 1",
       [](Rank r, int* x, ncclComm_t c) {
         return ncclBroadcast(x, x, 4, ncclInt32, r.number, c, nullptr);
       }},
      {"collective 0",
       [](Rank r, int* x, ncclComm_t c) {  // the same two, the other way round
         const auto first = [&] { return ncclAllReduce(x, x, 4, ncclInt32, ncclSum, c, nullptr); };
         const auto second = [&] { return ncclBroadcast(x, x, 4, ncclInt32, 0, c, nullptr); };
         if (r.number == 0) return first() == ncclSuccess ? second() : ncclInternalError;
         return second() == ncclSuccess ? (first(), ncclSuccess) : ncclInternalError;
       }},
  };
  for (const Case& one : cases) {
    CHECK_RANKS(2, Settings{}, [&](Rank rank) {
      const ncclComm_t comm = make_comm(rank);
      int* x = device(std::vector<int>(100, 1));
      one.call(rank, x, comm);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      ncclResult_t state = ncclInternalError;
      NCCL_OK(ncclCommGetAsyncError(comm, &state));
      REQUIRE_SAME(state, ncclSuccess);  // NCCL finds nothing wrong
      rank.barrier();
      NCCL_OK(ncclCommAbort(comm));
      rank.barrier();
    });
    CHECK_RANKS(2, short_wait, [&](Rank rank) {
      const ncclComm_t comm = make_comm(rank);
      int* x = device(std::vector<int>(100, 1));
      one.call(rank, x, comm);
      if (std::string(one.words) == "root 1") return;  // a root ends when it has sent all it has
      REQUIRE_SAME(wait_for_error(comm), ncclSystemError);
      REQUIRE_RANK(says(comm, "differs: rank "));
      REQUIRE_RANK(says(comm, one.words));
      rank.barrier();
    });
  }
}

TEST_CASE("collectives of one size that differ otherwise end with a wrong result") {
  CHECK_RANKS(2, Settings{}, [&](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>(4, 1));
    const auto is_garbage = [&] { return host(x, 4)[0] == static_cast<int>(0xA5A5A5A5U); };
    const bool first = rank.number == 0;
    NCCL_OK(ncclAllReduce(x, x, 4, ncclInt32, first ? ncclSum : ncclMax, comm, nullptr));
    REQUIRE_RANK(is_garbage());
    NCCL_OK(ncclAllReduce(x, x, 4, first ? ncclInt32 : ncclFloat32, ncclSum, comm, nullptr));
    REQUIRE_RANK(is_garbage());
    ncclResult_t state = ncclInternalError;
    NCCL_OK(ncclCommGetAsyncError(comm, &state));
    REQUIRE_SAME(state, ncclSuccess);
  });
}

TEST_CASE("a receive of another length than the send waits for ever, and types do not matter") {
  CHECK_RANKS(2, short_wait, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>(100, 10 + rank.number));
    if (rank.number == 0)
      NCCL_OK(ncclSend(x, 5, ncclInt32, 1, comm, nullptr));
    else
      NCCL_OK(ncclRecv(x, 5, ncclFloat32, 0, comm, nullptr));
    REQUIRE_SAME(host(x, 1)[0], 10);
    if (rank.number == 0)
      NCCL_OK(ncclSend(x, 5, ncclInt32, 1, comm, nullptr));
    else
      NCCL_OK(ncclRecv(x, 6, ncclInt32, 0, comm, nullptr));
    if (rank.number == 1) {
      REQUIRE_SAME(wait_for_error(comm), ncclSystemError);
      REQUIRE_RANK(says(comm, "expects a message of 24 bytes from rank 0"));
      REQUIRE_RANK(says(comm, "waits for ever"));
    }
    rank.barrier();
    NCCL_OK(ncclCommAbort(comm));
  });
}

TEST_CASE("a message whose memory is registered on one side only arrives as garbage") {
  CHECK_RANKS(2, short_wait, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>(100));
    void* handle = nullptr;
    const auto move = [&] {
      if (rank.number == 0) return ncclSend(x + 20, 4, ncclInt32, 1, comm, nullptr);
      return ncclRecv(x + 20, 4, ncclInt32, 0, comm, nullptr);
    };
    NCCL_OK(ncclCommRegister(comm, x, 400, &handle));
    NCCL_OK(move());
    CUDA_OK(cudaDeviceSynchronize());
    rank.barrier();
    if (rank.number == 1) NCCL_OK(ncclCommDeregister(comm, handle));
    NCCL_OK(move());
    CUDA_OK(cudaDeviceSynchronize());
    if (rank.number == 1) REQUIRE_SAME(host(x + 20, 1)[0], static_cast<int>(0xA5A5A5A5U));
    NCCL_OK(ncclCommAbort(comm));
  });
}

TEST_CASE("a send that meets another collective never ends") {
  CHECK_RANKS(2, short_wait, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>(100));
    if (rank.number == 0)
      NCCL_OK(ncclSend(x, 4, ncclInt32, 1, comm, nullptr));
    else
      NCCL_OK(ncclAllReduce(x, x, 4, ncclInt32, ncclSum, comm, nullptr));
    if (rank.number == 1) REQUIRE_SAME(wait_for_error(comm), ncclSystemError);
    rank.barrier();
    NCCL_OK(ncclCommAbort(comm));
  });
}

TEST_CASE("a rank that does not take part is named when the deadline passes") {
  CHECK_RANKS(3, short_wait, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>(1));
    if (rank.number != 1) {
      NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr));
      REQUIRE_SAME(wait_for_error(comm), ncclSystemError);
      REQUIRE_RANK(says(comm, "AllReduce (collective 0)"));
      REQUIRE_RANK(says(comm, "for rank 1"));
    }
    rank.barrier();
  });
}

TEST_CASE("peers on the same host learn nothing of an abort, those on other hosts do") {
  CHECK_RANKS(
      4, (Settings{{"NCCL_NET", "Socket"}}),
      [](Rank rank) {
        if (rank.number == 2) setenv("NCCL_HOSTID", "other", 1);
        const ncclComm_t comm = make_comm(rank);
        const cudaStream_t stream = make_stream();
        int* x = device(std::vector<int>(1));
        if (rank.number == 3) {
          rank.barrier();  // now the others have begun
          NCCL_OK(ncclCommAbort(comm));
          rank.barrier();
          rank.barrier();
          return;
        }
        NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream));
        rank.barrier();
        rank.barrier();
        if (rank.number == 2) {
          CUDA_OK(cudaStreamSynchronize(stream));  // ends although rank 3 never takes part
          REQUIRE_SAME(wait_for_error(comm), ncclRemoteError);
          REQUIRE_RANK(says(comm, "closed by remote peer, rank 3"));
          REQUIRE_NCCL(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream), ncclRemoteError);
        } else {
          std::this_thread::sleep_for(std::chrono::milliseconds(250));
          REQUIRE_SAME(cudaStreamQuery(stream), cudaErrorNotReady);
          ncclResult_t state = ncclInternalError;
          NCCL_OK(ncclCommGetAsyncError(comm, &state));
          REQUIRE_SAME(state, ncclSuccess);
        }
        rank.barrier();
        NCCL_OK(ncclCommAbort(comm));
        REQUIRE_NCCL(ncclCommAbort(comm), ncclInvalidArgument);
        CUDA_OK(cudaStreamSynchronize(stream));
        REQUIRE_SAME(count().communicators + count().segments, 0);
      },
      60);
}

TEST_CASE("an abort ends this rank's own operation and its own init") {
  CHECK_RANKS(
      2, (Settings{{"FAKE_NCCL_TIMEOUT", "30"}}),
      [](Rank rank) {
        const ncclComm_t a = make_non_blocking_comm(rank, 0), b = make_non_blocking_comm(rank, 1);
        const ncclUniqueId id = shared_id(rank, 2);
        ncclComm_t late = nullptr;
        if (rank.number == 0) {
          int* x = device(std::vector<int>(1));
          const cudaStream_t stream = make_stream();
          REQUIRE_NCCL(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, a, stream), ncclInProgress);
          REQUIRE_SAME(poll(a), ncclSuccess);
          ncclConfig_t config = non_blocking();
          REQUIRE_NCCL(ncclCommInitRankConfig(&late, 2, id, 0, &config), ncclInProgress);
          NCCL_OK(ncclGroupStart());
          for (ncclComm_t comm : {a, b, late}) NCCL_OK(ncclCommAbort(comm));
          NCCL_OK(ncclGroupEnd());
          CUDA_OK(cudaStreamSynchronize(stream));
          REQUIRE_SAME(count().communicators, 0);
        }
        rank.barrier();
      },
      60);
}

TEST_CASE("a process that dies is noticed over sockets only") {
  const auto said = ranks::run(
      3, Settings{},
      [](Rank rank) {
        if (rank.number == 2) setenv("NCCL_HOSTID", "other", 1);
        const ncclComm_t comm = make_comm(rank);
        const ncclComm_t other = make_comm(rank, 1);
        rank.barrier();
        if (rank.number == 1) kill(getpid(), SIGKILL);
        int* x = device(std::vector<int>(1));
        NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr));
        if (rank.number == 2) {
          REQUIRE_SAME(wait_for_error(comm), ncclRemoteError);
          REQUIRE_RANK(says(comm, "rank 1 is gone"));
          return;
        }
        ncclComm_t child = nullptr;  // the hosts talk over sockets
        REQUIRE_NCCL(ncclCommSplit(other, 0, 0, &child, nullptr), ncclRemoteError);
        ncclResult_t state = ncclInternalError;
        NCCL_OK(ncclCommGetAsyncError(comm, &state));
        REQUIRE_SAME(state, ncclSuccess);
      },
      3);
  CHECK_MESSAGE(said.size() == 1, ranks::joined(said));  // the killed one itself
}

TEST_CASE("killed jobs leave nothing in /dev/shm") {
  const int before = entries("/dev/shm", "rankmesh-fake");
  for (const int when : {0, 1, 2}) {
    ranks::run(3, Settings{}, [when](Rank rank) {
      const ncclUniqueId id = shared_id(rank);
      if (when == 0) kill(getpid(), SIGKILL);  // the ID exists, but no rank has used it
      ncclComm_t comm;
      if (when == 1 && rank.number > 0) kill(getpid(), SIGKILL);
      if (when == 1)
        std::thread([] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          kill(getpid(), SIGKILL);
        }).detach();
      ncclCommInitRank(&comm, 3, id, rank.number);
      kill(getpid(), SIGKILL);
    });
  }
  CHECK(entries("/dev/shm", "rankmesh-fake") <= before);
}

TEST_CASE("faults on order: init, late init, ID, asynchronous error") {
  CHECK_RANKS(
      2, (Settings{{"FAKE_NCCL_FAULTS", "init:rank=1,comm=0,code=2"}, {"FAKE_NCCL_TIMEOUT", "1"}}),
      [](Rank rank) {
        const ncclUniqueId id = shared_id(rank);
        ncclComm_t comm;
        REQUIRE_NCCL(ncclCommInitRank(&comm, 2, id, rank.number), ncclSystemError);
        REQUIRE_RANK(says(nullptr, rank.number == 1 ? "injected" : "for rank 1"));
        make_comm(rank, 1);  // the next one works
        rank.barrier();
      });
  CHECK_RANKS(2, (Settings{{"FAKE_NCCL_FAULTS", "late:rank=1,ms=120"}}), [](Rank rank) {
    const auto start = std::chrono::steady_clock::now();
    make_comm(rank);
    REQUIRE_RANK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(100));
  });
  CHECK_RANKS(1, Settings{}, [](Rank) {
    ncclUniqueId id;
    REQUIRE_SAME(fake_nccl_inject("nonsense"), -1);
    REQUIRE_SAME(fake_nccl_inject("id:code=3"), 0);
    REQUIRE_NCCL(ncclGetUniqueId(&id), ncclInternalError);
    REQUIRE_SAME(fake_nccl_inject(""), 0);
    NCCL_OK(ncclGetUniqueId(&id));
  });
  CHECK_RANKS(2, (Settings{{"FAKE_NCCL_FAULTS", "async:rank=0,after=2,code=6"}}), [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>{1});
    for (int i = 0; i < 2; ++i) NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr));
    REQUIRE_SAME(host(x, 1)[0], 4);
    const ncclResult_t third = ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr);
    REQUIRE_RANK(third == ncclSuccess || rank.number == 1);
    if (rank.number == 0) {
      REQUIRE_SAME(wait_for_error(comm), ncclRemoteError);
      REQUIRE_RANK(says(comm, "injected"));
      REQUIRE_NCCL(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr), ncclRemoteError);
    }
    NCCL_OK(ncclCommAbort(comm));  // the other rank learns nothing of it
  });
}

TEST_CASE("aborts outside a group are counted") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t first = make_comm(rank);
    rank.barrier();
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclCommAbort(first));
    NCCL_OK(ncclGroupEnd());
    FakeNcclCounters counters{};
    fake_nccl_counters(&counters);
    REQUIRE_SAME(counters.lone_aborts, 0L);
  });
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    rank.barrier();
    NCCL_OK(ncclCommAbort(comm));
    FakeNcclCounters counters{};
    fake_nccl_counters(&counters);
    REQUIRE_SAME(counters.lone_aborts, 1L);
  });
}
