// NCCL communicators that are opened after the mesh.
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/agreement.hpp"
#include "detail/state.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {
namespace {

// All ranks that take part: those of the names' groups, or of the groups from which these are
// split.
std::vector<int> ranks_of(const MeshPlan& plan, const std::vector<bool>& names) {
  const auto world = static_cast<std::size_t>(plan.world_size());
  std::vector<bool> is_member(world);
  for (std::size_t f = 0; f < names.size(); ++f) {
    if (!names[f]) continue;
    const std::string& parent = plan.options(f).split_from;
    const GroupFamily& family = plan.families()[parent.empty() ? f : plan.index_of(parent)];
    if (family.coverage(plan.world_size()) == Coverage::partition) {
      is_member.assign(world, true);
      break;
    }
    for (std::int64_t g = 0; g < family.group_count(); ++g)
      for (const Rank rank : family.group(g))
        is_member[static_cast<std::size_t>(rank.value())] = true;
  }
  std::vector<int> ranks;
  for (std::size_t r = 0; r < world; ++r)
    if (is_member[r]) ranks.push_back(static_cast<int>(r));
  return ranks;
}

}  // namespace

void Mesh::open(std::span<const std::string_view> names) {
  detail::MeshState& state = open_state("open");
  const detail::CallGuard guard{*state.services};
  std::vector<bool> asked(plan().families().size());
  for (const std::string_view name : names) asked[plan().index_of(name)] = true;
  if (state.device == nullptr) return;
  std::string text;  // in plan order, however it was written
  for (std::size_t f = 0; f < asked.size(); ++f)
    if (asked[f]) text += (text.empty() ? "" : ", ") + plan().families()[f].name();

  const std::vector<int> members = ranks_of(plan(), asked);
  if (std::ranges::find(members, static_cast<int>(rank().value())) == members.end())
    throw NotMember{fmt::format("open of {} on rank {}, which is in none of their groups", text,
                                rank().value()),
                    "only the members open a group"};
  // Who takes part settles on a communicator of exactly these ranks.
  mpi::Communicator part;
  std::optional<WaitMonitor> of_part;
  mpi::CommunicatorView comm = state.control.view();
  WaitMonitor* monitor = &*state.services->monitor;
  if (members.size() < static_cast<std::size_t>(size())) {
    state.meeting.gather(comm, *monitor, members, "open of " + text, state.deadline());
    part = mpi::create_group(comm, members, static_cast<int>(hash_bytes(text).low & 0x3fff));
    comm = part.view();
    monitor = &of_part.emplace(comm, WaitMonitor::Audience::own, [&](Rank r) {
      return state.services->describe(members[static_cast<std::size_t>(r.value())]);
    });
  }
  const auto settle = [&](const std::string& phase, const std::string& failure) {
    detail::Agreement agreement;
    agreement.add("names to open", text);
    if (!failure.empty()) agreement.fail(failure);
    agreement.settle(comm, *monitor, phase, state.deadline());
  };
  std::string failure;
  try {
    state.device->drain(state.deadline());
  } catch (const Error& error) {
    failure = error.message();
  }
  settle("the opening of NCCL communicators", failure);
  state.device->open(asked, settle);
  of_part.reset();
  part.free();  // all of its ranks are here
}

}  // namespace rankmesh
