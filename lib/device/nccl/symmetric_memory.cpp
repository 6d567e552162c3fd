// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/nccl/symmetric_memory.hpp"

#include <utility>

#include <cuda_runtime_api.h>

#include "rankmesh/device/cuda.hpp"

namespace rankmesh::nccl {
namespace {

// NCCL rejects windows that are empty or not a multiple of the page size.
std::size_t rounded(std::size_t bytes) {
  constexpr std::size_t alignment = 4096;
  return bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

SymmetricMemory::SymmetricMemory(const Library& library, std::size_t bytes)
    : library_{&library}, bytes_{rounded(bytes)} {
  void* memory = nullptr;
  if (library.MemAlloc != nullptr)
    library.check(library.MemAlloc(&memory, bytes_), "ncclMemAlloc");
  else
    device::check(cudaMalloc(&memory, bytes_), "cudaMalloc");
  data_ = static_cast<std::byte*>(memory);
  try {
    device::check(cudaMemset(memory, 0, bytes_), "cudaMemset");
    device::check(cudaStreamSynchronize(nullptr),
                  "cudaStreamSynchronize");  // cudaMemset may return earlier
  } catch (...) {
    release();
    throw;
  }
}

SymmetricMemory::~SymmetricMemory() { release(); }

void SymmetricMemory::release() noexcept {
  if (library_->MemAlloc != nullptr)
    (void)library_->MemFree(data_);
  else
    (void)cudaFree(data_);
}

void SymmetricMemory::begin_registration(const Communicator& comm) {
  Registered& entry = registered_.emplace_back(Registered{&comm});
  if (library_->CommWindowRegister != nullptr)
    library_->check(library_->CommWindowRegister(comm.native(), data_, bytes_, &entry.window,
                                                 NCCL_WIN_COLL_SYMMETRIC),
                    "ncclCommWindowRegister", comm.native());
}

SymmetricMemory::Registration SymmetricMemory::finish_registration() {
  Registered& entry = registered_.back();
  if (entry.window != nullptr) return Registration::window;
  if (library_->CommRegister == nullptr) return Registration::none;
  library_->check(library_->CommRegister(entry.comm->native(), data_, bytes_, &entry.buffer),
                  "ncclCommRegister", entry.comm->native());
  return entry.buffer != nullptr ? Registration::buffer : Registration::none;
}

void SymmetricMemory::deregister(const Communicator& comm) {
  for (Registered& entry : registered_) {
    if (entry.comm != &comm) continue;
    if (entry.window != nullptr)
      library_->check(
          library_->CommWindowDeregister(comm.native(), std::exchange(entry.window, nullptr)),
          "ncclCommWindowDeregister", comm.native());
    if (entry.buffer != nullptr)
      library_->check(library_->CommDeregister(comm.native(), std::exchange(entry.buffer, nullptr)),
                      "ncclCommDeregister", comm.native());
  }
}

std::string_view to_string(SymmetricMemory::Registration registration) {
  switch (registration) {
    case SymmetricMemory::Registration::none:
      return "ordinary memory";
    case SymmetricMemory::Registration::buffer:
      return "buffer";
    case SymmetricMemory::Registration::window:
      return "window";
  }
  return "";
}

}  // namespace rankmesh::nccl
