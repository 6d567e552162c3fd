// SPDX-License-Identifier: BSD-3-Clause
// Versions, error texts and the counters.
#include <cstring>

#include "comm.hpp"
#include "counters.hpp"
#include "machine.hpp"
#include "rendezvous.hpp"

namespace fake {
namespace {

struct LastError {
  std::mutex mutex;
  std::string text;
};

LastError& last_error() {
  static LastError* const made = new LastError;
  return *made;
}

}  // namespace

ncclResult_t report(const Outcome& outcome) {
  if (!outcome.ok() && !outcome.text.empty()) {
    std::lock_guard lock(last_error().mutex);
    last_error().text = outcome.text;
  }
  return outcome.code;
}

Totals& totals() {
  static Totals* const made = new Totals;
  return *made;
}

}  // namespace fake

using namespace fake;

extern "C" {

ncclResult_t ncclGetVersion(int* out) {
  if (out == nullptr) return report(failed(ncclInvalidArgument, "ncclGetVersion: a null pointer"));
  *out = version();
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (fake)";
    case ncclSystemError:
      return "unhandled system error (fake)";
    case ncclInternalError:
      return "internal error (fake)";
    case ncclInvalidArgument:
      return "invalid argument (fake)";
    case ncclInvalidUsage:
      return "invalid usage (fake)";
    case ncclRemoteError:
      return "remote process exited or there was a network error (fake)";
    case ncclInProgress:
      return "operation in progress (fake)";
    case ncclNumResults:
      break;
  }
  return "unknown result code (fake)";
}

// The communicator's own error where it has one, else the latest of the process.
const char* ncclGetLastError(ncclComm_t handle) {
  thread_local std::string kept;
  {
    std::lock_guard lock(last_error().mutex);
    kept = last_error().text;
  }
  if (const CommPtr comm = find_comm(handle))
    if (const Outcome error = current_error(*comm); !error.ok()) kept = error.text;
  return kept.c_str();
}

void fake_nccl_counters(FakeNcclCounters* out) {
  const Totals& t = totals();
  *out = {};
  out->unique_ids = t.unique_ids;
  out->inits = t.inits;
  out->splits = t.splits;
  out->shrinks = t.shrinks;
  out->launches = t.launches;
  out->largest = t.largest;
  out->connections = t.connections;
  out->lone_aborts = t.lone_aborts;
  out->unsafe_aborts = t.unsafe_aborts;
  out->stuck_ends = t.stuck_ends;
  out->overlapping_groups = t.overlapping_groups;
  out->entries = t.entries;
  out->polls = t.polls;
  out->helpers = t.helpers;
  for (int i = 0; i < fake_calls_end; ++i) out->calls[i] = t.calls[i];
  out->communicators = live_comms();
  out->roots = live_roots();
  out->hanging = t.hanging;
  out->threads = t.threads;
  out->segments = Segment::alive();
  out->registrations = t.registrations;
  out->windows = t.windows;
  out->memory = t.memory;
  out->reductions = t.reductions;
}

const char* fake_nccl_name(void* handle) {
  const CommPtr comm = find_comm(static_cast<ncclComm_t>(handle));
  return comm ? comm->config.name : nullptr;
}

long fake_nccl_last_launch(void* handle) {
  const CommPtr comm = find_comm(static_cast<ncclComm_t>(handle));
  return comm ? comm->last_launch : -1;
}

void fake_nccl_connect(void* handle) {
  if (const CommPtr comm = find_comm(static_cast<ncclComm_t>(handle))) comm->connected = ~0U;
}

unsigned long long fake_nccl_hash(void* handle) {
  const CommPtr comm = find_comm(static_cast<ncclComm_t>(handle));
  return comm ? hash_of(*comm) : 0;
}

int fake_nccl_config(void* handle, FakeNcclConfig* out) {
  const CommPtr comm = find_comm(static_cast<ncclComm_t>(handle));
  if (!comm) return -1;
  const Config& c = comm->config;
  *out = {c.blocking,         c.min_ctas,   c.max_ctas,  c.traffic_class,   c.split_share,
          c.cga_cluster_size, c.cta_policy, c.nvls_ctas, c.graph_usage_mode};
  return 0;
}

}  // extern "C"
