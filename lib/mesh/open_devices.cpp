// SPDX-License-Identifier: BSD-3-Clause
// Decides which NCCL communicators a step opens, and opens those of lazy families later.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/communicators.hpp"
#include "detail/state.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {
namespace detail {
namespace {

bool belongs_to(const GroupDescription& group, std::size_t family) {
  return std::ranges::find(group.families, family) != group.families.end();
}

// NCCL shares the resources of a parent if the configuration of the parent says so; that of
// the child has no effect.
bool has_sharing_children(const GroupDescription& group, const MeshPlan& plan) {
  if (!group.duplicate_key.empty()) return false;
  for (std::size_t f = 0; f < plan.families().size(); ++f)
    if (plan.options(f).share_resources &&
        belongs_to(group, plan.index_of(plan.options(f).split_from)))
      return true;
  return false;
}

DeviceGroup device_group(const MeshPlan& plan, Connections connections, std::size_t order) {
  const GroupDescription& group = connections[order]->group;
  DeviceGroup wanted{.group = &group,
                     .comm = connections[order]->comm(),
                     .options = options_of(group, plan),
                     .order = order};
  wanted.options.share_resources = has_sharing_children(group, plan);
  if (!group.families.empty())
    wanted.unique_ids =
        static_cast<int>(plan.unique_ids(group.families.front(), group.ranks.size()));
  return wanted;
}

// Returns the place of a group of the family, or nothing.
std::optional<std::size_t> find(Connections connections, std::size_t family,
                                const std::string& duplicate_key) {
  const auto found = std::ranges::find_if(connections, [&](const auto& c) {
    return c->group.duplicate_key == duplicate_key && belongs_to(c->group, family);
  });
  if (found == connections.end()) return std::nullopt;
  return static_cast<std::size_t>(found - connections.begin());
}

// Adds the splits of one family: one for its groups, and one per duplicate. All ranks of a parent
// take part, also those that get no child.
void add_splits(DeviceOpening& opening, const MeshPlan& plan, Rank rank, Connections connections,
                std::size_t f) {
  const GroupOptions& options = plan.options(f);
  const GroupFamily& family = plan.families()[f];
  const auto parent = find(connections, plan.index_of(options.split_from), {});
  if (!parent || connections[*parent]->size() == 1) return;
  const auto place = family.find(rank);
  std::vector<std::string> keys = options.duplicates;
  if (plan.needs_creation(f)) keys.insert(keys.begin(), std::string{});
  for (const std::string& key : keys) {
    DeviceSplit split{.family = family.name(),
                      .identity = fmt::format("{}#{}", f, key),
                      .parent = &connections[*parent]->group,
                      .open_parent = connections[*parent]->device(),
                      .options = options};
    const auto child = place ? find(connections, f, key) : std::nullopt;
    if (child && connections[*child]->size() > 1 && connections[*child]->device() == nullptr) {
      split.colour = static_cast<int>(place->group);
      split.key = static_cast<int>(place->rank_in_group.value());
      split.child = device_group(plan, connections, *child);
    }
    opening.splits.push_back(std::move(split));
  }
}

// Returns the communicators that must be opened on this rank. Local.
DeviceOpening opening_of(const MeshPlan& plan, Rank rank, Connections connections,
                         const std::vector<bool>& asked, const std::vector<bool>& has_split) {
  DeviceOpening opening;
  for (std::size_t c = 0; c < connections.size(); ++c) {
    const GroupDescription& group = connections[c]->group;
    const bool is_asked =
        std::ranges::any_of(group.families, [&](std::size_t f) { return asked[f]; });
    if (!is_asked || connections[c]->device() != nullptr) continue;
    if (group.ranks.size() == 1 || options_of(group, plan).split_from.empty())
      opening.groups.push_back(device_group(plan, connections, c));
  }
  for (std::size_t f = 0; f < plan.families().size(); ++f) {
    if (!asked[f] || has_split[f] || plan.options(f).split_from.empty() ||
        !plan.has_communicators(f))
      continue;
    opening.has_splits = true;
    add_splits(opening, plan, rank, connections, f);
  }
  return opening;
}

}  // namespace

void open_devices(DeviceBackend& backend, const MeshPlan& plan, Rank rank, Connections connections,
                  const std::vector<bool>& asked, std::vector<bool>& has_split,
                  const Participants& participants) {
  const DeviceOpening wanted = opening_of(plan, rank, connections, asked, has_split);
  OpenedDevices opened;
  try {
    opened = backend.open(wanted, participants);
  } catch (...) {
    // After a failed split, NCCL cannot use the parent either.
    for (const auto& connection : connections)
      if (connection->size() > 1 && connection->device() != nullptr &&
          connection->device()->native() == nullptr)
        connection->mark_broken(Error{"a split of its communicator failed"});
    throw;
  }
  for (std::size_t i = 0; i < opened.groups.size(); ++i)
    connections[wanted.groups[i].order]->open_device(std::move(opened.groups[i]));
  for (std::size_t i = 0; i < opened.children.size(); ++i)
    if (wanted.splits[i].child)
      connections[wanted.splits[i].child->order]->open_device(std::move(opened.children[i]));
  for (std::size_t f = 0; f < asked.size(); ++f)
    if (asked[f]) has_split[f] = true;
}

}  // namespace detail

