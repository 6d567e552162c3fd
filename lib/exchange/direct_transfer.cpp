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
      exchanges_[i].reading[step].behind.begin(peer.received[step]);
    }
}

void DirectTransfer::begin_step(TransferStep step) {
  const auto s = static_cast<std::size_t>(step);
  bool has_published = false;
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    if (step == TransferStep::first) post_receive(i);
    const DirectPeer& peer = state_.direct[i];
    if (peer.sent[s].parts.empty()) continue;
    const bool can_be_read = std::ranges::all_of(peer.sent[s].parts, [&](const StreamPart& part) {
      return state_.tensors[part.tensor].can_be_read(step);
    });
    if (peer.has_short_runs[s] || !can_be_read) {
      Packing& packing = exchanges_[i].packing[s];
      packing.is_used = true;
      packing.walk.begin(peer.sent[s]);
      for (int piece = 0; piece < 2 && !packing.walk.is_at_end(); ++piece) pack(i, s);
      continue;
    }
    if (!std::exchange(has_published, true)) publish(step);
    send(i, {.kind = Notice::may_read,
             .step = s,
             .address = reinterpret_cast<std::uint64_t>(state_.published.tables[s].data())});
  }
}

void DirectTransfer::publish(TransferStep step) {
  std::vector<std::int64_t>& table = state_.published.tables[static_cast<std::size_t>(step)];
  table.resize(state_.table_places.back());
  for (std::size_t t = 0; t < state_.tensors.size(); ++t)
    state_.tensors[t].publish(step, table.data() + state_.table_places[t]);
}

// Packs the next piece of a stream.
void DirectTransfer::pack(std::size_t peer, std::size_t step) {
  Packing& packing = exchanges_[peer].packing[step];
  auto& memory = state_.direct[peer].packed[step];
  const std::int64_t piece =
      std::min(state_.packed_piece, bytes_of(state_.direct[peer].sent[step]));
  if (memory == nullptr)
    memory = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(2 * piece));
  std::byte* const begin = memory.get() + static_cast<std::int64_t>(packing.next) * piece;
  packing.next = 1 - packing.next;
  std::byte* end = begin;
  packing.walk.next(packing.walk.next_bytes(piece), [&](const StreamPart& part,
                                                        const Strip& strip) {
    end = state_.tensors[part.tensor].pack(static_cast<TransferStep>(step), strip, end, part.type);
  });
  ++packing.on_the_way;
  send(peer, {.kind = Notice::may_read_packed,
              .step = step,
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
  DirectPeer& of = state_.direct[peer];
  if (!read_table(of, notice)) return false;
  const MessageStream& stream = of.received[notice.step];
  StreamWalk& ahead = exchanges_[peer].reading[notice.step].ahead;
  while (!ahead.is_at_end()) {
    const std::int64_t bytes = ahead.next_bytes(RedistributionState::direct_piece);
    add_piece(
        peer, notice, bytes, [&](const StreamPart& part, std::int64_t offset, std::int64_t n) {
          of.memory[notice.step][static_cast<std::size_t>(&part - stream.parts.data())].for_each(
              offset, n,
              [&](std::byte* data, std::int64_t count) { add(from_, data, count * part.width()); });
        });
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
    walk.next(bytes, [&](const StreamPart& part, const Strip& strip) {
      stored = state_.tensors[part.tensor].unpack(static_cast<TransferStep>(notice.step), strip,
                                                  stored, part.type);
    });
    count_(bytes);
    from += bytes;
    left -= bytes;
  }
  return true;
}

bool DirectTransfer::is_stored_directly(const StreamPart& part, const Strip& strip) const {
  const LocalArray& target = state_.tensors[part.tensor].target();
  return target.type() == part.type &&
         std::min(strip.length * part.width(), target.bytes_of_piece()) >= least_direct_piece;
}

// Adds the next bytes of a stream to the lists. Elements that cannot be read to their places are
// read to the scratch memory.
template <class AddSource>
void DirectTransfer::add_piece(std::size_t peer, const Notice& notice, std::int64_t bytes,
                               AddSource&& add_source) {
  scratch_ = state_.direct_scratch.get();
  is_refused_ = false;
  exchanges_[peer].reading[notice.step].ahead.next(bytes, [&](const StreamPart& part,
                                                              const Strip& strip) {
    const LocalArray& target = state_.tensors[part.tensor].target();
    const bool is_direct = is_stored_directly(part, strip);
    const std::int64_t run_bytes = strip.length * part.width();
    for (std::int64_t run = 0; run < strip.count; ++run) {
      add_source(part, strip.source + run * strip.source_step, strip.length);
      if (is_direct) {
        target.for_each(strip.target + run * strip.target_step, strip.length,
                        [&](std::byte* data, std::int64_t n) { add(to_, data, n * part.width()); });
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
  if (scratch_ != state_.direct_scratch.get() || gathered_ >= most_at_once ||
      reading.ahead.is_at_end())
    flush(peer, notice);
  if (is_refused_) {
    to_.clear();
    from_.clear();
    gathered_ = 0;
    return;
  }
  const std::byte* stored = state_.direct_scratch.get();
  reading.behind.next(bytes, [&](const StreamPart& part, const Strip& strip) {
    if (!is_stored_directly(part, strip))
      stored = state_.tensors[part.tensor].unpack(static_cast<TransferStep>(notice.step), strip,
                                                  stored, part.type);
  });
}

void DirectTransfer::flush(std::size_t peer, const Notice& notice) {
  if (to_.empty()) return;
  is_refused_ = !gather(state_.direct[peer], notice) || is_refused_;
  count_(std::exchange(gathered_, 0));
}

// Reads where the peer's elements lie. As long as it uses the same memory, nothing is allocated.
bool DirectTransfer::read_table(DirectPeer& peer, const Notice& notice) {
  std::vector<std::int64_t>& now = state_.table_read;
  now.resize(state_.table_places.back());
  const auto bytes = static_cast<std::int64_t>(now.size() * sizeof(std::int64_t));
  add(to_, reinterpret_cast<std::byte*>(now.data()), bytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  add(from_, reinterpret_cast<std::byte*>(notice.address), bytes);
  if (!gather(peer, notice)) return false;
  std::vector<std::int64_t>& known = peer.tables[notice.step];
  if (known == now) return true;
  known = now;
  std::vector<LocalArray>& memory = peer.memory[notice.step];
  memory.clear();
  for (const StreamPart& part : peer.received[notice.step].parts)
    memory.push_back(state_.tensors[part.tensor].memory_of(
        Rank{peer.member.value()}, static_cast<TransferStep>(notice.step),
        known.data() + state_.table_places[part.tensor]));
  return true;
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
