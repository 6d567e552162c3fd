// SPDX-License-Identifier: BSD-3-Clause
#include "detail/direct_transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::exchange::detail {
namespace {

using rankmesh::detail::GroupAccess;
using rankmesh::detail::NodeMemory;

constexpr std::int64_t most_at_once = 1 << 20;  // bytes of one read
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

// Returns whether the pieces of all tensors of a stream are long enough to be read directly.
bool can_be_read(const MovedTensors& tensors, const MessageStream& sent) {
  const BoundArrays& senders = tensors.senders(sent.step);
  return !senders.have_gaps() || std::ranges::all_of(sent.parts, [&](const StreamPart& part) {
    const DataType type = sent.kind_of(part).type();
    return senders.array(part.tensor, type).bytes_of_piece() >= least_direct_piece;
  });
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

DirectTransfer::DirectTransfer(RedistributionState& state, std::function<void(std::int64_t)> count)
    : state_{state}, count_{std::move(count)}, exchanges_(state.direct.size()) {
  if (exchanges_.empty()) return;
  state_.published.transfer = static_cast<std::uint64_t>(state_.starts);
  for (auto* list : {&to_, &from_}) list->reserve(NodeMemory::most_pieces + 1);
  for (std::size_t i = 0; i < exchanges_.size(); ++i)
    for (std::size_t step = 0; step < 2; ++step) {
      const DirectPeer& peer = state_.direct[i];
      if (!peer.sent[step].parts.empty()) ++exchanges_[i].streams;
      if (peer.received[step].parts.empty()) continue;
      ++exchanges_[i].streams;
      ++unread_[step];
      exchanges_[i].reading[step].ahead.begin(peer.received[step]);
    }
}

void DirectTransfer::begin_step(TransferStep step) {
  const auto s = static_cast<std::size_t>(step);
  const BoundArrays& senders = state_.tensors.senders(step);
  const std::uint64_t strides = publish_strides(step);
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    if (step == TransferStep::first) post_receive(i);
    const DirectPeer& peer = state_.direct[i];
    if (peer.sent[s].parts.empty()) continue;
    if (peer.has_short_runs[s] || !can_be_read(state_.tensors, peer.sent[s])) {
      Packing& packing = exchanges_[i].packing[s];
      packing.is_used = true;
      packing.walk.begin(peer.sent[s]);
      for (int piece = 0; piece < 2 && !packing.walk.is_at_end(); ++piece) pack(i, s);
      continue;
    }
    send(i, {.kind = Notice::may_read,
             .step = static_cast<std::uint32_t>(step),
             .address = reinterpret_cast<std::uint64_t>(senders.addresses().data()),
             .strides = strides});
  }
}

// Returns the address of the strides; 0 if there are no gaps.
std::uint64_t DirectTransfer::publish_strides(TransferStep step) {
  const BoundArrays& senders = state_.tensors.senders(step);
  if (exchanges_.empty() || !senders.have_gaps()) return 0;
  std::vector<std::int64_t>& strides = state_.published.strides[static_cast<std::size_t>(step)];
  strides.resize(state_.tensors.size() * state_.most_axes);
  for (std::size_t t = 0; t < state_.tensors.size(); ++t)
    senders.gaps(t)->store_strides(state_.tensors.kind(t).sender(step).shape,
                                   strides.data() + t * state_.most_axes);
  return reinterpret_cast<std::uint64_t>(strides.data());
}

// Packs the next piece of a stream.
void DirectTransfer::pack(std::size_t peer, std::size_t step) {
  Packing& packing = exchanges_[peer].packing[step];
  auto& memory = state_.direct[peer].packed[step];
  const std::int64_t piece = std::min(state_.packed_piece, state_.direct[peer].sent[step].bytes);
  if (memory == nullptr)
    memory = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(2 * piece));
  std::byte* const begin = memory.get() + static_cast<std::int64_t>(packing.next) * piece;
  packing.next = 1 - packing.next;
  std::byte* end = begin;
  packing.walk.next(packing.walk.next_bytes(piece),
                    [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
                      end = state_.tensors[tensor].pack(static_cast<TransferStep>(step), strip, end,
                                                        kind.type());
                    });
  ++packing.on_the_way;
  send(peer, {.kind = Notice::may_read_packed,
              .step = static_cast<std::uint32_t>(step),
              .address = reinterpret_cast<std::uint64_t>(begin),
              .bytes = static_cast<std::uint64_t>(end - begin)});
}

void DirectTransfer::post_receive(std::size_t peer) {
  Exchange& exchange = exchanges_[peer];
  exchange.receive = state_.messages->start(
      {.operation = Operation::recv,
       .tag = state_.tag(),
       .out = {reinterpret_cast<std::byte*>(&exchange.incoming), sizeof(Notice), DataType::uint8},
       .source = state_.direct[peer].member});
}

