// SPDX-License-Identifier: BSD-3-Clause
#include "detail/direct_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <span>
#include <tuple>
#include <utility>

#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::exchange::detail {
namespace {

using rankmesh::detail::GroupAccess;
using rankmesh::detail::NodeMemory;

constexpr std::int64_t bytes_of_turn = 256 << 10;
// A run has at most this many pieces on either side, because runs end with a piece of the stream.
constexpr std::size_t most_pieces_of_run =
    RedistributionState::direct_piece / least_direct_piece + 2;
static_assert(2 * most_pieces_of_run < NodeMemory::most_pieces);

// Adds a piece to a list, or makes the last piece longer.
void add(std::vector<iovec>& list, std::byte* data, std::int64_t bytes) {
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

// Returns whether the elements of a strip are read to their places.
bool is_stored_directly(const StreamKind& kind, const LocalArray& target, const Strip& strip) {
  return target.type() == kind.type() &&
         std::min(strip.length * kind.width(), target.bytes_of_piece()) >= least_direct_piece;
}

NodeMemory& memory_of(const RedistributionState& state) {
  return *GroupAccess::runtime(state.group).facts.node_memory;
}

}  // namespace

DirectReader::DirectReader(RedistributionState& state, std::function<void(std::int64_t)> count)
    : state_{state}, count_{std::move(count)}, readings_(state.direct.size()) {
  if (readings_.empty()) return;
  for (auto* list : {&to_, &from_}) list->reserve(NodeMemory::most_pieces + 1);
  for (std::size_t i = 0; i < readings_.size(); ++i)
    for (std::size_t step = 0; step < 2; ++step)
      readings_[i][step].ahead.begin(state_.direct[i].received[step]);
}

// A packed piece is read to the scratch memory, and stored from there.
bool DirectReader::read_packed(Stream from, const DirectNotice& notice) {
  const DirectPeer& peer = state_.direct[from.first];
  StreamWalk& walk = readings_[from.first][from.second].ahead;
  std::uint64_t address = notice.address;
  for (auto left = static_cast<std::int64_t>(notice.bytes); left > 0;) {
    const std::int64_t bytes = walk.next_bytes(std::min(left, RedistributionState::direct_piece));
    if (!read(peer, notice, address, state_.direct_scratch.get(), bytes)) return false;
    const std::byte* stored = state_.direct_scratch.get();
    walk.next(bytes, [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
      stored = state_.tensors[tensor].unpack(static_cast<TransferStep>(notice.step), strip, stored,
                                             kind.type());
    });
    count_(bytes);
    address += static_cast<std::uint64_t>(bytes);
    left -= bytes;
  }
  return true;
}

void DirectReader::open(Stream from, const DirectNotice& notice) {
  Reading& reading = readings_[from.first][from.second];
  reading.notice = notice;
  reading.is_open = notice.strides == 0 || read_gaps(state_.direct[from.first], notice);
  if (reading.is_open) ++open_;
}

std::optional<DirectReader::Stream> DirectReader::read_next() {
  Stream from;
  Reading* const reading = furthest_behind(from);
  if (reading == nullptr) return std::nullopt;
  const bool has_read = read_turn(state_.direct[from.first], *reading);
  if (has_read && !reading->ahead.is_at_end()) return std::nullopt;
  reading->is_open = false;
  --open_;
  return has_read ? std::optional{from} : std::nullopt;
}

// Returns the open stream that has got least far, and says which one it is; null if none is open.
DirectReader::Reading* DirectReader::furthest_behind(Stream& from) {
  Reading* least = nullptr;
  const auto progress = [](const Reading& reading) {
    return std::tuple{reading.ahead.next_tensor(), reading.bytes};
  };
  for (std::size_t i = 0; i < readings_.size(); ++i)
    for (std::size_t step = 0; step < 2; ++step) {
      Reading& reading = readings_[i][step];
      if (!reading.is_open || (least != nullptr && progress(reading) >= progress(*least))) continue;
      least = &reading;
      from = {i, step};
    }
  return least;
}

// Reads pieces until the lists are flushed. Returns false if the peer has ended or has given up.
bool DirectReader::read_turn(DirectPeer& peer, Reading& reading) {
  is_refused_ = false;
  do {
    const std::int64_t bytes = reading.ahead.next_bytes(RedistributionState::direct_piece);
    add_piece(peer, reading, bytes);
    store_piece(peer, reading, bytes);
    reading.bytes += bytes;
  } while (!to_.empty());
  return !is_refused_;
}

// Adds the next bytes of a stream to the lists. Elements that cannot be read to their places are
// read to the scratch memory.
void DirectReader::add_piece(DirectPeer& peer, Reading& reading, std::int64_t bytes) {
  reading.behind = reading.ahead;
  scratch_ = state_.direct_scratch.get();
  reading.ahead.next(bytes, [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
    const LocalArray source{address_of(tensor, peer, reading), kind.type(),
                            gaps_of(tensor, peer, reading)};
    const LocalArray target =
        state_.tensors.targets().array(tensor, state_.tensors.kind(tensor).target().type);
    const bool is_direct = is_stored_directly(kind, target, strip);
    const std::int64_t run_bytes = strip.length * kind.width();
    for (std::int64_t run = 0; run < strip.count; ++run) {
      source.for_each(strip.source + run * strip.source_step, strip.length,
                      [&](std::byte* data, std::int64_t n) { add(from_, data, n * kind.width()); });
      if (is_direct) {
        target.for_each(strip.target + run * strip.target_step, strip.length,
                        [&](std::byte* data, std::int64_t n) { add(to_, data, n * kind.width()); });
      } else {
        add(to_, scratch_, run_bytes);
        scratch_ += run_bytes;
      }
      gathered_ += run_bytes;
      if (std::max(to_.size(), from_.size()) + most_pieces_of_run >= NodeMemory::most_pieces)
        flush(peer, reading.notice);
    }
  });
}

// Stores what add_piece() has put into the scratch memory.
void DirectReader::store_piece(const DirectPeer& peer, Reading& reading, std::int64_t bytes) {
  const bool has_scratch = scratch_ != state_.direct_scratch.get();
  if (has_scratch || gathered_ >= bytes_of_turn || reading.ahead.is_at_end() || is_refused_)
    flush(peer, reading.notice);
  if (!has_scratch || is_refused_) return;
  const std::byte* stored = state_.direct_scratch.get();
  reading.behind.next(bytes, [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
    const MovedTensor moved = state_.tensors[tensor];
    if (!is_stored_directly(kind, moved.target, strip))
      stored =
          moved.unpack(static_cast<TransferStep>(reading.notice.step), strip, stored, kind.type());
  });
}

// Reads the pieces in the lists, unless an earlier read of this turn has failed.
void DirectReader::flush(const DirectPeer& peer, const DirectNotice& notice) {
  if (!to_.empty() && !is_refused_) {
    is_refused_ = !gather(peer, notice);
    count_(gathered_);
  }
  to_.clear();
  from_.clear();
  gathered_ = 0;
}

// Returns where a tensor lies in the memory of the peer. The addresses of a few hundred tensors are
// read at a time.
std::byte* DirectReader::address_of(std::size_t tensor, DirectPeer& peer, Reading& reading) {
  std::vector<std::byte*>& addresses = peer.addresses[reading.notice.step];
  if (tensor - reading.first_known >= reading.known) {
    flush(peer, reading.notice);
    constexpr std::size_t most = 1024;
    addresses.resize(std::min(most, state_.tensors.size()));
    reading.first_known = tensor;
    reading.known = std::min(addresses.size(), state_.tensors.size() - tensor);
    constexpr std::size_t size = sizeof addresses[0];
    if (!read(peer, reading.notice, reading.notice.address + tensor * size,
              reinterpret_cast<std::byte*>(addresses.data()),
              static_cast<std::int64_t>(reading.known * size)))
      is_refused_ = true;
  }
  return addresses[tensor - reading.first_known];
}

// Returns the gaps of a tensor in the memory of the peer; null if it has none.
const ArrayGaps* DirectReader::gaps_of(std::size_t tensor, const DirectPeer& peer,
                                       const Reading& reading) const {
  return reading.notice.strides == 0 ? nullptr : &peer.gaps[reading.notice.step][tensor];
}

// Finds the gaps of the peer's tensors. As long as it has the same strides, this is one read.
bool DirectReader::read_gaps(DirectPeer& peer, const DirectNotice& notice) {
  std::vector<std::int64_t>& strides = state_.strides_read;
  strides.resize(state_.tensors.size() * state_.most_axes);
  if (!read(peer, notice, notice.strides, reinterpret_cast<std::byte*>(strides.data()),
            static_cast<std::int64_t>(strides.size() * sizeof strides[0])))
    return false;
  std::vector<std::int64_t>& known = peer.strides[notice.step];
  if (known == strides) return true;
  known = strides;
  std::vector<ArrayGaps>& gaps = peer.gaps[notice.step];
  gaps.resize(state_.tensors.size());
  for (const StreamPart& part : peer.received[notice.step].parts) {
    const TensorTransfer& transfer = state_.plan.tensors()[part.tensor];
    const bool is_forward = static_cast<TransferStep>(notice.step) == TransferStep::forward;
    const auto shape =
        (is_forward ? transfer.to : transfer.from).local_shape(Rank{peer.member.value()});
    gaps[part.tensor].set(shape,
                          std::span{known}.subspan(part.tensor * state_.most_axes, shape.size()));
  }
  return true;
}

// Reads contiguous memory. The lists must be empty. Returns false if the peer has ended or has
// given up.
bool DirectReader::read(const DirectPeer& peer, const DirectNotice& notice, std::uint64_t address,
                        std::byte* to, std::int64_t bytes) {
  add(to_, to, bytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  add(from_, reinterpret_cast<std::byte*>(address), bytes);
  return gather(peer, notice);
}

// Reads the pieces in the lists. Returns false if the peer has ended or has given up.
bool DirectReader::gather(const DirectPeer& peer, const DirectNotice& notice) {
  std::uint64_t transfer = 0;
  to_.push_back({&transfer, sizeof transfer});
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  from_.push_back({reinterpret_cast<void*>(notice.transfer), sizeof transfer});
  const int code = memory_of(state_).gather(peer.local_rank, to_, from_);
  to_.clear();
  from_.clear();
  return has_read(code, peer, notice, transfer);
}

// Returns whether a read has succeeded; false if the peer has ended or has given up.
// @param transfer  What the read has found in PublishedMemory::transfer.
bool DirectReader::has_read(int code, const DirectPeer& peer, const DirectNotice& notice,
                            std::uint64_t transfer) {
  if (code == 0) return transfer == notice.number;
  // A peer that has given up may have freed its memory.
  const int code_of_number = memory_of(state_).read(
      peer.local_rank, notice.transfer, reinterpret_cast<std::byte*>(&transfer), sizeof transfer);
  if (code == ESRCH || code_of_number != 0 || transfer != notice.number) return false;
  const auto& runtime = GroupAccess::runtime(state_.group);
  const auto& ranks = GroupAccess::connection(state_.group).group.ranks;
  rankmesh::detail::throw_unreadable(runtime.control->names(runtime.facts.rank),
                                     runtime.control->names(ranks.at(peer.member.value())), code);
}

}  // namespace rankmesh::exchange::detail
