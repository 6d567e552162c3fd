// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/nccl/communicator.hpp"

#include <array>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "device/nccl/detail/native_config.hpp"
#include "rankmesh/device/nccl/abort.hpp"
#include "rankmesh/device/nccl/mode.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "wait/detail/control_plane.hpp"
#include "wait/detail/progress.hpp"

namespace rankmesh::nccl {
Communicator::Communicator(const Library& library, ncclComm_t native, std::string name, bool owned)
    : library_{&library}, native_{std::make_shared<Native>(std::move(name))}, owned_{owned} {
  native_->handle = native;
}

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
  NativeConfig config{wanted, false, comm->name(), library.version()};
  comm->is_in_progress_ = true;
  if (ids.size() == 1) {
    library.check(
        library.CommInitRankConfig(&comm->native_->handle, ranks, ids[0], rank, config.get()),
        "ncclCommInitRankConfig");
  } else {
    if (library.CommInitRankScalable == nullptr)
      throw UnsupportedError{
          fmt::format("NCCL {} accepts one unique ID per communicator", library.version_text()),
          "use NCCL 2.23 or later, or one unique ID"};
    library.check(library.CommInitRankScalable(&comm->native_->handle, ranks, rank,
                                               static_cast<int>(ids.size()),
                                               const_cast<ncclUniqueId*>(ids.data()), config.get()),
                  "ncclCommInitRankScalable");
  }
  return comm;
}

std::unique_ptr<Communicator> Communicator::split(Communicator& parent, std::optional<int> colour,
                                                  int key, std::string name,
                                                  const GroupOptions& wanted) {
  const Library& library = parent.library();
  parent.is_in_progress_ = true;
  if (!colour) {
    library.check(library.CommSplit(parent.native(), NCCL_SPLIT_NOCOLOR, key,
                                    &parent.native_->no_child, nullptr),
                  "ncclCommSplit", parent.native());
    return nullptr;
  }
  std::unique_ptr<Communicator> comm{new Communicator{library, nullptr, std::move(name), true}};
  comm->is_blocking_ = blocks_after_creation(library, wanted.blocking);
  comm->prefers_copy_engines_ = wanted.cta_policy == NCCL_CTA_POLICY_ZERO;
  // NCCL shares the resources if the configuration of the parent says so.
  comm->family_ = parent.family_;
  if (parent.family_ == nullptr && wanted.share_resources)
    comm->family_ = std::make_shared<Family>();
  NativeConfig config{wanted, comm->is_blocking_, comm->name(), library.version()};
  library.check(
      library.CommSplit(parent.native(), *colour, key, &comm->native_->handle, config.get()),
      "ncclCommSplit", parent.native());
  return comm;
}

std::unique_ptr<Communicator> Communicator::adopt(const Library& library, ncclComm_t native,
                                                  std::string name, bool blocks) {
  std::unique_ptr<Communicator> comm{new Communicator{library, native, std::move(name), false}};
  comm->is_blocking_ = forced_blocking().value_or(blocks);
  return comm;
}

Communicator::~Communicator() {
  if (owned_ && native() != nullptr) (void)Abort{std::array{this}}.wait();
}

int Communicator::size() const {
  int size = 0;
  library_->check(library_->CommCount(native(), &size), "ncclCommCount", native());
  return size;
}

int Communicator::rank() const {
  int rank = 0;
  library_->check(library_->CommUserRank(native(), &rank), "ncclCommUserRank", native());
  return rank;
}

int Communicator::device() const {
  int device = 0;
  library_->check(library_->CommCuDevice(native(), &device), "ncclCommCuDevice", native());
  return device;
}

