// SPDX-License-Identifier: BSD-3-Clause
#include "detail/direct_stream.hpp"

#include <algorithm>
#include <cerrno>

#include "detail/redistribution_state.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::exchange::detail {
namespace {

using rankmesh::detail::GroupAccess;
using rankmesh::detail::NodeMemory;

constexpr std::int64_t bytes_of_turn = 256 << 10;
// A run has at most this many pieces on either side, because runs end with the scratch memory.
constexpr std::size_t most_pieces_of_run = direct_scratch / least_direct_piece + 2;
constexpr std::size_t most_pieces_before_run = NodeMemory::most_pieces - most_pieces_of_run;
static_assert(most_pieces_of_run < most_pieces_before_run);

// Adds a piece to a list, or makes the last piece longer.
inline void add(std::vector<iovec>& list, std::byte* data, std::int64_t bytes) {
  const auto length = static_cast<std::size_t>(bytes);
  if (!list.empty()) {
    iovec& last = list.back();
    if (static_cast<std::byte*>(last.iov_base) + last.iov_len == data) {
      last.iov_len += length;
      return;
    }
  }
  list.push_back({data, length});
}

// Adds elements that are contiguous in a dense array.
inline void add(std::vector<iovec>& list, const ArrayView& array, std::int64_t offset,
                std::int64_t count) {
  array.for_each(offset, count,
                 [&](std::byte* data, std::int64_t n) { add(list, data, n * array.width()); });
}

std::byte* address_in_peer(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  return reinterpret_cast<std::byte*>(address);
}

// Returns whether the elements of a strip are read to their places.
bool is_stored_directly(DataType type, const ArrayView& target, const Strip& strip) {
  return target.type() == type &&
         std::min(strip.length * target.width(), target.bytes_of_piece()) >= least_direct_piece;
}

// Returns whether the memory of some tensor of a stream has gaps.
bool has_gaps(const BoundTensors& tensors, const MessageStream& stream) {
  return !tensors.senders(stream.step).gaps.empty() &&
         std::ranges::any_of(stream.parts, [&](const StreamPart& part) {
           return !tensors.sender(part.tensor, stream.step).is_dense();
         });
}

bool is_pending_in_mpi(const std::unique_ptr<Pending>& pending) {
  return pending != nullptr && pending->is_in_mpi();
}

// Returns whether nothing is pending any more.
bool has_ended(std::unique_ptr<Pending>& pending) {
  if (pending != nullptr && pending->test()) pending.reset();
  return pending == nullptr;
}

NodeMemory& memory_of(const RedistributionState& state) {
  return *GroupAccess::runtime(state.group).node_memory;
}

}  // namespace

DirectSend::DirectSend(RedistributionState& state, DirectStream& of)
    : state_{state}, of_{of}, is_packed_{of.has_short_runs || has_gaps(state.tensors, of.stream)} {
  position_.begin(of.stream);
}

bool DirectSend::test() {
  is_complete_ = true;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    const bool is_sent = has_ended(piece.send), is_read = has_ended(piece.answer);
    if (is_sent && is_read && position_.is_at_end()) continue;
    is_complete_ = false;
    if (is_sent && is_read) offer(i);
  }
  return is_complete_;
}

// Offers the stream, or packs and offers its next piece.
void DirectSend::offer(std::size_t number) {
  const MessageStream& stream = of_.stream;
  Piece& piece = pieces_[number];
  piece.offer = {.transfer = reinterpret_cast<std::uint64_t>(&state_.transfer),
                 .number = state_.transfer};
  if (is_packed_) {
    const std::int64_t most = std::min(of_.piece, stream.bytes);
    if (of_.packed == nullptr)
      of_.packed = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(2 * most));
    std::byte* const begin = of_.packed.get() + static_cast<std::int64_t>(number) * most;
    std::byte* end = begin;
    position_.next(position_.next_bytes(most),
                   [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
                     end = state_.tensors.pack(tensor, stream.step, strip, end, kind.type());
                   });
    piece.offer.address = reinterpret_cast<std::uint64_t>(begin);
    piece.offer.bytes = static_cast<std::uint64_t>(end - begin);
  } else {
    position_.skip(stream.bytes);
    piece.offer.address =
        reinterpret_cast<std::uint64_t>(state_.tensors.senders(stream.step).data.data());
  }
  piece.answer = state_.messages->start({.operation = Operation::recv,
                                         .tag = state_.tag(stream.step, /*is_answer=*/true),
                                         .out = {nullptr, 0, DataType::uint8},
                                         .source = stream.peer});
  piece.send = state_.messages->start({.operation = Operation::send,
                                       .tag = state_.tag(stream.step),
                                       .in = {reinterpret_cast<const std::byte*>(&piece.offer),
                                              sizeof piece.offer, DataType::uint8},
                                       .destination = stream.peer});
}

bool DirectSend::is_in_mpi() const {
  return std::ranges::any_of(pieces_, [](const Piece& piece) {
    return is_pending_in_mpi(piece.send) || is_pending_in_mpi(piece.answer);
  });
}

DirectReceive::DirectReceive(RedistributionState& state, const DirectStream& of)
    : state_{state}, of_{of}, memory_{state.direct_memory} {
  position_.begin(of.stream);
  expect_offer();
}

void DirectReceive::expect_offer() {
  expected_ = state_.messages->start(
      {.operation = Operation::recv,
       .tag = state_.tag(of_.stream.step),
       .out = {reinterpret_cast<std::byte*>(&offer_), sizeof offer_, DataType::uint8},
       .source = of_.stream.peer});
}

