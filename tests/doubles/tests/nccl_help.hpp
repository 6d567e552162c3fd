// SPDX-License-Identifier: BSD-3-Clause
// Short forms for the tests of the double of libnccl.
#pragma once

#include <nccl.h>

#include <cstring>
#include <string>
#include <vector>

#include "fake_cuda.hpp"
#include "fake_nccl.hpp"
#include "fork_ranks.hpp"
#include "gate.hpp"

// Shows NCCL's last error beside the result.
#define REQUIRE_NCCL(call, expected)                                                     \
  do {                                                                                   \
    const ncclResult_t nccl_result = (call);                                             \
    if (nccl_result != (expected))                                                       \
      throw ranks::Failure(__FILE__ ":" RANK_TEXT(__LINE__) ": " #call " gave " +        \
                           std::to_string(nccl_result) + " instead of " #expected ": " + \
                           ncclGetLastError(nullptr));                                   \
  } while (false)
#define NCCL_OK(call) REQUIRE_NCCL(call, ncclSuccess)
#define CUDA_OK(call) REQUIRE_SAME(call, cudaSuccess)

namespace help {

inline ncclConfig_t non_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

// Every rank takes the device of its number.
inline ncclUniqueId shared_id(const ranks::Rank& rank, int slot = 0) {
  ncclUniqueId id{};
  CUDA_OK(cudaSetDevice(rank.number));
  if (rank.number == 0) NCCL_OK(ncclGetUniqueId(&id));
  return rank.share(id, 0, slot);
}

inline ncclComm_t make_comm(const ranks::Rank& rank, int slot = 0) {
  ncclComm_t comm = nullptr;
  NCCL_OK(ncclCommInitRank(&comm, rank.size, shared_id(rank, slot), rank.number));
  fake_nccl_connect(comm);  // most tests are about something else
  return comm;
}

// Polls to the end; gives the final state.
inline ncclResult_t poll(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    NCCL_OK(ncclCommGetAsyncError(comm, &state));
    if (state == ncclInProgress) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return state;
}

// Before 2.26, a poll does not join the thread that has carried out the call.
inline void join(ncclComm_t comm) {
  int ranks = 0;
  NCCL_OK(ncclCommCount(comm, &ranks));
}

inline ncclComm_t make_non_blocking_comm(const ranks::Rank& rank, int slot = 0) {
  ncclComm_t comm = nullptr;
  ncclConfig_t config = non_blocking();
  REQUIRE_NCCL(
      ncclCommInitRankConfig(&comm, rank.size, shared_id(rank, slot), rank.number, &config),
      ncclInProgress);
  REQUIRE_SAME(poll(comm), ncclSuccess);
  join(comm);
  fake_nccl_connect(comm);
  return comm;
}

// Waits for an error that comes by itself.
inline ncclResult_t wait_for_error(ncclComm_t comm) {
  for (int turn = 0; turn < 4000; ++turn) {
    ncclResult_t state = ncclSuccess;
    NCCL_OK(ncclCommGetAsyncError(comm, &state));
    if (state != ncclSuccess && state != ncclInProgress) return state;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return ncclSuccess;
}

inline cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

// Device memory that is freed with the process.
template <class T>
T* device(const std::vector<T>& values) {
  T* pointer = nullptr;
  CUDA_OK(cudaMalloc(reinterpret_cast<void**>(&pointer), values.size() * sizeof(T) + 1));
  CUDA_OK(cudaMemcpy(pointer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return pointer;
}

template <class T>
std::vector<T> host(const T* pointer, std::size_t count) {
  std::vector<T> values(count);
  CUDA_OK(cudaMemcpy(values.data(), pointer, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

// For ranks that wait in vain. It also ends the waits for ranks that come late on a busy machine.
inline const ranks::Settings short_wait{{"FAKE_NCCL_TIMEOUT", "1"}};

inline FakeNcclCounters count() {
  FakeNcclCounters counters;
  fake_nccl_counters(&counters);
  return counters;
}

inline bool says(ncclComm_t comm, const char* words) {
  return std::strstr(ncclGetLastError(comm), words) != nullptr;
}

}  // namespace help
