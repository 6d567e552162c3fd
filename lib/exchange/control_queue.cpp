// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/control_queue.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "detail/agree.hpp"
#include "detail/control_queue_state.hpp"
#include "rankmesh/base/hash.hpp"
#include "transport/detail/node_segments.hpp"
#include "wait/detail/rank_status.hpp"

namespace rankmesh::exchange {
namespace {

using detail::MessageRing;

// Greater than the tags of users' messages, and less than the tags of the wait monitor.
constexpr int first_tag = 20000;
constexpr int tags = 8192;

void validate(const GroupCoordinator& group, RankInGroup writer,
              const ControlQueueOptions& options) {
  if (writer.value() < 0 || writer.value() >= group.size())
    throw UsageError{
        fmt::format("the writer of a control queue of '{}' is {}", group.name(), writer.value()),
        fmt::format("use a rank in the group, from 0 to {}", group.size() - 1)};
  if (options.slots < 1 || options.slot_bytes < 1)
    throw UsageError{
        fmt::format("a control queue has {} slots of {} bytes", options.slots, options.slot_bytes),
        "set both to 1 or more"};
}

// Validates and compares the arguments of all members, and returns the queue's number in the mesh.
// Members may have opened different numbers of queues in other groups, so the members use the
// highest number.
std::int64_t agreed_number(GroupCoordinator& group, RankInGroup writer,
                           const ControlQueueOptions& options) {
  rankmesh::detail::ControlPlane& control = *rankmesh::detail::GroupAccess::runtime(group).control;
  const detail::Arguments arguments{fmt::format("ControlQueue over '{}'", group.name()),
                                    {fmt::format("writer {}, {} slots of {} bytes", writer.value(),
                                                 options.slots, options.slot_bytes)}};
  std::int64_t number = control.queues;
  detail::agree(group, hash_of(arguments),
                {detail::UserFunction::control_queue, [&] { return arguments; },
                 "pass the same writer and the same options on every rank",
                 detail::failure_of([&] { validate(group, writer, options); })},
                {&number, 1});
  control.queues = number + 1;
  return number;
}

}  // namespace

std::string ControlQueue::State::name(std::int64_t rank_in_group) const {
  const Rank rank = group->ranks().at(rank_in_group);
  return runtime().control->names(rank);
}

std::string ControlQueue::State::activity() const {
  return fmt::format("{} of message {} of the control queue of '{}'", is_writer ? "write" : "read",
                     messages, group->name());
}

std::vector<Rank> ControlQueue::State::awaited() const {
  if (!is_writer) return {group->ranks().at(writer.value())};
  std::vector<Rank> ranks;
  for (const std::int64_t r : late_readers()) ranks.push_back(group->ranks().at(r));
  return ranks;
}

std::string ControlQueue::State::what_does(std::int64_t rank_in_group) const {
  const auto does = runtime().control->board().look(group->ranks().at(rank_in_group));
  return does ? predicate(*does, false) : std::string{};
}

void ControlQueue::State::require_usable() const {
  life.require("ControlQueue");
  if (runtime().is_closed || rankmesh::detail::GroupAccess::connection(*group).is_closed())
    throw ClosedError{"a control queue is used after close()",
                      "close the mesh and the group after the last use of the queue"};
  if (!broken.empty())
    throw ClosedError{fmt::format("the control queue of '{}' is broken: {}", group->name(), broken),
                      "open another queue for the ranks that are left"};
}

// Sorts the readers into those on the writer's node and the others.
void ControlQueue::State::find_readers() {
  const Placement& nodes = runtime().control->placement;
  const std::int32_t node_of_writer = nodes.node(group->ranks().at(writer.value()));
  std::vector<std::int64_t> remote_of;
  for (std::int64_t r = 0; r < group->size(); ++r) {
    if (r == writer.value()) continue;
    const bool is_near = nodes.node(group->ranks().at(r)) == node_of_writer;
    if (group->rank_in_group() == RankInGroup{r}) reader = local_of.size();
    (is_near ? local_of : remote_of).push_back(r);
  }
  is_local = nodes.node(runtime().rank) == node_of_writer;
  remote.open(group->native_mpi(), tag, id, std::move(remote_of));
  // A rank that spins on a shared core keeps this core from the rank for which it waits.
  const auto cores = static_cast<std::size_t>(nodes.cores(node_of_writer).value_or(1));
  spins = local_of.size() + 1 > cores ? 0 : 100;
}

// Creates the ring on the writer's node. Collective over the group: a rank that fails still takes
// part, and all throw.
void ControlQueue::State::open_ring(const mpi::CommunicatorView& comm) {
  std::string failure;
  const bool has_ring = is_local && !local_of.empty();
  mpi::Communicator node = mpi::split(comm, has_ring ? 0 : MPI_UNDEFINED, comm.rank());
  if (has_ring) {
    std::vector<Rank> members;
    for (std::int64_t r = 0; r < group->size(); ++r)
      if (r == writer.value() || std::ranges::find(local_of, r) != local_of.end())
        members.push_back(group->ranks().at(r));
    const auto slots = static_cast<std::size_t>(options.slots);
    const auto slot_bytes = (static_cast<std::size_t>(options.slot_bytes) + detail::ring_line - 1) /
                            detail::ring_line * detail::ring_line;
    const rankmesh::detail::CallLock lock{runtime()};
    rankmesh::detail::NodeSegment made =
        std::move(rankmesh::detail::make_node_segments(
                      {*runtime().control, node.view(), RankSet::of(members),
                       fmt::format("queue {} of {}", tag, group->ranks().to_string())},
                      {{fmt::format("the control queue of '{}'", group->name()),
                        MessageRing::bytes(local_of.size(), slots, slot_bytes)}})
                      .front());
    if (made.error) {
      failure = made.error->message();
    } else {
      segment = std::move(made.segment);
      ring.emplace(segment.data(), local_of.size(), slots, slot_bytes);
    }
    node.free();
  }

  std::vector<std::int32_t> failed{failure.empty() ? 0 : 1};
  group->all_reduce_async(failed, ReduceOp::max).wait();
  if (failed[0] != 0)
    throw MismatchError{
        fmt::format("the control queue of '{}' has no shared memory on the node of rank {}{}{}",
                    group->name(), group->ranks().at(writer.value()).value(),
                    failure.empty() ? "" : ": ", failure),
        "check the limits on memory and the size of /dev/shm", false};
}

ControlQueue::ControlQueue(GroupCoordinator& group, RankInGroup writer, ControlQueueOptions options)
    : state_{std::make_unique<State>(group)} {
  State& state = *state_;
  state.writer = writer;
  state.options = options;
  state.is_writer = group.rank_in_group() == writer;
  const std::int64_t number = agreed_number(group, writer, options);
  state.number = number;
  if (group.size() == 1) return;
  state.tag = first_tag + static_cast<int>(number % tags);
  const std::uint64_t mesh = state.runtime().control->key_of_mesh;
  state.id = hash_bytes(fmt::format("queue {} of {}", number, mesh)).low;
  state.find_readers();
  state.open_ring(mpi::CommunicatorView{group.native_mpi()});
}

ControlQueue::~ControlQueue() = default;
ControlQueue::ControlQueue(ControlQueue&&) noexcept = default;
ControlQueue& ControlQueue::operator=(ControlQueue&&) noexcept = default;

bool ControlQueue::is_writer() const noexcept { return state_->is_writer; }
std::int64_t ControlQueue::local_readers() const noexcept { return std::ssize(state_->local_of); }
std::int64_t ControlQueue::remote_readers() const noexcept {
  return std::ssize(state_->remote.readers());
}

void ControlQueue::write(std::span<const std::byte> message,
                         std::optional<Deadline::Duration> timeout) {
  state_->require_usable();
  if (!state_->is_writer)
    throw UsageError{
        fmt::format("write() is called on a reader of the control queue of '{}'",
                    state_->group->name()),
        fmt::format("call it on its writer, rank {}", state_->name(state_->writer.value()))};
  state_->write(message, timeout);
}

void ControlQueue::State::require_reader() const {
  require_usable();
  if (is_writer)
    throw UsageError{
        fmt::format("read() is called on the writer of the control queue of '{}'", group->name()),
        "call it on the other members"};
}

Bytes ControlQueue::read(std::optional<Deadline::Duration> timeout) {
  Bytes message;
  read(message, timeout);
  return message;
}

void ControlQueue::read(Bytes& message, std::optional<Deadline::Duration> timeout) {
  State& state = *state_;
  state.require_reader();
  State::Arrival arrival;
  do
    state.wait([&] { return state.has_arrived(arrival); }, timeout,
               [&](const Deadline& deadline) { state.throw_no_message(deadline); });
  while (!state.take(message, arrival, timeout));
}

bool ControlQueue::try_read(Bytes& message) {
  State& state = *state_;
  state.require_reader();
  State::Arrival arrival;
  while (state.has_arrived(arrival))
    if (state.take(message, arrival, {})) return true;
  rankmesh::detail::advance_between_tests();
  return false;
}

}  // namespace rankmesh::exchange
