// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/redistribution.hpp"

#include <array>
#include <exception>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "detail/agree.hpp"
#include "detail/redistribution_state.hpp"
#include "device/stream_memory.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::exchange {
namespace {

using rankmesh::detail::GroupAccess;

constexpr std::int64_t least_memory = 1024;
// Above the tags of control queues, below those of rendezvous and of the wait monitor.
constexpr int lowest_tag = 28192;
constexpr std::int64_t tag_count = 1024;  // groups of tags
constexpr int tags_of_group = 4;          // messages and answers, in two steps

detail::Arguments arguments_of(const GroupCoordinator& group, const TransferPlan& plan,
                               const RedistributionOptions& options) {
  const std::size_t count = plan.tensors().size();
  detail::Arguments arguments{
      fmt::format("Redistribution over '{}'", group.name()),
      {fmt::format("{} tensor{}, {} bytes of {} memory", count, count == 1 ? "" : "s",
                   options.memory, to_string(options.kind))}};
  for (const TensorTransfer& tensor : plan.tensors())
    arguments.entries.push_back(fmt::format("tensor {} from '{}' to '{}'",
                                            arguments.entries.size() - 1, tensor.from.to_string(),
                                            tensor.to.to_string()));
  arguments.entries.push_back(fmt::format("plan {}", to_string(plan.digest())));
  return arguments;
}

[[noreturn]] void refuse_another(const GroupCoordinator& group) {
  throw UsageError{fmt::format("Redistribution over '{}': there are no tags for more than {}",
                               group.name(), tag_count),
                   "destroy those that the program does not need any more"};
}

// Returns the first number from `first` on whose tags no redistribution of this rank has, and the
// next one whose tags some redistribution has, negated.
std::array<std::int64_t, 2> proposal(const GroupCoordinator& group, std::int64_t first) {
  auto& with_tags = GroupAccess::runtime(group).control->with_tags;
  with_tags.resize(tag_count);
  const auto is_free = [&](std::int64_t number) {
    return with_tags[static_cast<std::size_t>(number % tag_count)].expired();
  };
  std::int64_t begin = first;
  while (begin < first + tag_count && !is_free(begin)) ++begin;
  if (begin == first + tag_count) refuse_another(group);
  std::int64_t end = begin;
  while (end < begin + tag_count && is_free(end)) ++end;
  return {begin, -end};
}

// Throws on all members if one of them passes another plan or other options, or if `prepare` throws
// on one. Returns the number of the redistribution in the mesh, whose tags are free on all members.
template <class Prepare>
std::int64_t agreed_number(GroupCoordinator& group, const TransferPlan& plan,
                           const RedistributionOptions& options, Prepare&& prepare) {
  rankmesh::detail::ControlPlane& control = *GroupAccess::runtime(group).control;
  const Hash128 hash = hash_bytes(
      fmt::format("{} {} {}", to_string(plan.digest()), options.memory, to_string(options.kind)));
  std::exception_ptr failure = detail::failure_of(prepare);
  std::int64_t number = control.redistributions;
  // The members take the highest number that one of them proposes. If its tags are not free on all
  // of them, the next round begins there.
  for (std::int64_t round = 0; round < tag_count; ++round) {
    std::array<std::int64_t, 2> extremes{};
    if (failure == nullptr)
      failure = detail::failure_of([&] { extremes = proposal(group, number); });
    detail::agree(
        group, hash,
        {detail::UserFunction::redistribution, [&] { return arguments_of(group, plan, options); },
         "pass the same plan and the same options on every rank", failure},
        extremes);
    number = extremes[0];
    if (number >= -extremes[1]) continue;
    control.redistributions = number + 1;
    return number;
  }
  refuse_another(group);
}

}  // namespace

