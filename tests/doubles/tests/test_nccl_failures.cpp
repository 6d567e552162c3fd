// The double of libnccl: non-blocking communicators, errors, aborts, the end, and what is counted.
#include <doctest/doctest.h>

#include <dirent.h>

#include "nccl_help.hpp"

using namespace help;
using ranks::Rank;
using ranks::Settings;

namespace {

const Settings short_wait{{"FAKE_NCCL_TIMEOUT", "0.4"}};

int entries(const char* folder) {
  int found = 0;
  DIR* const directory = opendir(folder);
  while (directory != nullptr && readdir(directory) != nullptr) ++found;
  if (directory != nullptr) closedir(directory);
  return found;
}

}  // namespace

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
    const ncclComm_t blocking = make_comm(rank, 2);
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, a, nullptr));
    NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, blocking, nullptr));
    REQUIRE_NCCL(ncclGroupEnd(), ncclInvalidArgument);
    REQUIRE_RANK(says(nullptr, "in one group"));
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

TEST_CASE("ranks that issue different collectives are told, with what each issued") {
  struct Case {
    const char* words;
    std::function<ncclResult_t(Rank, int*, ncclComm_t)> call;
  };
  const std::vector<Case> cases{
      {"AllReduce(count 5",
       [](Rank r, int* x, ncclComm_t c) {
         return ncclAllReduce(x, x, r.number == 0 ? 4 : 5, ncclInt32, ncclSum, c, nullptr);
       }},
      {"max",
       [](Rank r, int* x, ncclComm_t c) {
         return ncclAllReduce(x, x, 4, ncclInt32, r.number == 0 ? ncclSum : ncclMax, c, nullptr);
       }},
      {"float32",
       [](Rank r, int* x, ncclComm_t c) {
         return ncclAllReduce(x, x, 4, r.number == 0 ? ncclInt32 : ncclFloat32, ncclSum, c, nullptr);
       }},
      {"root 1",
       [](Rank r, int* x, ncclComm_t c) { return ncclBroadcast(x, x, 4, ncclInt32, r.number, c, nullptr); }},
      {"collective 0",
       [](Rank r, int* x, ncclComm_t c) {  // the same two, the other way round
         const auto first = [&] { return ncclAllReduce(x, x, 4, ncclInt32, ncclSum, c, nullptr); };
         const auto second = [&] { return ncclBroadcast(x, x, 4, ncclInt32, 0, c, nullptr); };
         if (r.number == 0) return first() == ncclSuccess ? second() : ncclInternalError;
         return second() == ncclSuccess ? (first(), ncclSuccess) : ncclInternalError;
       }},
  };
  for (const Case& one : cases) {
    CHECK_RANKS(2, short_wait, [&](Rank rank) {
      const ncclComm_t comm = make_comm(rank);
      int* x = device(std::vector<int>(100, 1));
      one.call(rank, x, comm);
      REQUIRE_SAME(wait_for_error(comm), ncclInvalidUsage);
      REQUIRE_RANK(says(comm, "differs: rank "));
      REQUIRE_RANK(says(comm, one.words));
      REQUIRE_NCCL(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidUsage);
      NCCL_OK(ncclCommAbort(comm));
    });
  }
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

TEST_CASE("an abort ends what the peers wait for, and does not wait itself") {
  CHECK_RANKS(
      4, Settings{},
      [](Rank rank) {
        const ncclComm_t comm = make_comm(rank);
        const cudaStream_t stream = make_stream();
        int* x = device(std::vector<int>(1));
        if (rank.number == 3) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          NCCL_OK(ncclCommAbort(comm));
          rank.barrier();
          return;
        }
        NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream));
        CUDA_OK(cudaStreamSynchronize(stream));  // ends although rank 3 never takes part
        REQUIRE_SAME(wait_for_error(comm), ncclRemoteError);
        REQUIRE_RANK(says(comm, "rank 3 aborted"));
        REQUIRE_NCCL(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream), ncclRemoteError);
        NCCL_OK(ncclCommAbort(comm));
        REQUIRE_NCCL(ncclCommAbort(comm), ncclInvalidArgument);
        REQUIRE_SAME(count().communicators + count().segments, 0);
        rank.barrier();
      },
      4);
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
      4);
}

TEST_CASE("a process that dies is noticed by those who wait for it") {
  const auto said = ranks::run(
      3, Settings{},
      [](Rank rank) {
        const ncclComm_t comm = make_comm(rank);
        rank.barrier();
        if (rank.number == 1) kill(getpid(), SIGKILL);
        int* x = device(std::vector<int>(1));
        NCCL_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, nullptr));
        REQUIRE_SAME(wait_for_error(comm), ncclRemoteError);
        REQUIRE_RANK(says(comm, "the process of rank 1 is gone"));
      },
      3);
  CHECK_MESSAGE(said.size() == 1, ranks::joined(said));  // the killed one itself
}

TEST_CASE("killed jobs leave nothing in /dev/shm") {
  const int before = entries("/dev/shm");
  for (const int when : {0, 1, 2}) {
    ranks::run(3, Settings{}, [when](Rank rank) {
      const ncclUniqueId id = shared_id(rank);
      if (when == 0) kill(getpid(), SIGKILL);  // an ID, but nobody has used it
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
  CHECK(entries("/dev/shm") <= before);
}

TEST_CASE("faults on order: init, late init, ID, asynchronous error") {
  CHECK_RANKS(2, (Settings{{"FAKE_NCCL_FAULTS", "init:rank=1,comm=0,code=2"}, {"FAKE_NCCL_TIMEOUT", "0.3"}}),
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
    } else {
      REQUIRE_SAME(wait_for_error(comm), ncclRemoteError);  // by the other's abort
    }
    NCCL_OK(ncclCommAbort(comm));
  });
}

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

TEST_CASE("abort and destroy of non-blocking communicators can answer in progress, too") {
  CHECK_RANKS(1, (Settings{{"FAKE_NCCL_END_IN_PROGRESS", "1"}}), [](Rank rank) {
    REQUIRE_NCCL(ncclCommAbort(make_non_blocking_comm(rank, 0)), ncclInProgress);
    REQUIRE_NCCL(ncclCommDestroy(make_non_blocking_comm(rank, 1)), ncclInProgress);
    NCCL_OK(ncclCommDestroy(make_comm(rank, 2)));
    REQUIRE_SAME(count().communicators, 0);
  });
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
    NCCL_OK(ncclCommWindowDeregister(comm, window));
    REQUIRE_NCCL(ncclCommWindowDeregister(comm, window), ncclInvalidArgument);
    NCCL_OK(ncclCommDeregister(comm, handle));
    NCCL_OK(ncclMemFree(memory));
    REQUIRE_NCCL(ncclMemFree(memory), ncclInvalidArgument);
    REQUIRE_SAME(count().memory + count().registrations + count().windows, 0);
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
