// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/nccl/communicator.hpp"

#include <utility>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "rankmesh/wait/backoff.hpp"

namespace rankmesh::nccl {
namespace {

ncclConfig_t native_config(const GroupOptions& wanted, const std::string& name) {
  ncclConfig_t config{};  // zero, because the initialiser of an older header sets fewer fields
  config = NCCL_CONFIG_INITIALIZER;
  config.blocking = wanted.blocking ? 1 : 0;
  config.splitShare = wanted.share_resources ? 1 : 0;
  if (wanted.min_ctas) config.minCTAs = *wanted.min_ctas;
  if (wanted.max_ctas) config.maxCTAs = *wanted.max_ctas;
  if (wanted.cga_cluster_size) config.cgaClusterSize = *wanted.cga_cluster_size;
  if (wanted.traffic_class) config.trafficClass = *wanted.traffic_class;
  config.commName = name.c_str();
  return config;
}

}  // namespace

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
  comm->is_blocking_ = wanted.blocking;
  ncclConfig_t config = native_config(wanted, *comm->name_);
  if (ids.size() == 1) {
    library.check(library.CommInitRankConfig(&comm->native_, ranks, ids[0], rank, &config),
                  "ncclCommInitRankConfig");
  } else {
    if (library.CommInitRankScalable == nullptr)
      throw UnsupportedError{
          fmt::format("NCCL {} accepts one unique ID per communicator", library.version_text()),
          "use NCCL 2.23 or later, or one unique ID"};
    library.check(
        library.CommInitRankScalable(&comm->native_, ranks, rank, static_cast<int>(ids.size()),
                                     const_cast<ncclUniqueId*>(ids.data()), &config),
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
  comm->is_blocking_ = wanted.blocking;
  ncclConfig_t config = native_config(wanted, *comm->name_);
  library.check(library.CommSplit(parent.native_, *colour, key, &comm->native_, &config),
                "ncclCommSplit", parent.native_);
  return comm;
}

std::unique_ptr<Communicator> Communicator::adopt(const Library& library, ncclComm_t native,
                                                  std::string name) {
  return std::unique_ptr<Communicator>{new Communicator{library, native, std::move(name), false}};
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

void Communicator::finalize() {
  if (owned_ && native_ != nullptr)
    library_->check(library_->CommFinalize(native_), "ncclCommFinalize", native_);
}

void Communicator::destroy() {
  if (!owned_ || native_ == nullptr) return;
  library_->check(library_->CommDestroy(std::exchange(native_, nullptr)), "ncclCommDestroy");
}

void Communicator::abort() noexcept {
  if (owned_ && native_ != nullptr) (void)library_->CommAbort(std::exchange(native_, nullptr));
}

void Communicator::abort(std::span<Communicator* const> comms) noexcept {
  if (comms.empty()) return;
  const Library& library = *comms.front()->library_;
  (void)library.GroupStart();
  for (Communicator* comm : comms) comm->abort();
  (void)library.GroupEnd();
}

}  // namespace rankmesh::nccl
