// SPDX-License-Identifier: BSD-3-Clause
// The double of libnccl: unique IDs, inits, what they refuse.
#include <doctest/doctest.h>

#include <sys/mman.h>

#include "nccl_help.hpp"

using namespace help;
using ranks::Rank;
using ranks::Settings;

TEST_CASE("ranks that hold the same ID meet, at 1, 2, 4 and 8 ranks") {
  for (const int size : {1, 2, 4, 8}) {
    CHECK_RANKS(size, Settings{}, [](Rank rank) {
      const ncclComm_t comm = make_comm(rank);
      int value = -1;
      NCCL_OK(ncclCommCount(comm, &value));
      REQUIRE_SAME(value, rank.size);
      NCCL_OK(ncclCommUserRank(comm, &value));
      REQUIRE_SAME(value, rank.number);
      NCCL_OK(ncclCommCuDevice(comm, &value));
      REQUIRE_SAME(value, rank.number);
      NCCL_OK(ncclCommFinalize(comm));
      NCCL_OK(ncclCommDestroy(comm));
      REQUIRE_NCCL(ncclCommDestroy(comm), ncclInvalidArgument);
    });
  }
}

TEST_CASE("a wrong number of ranks is told to every rank") {
  CHECK_RANKS(3, short_wait, [](Rank rank) {
    ncclComm_t comm = nullptr;
    const ncclUniqueId id = shared_id(rank);
    REQUIRE_NCCL(ncclCommInitRank(&comm, rank.number == 2 ? 4 : 3, id, rank.number),
                 ncclInvalidUsage);
    REQUIRE_RANK(says(nullptr, "says there are"));
    REQUIRE_RANK(comm == nullptr);
    rank.barrier();
  });
}

TEST_CASE("a rank that comes twice is told to every rank") {
  CHECK_RANKS(3, short_wait, [](Rank rank) {
    ncclComm_t comm = nullptr;
    const ncclUniqueId id = shared_id(rank);
    REQUIRE_NCCL(ncclCommInitRank(&comm, 3, id, rank.number == 2 ? 1 : rank.number),
                 ncclInvalidUsage);
    REQUIRE_RANK(says(nullptr, "has come twice"));
    rank.barrier();
  });
}

TEST_CASE("two ranks on one device are refused, unless they look like different hosts") {
  const auto on_one_device = [](Rank rank, const char* host_id, ncclResult_t expected) {
    ncclUniqueId id = shared_id(rank);
    CUDA_OK(cudaSetDevice(0));
    if (host_id != nullptr)
      setenv("NCCL_HOSTID", (host_id + std::to_string(rank.number)).c_str(), 1);
    ncclComm_t comm = nullptr;
    REQUIRE_NCCL(ncclCommInitRank(&comm, rank.size, id, rank.number), expected);
    if (expected != ncclSuccess)
      REQUIRE_RANK(says(nullptr, "Duplicate GPU detected : rank 0 and rank 1"));
    rank.barrier();
  };
  CHECK_RANKS(2, Settings{}, [&](Rank rank) { on_one_device(rank, nullptr, ncclInvalidUsage); });
  CHECK_RANKS(2, Settings{}, [&](Rank rank) { on_one_device(rank, "host", ncclSuccess); });
  const Settings newer{{"FAKE_NCCL_VERSION", "23004"}, {"NCCL_MULTI_RANK_GPU_ENABLE", "1"}};
  CHECK_RANKS(2, newer, [&](Rank rank) { on_one_device(rank, nullptr, ncclSuccess); });
}

TEST_CASE("a rank that never comes is named when the deadline passes") {
  CHECK_RANKS(3, short_wait, [](Rank rank) {
    const ncclUniqueId id = shared_id(rank);
    if (rank.number != 1) {
      ncclComm_t comm = nullptr;
      const ncclResult_t result = ncclCommInitRank(&comm, 3, id, rank.number);
      REQUIRE_SAME(result, ncclSystemError);
      REQUIRE_RANK(says(nullptr, "for rank 1"));
    }
    rank.barrier();
  });
}

