// SPDX-License-Identifier: BSD-3-Clause
// The double of libnccl: groups, sends and receives, splits, graphs.
#include <doctest/doctest.h>

#include <atomic>

#include "nccl_help.hpp"

using namespace help;
using ranks::Rank;
using ranks::Settings;

TEST_CASE("an end without a start is an invalid usage") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    REQUIRE_NCCL(ncclGroupEnd(), ncclInvalidUsage);
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclGroupEnd());
    NCCL_OK(ncclGroupEnd());
    REQUIRE_NCCL(ncclGroupEnd(), ncclInvalidUsage);
  });
}

TEST_CASE("the depth of groups is the thread's own") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    NCCL_OK(ncclGroupStart());
    ncclResult_t result = ncclSuccess;
    std::thread([&] { result = ncclGroupEnd(); }).join();
    REQUIRE_SAME(result, ncclInvalidUsage);
    NCCL_OK(ncclGroupEnd());
  });
}

TEST_CASE("operations of a group start at the outermost end, as one batch") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    const cudaStream_t stream = make_stream();
    int* x = device(std::vector<int>{1, 2});
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream));
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclAllReduce(x + 1, x + 1, 1, ncclInt32, ncclSum, comm, stream));
    NCCL_OK(ncclGroupEnd());
    CUDA_OK(cudaStreamSynchronize(stream));
    REQUIRE_SAME(host(x, 2)[0], 1);
    REQUIRE_SAME(count().launches, 0);
    NCCL_OK(ncclGroupEnd());
    CUDA_OK(cudaStreamSynchronize(stream));
    REQUIRE_SAME(host(x, 2)[0], 2);
    REQUIRE_SAME(host(x, 2)[1], 4);
    REQUIRE_SAME(count().launches, 1);
    REQUIRE_SAME(count().calls[fake_all_reduce], 2);
  });
}

TEST_CASE("communicators of a group start in the order of their hashes, not of the calls") {
  for (const char* version : {"22809", "22509"}) {
    CHECK_RANKS(2, (Settings{{"FAKE_NCCL_VERSION", version}, {"FAKE_NCCL_TIMEOUT", "10"}}),
                [by_hash = std::string(version) == "22809"](Rank rank) {
                  ncclComm_t first = make_comm(rank, 0), second = make_comm(rank, 1);
                  if (fake_nccl_hash(first) > fake_nccl_hash(second)) std::swap(first, second);
                  int* x = device(std::vector<int>{1, 1});
                  NCCL_OK(ncclGroupStart());
                  NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, second, nullptr));
                  NCCL_OK(ncclAllReduce(x + 1, x + 1, 1, ncclInt32, ncclSum, first, nullptr));
                  NCCL_OK(ncclGroupEnd());
                  const bool is_first = fake_nccl_last_launch(first) == 1;
                  REQUIRE_SAME(is_first, by_hash);
                  REQUIRE_SAME(fake_nccl_last_launch(first) + fake_nccl_last_launch(second), 3);
                  REQUIRE_SAME(host(x, 2)[0] + host(x, 2)[1], 4);
                });
  }
}

TEST_CASE(
    "operations of a group are sorted by size and function, whatever the order of the calls") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>(20000, 1));
    int* out = device(std::vector<int>(2000));
    const auto issue = [&](int which) {
      if (which == 0) NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr));
      if (which == 1)
        NCCL_OK(ncclAllReduce(x + 1, x + 1, 10000, ncclInt32, ncclSum, comm, nullptr));
      if (which == 2) NCCL_OK(ncclAllGather(x + 15000, out, 1000, ncclInt32, comm, nullptr));
    };
    NCCL_OK(ncclGroupStart());
    for (int i = 0; i < 3; ++i) issue(rank.number == 0 ? i : 2 - i);
    NCCL_OK(ncclGroupEnd());
    REQUIRE_SAME(host(x, 2)[0], 2);
    REQUIRE_SAME(host(x, 2)[1], 2);
    REQUIRE_SAME(host(out, 2000)[1999], 1);
  });
}

