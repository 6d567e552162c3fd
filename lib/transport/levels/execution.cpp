// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/execution.hpp"

#include <algorithm>
#include <utility>

#include "transport/detail/own_tags.hpp"

namespace rankmesh::levels {
namespace {

// The bytes of the largest buffer of a member, and the bytes of one element of a piece.
std::int64_t unit_of(const Piece& piece, Division division) {
  const auto bytes = static_cast<std::int64_t>(piece.element_bytes());
  return division == Division::blocks ? bytes * piece.shape->size() : bytes;
}

std::int64_t elements_of(const Call& call) {
  if (!has_data(call.operation)) return 0;
  return counts_output(call.operation) ? call.out.count : call.in.count;
}

Piece whole_piece(const Call& call, const Shape& shape) {
  Piece piece;
  static_cast<Call&>(piece) = call;
  piece.whole = &call;
  piece.shape = &shape;
  piece.original = call.original != nullptr ? call.original : &call;
  piece.count = elements_of(call);
  if (has_root(call.operation))
    piece.root_node = shape.place(static_cast<int>(call.root.value())).node;
  piece.root = RankInGroup{piece.first(shape.own().node)};
  return piece;
}

// Shares consist of whole cache lines.
std::int64_t share_of(const Piece& piece) {
  const auto per_line = static_cast<std::int64_t>(64 / piece.element_bytes());
  const std::int64_t lines = (piece.count + per_line - 1) / per_line;
  const std::int64_t of_carrier = (lines + piece.carriers - 1) / piece.carriers;
  return std::min(piece.count, of_carrier * per_line);
}

}  // namespace

Execution::Execution(const Call& call, std::uint64_t number, std::shared_ptr<Setting> setting)
    : call_{call},
      number_{number},
      setting_{std::move(setting)},
      scheme_{*scheme_of(call.operation)},
      whole_{whole_piece(call_, setting_->shape)},
      counterparts_{setting_->comm, {number, detail::describe_completely(call_)}} {
  divide();
  counterparts_.set_members(counterparts());
}

void Execution::divide() {
  const std::int64_t unit = unit_of(whole_, scheme_.division);
  whole_.carriers =
      whole_.count * unit <= setting_->limits.one_carrier_bytes ? 1 : setting_->shape.carriers;
  const auto per_line = static_cast<std::int64_t>(64 / whole_.element_bytes());
  const std::int64_t lines =
      std::max<std::int64_t>(1, setting_->limits.piece_bytes / unit / per_line / whole_.carriers);
  piece_ = lines * per_line * whole_.carriers;
  pieces_ = std::max<std::int64_t>(1, (whole_.count + piece_ - 1) / piece_);
}

// Returns, for each node, the member that carries the same part as this member.
std::vector<int> Execution::counterparts() const {
  std::vector<int> members;
  const int carrier = whole_.is_carrier() ? whole_.carrier() : 0;
  for (int node = 0; node < setting_->shape.node_count(); ++node)
    members.push_back(whole_.member(node, carrier));
  return members;
}

bool Execution::advance() {
  for (bool has_moved = true; has_moved;) {
    has_moved = begin_next_step();
    for (std::int64_t piece = done_; piece < pieces_ && stages(piece); ++piece) {
      if (stages(piece)->piece.begin != piece * piece_) break;  // an earlier piece is there
      if (advance_piece(piece)) has_moved = true;
    }
    while (done_ < pieces_ && stages(done_) && stages(done_)->is_done) {
      stages(done_++).reset();
      has_moved = true;
    }
  }
  return done_ == pieces_;
}

// Begins the next step in shared memory. The order of the steps is the same on all members of the
// node.
bool Execution::begin_next_step() {
  if (begun_ == 2 * pieces_) return false;
  const bool is_collect = begun_ == 0 || (begun_ % 2 == 1 && begun_ / 2 + 1 < pieces_);
  const std::int64_t piece = is_collect ? (begun_ + 1) / 2 : (begun_ - 1) / 2;
  if (is_collect ? !begin_collect(piece) : !begin_spread(piece)) return false;
  ++begun_;
  return true;
}

bool Execution::begin_collect(std::int64_t piece) {
  if (stages(piece)) return false;  // its place is in use
  Piece part = whole_;
  part.begin = piece * piece_;
  part.count = std::min(piece_, whole_.count - part.begin);
  part.share = share_of(part);
  Stages& added = stages(piece).emplace(part, counterparts_, detail::level_tag(piece % 2 == 1));
  added.has_exchanged = !part.is_carrier();
  if (part.is_carrier()) {
    scheme_.prepare(added.piece);
    use_memory(added.piece,
               setting_->memory[static_cast<std::size_t>(piece) % setting_->memory.size()]);
  }
  const shm::Algorithm* step = setting_->inside == nullptr ? nullptr : scheme_.collect(added.piece);
  if (step == nullptr)
    added.has_collected = true;
  else
    added.step = setting_->inside->start_step(added.piece, *step, number_);
  return true;
}

bool Execution::begin_spread(std::int64_t piece) {
  Stages& at = *stages(piece);
  if (!at.has_collected || !at.has_exchanged) return false;
  const shm::Algorithm* step = setting_->inside == nullptr ? nullptr : scheme_.spread(at.piece);
  at.has_begun_spread = true;
  if (step == nullptr)
    at.is_done = true;
  else
    at.step = setting_->inside->start_step(at.piece, *step, number_);
  return true;
}

// Continues a piece, and returns whether it has reached another stage.
bool Execution::advance_piece(std::int64_t piece) {
  Stages& at = *stages(piece);
  if (at.step != nullptr) {
    if (!at.step->test()) return false;
    at.step.reset();
    (at.has_begun_spread ? at.is_done : at.has_collected) = true;
    return true;
  }
  return at.has_collected && !at.has_exchanged && advance_exchange(piece, at);
}

// The messages of the first piece compare the calls, so the other pieces wait until the first one
// is exchanged.
bool Execution::advance_exchange(std::int64_t piece, Stages& at) {
  if (piece != 0 && !has_opened_) return false;
  bool has_moved = false;
  while (at.messages.test()) {
    has_moved = true;
    if (scheme_.exchange(at.piece, at.round++, at.messages)) continue;
    at.has_exchanged = true;
    has_opened_ = true;
    return true;
  }
  return has_moved;
}

void Execution::use_memory(Piece& piece, Setting::Memory& memory) const {
  const std::size_t size = piece.partial_bytes + piece.received_bytes + piece.result_bytes;
  if (size > memory.size) {
    memory.bytes = std::make_unique_for_overwrite<std::byte[]>(size);
    memory.size = size;
  }
  piece.scratch = memory.bytes.get();
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