namespace detail {

int RedistributionState::tag(TransferStep step, bool is_answer) const {
  return lowest_tag + static_cast<int>(number % tag_count) * tags_of_group +
         2 * static_cast<int>(step) + (is_answer ? 1 : 0);
}

void RedistributionState::validate() const {
  if (plan.world_size() > group.size())
    throw UsageError{fmt::format("Redistribution over '{}': the plan has {} ranks, the group {}",
                                 group.name(), plan.world_size(), group.size()),
                     "use a group that contains all ranks of the plan, such as mesh[\"world\"]"};
  if (options.memory < least_memory)
    throw UsageError{fmt::format("Redistribution over '{}': {} bytes of memory for messages",
                                 group.name(), options.memory),
                     fmt::format("use {} bytes or more", least_memory)};
  if (options.kind == MemoryKind::host) return;
  (void)group.native_nccl();  // throws the reason if there are no devices
  for (const TensorTransfer& tensor : plan.tensors())
    if (tensor.from.type() != tensor.to.type() || !tensor.from.sums().empty())
      throw UnsupportedError{
          fmt::format("Redistribution over '{}': '{}' becomes '{}' in device memory", group.name(),
                      tensor.from.to_string(), tensor.to.to_string()),
          "on devices, elements keep their type and there are no partial sums: copy the elements "
          "to host memory, and move them there"};
}

void RedistributionState::prepare_device(StreamRef stream) {
  (void)group.stream();  // throws if another device is current
  if (device::is_in_capture(stream))
    throw UsageError{fmt::format("Redistribution over '{}' is started on a stream that is captured",
                                 group.name()),
                     "start it outside of the graph"};
  const auto size = static_cast<std::size_t>(rounds.sent_memory + rounds.received_memory);
  if (!device_memory && size > 0) device_memory.emplace(size);
}

}  // namespace detail

Redistribution::Redistribution(GroupCoordinator& group, TransferPlan plan,
                               RedistributionOptions options)
    : state_{new detail::RedistributionState{.group = group,
                                             .life = rankmesh::detail::GroupLife{group},
                                             .plan = std::move(plan),
                                             .options = std::move(options)}} {
  detail::RedistributionState& s = *state_;
  s.number = agreed_number(group, s.plan, s.options, [&] {
    s.validate();
    s.schedule();
  });
  const auto tags = static_cast<std::size_t>(s.number % tag_count);
  GroupAccess::runtime(group).control->with_tags[tags] = state_;
  s.messages = GroupAccess::messages(group);
}
Redistribution::~Redistribution() = default;
Redistribution::Redistribution(Redistribution&&) noexcept = default;
Redistribution& Redistribution::operator=(Redistribution&&) noexcept = default;

const TransferPlan& Redistribution::plan() const { return state_->plan; }
std::int64_t Redistribution::bytes() const { return state_->bytes; }
std::int64_t Redistribution::bytes_read_directly() const { return state_->bytes_read; }

Work Redistribution::start(std::span<const TensorSource> source,
                           std::span<const TensorTarget> target, StreamRef stream) {
  if (state_ == nullptr) rankmesh::detail::GroupLife::refuse_moved("Redistribution");
  detail::RedistributionState& s = *state_;
  s.life.require("Redistribution");
  GroupAccess::require_no_batch(s.group, "redistribution");
  if (source.size() != s.tensors.size() || target.size() != s.tensors.size())
    throw UsageError{fmt::format("Redistribution over '{}': {} sources and {} targets for {} "
                                 "tensors",
                                 s.group.name(), source.size(), target.size(), s.tensors.size()),
                     "pass one source and one target per tensor, empty ones where this rank has "
                     "no elements"};
  if (s.is_running)
    throw UsageError{fmt::format("Redistribution over '{}' is started while its last transfer is "
                                 "in flight",
                                 s.group.name()),
                     "wait for the Work of the last start() first, or use another Redistribution"};
  const bool is_on_device = s.options.kind == MemoryKind::device;
  s.tensors.bind(source, target, s.options.kind);
  if (is_on_device) s.prepare_device(stream);
  const std::int64_t start = s.starts;
  const rankmesh::detail::SequenceDescription description{
      .function = "redistribution",
      .activity = fmt::format("{}.redistribution {}, transfer {}", s.group.name(), s.number, start),
      .identity = fmt::format("redistribution {} {}", s.number, start)};
  Work work =
      is_on_device
          ? GroupAccess::start(s.group, description, stream, detail::make_device_sequence(state_))
          : GroupAccess::start(s.group, description, detail::make_sequence(state_));
  ++s.starts;  // a start that was refused has no number: other members do not know of it
  return work;
}

}  // namespace rankmesh::exchange
