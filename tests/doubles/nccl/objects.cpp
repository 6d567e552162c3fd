// SPDX-License-Identifier: BSD-3-Clause
// What hangs on a communicator: reductions, registrations, windows; and memory for them.
#include <algorithm>
#include <cstring>
#include <set>

#include "common/settings.hpp"
#include "counters.hpp"
#include "fake_cuda.hpp"
#include "faults.hpp"
#include "group.hpp"

struct ncclWindow_vidmem {
  ncclComm_t comm;
};

namespace fake {
namespace {

struct Handles {
  std::mutex mutex;
  std::set<void*> registrations, windows, memory;
};

Handles& handles() {
  static Handles* const made = new Handles;
  return *made;
}

bool remember(std::set<void*>& set, void* handle, std::atomic<long>& count) {
  std::lock_guard lock(handles().mutex);
  set.insert(handle);
  ++count;
  return true;
}

bool forget(std::set<void*>& set, void* handle, std::atomic<long>& count) {
  std::lock_guard lock(handles().mutex);
  if (set.erase(handle) == 0) return false;
  --count;
  return true;
}

Outcome check_registered(const void* buffer, std::size_t bytes) {
  int device = -1;
  if (buffer == nullptr || bytes == 0 || !fake_cuda_owns(buffer, bytes, &device))
    return failed(ncclInvalidArgument, "register: %zu bytes at %p are not in one device allocation",
                  bytes, buffer);
  return {};
}

void register_range(Comm& comm, const void* handle, const void* memory, std::size_t bytes) {
  std::lock_guard lock(comm.mutex);
  comm.registered[handle] = {static_cast<const char*>(memory), bytes};
}

void forget_range(Comm& comm, const void* handle) {
  std::lock_guard lock(comm.mutex);
  comm.registered.erase(handle);
}

}  // namespace

bool is_registered(Comm& comm, const void* memory) {
  std::lock_guard lock(comm.mutex);
  const auto* address = static_cast<const char*>(memory);
  return std::any_of(comm.registered.begin(), comm.registered.end(), [&](const auto& entry) {
    const auto& [begin, bytes] = entry.second;
    return begin <= address && address < begin + bytes;
  });
}

}  // namespace fake

using namespace fake;

extern "C" {

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t handle) {
  CommPtr comm;
  if (Outcome bad = enter(handle, comm); !bad.ok()) return report(bad);
  if (op == nullptr || scalar == nullptr || type_bytes(type) == 0)
    return report(
        failed(ncclInvalidArgument, "RedOpCreatePreMulSum: a null pointer or no such type"));
  Reduction made;
  made.type = type;
  if (residence == ncclScalarHostImmediate)
    std::memcpy(made.value, scalar, type_bytes(type));
  else
    made.pointer = scalar;
  std::lock_guard lock(comm->mutex);
  *op = static_cast<ncclRedOp_t>(comm->next_reduction++);
  comm->reductions[*op] = made;
  ++totals().reductions;
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle) {
  CommPtr comm;
  if (Outcome bad = enter(handle, comm); !bad.ok()) return report(bad);
  std::lock_guard lock(comm->mutex);
  if (comm->reductions.erase(op) == 0)
    return report(failed(ncclInvalidArgument, "RedOpDestroy: %d is not of this communicator",
                         static_cast<int>(op)));
  --totals().reductions;
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** pointer, size_t bytes) {
  if (const cudaError_t error = cudaMalloc(pointer, bytes); error != cudaSuccess)
    return report(failed(ncclUnhandledCudaError, "MemAlloc: %s", cudaGetErrorString(error)));
  remember(handles().memory, *pointer, totals().memory);
  return ncclSuccess;
}

// src/allocator.cc, ncclMemFree: cuMemUnmap and cuMemRelease, which wait for nothing.
ncclResult_t ncclMemFree(void* pointer) {
  if (pointer == nullptr) return ncclSuccess;
  if (!forget(handles().memory, pointer, totals().memory))
    return report(failed(ncclInvalidArgument, "MemFree: this memory is not from ncclMemAlloc"));
  return fake_cuda_unmap(pointer) ? ncclSuccess : report(failed(ncclUnhandledCudaError, "MemFree"));
}

ncclResult_t ncclCommRegister(const ncclComm_t handle, void* buffer, size_t bytes, void** out) {
  CommPtr comm;
  Outcome bad = enter(handle, comm);
  if (bad.ok()) bad = check_registered(buffer, bytes);
  if (!bad.ok()) return report(bad);
  *out = new char;
  remember(handles().registrations, *out, totals().registrations);
  register_range(*comm, *out, buffer, bytes);
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t handle, void* registration) {
  CommPtr comm;
  if (Outcome bad = enter(handle, comm); !bad.ok()) return report(bad);
  if (!forget(handles().registrations, registration, totals().registrations))
    return report(failed(ncclInvalidArgument, "CommDeregister: not a live registration"));
  forget_range(*comm, registration);
  delete static_cast<char*>(registration);
  return ncclSuccess;
}

// Collective: it returns when all ranks have called it.
ncclResult_t ncclCommWindowRegister(ncclComm_t handle, void* buffer, size_t bytes,
                                    ncclWindow_t* window, int) {
  CommPtr comm;
  Outcome bad = enter(handle, comm);
  if (bad.ok()) bad = check_registered(buffer, bytes);
  if (bad.ok() && reinterpret_cast<std::uintptr_t>(buffer) % NCCL_WIN_REQUIRED_ALIGNMENT != 0)
    bad = failed(ncclInvalidArgument, "CommWindowRegister: the address is not a multiple of %d",
                 NCCL_WIN_REQUIRED_ALIGNMENT);
  if (!bad.ok()) return add(bad, Job{});
  Job job;
  job.comm = comm;
  job.blocking = comm->config.blocking;
  job.body = [comm] {
    if (Outcome fault = injected_window_failure(*comm); !fault.ok()) return fault;
    return broken("window_meets") ? Outcome{} : meet(*comm, Meeting::window);
  };
  job.deliver = [comm, handle, window, buffer, bytes] {
    *window = new ncclWindow_vidmem{handle};
    remember(handles().windows, *window, totals().windows);
    register_range(*comm, *window, buffer, bytes);
  };
  return add({}, std::move(job));
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t handle, ncclWindow_t window) {
  CommPtr comm;
  if (Outcome bad = enter(handle, comm); !bad.ok()) return report(bad);
  {
    std::lock_guard lock(comm->mutex);
    if (comm->issued != comm->done && !broken("windows_at_rest"))
      return report(failed(ncclInvalidUsage, "CommWindowDeregister: operations are under way"));
  }
  if (!forget(handles().windows, window, totals().windows))
    return report(failed(ncclInvalidArgument, "CommWindowDeregister: not a live window"));
  forget_range(*comm, window);
  delete window;
  return ncclSuccess;
}

}  // extern "C"