namespace {

// Returns all ranks that take part in opening families: those of their groups, or of the groups
// from which these are split.
std::vector<int> participants_of(const MeshPlan& plan, const std::vector<bool>& asked) {
  const auto world = static_cast<std::size_t>(plan.world_size());
  std::vector<bool> is_member(world);
  for (std::size_t f = 0; f < asked.size(); ++f) {
    if (!asked[f]) continue;
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
  const detail::CallLock lock{*state.runtime};
  std::vector<bool> asked(plan().families().size());
  for (const std::string_view name : names) asked[plan().index_of(name)] = true;
  if (state.device == nullptr) return;
  std::vector<std::string> families;  // in plan order, whatever the order of the arguments
  for (std::size_t f = 0; f < asked.size(); ++f)
    if (asked[f]) families.push_back(plan().families()[f].name());
  const std::string text = fmt::format("{}", fmt::join(families, ", "));

  const std::vector<int> members = participants_of(plan(), asked);
  if (std::ranges::find(members, static_cast<int>(rank().value())) == members.end())
    throw NotMember{fmt::format("open of {} is called on rank {}, which is in none of the groups",
                                text, rank().value()),
                    "call open only on members of the groups"};
  // The participants compare their arguments on a communicator of exactly these ranks.
  detail::ControlPlane& control = *state.control;
  Participants participants = control.all();
  mpi::Communicator part;
  std::optional<WaitMonitor> part_monitor;
  if (members.size() < static_cast<std::size_t>(size())) {
    state.rendezvous.join(control, members, "open of " + text, fmt::format("open({})", text), {});
    part = detail::create_bounded(
        control, control.losses_before, members,
        [mesh = control.comm(), members, tag = static_cast<int>(hash_bytes(text).low & 0x3fff)] {
          return mpi::create_group(mesh, members, tag);
        });
    part_monitor.emplace(
        part.view(), WaitMonitor::Audience::own,
        control.names.among(RankSet::of(std::vector<Rank>(members.begin(), members.end()))),
        &control);
    participants = {part.view(), &*part_monitor, control.timeout};
  }
  Agreement agreement;
  agreement.add("families to open", text);
  try {
    state.device->drain(state.deadline());
  } catch (const Error& error) {
    agreement.fail(error.message());
  }
  participants.agree("the opening of NCCL communicators", agreement);
  detail::open_devices(*state.device, plan(), rank(), state.connections, asked,
                       state.has_split_devices, participants);
  part_monitor.reset();
  part.free();  // collective, and all ranks are here
}

}  // namespace rankmesh