TEST_CASE("an operation of a group that uses what another one writes gets a wrong result") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank), other = make_comm(rank, 1);
    const int spoilt = static_cast<int>(0xA5A5A5A5);
    for (const ncclComm_t last : {comm, other}) {
      // out: 0 is written and then read, 2 is read and then written, 4 is written twice.
      int* x = device(std::vector<int>(10, 1));
      NCCL_OK(ncclGroupStart());
      NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr));
      NCCL_OK(ncclAllReduce(x, x + 1, 1, ncclInt32, ncclSum, last, nullptr));
      NCCL_OK(ncclAllReduce(x + 2, x + 3, 1, ncclInt32, ncclSum, comm, nullptr));
      NCCL_OK(ncclAllReduce(x + 9, x + 2, 1, ncclInt32, ncclSum, last, nullptr));
      NCCL_OK(ncclBroadcast(x + 9, x + 4, 1, ncclInt32, 0, comm, nullptr));
      NCCL_OK(ncclBroadcast(x + 9, x + 4, 1, ncclInt32, 0, last, nullptr));
      NCCL_OK(ncclAllReduce(x + 8, x + 8, 1, ncclInt32, ncclSum, comm, nullptr));  // alone
      NCCL_OK(ncclGroupEnd());
      const auto got = host(x, 10);
      for (int i = 0; i < 5; ++i) REQUIRE_SAME(got[static_cast<std::size_t>(i)], spoilt);
      REQUIRE_SAME(got[8], 2);
      REQUIRE_SAME(got[9], 1);
    }
    // A message to oneself in place is left out.
    int* own = device(std::vector<int>{5});
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclSend(own, 1, ncclInt32, rank.number, comm, nullptr));
    NCCL_OK(ncclRecv(own, 1, ncclInt32, rank.number, comm, nullptr));
    NCCL_OK(ncclGroupEnd());
    REQUIRE_SAME(host(own, 1)[0], 5);
  });
}

TEST_CASE("a failure inside a group fails the group, and nothing of it runs") {
  CHECK_RANKS(1, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>{1});
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr));
    REQUIRE_NCCL(ncclAllReduce(x, x, 9, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument);
    REQUIRE_NCCL(ncclGroupEnd(), ncclInvalidArgument);
    REQUIRE_SAME(count().launches, 0);
  });
}

TEST_CASE("a simulated end runs nothing") {
  CHECK_RANKS(1, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>{1});
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr));
    NCCL_OK(ncclGroupSimulateEnd(&info));
    REQUIRE_RANK(info.estimatedTime > 0);
    REQUIRE_SAME(count().launches, 0);
    REQUIRE_NCCL(ncclGroupEnd(), ncclInvalidUsage);
  });
}

TEST_CASE("sends and receives of a group progress together: rings, pairs, self, large and empty") {
  for (const int size : {2, 4, 8}) {
    CHECK_RANKS(size, Settings{}, [](Rank rank) {
      const ncclComm_t comm = make_comm(rank);
      const std::size_t count = 50000;  // several pieces: no rank can finish a send alone
      int* out = device(std::vector<int>(count, rank.number));
      int* in = device(std::vector<int>(count * static_cast<std::size_t>(rank.size)));
      NCCL_OK(ncclGroupStart());
      for (int peer = 0; peer < rank.size; ++peer) {  // all send first, then receive
        NCCL_OK(ncclSend(out, count, ncclInt32, peer, comm, nullptr));
        NCCL_OK(ncclSend(out, 0, ncclInt32, peer, comm, nullptr));
      }
      for (int peer = 0; peer < rank.size; ++peer) {
        NCCL_OK(ncclRecv(in + static_cast<std::size_t>(peer) * count, count, ncclInt32, peer, comm,
                         nullptr));
        NCCL_OK(ncclRecv(nullptr, 0, ncclInt32, peer, comm, nullptr));
      }
      NCCL_OK(ncclGroupEnd());
      const auto got = host(in, count * static_cast<std::size_t>(rank.size));
      for (int peer = 0; peer < rank.size; ++peer)
        for (const std::size_t i : {std::size_t{0}, count - 1})
          REQUIRE_SAME(got[static_cast<std::size_t>(peer) * count + i], peer);
    });
  }
}