TEST_CASE("an ID serves once; one that was never made serves nobody") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclUniqueId id = shared_id(rank);
    ncclComm_t comm = nullptr, again = nullptr;
    NCCL_OK(ncclCommInitRank(&comm, 2, id, rank.number));
    rank.barrier();
    REQUIRE_NCCL(ncclCommInitRank(&again, 2, id, rank.number), ncclRemoteError);
    REQUIRE_RANK(says(nullptr, "used before"));
    ncclUniqueId zero{};
    REQUIRE_NCCL(ncclCommInitRank(&again, 2, zero, rank.number), ncclInvalidArgument);
    REQUIRE_NCCL(ncclCommInitRank(&again, 2, id, 2), ncclInvalidArgument);
  });
}

TEST_CASE("NCCL_COMM_ID makes all IDs equal; the first init may use it") {
  CHECK_RANKS(
      2, (Settings{{"NCCL_COMM_ID", "127.0.0.1:" + std::to_string(getpid())}}), [](Rank rank) {
        CUDA_OK(cudaSetDevice(rank.number));
        ncclUniqueId a, b;
        NCCL_OK(ncclGetUniqueId(&a));
        NCCL_OK(ncclGetUniqueId(&b));
        REQUIRE_RANK(std::memcmp(&a, &b, sizeof a) == 0);
        ncclComm_t comm = nullptr;
        NCCL_OK(ncclCommInitRank(&comm, 2, a, rank.number));
        ncclComm_t child = nullptr;
        NCCL_OK(ncclCommSplit(comm, 0, 0, &child, nullptr));  // does not collide with its parent
      });
}

TEST_CASE("an ID costs a thread and a socket until all have come") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    ncclUniqueId ids[3];
    for (auto& id : ids) NCCL_OK(ncclGetUniqueId(&id));
    REQUIRE_SAME(count().unique_ids, 3);
    REQUIRE_SAME(count().roots, 3);
    ncclComm_t comm;
    NCCL_OK(ncclCommInitRank(&comm, 1, ids[0], 0));
    for (int turn = 0; turn < 1000 && count().roots > 2; ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE_SAME(count().roots, 2);
  });
}

TEST_CASE("another user's processes are not let in") {
  if (geteuid() != 0) {
    MESSAGE("not run: needs the right to change the user");
    return;
  }
  CHECK_RANKS(2, short_wait, [](Rank rank) {
    const ncclUniqueId id = shared_id(rank);
    if (rank.number == 1) REQUIRE_SAME(setuid(65534), 0);
    ncclComm_t comm;
    const ncclResult_t result = ncclCommInitRank(&comm, 2, id, rank.number);
    REQUIRE_SAME(result, rank.number == 1 ? ncclRemoteError : ncclSystemError);
    rank.barrier();
  });
}

TEST_CASE("an interface that does not exist") {
  CHECK_RANKS(1, (Settings{{"NCCL_SOCKET_IFNAME", "nosuch9"}}), [](Rank) {
    ncclUniqueId id;
    REQUIRE_NCCL(ncclGetUniqueId(&id), ncclInvalidUsage);
    REQUIRE_RANK(says(nullptr, "no socket interface found"));
  });
}

TEST_CASE("several IDs for one communicator") {
  CHECK_RANKS(8, Settings{}, [](Rank rank) {
    CUDA_OK(cudaSetDevice(rank.number));
    ncclUniqueId ids[2];
    for (int i = 0; i < 2; ++i) {
      ncclUniqueId mine{};
      if (rank.number == 4 * i) NCCL_OK(ncclGetUniqueId(&mine));
      ids[i] = rank.share(mine, 4 * i, i);
    }
    ncclComm_t comm = nullptr;
    NCCL_OK(ncclCommInitRankScalable(&comm, 8, rank.number, 2, ids, nullptr));
    int* x = device(std::vector<int>{rank.number});
    NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr));
    REQUIRE_SAME(host(x, 1)[0], 28);
    REQUIRE_NCCL(ncclCommInitRankScalable(&comm, 8, rank.number, 9, ids, nullptr),
                 ncclInvalidArgument);
    rank.barrier();
    if (rank.number % 4 == 0)
      for (int turn = 0; turn < 1000 && count().roots > 0; ++turn)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE_SAME(count().roots, 0);
  });
}

