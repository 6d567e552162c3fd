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
inline void add(std::vector<iovec>& list, const LocalArray& array, std::int64_t offset,
                std::int64_t count) {
  if (array.is_dense()) return add(list, array.at(offset), count * array.width());
  array.for_each(offset, count,
                 [&](std::byte* data, std::int64_t n) { add(list, data, n * array.width()); });
}

// Returns whether the elements of a strip are read to their places.
bool is_stored_directly(DataType type, const LocalArray& target, const Strip& strip) {
  return target.type() == type &&
         std::min(strip.length * target.width(), target.bytes_of_piece()) >= least_direct_piece;
}

NodeMemory& memory_of(const RedistributionState& state) {
  return *GroupAccess::runtime(state.group).node_memory;
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
  choose(from, notice);
  StreamWalk& walk = readings_[from.first][from.second].ahead;
  std::uint64_t address = notice.address;
  for (auto left = static_cast<std::int64_t>(notice.bytes); left > 0;) {
    const std::int64_t bytes = walk.next_bytes(std::min(left, RedistributionState::direct_piece));
    if (!read(address, state_.direct_scratch.get(), bytes)) return false;
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
  choose(from, notice);
  reading.is_open = notice.strides == 0 || read_gaps();
  if (reading.is_open) ++open_;
}

std::optional<DirectReader::Stream> DirectReader::read_next() {
  Stream from;
  Reading* const reading = furthest_behind(from);
  if (reading == nullptr) return std::nullopt;
  choose(from, reading->notice);
  const bool has_read = read_turn(*reading);
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
bool DirectReader::read_turn(Reading& reading) {
  is_refused_ = false;
  do {
    const std::int64_t bytes = reading.ahead.next_parts(RedistributionState::direct_piece);
    reading.behind = reading.ahead;
    scratch_ = state_.direct_scratch.get();
    reading.ahead.next(bytes, [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
      add_strip({address_of(tensor, reading), kind.type(), gaps_of(tensor)}, target_of(tensor),
                strip);
    });
    const bool has_scratch = scratch_ != state_.direct_scratch.get();
    if (has_scratch || gathered_ >= bytes_of_turn || reading.ahead.is_at_end() || is_refused_)
      flush();
    if (has_scratch && !is_refused_) store_scratch(reading.behind, bytes);
    reading.bytes += bytes;
  } while (!to_.empty());
  return !is_refused_;
}

// Adds elements to the lists. Those that cannot be read to their places are read to the scratch
// memory.
void DirectReader::add_strip(const LocalArray& source, const LocalArray& target,
                             const Strip& strip) {
  const bool is_direct = is_stored_directly(source.type(), target, strip);
  const std::int64_t bytes = strip.length * source.width();
  for (std::int64_t run = 0; run < strip.count; ++run) {
    add(from_, source, strip.source + run * strip.source_step, strip.length);
    if (is_direct) {
      add(to_, target, strip.target + run * strip.target_step, strip.length);
    } else {
      add(to_, scratch_, bytes);
      scratch_ += bytes;
    }
    gathered_ += bytes;
    if (std::max(to_.size(), from_.size()) >= most_pieces_before_run) flush();
  }
}

// Stores what add_strip() has put into the scratch memory.
void DirectReader::store_scratch(StreamWalk& behind, std::int64_t bytes) {
  const std::byte* stored = state_.direct_scratch.get();
  behind.next(bytes, [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
    if (!is_stored_directly(kind.type(), target_of(tensor), strip))
      stored = state_.tensors[tensor].unpack(static_cast<TransferStep>(notice_.step), strip, stored,
                                             kind.type());
  });
}

// Reads the pieces in the lists, unless an earlier read of this turn has failed.
void DirectReader::flush() {
  if (!to_.empty() && !is_refused_) {
    is_refused_ = !gather();
    count_(gathered_);
  }
  to_.clear();
  from_.clear();
  gathered_ = 0;
}

// Reads where a tensor and the next few hundred ones lie in the memory of the peer.
void DirectReader::read_addresses(std::size_t tensor, Reading& reading) {
  flush();
  constexpr std::size_t most = 1024;
  std::vector<std::byte*>& addresses = peer_->addresses[notice_.step];
  addresses.resize(std::min(most, state_.tensors.size()));
  reading.first_known = tensor;
  reading.known = std::min(addresses.size(), state_.tensors.size() - tensor);
  constexpr std::size_t size = sizeof addresses[0];
  if (!read(notice_.address + tensor * size, reinterpret_cast<std::byte*>(addresses.data()),
            static_cast<std::int64_t>(reading.known * size)))
    is_refused_ = true;
}

// Returns the gaps of a tensor in the memory of the peer; null if it has none.
const ArrayGaps* DirectReader::gaps_of(std::size_t tensor) const {
  return notice_.strides == 0 ? nullptr : &peer_->gaps[notice_.step][tensor];
}

LocalArray DirectReader::target_of(std::size_t tensor) const {
  return state_.tensors.targets().array(tensor, state_.tensors.kind(tensor).target().type);
}

// Finds the gaps of the peer's tensors. As long as it has the same strides, this is one read.
bool DirectReader::read_gaps() {
  std::vector<std::int64_t>& strides = state_.strides_read;
  strides.resize(state_.tensors.size() * state_.most_axes);
  if (!read(notice_.strides, reinterpret_cast<std::byte*>(strides.data()),
            static_cast<std::int64_t>(strides.size() * sizeof strides[0])))
    return false;
  std::vector<std::int64_t>& known = peer_->strides[notice_.step];
  if (known == strides) return true;
  known = strides;
  std::vector<ArrayGaps>& gaps = peer_->gaps[notice_.step];
  gaps.resize(state_.tensors.size());
  for (const StreamPart& part : peer_->received[notice_.step].parts) {
    const TensorTransfer& transfer = state_.plan.tensors()[part.tensor];
    const bool is_forward = static_cast<TransferStep>(notice_.step) == TransferStep::forward;
    const auto shape =
        (is_forward ? transfer.to : transfer.from).local_shape(Rank{peer_->member.value()});
    gaps[part.tensor].set(shape,
                          std::span{known}.subspan(part.tensor * state_.most_axes, shape.size()));
  }
  return true;
}

// Reads contiguous memory. The lists must be empty. Returns false if the peer has ended or has
// given up.
bool DirectReader::read(std::uint64_t address, std::byte* to, std::int64_t bytes) {
  add(to_, to, bytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  add(from_, reinterpret_cast<std::byte*>(address), bytes);
  return gather();
}

// Reads the pieces in the lists. Returns false if the peer has ended or has given up.
bool DirectReader::gather() {
  std::uint64_t transfer = 0;
  to_.push_back({&transfer, sizeof transfer});
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  from_.push_back({reinterpret_cast<void*>(notice_.transfer), sizeof transfer});
  const int code = memory_of(state_).gather(peer_->local_rank, to_, from_);
  to_.clear();
  from_.clear();
  return has_read(code, transfer);
}

// Returns whether a read has succeeded; false if the peer has ended or has given up.
// @param transfer  What the read has found in PublishedMemory::transfer.
bool DirectReader::has_read(int code, std::uint64_t transfer) {
  if (code == 0) return transfer == notice_.number;
  // A peer that has given up may have freed its memory.
  const int code_of_number =
      memory_of(state_).read(peer_->local_rank, notice_.transfer,
                             reinterpret_cast<std::byte*>(&transfer), sizeof transfer);
  if (code == ESRCH || code_of_number != 0 || transfer != notice_.number) return false;
  const auto& runtime = GroupAccess::runtime(state_.group);
  const auto& ranks = GroupAccess::connection(state_.group).group.ranks;
  rankmesh::detail::throw_unreadable(runtime.control->names(runtime.rank),
                                     runtime.control->names(ranks.at(peer_->member.value())), code);
}

}  // namespace rankmesh::exchange::detail
