#include "detail/nccl_backend.hpp"

#include <exception>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rankmesh::detail {
namespace {

// Puts several aborts into one NCCL group. One after the other, an abort can wait for a peer that
// has not aborted that communicator yet.
class AbortGroup {
 public:
  explicit AbortGroup(const nccl::Library& library) : library_{library} {
    (void)library_.GroupStart();
  }
  ~AbortGroup() { (void)library_.GroupEnd(); }
  AbortGroup(const AbortGroup&) = delete;
  AbortGroup& operator=(const AbortGroup&) = delete;

 private:
  const nccl::Library& library_;
};

}  // namespace

NcclTransport* nccl_transport_of(const Connection& connection) {
  return dynamic_cast<NcclTransport*>(connection.device());
}

NcclBackend::NcclBackend(const nccl::Library& library, device::Claim claim,
                         std::shared_ptr<ControlPlane> control)
    : library_{library},
      device_{claim.device()},
      control_{std::move(control)},
      context_{std::make_shared<NcclContext>(library, std::move(claim))} {}

OpenedDevices NcclBackend::open(const DeviceOpening& wanted, const Participants& participants) {
  return open_nccl(wanted, participants, context_, *control_, ++attempts_);
}

std::unique_ptr<DeviceTransport> NcclBackend::adopt(const GroupDescription& group,
                                                    const mpi::CommunicatorView& comm,
                                                    ncclComm* native) {
  auto adopted = nccl::Communicator::adopt(library_, native, group.name);
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
  return std::make_unique<NcclTransport>(std::move(adopted), comm.rank(), comm.size(),
                                         group.timeout, 0, context_,
                                         BootstrapReport{.method = "adopted"});
}

void NcclBackend::drain(const Deadline& deadline) {
  device::require_current(device_);
  nccl::Batch::require_no_other(nullptr);
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
    if (connection.is_usable()) {
      comm.finalize();
      if (comm.is_owned()) comm.wait_until_ready(deadline);
      comm.destroy();
    } else {
      comm.abort();
    }
  }
  connection.close_device();
}

void NcclBackend::close(Connections connections, const Deadline& deadline) {
  // A broken communicator cannot be finalised, and a failure must not leave the others open.
  std::exception_ptr failure;
  const auto for_each_usable = [&](auto&& step) {
    for (const auto& connection : connections) {
      NcclTransport* transport = nccl_transport_of(*connection);
      if (transport == nullptr || !connection->is_usable()) continue;
      try {
        step(transport->communicator());
      } catch (const Error& error) {
        connection->mark_broken(error.message());
        if (failure == nullptr) failure = std::current_exception();
      }
    }
  };
  abort_broken(connections);  // peers that wait for these communicators get an error now
  for_each_usable([&](nccl::Communicator& comm) {
    for (const auto& memory : symmetric_) memory->deregister(comm);
  });
  for_each_usable([](nccl::Communicator& comm) { comm.finalize(); });
  for_each_usable([&](nccl::Communicator& comm) {
    if (comm.is_owned()) comm.wait_until_ready(deadline);
  });
  for_each_usable([](nccl::Communicator& comm) { comm.destroy(); });
  abort_broken(connections);
  for (const auto& connection : connections) connection->close_device();
  symmetric_.clear();
  context_->release();
  if (failure != nullptr) std::rethrow_exception(failure);
}

void NcclBackend::abort_broken(Connections connections) noexcept {
  const AbortGroup together{library_};
  for (const auto& connection : connections)
    if (NcclTransport* transport = nccl_transport_of(*connection);
        transport != nullptr && !connection->is_usable())
      transport->communicator().abort();
}

void NcclBackend::abort(Connections connections) noexcept {
  const AbortGroup together{library_};
  for (const auto& connection : connections)
    if (NcclTransport* transport = nccl_transport_of(*connection))
      transport->communicator().abort();
}

}  // namespace rankmesh::detail
