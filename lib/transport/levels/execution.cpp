// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/execution.hpp"

#include <algorithm>
#include <utility>

#include "transport/detail/own_tags.hpp"

namespace rankmesh::levels {
namespace {

std::int64_t elements_of(const Call& call) {
  if (!has_data(call.operation)) return 0;
  return counts_output(call.operation) ? call.out.count : call.in.count;
}

// The bytes of the largest buffer of a member, per element of a chunk.
std::int64_t unit_of(const Chunk& chunk) {
  return static_cast<std::int64_t>(chunk.bytes(1)) *
         (chunk.has_blocks_of_members ? chunk.shape->size() : 1);
}

std::int64_t divide_up(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

// Shares consist of whole cache lines.
std::int64_t part_of(const Chunk& chunk) {
  if (chunk.has_blocks_of_members) return chunk.count;
  const std::int64_t lines = divide_up(chunk.count, chunk.per_line());
  return std::min(chunk.count, divide_up(lines, chunk.carriers) * chunk.per_line());
}

// A multiple of the shares of all carriers.
std::int64_t elements_per_chunk(const Chunk& whole, std::int64_t bytes) {
  const std::int64_t multiple = whole.per_line() * whole.carriers;
  return std::max<std::int64_t>(1, bytes / unit_of(whole) / multiple) * multiple;
}

}  // namespace

Execution::Execution(const Call& call, std::uint64_t number, std::shared_ptr<Setting> setting)
    : call_{call},
      number_{number},
      setting_{std::move(setting)},
      plan_{*plan_of(call.operation)},
      whole_{whole_call()},
      elements_per_chunk_{elements_per_chunk(whole_, setting_->sizes.chunk_bytes)},
      chunks_{std::max<std::int64_t>(1, divide_up(whole_.count, elements_per_chunk_))},
      peers_{setting_->comm, {number, detail::describe_completely(call_)}, peers()} {}

Chunk Execution::whole_call() const {
  const Shape& shape = setting_->shape;
  Chunk chunk;
  static_cast<Call&>(chunk) = call_;
  chunk.whole = &call_;
  chunk.shape = &shape;
  chunk.original = call_.original != nullptr ? call_.original : &call_;
  chunk.has_blocks_of_members = plan_.has_blocks_of_members;
  chunk.count = chunk.block = elements_of(call_);
  if (has_root(call_.operation))
    chunk.root_node = shape.place(static_cast<int>(call_.root.value())).node;
  chunk.root = RankInGroup{chunk.first(shape.own().node)};
  if (chunk.count * unit_of(chunk) > setting_->sizes.one_carrier_bytes)
    chunk.carriers = shape.carriers;
  return chunk;
}

// Returns, for each node, the member that carries the same parts as this member.
std::vector<int> Execution::peers() const {
  std::vector<int> members;
  const int carrier = whole_.is_carrier() ? whole_.carrier() : 0;
  for (int node = 0; node < setting_->shape.node_count(); ++node)
    members.push_back(whole_.member(node, carrier));
  return members;
}

bool Execution::advance() {
  for (bool has_moved = true; has_moved;) {
    has_moved = begin_next_step();
    for (std::int64_t chunk = done_; chunk < chunks_ && stages(chunk); ++chunk) {
      if (stages(chunk)->chunk.begin != chunk * elements_per_chunk_) break;  // an earlier one
      if (advance_chunk(chunk)) has_moved = true;
    }
    while (done_ < chunks_ && stages(done_) && stages(done_)->is_done) {
      stages(done_++).reset();
      has_moved = true;
    }
  }
  return done_ == chunks_;
}

// Begins the next step in shared memory. The order of the steps is the same on all members of the
// node.
bool Execution::begin_next_step() {
  if (begun_ == 2 * chunks_) return false;
  const bool is_collect = begun_ == 0 || (begun_ % 2 == 1 && begun_ / 2 + 1 < chunks_);
  const std::int64_t chunk = is_collect ? (begun_ + 1) / 2 : (begun_ - 1) / 2;
  if (is_collect ? !begin_collect(chunk) : !begin_spread(chunk)) return false;
  ++begun_;
  return true;
}

bool Execution::begin_collect(std::int64_t number) {
  if (stages(number)) return false;  // its place is in use
  Chunk chunk = whole_;
  chunk.begin = number * elements_per_chunk_;
  chunk.count = std::min(elements_per_chunk_, whole_.count - chunk.begin);
  chunk.part = part_of(chunk);
  Stages& added = stages(number).emplace(chunk, peers_, detail::level_tag(number % 2 == 1));
  added.has_exchanged = !chunk.is_carrier();
  if (chunk.is_carrier() && plan_.prepare != nullptr) {
    Chunk& own = added.chunk;
    plan_.prepare(own);
    auto& memory = setting_->memory[static_cast<std::size_t>(number) % setting_->memory.size()];
    const std::size_t bytes = own.partial_bytes + own.received_bytes + own.result_bytes;
    if (bytes > memory.size()) memory = std::vector<std::byte>(bytes);
    own.partial = memory.data();
  }
  begin_step(added, plan_.collect(added.chunk), added.has_collected);
  return true;
}

bool Execution::begin_spread(std::int64_t number) {
  Stages& at = *stages(number);
  if (!at.has_collected || !at.has_exchanged) return false;
  at.has_begun_spread = true;
  begin_step(at, plan_.spread(at.chunk), at.is_done);
  return true;
}

// A member that is alone on its node does not wait for a step: it reads its own data.
void Execution::begin_step(Stages& at, const shm::Algorithm* step, bool& is_over) {
  if (step != nullptr && setting_->inside != nullptr) {
    at.step = setting_->inside->start_step(at.chunk, *step, number_);
    return;
  }
  is_over = true;
  if (step == nullptr || step->first.read == nullptr) return;
  const auto [count, unit] = step->payload(setting_->alone, at.chunk);
  const auto bytes = static_cast<std::size_t>(count) * unit;
  step->first.read(setting_->alone, {at.chunk, 1, 0, count, bytes, 0});
}

// Continues a chunk, and returns whether it has reached another stage.
bool Execution::advance_chunk(std::int64_t chunk) {
  Stages& at = *stages(chunk);
  if (at.step != nullptr) {
    if (!at.step->test()) return false;
    at.step.reset();
    (at.has_begun_spread ? at.is_done : at.has_collected) = true;
    return true;
  }
  return at.has_collected && !at.has_exchanged && advance_exchange(chunk, at);
}

// The messages of the first chunk compare the calls, so the other chunks wait until the first one
// is exchanged.
bool Execution::advance_exchange(std::int64_t chunk, Stages& at) {
  if (chunk != 0 && !has_opened_) return false;
  bool has_moved = false;
  while (at.messages.test()) {
    has_moved = true;
    if (plan_.exchange(at.chunk, at.round++, at.messages)) continue;
    at.has_exchanged = true;
    has_opened_ = true;
    return true;
  }
  return has_moved;
}

std::vector<std::int64_t> Execution::awaited() const {
  std::vector<std::int64_t> members;
  for (const std::optional<Stages>& at : under_way_) {
    if (!at) continue;
    for (const std::int64_t member : at->messages.awaited()) members.push_back(member);
    if (at->step == nullptr) continue;
    for (const std::int64_t place : at->step->awaited())
      members.push_back(
          setting_->shape.members(setting_->shape.own().node)[static_cast<std::size_t>(place)]);
  }
  std::ranges::sort(members);
  members.erase(std::ranges::unique(members).begin(), members.end());
  return members;
}

bool Execution::is_in_mpi() const {
  return std::ranges::any_of(under_way_,
                             [](const auto& at) { return at && !at->messages.is_idle(); });
}

}  // namespace rankmesh::levels