void DirectTransfer::send(std::size_t peer, const Notice& notice) {
  auto& list = exchanges_[peer].outgoing;
  auto next = std::ranges::find_if(
      list, [](const Outgoing& outgoing) { return outgoing.pending == nullptr; });
  if (next == list.end()) next = list.insert(list.end(), Outgoing{});
  next->notice = notice;
  next->notice.transfer = reinterpret_cast<std::uint64_t>(&state_.published.transfer);
  next->notice.number = state_.published.transfer;
  next->pending = state_.messages->start(
      {.operation = Operation::send,
       .tag = state_.tag(),
       .in = {reinterpret_cast<const std::byte*>(&next->notice), sizeof(Notice), DataType::uint8},
       .destination = state_.direct[peer].member});
}

bool DirectTransfer::test() {
  bool is_complete = true;
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    Exchange& exchange = exchanges_[i];
    while (exchange.receive != nullptr && exchange.receive->test()) take(i);
    for (Outgoing& outgoing : exchange.outgoing) {
      if (outgoing.pending != nullptr && outgoing.pending->test()) outgoing.pending.reset();
      is_complete = is_complete && outgoing.pending == nullptr;
    }
    is_complete = is_complete && exchange.streams == 0;
  }
  return is_complete;
}

// Takes the notice that has arrived. If the peer has ended or has given up, no receive is posted:
// those who look for processes report it.
void DirectTransfer::take(std::size_t peer) {
  Exchange& exchange = exchanges_[peer];
  exchange.receive.reset();
  const Notice notice = exchange.incoming;
  if (notice.kind == Notice::has_read) {
    Packing& packing = exchange.packing[notice.step];
    if (packing.is_used) --packing.on_the_way;
    if (packing.is_used && !packing.walk.is_at_end())
      pack(peer, notice.step);
    else if (packing.on_the_way == 0)
      end_stream(peer);
  } else {
    if (!(notice.kind == Notice::may_read ? read(peer, notice) : read_packed(peer, notice))) return;
    send(peer, {.kind = Notice::has_read, .step = notice.step});
    if (exchange.reading[notice.step].ahead.is_at_end()) {
      --unread_[notice.step];
      end_stream(peer);
    }
  }
  if (exchange.streams > 0) post_receive(peer);
}

void DirectTransfer::end_stream(std::size_t peer) {
  --exchanges_[peer].streams;
  ++finished_;
}

bool DirectTransfer::read(std::size_t peer, const Notice& notice) {
  if (!read_places(state_.direct[peer], notice)) return false;
  const StreamWalk& ahead = exchanges_[peer].reading[notice.step].ahead;
  while (!ahead.is_at_end()) {
    const std::int64_t bytes = ahead.next_bytes(RedistributionState::direct_piece);
    add_piece(peer, notice, bytes);
    store_piece(peer, notice, bytes);
    if (is_refused_) return false;
  }
  return true;
}

// A packed piece is read to the scratch memory, and stored from there.
bool DirectTransfer::read_packed(std::size_t peer, const Notice& notice) {
  StreamWalk& walk = exchanges_[peer].reading[notice.step].ahead;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  auto* from = reinterpret_cast<std::byte*>(notice.address);
  for (auto left = static_cast<std::int64_t>(notice.bytes); left > 0;) {
    const std::int64_t bytes = walk.next_bytes(std::min(left, RedistributionState::direct_piece));
    add(from_, from, bytes);
    add(to_, state_.direct_scratch.get(), bytes);
    if (!gather(state_.direct[peer], notice)) return false;
    const std::byte* stored = state_.direct_scratch.get();
    walk.next(bytes, [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
      stored = state_.tensors[tensor].unpack(static_cast<TransferStep>(notice.step), strip, stored,
                                             kind.type());
    });
    count_(bytes);
    from += bytes;
    left -= bytes;
  }
  return true;
}

// Adds the next bytes of a stream to the lists. Elements that cannot be read to their places are
// read to the scratch memory.
void DirectTransfer::add_piece(std::size_t peer, const Notice& notice, std::int64_t bytes) {
  const std::vector<ArrayGaps>& gaps = state_.direct[peer].gaps[notice.step];
  Reading& reading = exchanges_[peer].reading[notice.step];
  reading.behind = reading.ahead;
  scratch_ = state_.direct_scratch.get();
  is_refused_ = false;
  reading.ahead.next(bytes, [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
    const LocalArray source{state_.addresses_read[tensor], kind.type(),
                            notice.strides == 0 ? nullptr : &gaps[tensor]};
    const LocalArray target =
        state_.tensors.targets().array(tensor, state_.tensors.kind(tensor).target().type);
    const bool is_direct = is_stored_directly(kind, target, strip);
    const std::int64_t run_bytes = strip.length * kind.width();
    for (std::int64_t run = 0; run < strip.count; ++run) {
      source.for_each(
          strip.source + run * strip.source_step, strip.length,
          [&](std::byte* data, std::int64_t n) { add(from_, data, n * kind.width()); });
      if (is_direct) {
        target.for_each(
            strip.target + run * strip.target_step, strip.length,
            [&](std::byte* data, std::int64_t n) { add(to_, data, n * kind.width()); });
      } else {
        add(to_, scratch_, run_bytes);
        scratch_ += run_bytes;
      }
      gathered_ += run_bytes;
      if (std::max(to_.size(), from_.size()) + most_pieces_of_run >= NodeMemory::most_pieces)
        flush(peer, notice);
    }
  });
}

