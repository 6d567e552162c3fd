// Symmetric memory on devices.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/agreement.hpp"
#include "detail/nccl_side.hpp"
#include "detail/state.hpp"

namespace rankmesh::detail {

// This rank's communicators of these names, in the order of the plan, which is the same for any two
// ranks.
std::vector<const NcclSide::Member*> NcclSide::symmetric_members(
    const std::vector<std::string_view>& names) const {
  std::vector<const Member*> members;
  for (const auto& channel : state_.channels) {
    const auto is_named = [&](std::size_t f) {
      return std::ranges::find(names, state_.plan.families()[f].name()) != names.end();
    };
    if (channel->ranks.size() == 1 || std::ranges::none_of(channel->families, is_named)) continue;
    const auto member = std::ranges::find(members_, channel.get(), &Member::channel);
    if (!channel->broken.empty())
      throw UsageError{
          fmt::format("allocate_symmetric for '{}', whose NCCL communicator is broken: {}",
                      channel->name, channel->broken)};
    if (member == members_.end())
      throw UsageError{
          fmt::format("allocate_symmetric for '{}', whose NCCL communicator is not open: call "
                      "mesh.open() for it first",
                      channel->name)};
    members.push_back(&*member);
  }
  return members;
}

std::byte* NcclSide::allocate_symmetric(std::size_t bytes,
                                        const std::vector<std::string_view>& names) {
  const std::string activity = "the allocation of symmetric device memory";
  std::vector<const Member*> members;
  std::unique_ptr<nccl::SymmetricMemory> made;
  Agreement agreement;
  agreement.add("bytes of symmetric memory", fmt::format("{}", bytes));
  agreement.add("names of symmetric memory", fmt::format("{}", fmt::join(names, ",")));
  try {
    members = symmetric_members(names);
    drain(state_.deadline());  // allocation may wait for the device, which may wait for a peer
    made = std::make_unique<nccl::SymmetricMemory>(library_, bytes);
  } catch (const Error& error) {
    agreement.fail(error.message());
  }
  agreement.settle(state_.control.view(), *state_.services->monitor, activity, state_.deadline());

  nccl::SymmetricMemory& memory = *symmetric_.emplace_back(std::move(made));
  const auto registration = [&](const Member& member) {
    return step(fmt::format("the registration of symmetric memory with '{}'", member.channel->name),
                *member.channel);
  };
  std::string kinds;
  Agreement outcome;
  try {
    for (const Member* member : members) {
      const nccl::Communicator& comm = *member->comm;
      // One that blocks would wait for its peers without a deadline.
      memory.begin_registration(comm, !state_.options_of(*member->channel).blocking);
      state_.services->monitor->wait([&] { return comm.is_ready(); }, registration(*member),
                                     state_.deadline());
      kinds += fmt::format("{}'{}' {}", kinds.empty() ? "" : ", ", member->channel->name,
                           nccl::to_string(memory.finish_registration()));
    }
  } catch (const Error& error) {
    outcome.fail(error.message());
    for (const Member* member : members)
      state_.services->monitor->give_up(registration(*member), error.message());
  }
  try {
    outcome.settle(state_.control.view(), *state_.services->monitor, activity, state_.deadline());
  } catch (const Error& error) {
    // Nobody knows how far NCCL came on the others.
    for (const Member* member : members) member->channel->broken = error.message();
    throw;
  }
  state_.log(LogLevel::info,
             fmt::format("rank {} has {} bytes of symmetric device memory{}{}",
                         state_.services->rank.value(), bytes, kinds.empty() ? "" : ": ", kinds));
  return memory.data();
}

void NcclSide::quiesce(const Deadline& deadline) {
  if (symmetric_.empty()) return;
  abort_broken();  // else its operations might never end
  drain(deadline);
}

}  // namespace rankmesh::detail
