// SPDX-License-Identifier: BSD-3-Clause
// The double of libnccl: rules of communicators that were read in NCCL's source and that its manual
// does not state. README.md lists the file and the function of each rule.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>
#include <utility>

#include "nccl_help.hpp"

using namespace help;
using ranks::Rank;
using ranks::Settings;

TEST_CASE("a lower limit of thread blocks is refused without an upper one") {
  CHECK_RANKS(1, Settings{}, [](Rank) {
    ncclUniqueId id;
    ncclComm_t comm;
    NCCL_OK(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.minCTAs = 8;
    REQUIRE_NCCL(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
    REQUIRE_RANK(says(nullptr, "minCTAs is 8"));
    config.minCTAs = NCCL_CONFIG_UNDEF_INT;
    config.maxCTAs = 8;
    NCCL_OK(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
  });
}

TEST_CASE("the policy of copy engines came with 2.28, and policies with 2.27") {
  for (const auto& [version, is_accepted] :
       {std::pair{"22605", true}, std::pair{"22707", false}, std::pair{"22809", true}})
    CHECK_RANKS(1, (Settings{{"FAKE_NCCL_VERSION", version}}), [accepted = is_accepted](Rank) {
      ncclUniqueId id;
      ncclComm_t comm;
      NCCL_OK(ncclGetUniqueId(&id));
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
      const ncclResult_t result = ncclCommInitRankConfig(&comm, 1, id, 0, &config);
      REQUIRE_SAME(result, accepted ? ncclSuccess : ncclInvalidArgument);
      if (!accepted) REQUIRE_RANK(says(nullptr, "CTAPolicy is 2"));
    });
}

namespace {

ncclConfig_t sharing() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 1;
  return config;
}

ncclComm_t make_sharing_comm(const Rank& rank) {
  ncclComm_t comm = nullptr;
  ncclConfig_t config = sharing();
  NCCL_OK(ncclCommInitRankConfig(&comm, rank.size, shared_id(rank), rank.number, &config));
  return comm;
}

ncclResult_t sum_of(ncclComm_t comm, int* x) {
  return ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr);
}

// Issues a sum on each of the two communicators, in one group.
ncclResult_t group_of(ncclComm_t first, ncclComm_t second, int* x) {
  NCCL_OK(ncclGroupStart());
  NCCL_OK(sum_of(first, x));
  NCCL_OK(sum_of(second, x + 1));
  return ncclGroupEnd();
}

}  // namespace

TEST_CASE("the last operation of a group decides whether the group blocks") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t blocking = make_comm(rank, 0);
    const ncclComm_t polled = make_non_blocking_comm(rank, 1);
    int* x = device(std::vector<int>{1, 1});
    REQUIRE_NCCL(group_of(polled, blocking, x), ncclInProgress);
    REQUIRE_SAME(poll(polled), ncclSuccess);
    REQUIRE_SAME(host(x, 2)[0] + host(x, 2)[1], 4);
    NCCL_OK(sum_of(blocking, x));
    // If it is non-blocking, nobody resets the state of the blocking one.
    REQUIRE_NCCL(group_of(blocking, polled, x), ncclInProgress);
    REQUIRE_SAME(poll(polled), ncclSuccess);
    ncclResult_t state = ncclSuccess;
    for (int turn = 0; turn < 20; ++turn) NCCL_OK(ncclCommGetAsyncError(blocking, &state));
    REQUIRE_SAME(state, ncclInProgress);
    REQUIRE_NCCL(sum_of(blocking, x), ncclInvalidArgument);
  });
}

TEST_CASE("a wrong argument is the error of a non-blocking communicator for good") {
  CHECK_RANKS(1, Settings{}, [](Rank rank) {
    int* x = device(std::vector<int>{1});
    const auto use_wrongly = [&](ncclComm_t comm) {
      return ncclBroadcast(x, x, 1, ncclInt32, 7, comm, nullptr);
    };
    const ncclComm_t blocking = make_comm(rank, 0);
    REQUIRE_NCCL(use_wrongly(blocking), ncclInvalidArgument);
    NCCL_OK(sum_of(blocking, x));
    const ncclComm_t polled = make_non_blocking_comm(rank, 1);
    REQUIRE_NCCL(use_wrongly(polled), ncclInvalidArgument);
    REQUIRE_SAME(poll(polled), ncclInvalidArgument);
    REQUIRE_NCCL(sum_of(polled, x), ncclInvalidArgument);
  });
}

TEST_CASE("a call on a non-blocking communicator starts a thread, since 2.23") {
  for (const char* version : {"22203", "22300", "22809"}) {
    CAPTURE(version);
    CHECK_RANKS(1, (Settings{{"FAKE_NCCL_VERSION", version}}), [](Rank rank) {
      int* x = device(std::vector<int>{1});
      const bool starts = std::string(std::getenv("FAKE_NCCL_VERSION")) != "22203";
      const ncclComm_t polled = make_non_blocking_comm(rank, 0);
      const ncclComm_t blocking = make_comm(rank, 1);
      const FakeNcclCounters before = count();
      for (int i = 0; i < 5; ++i) NCCL_OK(sum_of(blocking, x));
      REQUIRE_SAME(count().helpers, before.helpers);
      REQUIRE_SAME(count().entries, before.entries + 5);
      REQUIRE_SAME(count().polls, before.polls);
      for (int i = 0; i < 5; ++i) {
        REQUIRE_NCCL(sum_of(polled, x), ncclInProgress);
        REQUIRE_SAME(poll(polled), ncclSuccess);
      }
      REQUIRE_SAME(count().helpers, before.helpers + (starts ? 5 : 0));
      REQUIRE_RANK(count().polls >= before.polls + 5);
    });
  }
}