// Stores what add_piece() has put into the scratch memory.
void DirectTransfer::store_piece(std::size_t peer, const Notice& notice, std::int64_t bytes) {
  Reading& reading = exchanges_[peer].reading[notice.step];
  const bool has_scratch = scratch_ != state_.direct_scratch.get();
  if (has_scratch || gathered_ >= most_at_once || reading.ahead.is_at_end()) flush(peer, notice);
  if (is_refused_) {
    to_.clear();
    from_.clear();
    gathered_ = 0;
    return;
  }
  if (!has_scratch) return;
  const std::byte* stored = state_.direct_scratch.get();
  reading.behind.next(bytes, [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
    const MovedTensor moved = state_.tensors[tensor];
    if (!is_stored_directly(kind, moved.target, strip))
      stored = moved.unpack(static_cast<TransferStep>(notice.step), strip, stored, kind.type());
  });
}

void DirectTransfer::flush(std::size_t peer, const Notice& notice) {
  if (to_.empty()) return;
  is_refused_ = !gather(state_.direct[peer], notice) || is_refused_;
  count_(std::exchange(gathered_, 0));
}

// Reads where the peer's elements lie.
bool DirectTransfer::read_places(DirectPeer& peer, const Notice& notice) {
  const auto add_table = [&](auto& table, std::uint64_t address) {
    const auto bytes = static_cast<std::int64_t>(table.size() * sizeof table[0]);
    add(to_, reinterpret_cast<std::byte*>(table.data()), bytes);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
    add(from_, reinterpret_cast<std::byte*>(address), bytes);
  };
  add_table(state_.addresses_read, notice.address);
  if (notice.strides == 0) return gather(peer, notice);
  state_.strides_read.resize(state_.tensors.size() * state_.most_axes);
  add_table(state_.strides_read, notice.strides);
  if (!gather(peer, notice)) return false;
  find_gaps(peer, notice.step);
  return true;
}

// Finds the gaps of the peer's tensors, unless it has the same strides as last time.
void DirectTransfer::find_gaps(DirectPeer& peer, std::size_t step) {
  if (peer.strides[step] == state_.strides_read) return;
  peer.strides[step] = state_.strides_read;
  std::vector<ArrayGaps>& gaps = peer.gaps[step];
  gaps.resize(state_.tensors.size());
  for (const StreamPart& part : peer.received[step].parts) {
    const TensorTransfer& transfer = state_.plan.tensors()[part.tensor];
    const bool is_forward = static_cast<TransferStep>(step) == TransferStep::forward;
    const auto shape =
        (is_forward ? transfer.to : transfer.from).local_shape(Rank{peer.member.value()});
    gaps[part.tensor].set(shape, std::span{peer.strides[step]}.subspan(
                                     part.tensor * state_.most_axes, shape.size()));
  }
}

// Reads the pieces in the lists. Returns false if the peer has ended or has given up.
bool DirectTransfer::gather(const DirectPeer& peer, const Notice& notice) {
  std::uint64_t transfer = 0;
  to_.push_back({&transfer, sizeof transfer});
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  from_.push_back({reinterpret_cast<void*>(notice.transfer), sizeof transfer});
  NodeMemory& memory = memory_of(state_);
  const int code = memory.gather(peer.local_rank, to_, from_);
  to_.clear();
  from_.clear();
  if (code == 0) return transfer == notice.number;
  // A peer that has given up may have freed its memory.
  const int code_of_number = memory.read(peer.local_rank, notice.transfer,
                                         reinterpret_cast<std::byte*>(&transfer), sizeof transfer);
  if (code == ESRCH || code_of_number != 0 || transfer != notice.number) return false;
  const auto& runtime = GroupAccess::runtime(state_.group);
  const auto& ranks = GroupAccess::connection(state_.group).group.ranks;
  rankmesh::detail::throw_unreadable(runtime.control->names(runtime.facts.rank),
                                     runtime.control->names(ranks.at(peer.member.value())), code);
}

bool DirectTransfer::is_in_mpi() const {
  const auto is_pending = [](const std::unique_ptr<Pending>& pending) {
    return pending != nullptr && pending->is_in_mpi();
  };
  return std::ranges::any_of(exchanges_, [&](const Exchange& exchange) {
    return is_pending(exchange.receive) ||
           std::ranges::any_of(exchange.outgoing, is_pending, &Outgoing::pending);
  });
}

void DirectTransfer::add_unfinished(std::set<std::int64_t>& members) const {
  for (std::size_t i = 0; i < exchanges_.size(); ++i)
    if (exchanges_[i].streams > 0) members.insert(state_.direct[i].member.value());
}

}  // namespace rankmesh::exchange::detail