TEST_CASE("several messages between two ranks keep their order") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>{10 * rank.number, 10 * rank.number + 1, -1});
    if (rank.number == 0) {
      for (int i = 0; i < 2; ++i) NCCL_OK(ncclSend(x + i, 1, ncclInt32, 1, comm, nullptr));
    } else {
      NCCL_OK(ncclRecv(x, 1, ncclInt32, 0, comm, nullptr));
      NCCL_OK(ncclRecv(x + 1, 1, ncclInt32, 0, comm, nullptr));
      REQUIRE_SAME(host(x, 2)[0], 0);
      REQUIRE_SAME(host(x, 2)[1], 1);
    }
    CUDA_OK(cudaDeviceSynchronize());
  });
}

TEST_CASE("a split orders by key, then by the parent's rank, and can leave ranks out") {
  CHECK_RANKS(8, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    ncclComm_t child = comm;
    // Rank 3 stays out; the rest by parity, in falling order of rank.
    const int color = rank.number == 3 ? NCCL_SPLIT_NOCOLOR : rank.number % 2;
    NCCL_OK(ncclCommSplit(comm, color, -rank.number, &child, nullptr));
    if (rank.number == 3) {
      REQUIRE_RANK(child == nullptr);
    } else {
      int size, place;
      NCCL_OK(ncclCommCount(child, &size));
      NCCL_OK(ncclCommUserRank(child, &place));
      REQUIRE_SAME(size, color == 0 ? 4 : 3);
      const std::vector<int> order =
          color == 0 ? std::vector<int>{6, 4, 2, 0} : std::vector<int>{7, 5, 1};
      REQUIRE_SAME(order[static_cast<std::size_t>(place)], rank.number);
      int* x = device(std::vector<int>{rank.number});
      NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, child, nullptr));
      REQUIRE_SAME(host(x, 1)[0], color == 0 ? 12 : 13);
      REQUIRE_SAME(count().splits, 1);
    }
    // Equal keys: the parent's order. Then once more, so that the shared slots are used again.
    for (int turn = 0; turn < 3; ++turn) {
      ncclComm_t all;
      int place;
      NCCL_OK(ncclCommSplit(comm, 0, 5, &all, nullptr));
      NCCL_OK(ncclCommUserRank(all, &place));
      REQUIRE_SAME(place, rank.number);
      NCCL_OK(ncclCommDestroy(all));
    }
    REQUIRE_NCCL(ncclCommSplit(comm, -7, 0, &child, nullptr), ncclInvalidArgument);
  });
}

TEST_CASE("a split without config inherits, one with a config does not") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = 3;
    ncclComm_t comm, a, b;
    NCCL_OK(ncclCommInitRankConfig(&comm, 2, shared_id(rank), rank.number, &config));
    NCCL_OK(ncclCommSplit(comm, 0, 0, &a, nullptr));
    config = NCCL_CONFIG_INITIALIZER;
    NCCL_OK(ncclCommSplit(comm, 0, 0, &b, &config));
    FakeNcclConfig seen;
    REQUIRE_SAME(fake_nccl_config(a, &seen), 0);
    REQUIRE_SAME(seen.max_ctas, 3);
    REQUIRE_SAME(fake_nccl_config(b, &seen), 0);
    REQUIRE_SAME(seen.max_ctas, NCCL_CONFIG_UNDEF_INT);
  });
}

