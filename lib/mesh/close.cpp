// How a mesh, or one group of it, ends.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "detail/state.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/mesh/mesh.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh {
namespace {

// All members come here before anything is freed, so that nobody's operation loses its communicator.
void meet(const mpi::CommunicatorView& comm, detail::MeshState& state, const std::string& what,
          const RankSet& ranks) {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Ibarrier(comm.native(), &request), "MPI_Ibarrier");
  mpi::RollCall::Step step{hash_bytes(what + ranks.to_string()).low, what, {}};
  for (const Rank rank : ranks) step.members.push_back(static_cast<int>(rank.value()));
  state.services->roll_call->wait({&request, 1}, step, state.deadline());
}

void free_channel(detail::Channel& channel) {
  channel.host.reset();
  channel.device.reset();
  channel.comm = {};
  channel.owned.free();
}

}  // namespace

void Mesh::close(GroupCoordinator& group) {
  detail::MeshState& state = open_state("close of a group");
  const detail::CallGuard guard{*state.services};
  const auto found = std::ranges::find(state.dynamic, &group, &std::shared_ptr<GroupCoordinator>::get);
  if (found == state.dynamic.end())
    throw UsageError{fmt::format("'{}' is no dynamic group of this mesh", group.name()),
                     "names of the mesh are closed with it, by close()"};
  const auto channel = std::ranges::find_if(state.channels, [&](const auto& c) { return group.uses(*c); });
  if ((*channel)->owned) {
    try {
      meet((*channel)->owned.view(), state, "close of " + group.name(), group.ranks());
    } catch (const Error& error) {
      (*channel)->broken = error.message();  // its barrier is still under way: nothing may follow it
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
  const detail::CallGuard guard{*state_->services};
  state_->services->closed = true;  // also where the others do not come: then MPI_Finalize frees what is left
  const auto everyone = RankSet::range(0, state_->plan.world_size());
  meet(state_->control.view(), *state_, "close of the mesh", everyone);
  if (state_->device) state_->device->close(state_->deadline());
  for (const auto& channel : state_->channels) free_channel(*channel);
  state_->services->roll_call.reset();
  state_->control.free();
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