void DirectReceive::look() {
  if (!has_ended(answer_) || is_lost_ || left_ > 0 || has_read() || !has_ended(expected_)) return;
  left_ = offer_.bytes > 0 ? static_cast<std::int64_t>(offer_.bytes) : of_.stream.bytes;
}

std::int64_t DirectReceive::read() {
  const std::int64_t bytes = read_turn();
  if (left_ > 0 || is_lost_) return bytes;
  answer_ = state_.messages->start({.operation = Operation::send,
                                    .tag = state_.tag(of_.stream.step, /*is_answer=*/true),
                                    .in = {nullptr, 0, DataType::uint8},
                                    .destination = of_.stream.peer});
  if (!position_.is_at_end()) expect_offer();
  return bytes;
}

// Reads pieces until the lists are flushed.
std::int64_t DirectReceive::read_turn() {
  std::int64_t sum = 0;
  do {
    const std::int64_t bytes =
        position_.next_bytes(std::min(left_, direct_scratch), /*are_whole=*/true);
    const StreamPosition before = position_;
    scratch_ = memory_.scratch.get();
    position_.next(bytes, [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
      add_strip(tensor, kind, strip);
    });
    left_ -= bytes;
    sum += bytes;
    const bool has_scratch = scratch_ != memory_.scratch.get();
    if (has_scratch || gathered_ >= bytes_of_turn || left_ == 0 || is_lost_) flush();
    if (has_scratch && !is_lost_) store_scratch(before, bytes);
  } while (!memory_.to.empty());
  return sum;
}

// Adds elements to the lists. Those that cannot be read to their places are read to the scratch
// memory.
void DirectReceive::add_strip(std::size_t tensor, const StreamKind& kind, const Strip& strip) {
  const ArrayView target = state_.tensors.target(tensor);
  const bool is_direct = is_stored_directly(kind.type(), target, strip);
  const bool is_packed = offer_.bytes > 0;
  const bool is_contiguous = is_packed && !is_direct;  // on both sides
  const std::int64_t bytes = (is_contiguous ? strip.elements() : strip.length) * kind.width();
  std::byte* const from =
      is_packed ? address_in_peer(offer_.address) : source(tensor) + strip.source * kind.width();
  const std::int64_t step = is_packed ? bytes : strip.source_step * kind.width();
  for (std::int64_t run = 0; run < (is_contiguous ? 1 : strip.count); ++run) {
    add(memory_.from, from + run * step, bytes);
    if (is_direct) {
      add(memory_.to, target, strip.target + run * strip.target_step, strip.length);
    } else {
      add(memory_.to, scratch_, bytes);
      scratch_ += bytes;
    }
    gathered_ += bytes;
    if (std::max(memory_.to.size(), memory_.from.size()) >= most_pieces_before_run) flush();
  }
  if (is_packed) offer_.address += static_cast<std::uint64_t>(strip.elements() * kind.width());
}

// Stores what add_strip() has put into the scratch memory.
void DirectReceive::store_scratch(StreamPosition from, std::int64_t bytes) {
  const std::byte* stored = memory_.scratch.get();
  from.next(bytes, [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
    if (!is_stored_directly(kind.type(), state_.tensors.target(tensor), strip))
      stored = state_.tensors.unpack(tensor, of_.stream.step, strip, stored, kind.type());
  });
}

// Reads the pieces in the lists, unless the peer is lost.
void DirectReceive::flush() {
  if (!memory_.to.empty() && !is_lost_) gather();
  memory_.to.clear();
  memory_.from.clear();
  gathered_ = 0;
}

std::byte* DirectReceive::source(std::size_t tensor) {
  if (tensor - first_known_ >= addresses_.size()) read_addresses(tensor);
  return addresses_[tensor - first_known_];
}

// Reads where a tensor and the next few hundred ones lie in the memory of the peer.
void DirectReceive::read_addresses(std::size_t tensor) {
  flush();
  constexpr std::size_t most = 1024;
  first_known_ = tensor;
  addresses_.resize(std::min(most, state_.tensors.size() - tensor));
  read_memory(offer_.address + tensor * sizeof addresses_[0], addresses_.data(),
              addresses_.size() * sizeof addresses_[0]);
}

// Reads contiguous memory. The lists must be empty.
void DirectReceive::read_memory(std::uint64_t address, void* to, std::size_t bytes) {
  if (is_lost_) return;
  memory_.to.push_back({to, bytes});
  memory_.from.push_back({address_in_peer(address), bytes});
  gather();
  memory_.to.clear();
  memory_.from.clear();
}

// Reads the pieces in the lists, and then the number of the transfer: a peer that has given up may
// have changed its memory or freed it.
void DirectReceive::gather() {
  std::uint64_t transfer = 0;
  memory_.to.push_back({&transfer, sizeof transfer});
  memory_.from.push_back({address_in_peer(offer_.transfer), sizeof transfer});
  const int code = memory_of(state_).gather(of_.local_rank, memory_.to, memory_.from);
  is_lost_ = code != 0 || transfer != offer_.number;
  if (code == 0 || code == ESRCH) return;
  const int code_of_number = memory_of(state_).read(
      of_.local_rank, offer_.transfer, reinterpret_cast<std::byte*>(&transfer), sizeof transfer);
  if (code_of_number != 0 || transfer != offer_.number) return;
  const auto& runtime = GroupAccess::runtime(state_.group);
  const auto& ranks = GroupAccess::connection(state_.group).group.ranks;
  rankmesh::detail::throw_unreadable(runtime.control->names(runtime.rank),
                                     runtime.control->names(ranks.at(of_.stream.peer.value())),
                                     code);
}

bool DirectReceive::is_in_mpi() const {
  return is_pending_in_mpi(expected_) || is_pending_in_mpi(answer_);
}

}  // namespace rankmesh::exchange::detail