TEST_CASE("several inits of one group go on side by side, whatever their order") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    ncclUniqueId ids[2] = {shared_id(rank, 0), shared_id(rank, 1)};
    ncclComm_t comms[2] = {};
    NCCL_OK(ncclGroupStart());
    for (int i = 0; i < 2; ++i) {
      const int which = i ^ rank.number;
      NCCL_OK(ncclCommInitRank(&comms[which], 2, ids[which], rank.number));
      REQUIRE_RANK(comms[which] == nullptr);
    }
    NCCL_OK(ncclGroupEnd());
    REQUIRE_RANK(comms[0] != nullptr && comms[1] != nullptr);
  });
}

TEST_CASE("a config is read by its own size, and must have been initialised") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    // As long as in 2.14, with nothing readable behind.
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    char* const area = static_cast<char*>(
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(area + page, page, PROT_NONE);
    ncclConfig_t whole = non_blocking();
    whole.size = 24;
    auto* const small = reinterpret_cast<ncclConfig_t*>(area + page - 24);
    std::memcpy(static_cast<void*>(small), &whole, 24);
    ncclUniqueId id;
    ncclComm_t comm;
    NCCL_OK(ncclGetUniqueId(&id));
    REQUIRE_NCCL(ncclCommInitRankConfig(&comm, 1, id, 0, small), ncclInProgress);
    REQUIRE_SAME(poll(comm), ncclSuccess);
    ncclConfig_t bad{};
    REQUIRE_NCCL(ncclCommInitRankConfig(&comm, 1, id, 0, &bad), ncclInvalidArgument);
    bad = NCCL_CONFIG_INITIALIZER;
    bad.magic = 1;
    REQUIRE_NCCL(ncclCommInitRankConfig(&comm, 1, id, 0, &bad), ncclInvalidArgument);
    REQUIRE_RANK(says(nullptr, "NCCL_CONFIG_INITIALIZER"));
    bad = NCCL_CONFIG_INITIALIZER;
    bad.minCTAs = 8;
    bad.maxCTAs = 4;
    REQUIRE_NCCL(ncclCommInitRankConfig(&comm, 1, id, 0, &bad), ncclInvalidArgument);
  });
}

TEST_CASE("commName is read late: it must stay as it was") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    char name[] = "tp 0";
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = name;
    config.maxCTAs = 7;
    ncclUniqueId id;
    ncclComm_t comm;
    NCCL_OK(ncclGetUniqueId(&id));
    NCCL_OK(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
    REQUIRE_RANK(fake_nccl_name(comm) == name);
    FakeNcclConfig seen;
    REQUIRE_SAME(fake_nccl_config(comm, &seen), 0);
    REQUIRE_SAME(seen.max_ctas, 7);
    int value;
    NCCL_OK(ncclCommCount(comm, &value));
    name[0] = 'x';
    REQUIRE_NCCL(ncclCommCount(comm, &value), ncclInvalidArgument);
    REQUIRE_RANK(says(nullptr, "commName"));
  });
}

TEST_CASE("an init without a driver fails, and leaves the thread inside a group in some versions") {
  for (const bool old : {false, true}) {
    const Settings settings{{"FAKE_CUDA_DEVICES", "none"},
                            {"FAKE_NCCL_VERSION", old ? "22605" : "22809"}};
    CHECK_RANKS(1, settings, [old](Rank) {
      ncclUniqueId id;
      ncclComm_t comm;
      int version;
      NCCL_OK(ncclGetVersion(&version));
      REQUIRE_SAME(version, old ? 22605 : 22809);
      NCCL_OK(ncclGetUniqueId(&id));
      REQUIRE_NCCL(ncclCommInitRank(&comm, 1, id, 0), ncclUnhandledCudaError);
      REQUIRE_NCCL(ncclGroupEnd(), old ? ncclInvalidUsage : ncclSuccess);
    });
  }
}
