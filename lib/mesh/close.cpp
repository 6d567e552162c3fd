// How a mesh, or one group of it, ends.
#include <algorithm>
#include <exception>
#include <numeric>

#include <fmt/format.h>

#include "detail/agreement.hpp"
#include "detail/state.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/group/detail/in_flight.hpp"
#include "rankmesh/mesh/mesh.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh {
namespace {

// All members come here before anything is freed, so that nobody's operation loses its
// communicator.
void meet(const mpi::CommunicatorView& comm, detail::MeshState& state, const std::string& what,
          const RankSet& ranks) {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Ibarrier(comm.native(), &request), "MPI_Ibarrier");
  WaitPoint step{hash_bytes(what + ranks.to_string()).low, what, {}};
  for (const Rank rank : ranks) step.members.push_back(static_cast<int>(rank.value()));
  state.services->monitor->wait({&request, 1}, step, state.deadline());
}

void free_channel(detail::Channel& channel) {
  channel.retire("it is closed");
  channel.in_place = nullptr;
  channel.transports.clear();
  channel.device.reset();
  channel.comm = {};
  channel.owned.free();
}

}  // namespace

void Mesh::close(GroupCoordinator& group) {
  detail::MeshState& state = open_state("close of a group");
  const detail::CallGuard guard{*state.services};
  const auto found =
      std::ranges::find(state.dynamic, &group, &std::shared_ptr<GroupCoordinator>::get);
  if (found == state.dynamic.end())
    throw UsageError{fmt::format("'{}' is no dynamic group of this mesh", group.name()),
                     "names of the mesh are closed with it, by close()"};
  const auto channel =
      std::ranges::find_if(state.channels, [&](const auto& c) { return group.uses(*c); });
  if (state.device)
    if (const std::string graphs = state.device->living_graphs(channel->get()); !graphs.empty())
      throw UsageError{fmt::format("close of '{}': {}", group.name(), graphs),
                       "destroy the graphs first"};
  detail::finish_in_flight(*state.services, channel->get(), state.deadline());
  if ((*channel)->owned) {
    try {
      meet((*channel)->owned.view(), state, "close of " + group.name(), group.ranks());
    } catch (const Error& error) {
      (*channel)->broken =
          error.message();  // its barrier is still under way: nothing may follow it
      throw;
    }
  }
  if (state.device) state.device->close(**channel, state.deadline());
  free_channel(**channel);
  state.channels.erase(channel);
  state.dynamic.erase(found);
}

void Mesh::close() {
  if (is_closed()) return;
  if (!mpi::is_active())
    throw UsageError{"close() after MPI_Finalize", "close the mesh before MPI is finalised"};
  detail::MeshState& state = open_state("close");
  const detail::CallGuard guard{*state.services};
  detail::Agreement agreement;  // as cheap as a barrier, and a rank can say no
  try {
    detail::finish_in_flight(*state.services, nullptr, state.deadline());
    if (state.device) state.device->quiesce(state.deadline());
  } catch (const Error& error) {
    agreement.fail(error.message());
  }
  if (state.device)
    if (std::string graphs = state.device->living_graphs(nullptr); !graphs.empty())
      agreement.fail(fmt::format("{}: destroy them first", graphs));
  try {
    agreement.settle(state.control.view(), *state.services->monitor, "close of the mesh",
                     state.deadline());
  } catch (const MismatchError&) {
    throw;  // the mesh stays open
  } catch (...) {
    state.mark_closed();  // MPI_Finalize frees what is left
    throw;
  }
  state.services->closed = true;  // the channels follow when the devices have ended
  state.shared->close_windows();
  std::exception_ptr failure;  // of a device does not keep MPI's communicators open
  try {
    if (state.device) state.device->close(state.deadline());
  } catch (...) {
    failure = std::current_exception();
  }
  for (const auto& channel : state.channels) free_channel(*channel);
  state.shared->close();
  state.services->monitor.reset();
  state.control.free();
  if (failure != nullptr) std::rethrow_exception(failure);
}

void Mesh::abort() {
  detail::MeshState& state = open_state("abort");
  if (state.device) state.device->abort();
  for (const auto& channel : state.channels) {
    channel->device.reset();
    channel->broken = "the mesh was aborted";
  }
}

}  // namespace rankmesh
