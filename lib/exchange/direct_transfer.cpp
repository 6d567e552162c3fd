// SPDX-License-Identifier: BSD-3-Clause
#include "detail/direct_transfer.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace rankmesh::exchange::detail {
namespace {

// Returns whether the pieces of all tensors of a stream are long enough to be read directly.
bool can_be_read(const MovedTensors& tensors, const MessageStream& sent) {
  const BoundArrays& senders = tensors.senders(sent.step);
  return !senders.have_gaps() || std::ranges::all_of(sent.parts, [&](const StreamPart& part) {
    const DataType type = sent.kind_of(part).type();
    return senders.array(part.tensor, type).bytes_of_piece() >= least_direct_piece;
  });
}

}  // namespace

DirectTransfer::DirectTransfer(RedistributionState& state, std::function<void(std::int64_t)> count)
    : state_{state}, exchanges_(state.direct.size()), reader_{state, std::move(count)} {
  if (exchanges_.empty()) return;
  state_.published.transfer = static_cast<std::uint64_t>(state_.starts) + 1;  // 0: given up
  for (std::size_t i = 0; i < exchanges_.size(); ++i)
    for (std::size_t step = 0; step < 2; ++step) {
      const DirectPeer& peer = state_.direct[i];
      if (!peer.sent[step].parts.empty()) ++exchanges_[i].streams;
      if (peer.received[step].parts.empty()) continue;
      ++exchanges_[i].streams;
      ++unread_[step];
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
    send(i, {.kind = DirectNotice::may_read,
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
  packing.walk.next(packing.walk.next_bytes(piece), [&](std::size_t tensor, const StreamKind& kind,
                                                        const Strip& strip) {
    end = state_.tensors[tensor].pack(static_cast<TransferStep>(step), strip, end, kind.type());
  });
  ++packing.on_the_way;
  send(peer, {.kind = DirectNotice::may_read_packed,
              .step = static_cast<std::uint32_t>(step),
              .address = reinterpret_cast<std::uint64_t>(begin),
              .bytes = static_cast<std::uint64_t>(end - begin)});
}

void DirectTransfer::post_receive(std::size_t peer) {
  Exchange& exchange = exchanges_[peer];
  exchange.receive =
      state_.messages->start({.operation = Operation::recv,
                              .tag = state_.tag(),
                              .out = {reinterpret_cast<std::byte*>(&exchange.incoming),
                                      sizeof(DirectNotice), DataType::uint8},
                              .source = state_.direct[peer].member});
}

void DirectTransfer::send(std::size_t peer, const DirectNotice& notice) {
  auto& list = exchanges_[peer].outgoing;
  auto next = std::ranges::find_if(
      list, [](const Outgoing& outgoing) { return outgoing.pending == nullptr; });
  if (next == list.end()) next = list.insert(list.end(), Outgoing{});
  next->notice = notice;
  next->notice.transfer = reinterpret_cast<std::uint64_t>(&state_.published.transfer);
  next->notice.number = state_.published.transfer;
  next->pending = state_.messages->start({.operation = Operation::send,
                                          .tag = state_.tag(),
                                          .in = {reinterpret_cast<const std::byte*>(&next->notice),
                                                 sizeof(DirectNotice), DataType::uint8},
                                          .destination = state_.direct[peer].member});
}

bool DirectTransfer::test() {
  take_notices();
  while (reader_.open_streams() > 0) {
    for (std::size_t turns = reader_.open_streams(); turns > 0; --turns)
      if (const auto stream = reader_.read_next()) answer(*stream);
    take_notices();
  }
  bool is_complete = true;
  for (Exchange& exchange : exchanges_) {
    for (Outgoing& outgoing : exchange.outgoing) {
      if (outgoing.pending != nullptr && outgoing.pending->test()) outgoing.pending.reset();
      is_complete = is_complete && outgoing.pending == nullptr;
    }
    is_complete = is_complete && exchange.streams == 0;
  }
  return is_complete;
}

void DirectTransfer::take_notices() {
  for (std::size_t i = 0; i < exchanges_.size(); ++i)
    while (exchanges_[i].receive != nullptr && exchanges_[i].receive->test()) take(i);
}

// Takes the notice that has arrived. While a stream is read, no receive is posted. If the peer has
// ended or has given up, none is posted either: those who look for processes report it.
void DirectTransfer::take(std::size_t peer) {
  Exchange& exchange = exchanges_[peer];
  exchange.receive.reset();
  const DirectNotice notice = exchange.incoming;
  const DirectReader::Stream stream{peer, notice.step};
  if (notice.kind == DirectNotice::may_read) return reader_.open(stream, notice);
  if (notice.kind == DirectNotice::may_read_packed) {
    if (reader_.read_packed(stream, notice)) answer(stream);
    return;
  }
  Packing& packing = exchange.packing[notice.step];
  if (packing.is_used) --packing.on_the_way;
  if (packing.is_used && !packing.walk.is_at_end())
    pack(peer, notice.step);
  else if (packing.on_the_way == 0)
    end_stream(peer);
  if (exchange.streams > 0) post_receive(peer);
}

// Tells the sender that this rank has read a packed piece, or the whole stream.
void DirectTransfer::answer(DirectReader::Stream stream) {
  const auto [peer, step] = stream;
  send(peer, {.kind = DirectNotice::has_read, .step = static_cast<std::uint32_t>(step)});
  if (reader_.is_at_end(stream)) {
    --unread_[step];
    end_stream(peer);
  }
  if (exchanges_[peer].streams > 0) post_receive(peer);
}

void DirectTransfer::end_stream(std::size_t peer) {
  --exchanges_[peer].streams;
  ++finished_;
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