TEST_CASE("the survivors of a shrink go on, in order, also after an error") {
  for (const int flags : {NCCL_SHRINK_DEFAULT, NCCL_SHRINK_ABORT}) {
    CHECK_RANKS(4, Settings{}, [flags](Rank rank) {
      const ncclComm_t comm = make_comm(rank);
      int* x = device(std::vector<int>{rank.number});
      if (rank.number == 1) {
        rank.wait_for(0, 3);
        return;
      }
      const cudaStream_t stream = make_stream();
      if (flags == NCCL_SHRINK_ABORT)
        NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream));  // rank 1 never joins
      rank.shared->flags[1]++;
      rank.wait_for(1, 3);
      int excluded = 1;
      ncclComm_t child;
      NCCL_OK(ncclCommShrink(comm, &excluded, 1, &child, nullptr, flags));
      int place;
      NCCL_OK(ncclCommUserRank(child, &place));
      REQUIRE_SAME(place, rank.number == 0 ? 0 : rank.number - 1);
      int* y = device(std::vector<int>{rank.number});
      NCCL_OK(ncclAllReduce(y, y, 1, ncclInt32, ncclSum, child, nullptr));
      REQUIRE_SAME(host(y, 1)[0], 5);
      rank.shared->flags[0]++;
    });
  }
}

TEST_CASE("collectives are captured and replayed, and pin their communicator") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    const cudaStream_t stream = make_stream();
    int* x = device(std::vector<int>{1});
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaStreamSynchronize(stream));
    REQUIRE_SAME(host(x, 1)[0], 1);
    for (int turn = 0; turn < 3; ++turn) CUDA_OK(cudaGraphLaunch(exec, stream));
    NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream));  // between launches
    CUDA_OK(cudaGraphLaunch(exec, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    REQUIRE_SAME(host(x, 1)[0], 32);
    std::atomic<bool> is_destroyed{false};  // destroys, finalizes and aborts wait for the graph
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      is_destroyed = true;
      cudaGraphExecDestroy(exec);
    });
    NCCL_OK(rank.number == 0 ? ncclCommAbort(comm) : ncclCommDestroy(comm));
    REQUIRE_RANK(is_destroyed);
    later.join();
  });
}

TEST_CASE(
    "a communicator without graphs refuses captures, and older versions do not read the mode") {
  struct Newer {
    ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
    int graph_usage_mode = 0;
  };
  for (const char* version : {"22907", "22809"}) {
    const bool is_read = std::string(version) == "22907";
    CHECK_RANKS(2, (Settings{{"FAKE_NCCL_VERSION", version}}), [is_read](Rank rank) {
      Newer config;
      config.known.size = offsetof(Newer, graph_usage_mode) + sizeof(int);
      config.known.version = 22900;
      ncclComm_t comm;
      NCCL_OK(ncclCommInitRankConfig(&comm, 2, shared_id(rank), rank.number, &config.known));
      const cudaStream_t stream = make_stream();
      int* x = device(std::vector<int>{1});
      CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      REQUIRE_SAME(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream),
                   is_read ? ncclInvalidUsage : ncclSuccess);
      config.graph_usage_mode = 3;
      if (rank.number == 1) return;
      ncclUniqueId own;
      NCCL_OK(ncclGetUniqueId(&own));
      REQUIRE_SAME(ncclCommInitRankConfig(&comm, 1, own, 0, &config.known),
                   is_read ? ncclInvalidArgument : ncclSuccess);
    });
  }
}

TEST_CASE("a group over two streams is ordered with both") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    const cudaStream_t a = make_stream(), b = make_stream();
    int* x = device(std::vector<int>{1, 1});
    Gate gate(b);
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, a));
    NCCL_OK(ncclAllReduce(x + 1, x + 1, 1, ncclInt32, ncclSum, comm, b));
    NCCL_OK(ncclGroupEnd());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    REQUIRE_SAME(cudaStreamQuery(a), cudaErrorNotReady);
    gate.open();
    CUDA_OK(cudaStreamSynchronize(b));
    REQUIRE_SAME(host(x, 2)[1], 2);
  });
}
