// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/nccl/communicator.hpp"

#include <utility>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "device/nccl/detail/native_config.hpp"
#include "rankmesh/device/nccl/mode.hpp"
#include "rankmesh/wait/backoff.hpp"

namespace rankmesh::nccl {
Communicator::Communicator(const Library& library, ncclComm_t native, std::string name, bool owned)
    : library_{&library},
      native_{native},
      name_{std::make_unique<const std::string>(std::move(name))},
      owned_{owned} {}

std::unique_ptr<Communicator> Communicator::begin(const Library& library,
                                                  std::span<const ncclUniqueId> ids, int ranks,
                                                  int rank, std::string name,
                                                  const GroupOptions& wanted) {
  int device = 0;
  // Without a device, NCCL's init fails and leaves the thread inside an NCCL group
  // (2.28.9, 2.30.7), so check before the call.
  if (cudaGetDevice(&device) != cudaSuccess)
    throw NcclError{ncclUnhandledCudaError,
                    "no CUDA device is current, so no NCCL communicator can be created"};
  std::unique_ptr<Communicator> comm{new Communicator{library, nullptr, std::move(name), true}};
  comm->is_blocking_ = forced_blocking().value_or(false);
  comm->prefers_copy_engines_ = wanted.cta_policy == NCCL_CTA_POLICY_ZERO;
  if (wanted.share_resources) comm->family_ = std::make_shared<Family>();
  NativeConfig config{wanted, false, *comm->name_, library.version()};
  if (ids.size() == 1) {
    library.check(library.CommInitRankConfig(&comm->native_, ranks, ids[0], rank, config.get()),
                  "ncclCommInitRankConfig");
  } else {
    if (library.CommInitRankScalable == nullptr)
      throw UnsupportedError{
          fmt::format("NCCL {} accepts one unique ID per communicator", library.version_text()),
          "use NCCL 2.23 or later, or one unique ID"};
    library.check(
        library.CommInitRankScalable(&comm->native_, ranks, rank, static_cast<int>(ids.size()),
                                     const_cast<ncclUniqueId*>(ids.data()), config.get()),
        "ncclCommInitRankScalable");
  }
  return comm;
}

std::unique_ptr<Communicator> Communicator::split(Communicator& parent, std::optional<int> colour,
                                                  int key, std::string name,
                                                  const GroupOptions& wanted) {
  const Library& library = parent.library();
  if (!colour) {
    library.check(
        library.CommSplit(parent.native_, NCCL_SPLIT_NOCOLOR, key, &parent.no_child_, nullptr),
        "ncclCommSplit", parent.native_);
    return nullptr;
  }
  std::unique_ptr<Communicator> comm{new Communicator{library, nullptr, std::move(name), true}};
  comm->is_blocking_ = blocks_after_creation(library, wanted.blocking);
  comm->prefers_copy_engines_ = wanted.cta_policy == NCCL_CTA_POLICY_ZERO;
  // NCCL shares the resources if the configuration of the parent says so.
  comm->family_ = parent.family_;
  if (parent.family_ == nullptr && wanted.share_resources)
    comm->family_ = std::make_shared<Family>();
  NativeConfig config{wanted, comm->is_blocking_, *comm->name_, library.version()};
  library.check(library.CommSplit(parent.native_, *colour, key, &comm->native_, config.get()),
                "ncclCommSplit", parent.native_);
  return comm;
}

std::unique_ptr<Communicator> Communicator::adopt(const Library& library, ncclComm_t native,
                                                  std::string name, bool blocks) {
  std::unique_ptr<Communicator> comm{new Communicator{library, native, std::move(name), false}};
  comm->is_blocking_ = forced_blocking().value_or(blocks);
  return comm;
}

Communicator::~Communicator() { abort(); }

int Communicator::size() const {
  int size = 0;
  library_->check(library_->CommCount(native_, &size), "ncclCommCount", native_);
  return size;
}

int Communicator::rank() const {
  int rank = 0;
  library_->check(library_->CommUserRank(native_, &rank), "ncclCommUserRank", native_);
  return rank;
}

int Communicator::device() const {
  int device = 0;
  library_->check(library_->CommCuDevice(native_, &device), "ncclCommCuDevice", native_);
  return device;
}

bool Communicator::is_ready() const {
  if (native_ == nullptr) return true;  // it has ended
  require_whole();
  ncclResult_t state = ncclSuccess;
  library_->check(library_->CommGetAsyncError(native_, &state), "ncclCommGetAsyncError", native_);
  if (state == ncclInProgress) return false;
  library_->check(state, name_->c_str(), native_);
  return true;
}

void Communicator::wait_until_ready(const Deadline& deadline) const {
  if (!poll_until([&] { return is_ready(); }, deadline))
    throw TimeoutError{fmt::format("NCCL's call on '{}' is still in progress after {} s", *name_,
                                   deadline.seconds()),
                       "check what the other members do, or end the call with Mesh::abort()",
                       {}};
}

void Communicator::require_whole() const {
  if (family_ == nullptr || family_->aborted.empty()) [[likely]]
    return;
  throw NcclError{
      ncclInvalidUsage,
      fmt::format("NCCL has ended the operations of '{}', because '{}' was aborted and both share "
                  "their resources",
                  *name_, family_->aborted)};
}

void Communicator::finalize() {
  if (owned_ && native_ != nullptr)
    library_->check(library_->CommFinalize(native_), "ncclCommFinalize", native_);
}

void Communicator::finalize(std::span<Communicator* const> comms) {
  if (comms.empty()) return;
  const Library& library = *comms.front()->library_;
  library.check(library.GroupStart(), "ncclGroupStart");
  try {
    for (Communicator* comm : comms) comm->finalize();
  } catch (...) {
    (void)library.GroupEnd();
    throw;
  }
  library.check(library.GroupEnd(), "ncclGroupEnd");
}

void Communicator::destroy() {
  if (!owned_ || native_ == nullptr) return;
  try {
    (void)is_ready();
  } catch (...) {
    abort();
    throw;
  }
  const ncclResult_t code = library_->CommDestroy(native_);
  if (code == ncclSuccess || code == ncclInProgress) {
    native_ = nullptr;
    return;
  }
  (void)library_->GroupEnd();  // an error that arose since then has left this thread in a group
  abort();
  library_->check(code, "ncclCommDestroy");
}

void Communicator::abort() noexcept {
  if (!owned_ || native_ == nullptr) return;
  note_abort();
  (void)library_->CommAbort(std::exchange(native_, nullptr));
}

void Communicator::note_abort() noexcept {
  if (family_ != nullptr && family_->aborted.empty()) family_->aborted = *name_;
}

void Communicator::begin_abort() noexcept {
  if (!owned_ || native_ == nullptr) return;
  note_abort();
  (void)library_->CommAbort(native_);
}

void Communicator::end_abort() noexcept {
  if (owned_) native_ = nullptr;
}

void Communicator::abort(std::span<Communicator* const> comms) noexcept {
  if (comms.empty()) return;
  const Library& library = *comms.front()->library_;
  (void)library.GroupStart();
  for (Communicator* comm : comms) comm->abort();
  (void)library.GroupEnd();
}

}  // namespace rankmesh::nccl