bool Communicator::is_ready() const {
  require_whole();
  const std::lock_guard lock{native_->mutex};
  if (native_->handle == nullptr) return true;  // it has ended
  ncclResult_t state = ncclSuccess;
  library_->check(library_->CommGetAsyncError(native_->handle, &state), "ncclCommGetAsyncError",
                  native_->handle);
  if (state == ncclInProgress) return false;
  library_->check(state, name().c_str(), native_->handle);
  // Before 2.26, a poll does not join the thread that has carried out the call, whose group stays
  // the current one: the next call of this thread on another communicator would carry it out again,
  // or be refused (ncclCommGetAsyncError in src/init.cc). Other calls join it
  // (ncclCommEnsureReady).
  constexpr int first_with_polls_that_join = 22600;
  if (library_->version() < first_with_polls_that_join) {
    int size = 0;
    (void)library_->CommCount(native_->handle, &size);  // may fail after ncclCommFinalize
  }
  is_in_progress_ = false;
  return true;
}

void Communicator::wait_until_ready(const Deadline& deadline,
                                    const rankmesh::detail::ControlPlane* mesh) const {
  const rankmesh::detail::AtPoll at_poll{mesh == nullptr ? nullptr : mesh->lock};
  rankmesh::detail::LossWatch::Waiting waiting;
  const auto look = [&] {
    if (mesh != nullptr) mesh->look_for_losses(waiting);
    return is_ready();
  };
  if (!poll_until(look, deadline))
    throw TimeoutError{fmt::format("NCCL's call on '{}' is still in progress after {} s", name(),
                                   deadline.seconds()),
                       "check what the other members do, or end the call with Mesh::abort()",
                       {}};
}

void Communicator::require_whole() const {
  if (native() == nullptr) [[unlikely]] {
    const std::lock_guard lock{native_->mutex};
    constexpr auto hint = "end the program, or open a new mesh on the ranks that are left";
    const std::optional<std::string>& why = native_->why_aborted;
    if (why && why->empty())
      throw ClosedError{fmt::format("the communicator of '{}' was aborted", name()), hint};
    if (why)
      throw TimeoutError{
          fmt::format("the communicator of '{}' was aborted: {}", name(), *why), hint, {}};
  }
  if (family_ == nullptr || family_->aborted.empty()) [[likely]]
    return;
  throw NcclError{
      ncclInvalidUsage,
      fmt::format("NCCL has ended the operations of '{}', because '{}' was aborted and both share "
                  "their resources",
                  name(), family_->aborted)};
}

void Communicator::finalize() {
  if (owned_ && native() != nullptr)
    library_->check(library_->CommFinalize(native()), "ncclCommFinalize", native());
}

void Communicator::finalize(std::span<Communicator* const> comms) {
  if (comms.empty()) return;
  (void)comms.front()->library_->grouped([&] {
    for (Communicator* comm : comms) comm->finalize();
  });
}

void Communicator::destroy() {
  if (!owned_ || native() == nullptr) return;
  try {
    (void)is_ready();
  } catch (...) {
    (void)Abort{std::array{this}}.wait();
    throw;
  }
  // An abort of another thread must not use what is destroyed.
  const auto exchange = [&](ncclComm_t handle) {
    const std::lock_guard lock{native_->mutex};
    return std::exchange(native_->handle, handle);
  };
  const ncclComm_t handle = exchange(nullptr);
  if (handle == nullptr) return;
  const ncclResult_t code = library_->CommDestroy(handle);
  if (code == ncclSuccess || code == ncclInProgress) return;
  (void)exchange(handle);
  (void)library_->GroupEnd();  // an error that arose since then has left this thread in a group
  (void)Abort{std::array{this}}.wait();
  library_->check(code, "ncclCommDestroy");
}

ncclComm_t Communicator::take(const std::string& why) {
  const std::lock_guard lock{native_->mutex};
  if (native_->handle != nullptr) {
    if (family_ != nullptr && family_->aborted.empty()) family_->aborted = name();
    native_->why_aborted = why;
  }
  return std::exchange(native_->handle, nullptr);
}

}  // namespace rankmesh::nccl
