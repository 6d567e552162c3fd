// SPDX-License-Identifier: BSD-3-Clause
#include "detail/nccl_backend.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "device/nccl/detail/native_config.hpp"
#include "device/stream_memory.hpp"
#include "mpi/detail/unfinished.hpp"
#include "wait/detail/progress.hpp"
#include "wait/detail/values_of_all.hpp"

namespace rankmesh::detail {
NcclTransport* nccl_transport_of(const Connection& connection) {
  return dynamic_cast<NcclTransport*>(connection.device());
}

NcclBackend::NcclBackend(const nccl::Library& library, device::Claim claim,
                         std::vector<int> compute_capabilities,
                         std::shared_ptr<ControlPlane> control)
    : library_{library},
      device_{claim.device()},
      control_{std::move(control)},
      context_{std::make_shared<NcclContext>(library, std::move(claim),
                                             std::move(compute_capabilities), control_)} {
  if (mpi::is_survivor()) context_->watch.start();
}

OpenedDevices NcclBackend::open(const DeviceOpening& wanted, const Participants& participants) {
  const auto wants_copy_engines = [](const auto& entry) {
    return entry.options.cta_policy == NCCL_CTA_POLICY_ZERO;
  };
  if (library_.version() < nccl::first_with_copy_engines &&
      (std::ranges::any_of(wanted.groups, wants_copy_engines) ||
       std::ranges::any_of(wanted.splits, wants_copy_engines)))
    control_->log(LogLevel::warning,
                  fmt::format("cta_policy = 2 needs NCCL 2.28: NCCL {} works without copy engines",
                              library_.version_text()));
  attempts_ = highest_of_all(participants, attempts_, "the start of the NCCL bootstrap") + 1;
  return open_nccl(wanted, participants, context_, *control_, attempts_);
}

std::unique_ptr<DeviceTransport> NcclBackend::open_alone(const GroupDescription& group) {
  return std::make_unique<LocalDeviceTransport>(group.name, context_, 0);
}

std::unique_ptr<DeviceTransport> NcclBackend::adopt(const GroupDescription& group,
                                                    const mpi::CommunicatorView& comm,
                                                    ncclComm* native, bool blocks) {
  auto adopted = nccl::Communicator::adopt(library_, native, group.name, blocks);
  if (adopted->size() != group.ranks.size() || adopted->rank() != comm.rank())
    throw UsageError{
        fmt::format("adopt '{}': this process is rank {} of {} in the NCCL communicator, but rank "
                    "{} of {} in the MPI communicator",
                    group.name, adopted->rank(), adopted->size(), comm.rank(), group.ranks.size()),
        "adopt communicators of the same ranks in the same order"};
  if (adopted->device() != device_)
    throw UsageError{
        fmt::format(
            "adopt '{}': the NCCL communicator is on device {}, but the mesh uses device {}",
            group.name, adopted->device(), device_),
        "a rank uses one device only: create the communicator on the mesh's device"};
  return std::make_unique<NcclTransport>(
      std::move(adopted), comm.rank(), comm.size(), group.timeout, 0, context_,
      BootstrapReport{.method = "adopted"}, context_->least_compute_capability(group.ranks));
}

void NcclBackend::drain(const Deadline& deadline) {
  device::require_current(device_);
  nccl::Batch::require_no_other(nullptr);
  const AtPoll at_poll{control_->lock};  // the operations of this mesh advance, too
  device::drain(deadline);
}

std::string NcclBackend::living_graphs(const GroupDescription* only) const {
  std::vector<std::string> names;
  for (const auto& [name, count] : context_->graphs.alive(only == nullptr ? "" : only->name))
    names.push_back(fmt::format("{} of '{}'", count, name));
  return names.empty() ? ""
                       : fmt::format("CUDA graphs that hold its operations are alive: {}",
                                     fmt::join(names, ", "));
}

void NcclBackend::close(Connection& connection, const Deadline& deadline) {
  if (NcclTransport* transport = nccl_transport_of(connection)) {
    nccl::Communicator& comm = transport->communicator();
    if (!connection.is_usable()) {
      (void)abort(connection);
    } else if (comm.is_owned()) {
      try {
        finalize(std::array{&comm}, deadline);
        comm.wait_until_ready(deadline, control_.get());
        comm.destroy();
      } catch (const Error& error) {
        connection.mark_broken(error);
        (void)abort(connection);
        throw;
      }
    }
  }
  connection.close_device();
}

void NcclBackend::close(Connections connections, const Deadline& deadline) {
  context_->forget_reasons();  // the thread of the watch must not abort what is destroyed here
  // A broken communicator cannot be finalised, and a failure must not leave the others open.
  std::exception_ptr failure;
  const auto for_each_usable = [&](auto&& step) {
    for (const auto& connection : connections) {
      NcclTransport* transport = nccl_transport_of(*connection);
      if (transport == nullptr || !connection->is_usable()) continue;
      try {
        step(transport->communicator());
      } catch (const Error& error) {
        connection->mark_broken(error);
        if (failure == nullptr) failure = std::current_exception();
      }
    }
  };
  abort_broken(connections);  // peers that wait for these communicators get an error now
  for_each_usable([&](nccl::Communicator& comm) {
    for (const auto& memory : symmetric_) memory->deregister(comm);
  });
  // The communicators of each mode are finalised in one NCCL group. The first group has ended when
  // the second one begins (Library::grouped()).
  for (const bool blocks : {false, true}) {
    std::vector<nccl::Communicator*> comms;
    for_each_usable([&](nccl::Communicator& comm) {
      if (!comm.is_owned() || comm.is_blocking() != blocks) return;
      (void)comm.is_ready();  // throws if it has failed
      comms.push_back(&comm);
    });
    std::exception_ptr unfinished;
    try {
      finalize(comms, deadline);
    } catch (const Error&) {
      unfinished = std::current_exception();
    }
    for_each_usable([&](nccl::Communicator& comm) {
      if (!comm.is_owned() || comm.is_blocking() != blocks) return;
      if (unfinished != nullptr) std::rethrow_exception(unfinished);
      comm.wait_until_ready(deadline, control_.get());
    });
  }
  for_each_usable([](nccl::Communicator& comm) { comm.destroy(); });
  abort_broken(connections);
  for (const auto& connection : connections) connection->close_device();
  if (context_->left_behind().empty())
    symmetric_.clear();
  else
    leak_symmetric();
  device::trim_pools();
  context_->release();
  if (failure != nullptr) std::rethrow_exception(failure);
}

void NcclBackend::finalize(std::span<nccl::Communicator* const> comms, const Deadline& deadline) {
  if (comms.empty()) return;
  context_->watch.run(comms, deadline.left(), [&] { nccl::Communicator::finalize(comms); });
}

void NcclBackend::abort_broken(Connections connections) noexcept {
  std::vector<nccl::Communicator*> comms;
  for (const auto& connection : connections)
    if (NcclTransport* transport = nccl_transport_of(*connection);
        transport != nullptr && !connection->is_usable())
      comms.push_back(&transport->communicator());
  context_->abort(comms);
}

void NcclBackend::watch(std::function<std::string()> reason, Deadline::Duration limit) {
  context_->set_reason(std::move(reason));
  context_->watch.start(std::min(limit / 8, nccl::CallWatch::usual_pause));
}

// CUDA returns such an error from each call, until the process ends.
void NcclBackend::require_working() const {
  try {
    // Not on the default stream, which cannot be asked while a stream that waits for it is
    // captured.
    device::run_on(device_, [] { (void)device::Stream::create().query(); });
  } catch (const device::CudaError& error) {
    throw Error{fmt::format("rank {} cannot use its device any more: {}", control_->rank().value(),
                            error.message()),
                "end this process: the others go on without it"};
  }
}

std::string NcclBackend::abort() noexcept {
  context_->forget_reasons();
  context_->abort();
  return context_->left_behind();
}

std::string NcclBackend::abort(Connection& connection) noexcept {
  NcclTransport* transport = nccl_transport_of(connection);
  return transport == nullptr ? "" : context_->abort(std::array{&transport->communicator()});
}

NcclBackend::~NcclBackend() {
  context_->release();
  if (!context_->left_behind().empty()) leak_symmetric();
  if (symmetric_.empty()) return;
  try {
    // NCCL frees memory without a wait for the program's work that uses it (ncclMemFree in
    // src/allocator.cc).
    device::drain(device_, Deadline{nccl::Abort::usual_limit()});
  } catch (const std::exception&) {
    leak_symmetric();  // the work does not end soon, or the device has failed
  }
}

// Freeing memory may wait for all work of the device, and a communicator that was left behind has
// some that never ends.
void NcclBackend::leak_symmetric() noexcept {
  for (auto& memory : symmetric_) (void)memory.release();
  symmetric_.clear();
}

}  // namespace rankmesh::detail
