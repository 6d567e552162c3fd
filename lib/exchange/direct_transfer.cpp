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
      const bool receives = !state_.direct[i].received[step].parts.empty();
      exchanges_[i].expected +=
          (receives ? 1 : 0) + (state_.direct[i].sent[step].parts.empty() ? 0 : 1);
      unread_[step] += receives ? 1 : 0;
    }
}

void DirectTransfer::begin_step(TransferStep step) {
  const auto s = static_cast<std::size_t>(step);
  std::vector<std::int64_t>& table = state_.published.tables[s];
  bool has_published = false;
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    if (step == TransferStep::first) post_receive(i);
    if (state_.direct[i].sent[s].parts.empty()) continue;
    if (!std::exchange(has_published, true)) {
      table.resize(state_.table_places.back());
      for (std::size_t t = 0; t < state_.tensors.size(); ++t)
        state_.tensors[t].publish(step, table.data() + state_.table_places[t]);
    }
    send(i,
         {Notice::may_read, s, reinterpret_cast<std::uint64_t>(table.data()),
          reinterpret_cast<std::uint64_t>(&state_.published.transfer), state_.published.transfer});
  }
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
  Exchange& exchange = exchanges_[peer];
  Outgoing& next = exchange.outgoing[exchange.sent++];
  next.notice = notice;
  next.pending = state_.messages->start(
      {.operation = Operation::send,
       .tag = state_.tag(),
       .in = {reinterpret_cast<const std::byte*>(&next.notice), sizeof(Notice), DataType::uint8},
       .destination = state_.direct[peer].member});
}

bool DirectTransfer::test() {
  bool is_complete = true;
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    Exchange& exchange = exchanges_[i];
    while (exchange.receive != nullptr && exchange.receive->test()) take(i);
    for (Outgoing& outgoing : exchange.outgoing)
      if (outgoing.pending != nullptr && outgoing.pending->test()) outgoing.pending.reset();
    is_complete = is_complete && exchange.expected == 0 &&
                  std::ranges::none_of(exchange.outgoing, [](const Outgoing& outgoing) {
                    return outgoing.pending != nullptr;
                  });
  }
  return is_complete;
}

// Takes the notice that has arrived.
void DirectTransfer::take(std::size_t peer) {
  Exchange& exchange = exchanges_[peer];
  exchange.receive.reset();
  const Notice notice = exchange.incoming;
  if (notice.kind == Notice::may_read) {
    exchange.is_lost = !read(state_.direct[peer], notice);
    if (exchange.is_lost) return;
    --unread_[notice.step];
    send(peer, {Notice::has_read, notice.step});
  }
  ++arrived_;
  if (--exchange.expected > 0) post_receive(peer);
}

bool DirectTransfer::read(DirectPeer& peer, const Notice& notice) {
  if (!read_table(peer, notice)) return false;
  const auto step = static_cast<TransferStep>(notice.step);
  const MessageStream& stream = peer.received[notice.step];
  StreamWalk ahead, behind;  // what is read, and what is stored
  ahead.begin(stream);
  behind.begin(stream);
  std::int64_t gathered = 0;
  while (!ahead.is_at_end()) {
    const std::int64_t bytes = ahead.next_bytes(RedistributionState::direct_piece);
    std::byte* scratch = state_.direct_scratch.get();
    const auto is_stored_directly = [&](const StreamPart& part, const Strip& strip) {
      const LocalArray& target = state_.tensors[part.tensor].target();
      return target.type() == part.type &&
             std::min(strip.length * part.width(), target.bytes_of_piece()) >= least_direct_piece;
    };
    bool is_refused = false;
    const auto flush = [&] {
      is_refused = is_refused || !gather(peer, notice);
      count_(std::exchange(gathered, 0));
    };
    ahead.next(bytes, [&](const StreamPart& part, const Strip& strip) {
      const LocalArray& source =
          peer.memory[notice.step][static_cast<std::size_t>(&part - stream.parts.data())];
      const LocalArray& target = state_.tensors[part.tensor].target();
      const bool is_direct = is_stored_directly(part, strip);
      const std::int64_t width = part.width();
      for (std::int64_t run = 0; run < strip.count; ++run) {
        source.for_each(strip.source + run * strip.source_step, strip.length,
                        [&](std::byte* data, std::int64_t n) { add(from_, data, n * width); });
        if (is_direct) {
          target.for_each(strip.target + run * strip.target_step, strip.length,
                          [&](std::byte* data, std::int64_t n) { add(to_, data, n * width); });
        } else {
          add(to_, scratch, strip.length * width);
          scratch += strip.length * width;
        }
        gathered += strip.length * width;
        if (std::max(to_.size(), from_.size()) + most_pieces_of_run >= NodeMemory::most_pieces)
          flush();
      }
    });
    const bool has_scratch = scratch != state_.direct_scratch.get();
    if (has_scratch || gathered >= most_at_once || ahead.is_at_end()) flush();
    if (is_refused) return false;
    const std::byte* stored = state_.direct_scratch.get();
    behind.next(bytes, [&](const StreamPart& part, const Strip& strip) {
      if (!is_stored_directly(part, strip))
        stored = state_.tensors[part.tensor].unpack(step, strip, stored, part.type);
    });
  }
  return true;
}

// Reads where the peer's elements lie. As long as it uses the same memory, nothing is allocated.
bool DirectTransfer::read_table(DirectPeer& peer, const Notice& notice) {
  std::vector<std::int64_t>& now = state_.table_read;
  now.resize(state_.table_places.back());
  const auto bytes = static_cast<std::int64_t>(now.size() * sizeof(std::int64_t));
  add(to_, reinterpret_cast<std::byte*>(now.data()), bytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  add(from_, reinterpret_cast<std::byte*>(notice.table), bytes);
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
    if (exchanges_[i].expected > 0) members.insert(state_.direct[i].member.value());
}

}  // namespace rankmesh::exchange::detail
