// Groups that come and go while the mesh lives.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "detail/state.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/mesh/mesh.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh {
namespace {

std::shared_ptr<GroupCoordinator> add_dynamic(detail::MeshState& state, std::string name,
                                              std::string identity, RankSet ranks,
                                              mpi::Communicator owned,
                                              mpi::CommunicatorView adopted = {},
                                              ncclComm* nccl = nullptr) {
  auto channel =
      state.add_channel(std::move(identity), name, std::move(ranks), std::move(owned), adopted);
  if (state.device != nullptr) {
    try {
      if (!adopted)
        state.device->open(*channel);
      else if (nccl != nullptr)
        state.device->adopt(*channel, nccl);
    } catch (...) {
      state.channels.pop_back();
      throw;
    }
  }
  return state.dynamic.emplace_back(
      std::make_shared<GroupCoordinator>(std::move(name), channel, state.services));
}

std::string name_or_default(const std::string& name, const RankSet& ranks) {
  return name.empty() ? fmt::format("group({})", ranks.to_string(40)) : name;
}

// The list as a set, once nothing is wrong with it.
RankSet checked(const detail::MeshState& state, std::span<const Rank> ranks,
                const std::string& name) {
  RankSet set = RankSet::of(ranks);
  const std::int64_t world = state.plan.world_size();
  if (set.highest().value() >= world)
    throw UsageError{fmt::format("new_group {}: rank {} is outside the world of {} ranks",
                                 name_or_default(name, set), set.highest().value(), world),
                     fmt::format("ranks run from 0 to {}", world - 1)};
  return set;
}

std::shared_ptr<GroupCoordinator> open_dynamic(detail::MeshState& state, RankSet ranks,
                                               std::string name) {
  name = name_or_default(name, ranks);
  if (ranks.size() == 1) return add_dynamic(state, name, name, std::move(ranks), {});
  std::vector<int> members;
  for (const Rank rank : ranks) members.push_back(static_cast<int>(rank.value()));
  std::string identity = state.meeting.gather(state.control.view(), *state.services->monitor,
                                              members, name, state.deadline());
  // The list's hash spreads concurrent creations over the tags that every MPI offers.
  const int tag = static_cast<int>(hash_bytes(ranks.to_string()).low & 0x3fff);
  auto comm = mpi::create_group(state.control.view(), members, tag);
  return add_dynamic(state, std::move(name), std::move(identity), std::move(ranks),
                     std::move(comm));
}

// World ranks of a communicator's members.
std::vector<Rank> members_of(const mpi::CommunicatorView& comm,
                             const mpi::CommunicatorView& world) {
  MPI_Group theirs = MPI_GROUP_NULL;
  MPI_Group ours = MPI_GROUP_NULL;
  mpi::check(MPI_Comm_group(comm.native(), &theirs), "MPI_Comm_group");
  mpi::check(MPI_Comm_group(world.native(), &ours), "MPI_Comm_group");
  std::vector<int> from(static_cast<std::size_t>(comm.size()));
  std::iota(from.begin(), from.end(), 0);
  std::vector<int> to(from.size());
  const int code = MPI_Group_translate_ranks(theirs, comm.size(), from.data(), ours, to.data());
  MPI_Group_free(&theirs);
  MPI_Group_free(&ours);
  mpi::check(code, "MPI_Group_translate_ranks");
  if (std::ranges::find(to, MPI_UNDEFINED) != to.end())
    throw UsageError{"a member of the communicator is not in the mesh",
                     "adopt communicators of the mesh's own ranks"};
  return {to.begin(), to.end()};
}

}  // namespace

std::shared_ptr<GroupCoordinator> Mesh::new_group(std::span<const Rank> ranks, std::string name) {
  detail::MeshState& state = open_state("new_group");
  const detail::CallGuard guard{*state.services};
  RankSet set = checked(state, ranks, name);
  if (!set.contains(rank()))
    throw UsageError{fmt::format("new_group {} on rank {}, which is not in it",
                                 name_or_default(name, set), rank().value()),
                     "only the members make a group"};
  return open_dynamic(state, std::move(set), std::move(name));
}

std::vector<std::shared_ptr<GroupCoordinator>> Mesh::new_groups(
    std::span<const std::vector<Rank>> groups) {
  detail::MeshState& state = open_state("new_groups");
  const detail::CallGuard guard{*state.services};
  std::vector<RankSet> sets;  // all are checked before the first is made
  for (const auto& ranks : groups) sets.push_back(checked(state, ranks, {}));
  // Sorted by their ranks: whatever a rank was given, it makes its groups in the order of one
  // global list.
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return groups[a] < groups[b]; });
  std::vector<std::shared_ptr<GroupCoordinator>> result(groups.size());
  for (const std::size_t g : order)
    if (sets[g].contains(rank())) result[g] = open_dynamic(state, std::move(sets[g]), {});
  return result;
}

std::shared_ptr<GroupCoordinator> Mesh::adopt(MPI_Comm comm, std::string name, ncclComm* nccl) {
  detail::MeshState& state = open_state("adopt");
  if (nccl != nullptr && state.device == nullptr)
    throw NoDeviceError{
        fmt::format("adopt '{}' with an NCCL communicator: {}", name, state.services->no_device),
        "adopt the MPI communicator alone"};
  const detail::CallGuard guard{*state.services};
  const mpi::CommunicatorView view{comm};
  std::string identity = "adopted " + name;
  return add_dynamic(state, std::move(name), std::move(identity),
                     RankSet::of(members_of(view, state.control.view())), {}, view, nccl);
}

}  // namespace rankmesh