TEST_CASE("a split has the mode of its parent; the child has that of its own configuration") {
  CHECK_RANKS(2, Settings{}, [](Rank rank) {
    const ncclComm_t polled = make_non_blocking_comm(rank);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    ncclComm_t child = nullptr;
    REQUIRE_NCCL(ncclCommSplit(polled, 0, rank.number, &child, &config), ncclInProgress);
    REQUIRE_SAME(poll(polled), ncclSuccess);
    REQUIRE_NCCL(ncclCommFinalize(polled), ncclInProgress);
    REQUIRE_SAME(poll(polled), ncclSuccess);
    NCCL_OK(ncclCommDestroy(polled));
    int* x = device(std::vector<int>{1});
    NCCL_OK(sum_of(child, x));
    REQUIRE_SAME(host(x, 1)[0], 2);
    REQUIRE_SAME(count().communicators, 1);
  });
}

TEST_CASE("the destruction of a communicator with an error leaves the thread in NCCL's group") {
  CHECK_RANKS(1, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank, 0);
    const ncclComm_t other = make_comm(rank, 1);
    int* x = device(std::vector<int>{1});
    fake_nccl_inject("async:comm=0,after=0,code=6");
    NCCL_OK(sum_of(comm, x));
    REQUIRE_SAME(wait_for_error(comm), ncclRemoteError);
    REQUIRE_NCCL(ncclCommDestroy(comm), ncclRemoteError);
    REQUIRE_SAME(count().communicators, 2);
    const long launches = count().launches;
    NCCL_OK(sum_of(other, x));
    REQUIRE_SAME(count().launches, launches);  // still waiting for the end of the group
    NCCL_OK(ncclGroupEnd());
    REQUIRE_SAME(count().launches, launches + 1);
    NCCL_OK(ncclCommAbort(comm));
  });
}

TEST_CASE("an abort of a child that shares resources silences its siblings") {
  CHECK_RANKS(1, Settings{}, [](Rank rank) {
    ncclComm_t parent = make_sharing_comm(rank), first = nullptr, second = nullptr;
    NCCL_OK(ncclCommSplit(parent, 0, 0, &first, nullptr));
    NCCL_OK(ncclCommSplit(parent, 0, 0, &second, nullptr));
    int* x = device(std::vector<int>{1});
    int* y = device(std::vector<int>{5});
    NCCL_OK(ncclAllReduce(x, y, 1, ncclInt32, ncclSum, second, nullptr));
    REQUIRE_SAME(host(y, 1)[0], 1);
    NCCL_OK(ncclCommAbort(first));
    int* z = device(std::vector<int>{5});
    NCCL_OK(ncclAllReduce(x, z, 1, ncclInt32, ncclSum, second, nullptr));
    REQUIRE_SAME(host(z, 1)[0], 5);  // accepted, and not carried out
  });
}

TEST_CASE("inside a group, an abort ends calls at once and frees at the end of the group") {
  CHECK_RANKS(1, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>{1});
    fake_nccl_inject("hang");
    std::atomic<int> result{-1};
    std::thread caller([&] {
      CUDA_OK(cudaSetDevice(rank.number));
      result = sum_of(comm, x);
    });
    while (count().hanging == 0) std::this_thread::yield();
    REQUIRE_SAME(result, -1);
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclCommAbort(comm));
    caller.join();
    REQUIRE_SAME(result, ncclInternalError);
    REQUIRE_SAME(count().communicators, 1);
    NCCL_OK(ncclGroupEnd());
    REQUIRE_SAME(count().communicators, 0);
    REQUIRE_SAME(count().unsafe_aborts, 0);
  });
}

TEST_CASE("an abort under a call of another thread frees what the call uses") {
  CHECK_RANKS(1, Settings{}, [](Rank rank) {
    const ncclComm_t comm = make_comm(rank);
    int* x = device(std::vector<int>{1});
    fake_nccl_inject("hang");
    std::thread caller([&] {
      CUDA_OK(cudaSetDevice(rank.number));
      (void)sum_of(comm, x);
    });
    while (count().hanging == 0) std::this_thread::yield();
    NCCL_OK(ncclCommAbort(comm));
    caller.join();
    REQUIRE_SAME(count().unsafe_aborts, 1);
  });
}

TEST_CASE("NCCL_COMM_BLOCKING decides for every communicator, from the environment or a file") {
  const std::string file = "/tmp/fake_nccl_conf_" + std::to_string(getpid());
  std::ofstream(file) << "# a comment\nNCCL_COMM_BLOCKING=0\n";
  for (const Settings& settings :
       {Settings{{"NCCL_COMM_BLOCKING", "0"}}, Settings{{"NCCL_CONF_FILE", file}}})
    CHECK_RANKS(1, settings, [](Rank rank) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 1;
      ncclComm_t comm = nullptr;
      REQUIRE_NCCL(ncclCommInitRankConfig(&comm, 1, shared_id(rank), 0, &config), ncclInProgress);
      REQUIRE_SAME(poll(comm), ncclSuccess);
      REQUIRE_RANK(std::string(std::getenv("NCCL_COMM_BLOCKING")) == "0");
    });
  CHECK_RANKS(1, (Settings{{"NCCL_COMM_BLOCKING", "0x1"}}), [](Rank rank) {
    ncclConfig_t config = non_blocking();
    ncclComm_t comm = nullptr;
    NCCL_OK(ncclCommInitRankConfig(&comm, 1, shared_id(rank), 0, &config));
  });
  CHECK_RANKS(1, (Settings{{"NCCL_COMM_BLOCKING", "2"}}),
              [](Rank rank) { make_non_blocking_comm(rank); });
  std::remove(file.c_str());
}
