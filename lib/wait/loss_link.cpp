// SPDX-License-Identifier: BSD-3-Clause
#include "detail/loss_link.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/detail/patience.hpp"
#include "detail/loss_datagram.hpp"
#include "detail/loss_watch.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::int64_t tick = LossLink::tick;
constexpr std::int64_t hello = 100'000'000;  // between two words to neighbours

using MessageKind = LossAgreement::LossMessage::MessageKind;

int ticks_of(double seconds) { return static_cast<int>(seconds * 1e9 / tick); }

}  // namespace

LossLink::LossLink(std::shared_ptr<LossPort> port, std::shared_ptr<NodeBoard> board,
                   LinkFacts facts,
                   std::function<LossAgreement::Staying(const LossAgreement::Members&)> stay)
    : process_{::getpid()},
      port_{std::move(port)},
      board_{std::move(board)},
      facts_{std::move(facts)},
      agreement_{facts_.node_of_rank.size(),
                 facts_.self,
                 {.settle = ticks_of(patience().settle.count()),
                  .retry = ticks_of(patience().ballot.count()),
                  .silence = ticks_of(facts_.silence),
                  .give_up = ticks_of(facts_.silence + patience().decision.count())},
                 [this] { return freeze(); },
                 std::move(stay)},
      peers_(facts_.node_of_rank.size()) {
  last_ = NodeBoard::now();
  find_neighbours();
  port_->add(*this);
  const std::lock_guard lock{mutex_};
  say_hello();
}

LossLink::~LossLink() {
  if (::getpid() != process_) {
    // In a child process, the thread does not exist, and the mutex may be locked for ever.
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): leaked on purpose
    (void)new std::shared_ptr<LossPort>{std::move(port_)};
    return;
  }
  port_->remove(*this);
  if (board_->own().presence == Presence::failed) return;
  for (const Neighbour& neighbour : neighbours_)
    for (const std::uint32_t rank : neighbour.ranks) send(rank, {.kind = MessageKind::left});
}

// Any rank of a node freezes the steps of all: a rank that is stopped or computes needs not answer.
std::vector<LossAgreement::StepOfMember> LossLink::freeze() const {
  std::vector<LossAgreement::StepOfMember> steps;
  for (std::size_t slot = 0; slot < board_->ranks().size(); ++slot)
    steps.emplace_back(static_cast<std::uint32_t>(board_->ranks()[slot].value()),
                       LossWatch::freeze(board_->area(slot)));
  return steps;
}

void LossLink::see_death(std::uint32_t rank) {
  const std::lock_guard lock{mutex_};
  agreement_.see_death(rank);
  flush();
}

void LossLink::doubt(const std::vector<std::uint32_t>& ranks) {
  const std::lock_guard lock{mutex_};
  LossAgreement::Members doubted(facts_.node_of_rank.size());
  for (const std::uint32_t rank : ranks) doubted[rank] = true;
  for (std::uint32_t to = 0; to < doubted.size(); ++to)
    if (std::ranges::any_of(ranks, [&](const std::uint32_t rank) {
          return facts_.node_of_rank[rank] == facts_.node_of_rank[to];
        }))
      send(to, {.kind = MessageKind::doubt, .decision = {.lost = doubted}});
}

// If this process had no core for a while, the doubted ranks probably had none either.
void LossLink::mark_late(const LossAgreement::Members& doubted, std::int64_t now) const {
  if (facts_.exclude_after == 0 || now - last_ > facts_.exclude_after / 4) return;
  for (std::size_t slot = 0; slot < board_->ranks().size(); ++slot)
    if (doubted[board_->ranks()[slot].to_size()] &&
        now - board_->area(slot).waited > facts_.exclude_after)
      board_->area(slot).is_late = true;
}

void LossLink::come(LossAgreement::Attendance meeting) {
  const std::lock_guard lock{mutex_};
  agreement_.come(meeting);
  flush();
}

bool LossLink::have_all_come() const {
  const std::lock_guard lock{mutex_};
  return agreement_.have_all_come();
}

bool LossLink::is_over() const {
  const std::lock_guard lock{mutex_};
  return agreement_.is_over();
}

bool LossLink::close() {
  std::unique_lock lock{mutex_};
  for (const Deadline limit{Deadline::Duration{facts_.silence}}; !agreement_.close();) {
    flush();
    if (limit.passed()) return false;
    changed_.wait_for(lock, patience().ballot);
  }
  return std::ranges::count(agreement_.hello().report.dead, true) == 0;
}

bool LossLink::has_closed() const {
  const std::lock_guard lock{mutex_};
  return agreement_.met() == LossAgreement::Attendance::closed;
}

std::uint64_t LossLink::decided() const {
  return agreement_.decisions().size() - (agreement_.is_over() ? 1 : 0);
}

std::uint64_t LossLink::rounds() const {
  const std::lock_guard lock{mutex_};
  using Failure = LossAgreement::Failure;
  const bool is_due =
      agreement_.is_deciding() && (agreement_.met() != LossAgreement::Attendance::opened ||
                                   agreement_.failure() != Failure::none);
  return decided() + (is_due ? 1 : 0);
}

bool LossLink::has_stopped() const {
  return agreement_.failure() != LossAgreement::Failure::none ||
         agreement_.met() == LossAgreement::Attendance::closed;
}

bool LossLink::is_settled() const {
  const std::lock_guard lock{mutex_};
  return !agreement_.is_deciding() && !has_stopped();
}

LossLink::LinkState LossLink::wait_for(std::uint64_t rounds) const {
  std::unique_lock lock{mutex_};
  while (decided() < rounds && !has_stopped()) {
    board_->own().waited = NodeBoard::now();
    changed_.wait_for(lock, std::chrono::milliseconds{50});
  }
  LinkState state{.rounds = decided(), .failure = agreement_.failure()};
  if (state.rounds != 0) state.decision = agreement_.decisions()[state.rounds - 1];
  return state;
}

void LossLink::send(std::uint32_t to, const LossAgreement::LossMessage& message) {
  const std::vector<std::byte> bytes =
      to_bytes({.key = facts_.key, .from = facts_.self, .to = to, .message = message});
  if (peers_[to].address) return port_->send(*peers_[to].address, bytes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = facts_.addresses[to].port;
  for (const in_addr_t host : facts_.addresses[to].hosts) {
    address.sin_addr.s_addr = host;
    if (host != 0) port_->send(address, bytes);
  }
}

void LossLink::flush() {
  for (const auto& [to, message] : agreement_.take_messages()) send(to, message);
  changed_.notify_all();
}

void LossLink::receive(std::span<const std::byte> bytes, const sockaddr_in& source) {
  const auto datagram = to_datagram(bytes, facts_.node_of_rank.size());
  if (!datagram || datagram->to != facts_.self || datagram->from == facts_.self) return;
  const std::lock_guard lock{mutex_};
  // It may have opened the mesh later than this rank, whose first word it has not heard then.
  const bool is_new = !std::exchange(peers_[datagram->from].address, source);
  if (is_new) send(datagram->from, agreement_.hello());
  const auto neighbour =
      std::ranges::find(neighbours_, facts_.node_of_rank[datagram->from], &Neighbour::node);
  if (neighbour != neighbours_.end())
    board_->heard(static_cast<std::size_t>(neighbour - neighbours_.begin())) = NodeBoard::now();
  if (datagram->message.kind == MessageKind::doubt)
    return mark_late(datagram->message.decision.lost, NodeBoard::now());
  if (datagram->message.kind == MessageKind::left)
    return (void)(peers_[datagram->from].has_left = true);
  agreement_.receive(datagram->from, datagram->message);
  flush();
}

// A process keeps its port until it ends, or has no mesh any more. A firewall that begins to refuse
// datagrams is as good as a cut cable.
void LossLink::refuse(const sockaddr_in& address) {
  const std::lock_guard lock{mutex_};
  if (!board_->is_open()) return;
  for (std::uint32_t rank = 0; rank < peers_.size(); ++rank) {
    const auto& [known, has_left] = peers_[rank];
    if (known && known->sin_addr.s_addr == address.sin_addr.s_addr &&
        known->sin_port == address.sin_port && !has_left)
      agreement_.see_silence(rank);
  }
  flush();
}

// Each node watches the two nodes before and after it, in the ring of the nodes that go on.
void LossLink::find_neighbours() {
  if (std::exchange(decisions_, agreement_.decisions().size()) == agreement_.decisions().size())
    return;
  std::map<std::int32_t, std::vector<std::uint32_t>> ring;
  for (std::uint32_t rank = 0; rank < facts_.node_of_rank.size(); ++rank)
    if (agreement_.voters()[rank]) ring[facts_.node_of_rank[rank]].push_back(rank);
  neighbours_.clear();
  const auto own = ring.find(facts_.node_of_rank[facts_.self]);
  if (own == ring.end()) return;
  place_ =
      static_cast<std::size_t>(std::ranges::find(own->second, facts_.self) - own->second.begin());
  std::vector<std::int32_t> nodes;
  for (auto one = own; nodes.size() < ring.size();) {
    nodes.push_back(one->first);
    if (++one == ring.end()) one = ring.begin();
  }
  for (std::size_t k = 1; k < nodes.size(); ++k)
    if (k <= 2 || k + 2 >= nodes.size()) neighbours_.push_back({nodes[k], ring[nodes[k]]});
  hear_all(NodeBoard::now());
}

void LossLink::hear_all(std::int64_t now) {
  for (std::size_t k = 0; k < neighbours_.size(); ++k) board_->heard(k) = now;
}

// At first, all ranks of two nodes say where they are. Then they take turns, so that each node is
// heard as long as one of its ranks lives.
void LossLink::say_hello() {
  const bool is_first = beat_++ == 0;
  for (const auto& [node, ranks] : neighbours_) {
    const std::size_t turn = (place_ + beat_) % ranks.size();
    for (std::size_t k = 0; k < ranks.size(); ++k)
      if (is_first || k == turn) send(ranks[k], agreement_.hello());
  }
}

void LossLink::accuse_silent(std::int64_t now) {
  for (std::size_t k = 0; k < neighbours_.size(); ++k)
    if (now - board_->heard(k) > static_cast<std::int64_t>(facts_.silence * 1e9))
      for (const std::uint32_t rank : neighbours_[k].ranks) agreement_.see_silence(rank);
}

bool LossLink::advance(std::int64_t now) {
  const std::lock_guard lock{mutex_};
  // A rank that was stopped, or that had no core, cannot say whom it would have heard.
  if (now - std::exchange(last_, now) > static_cast<std::int64_t>(facts_.silence * 0.25e9))
    hear_all(now);
  if (agreement_.is_over() || agreement_.failure() != LossAgreement::Failure::none) return false;
  find_neighbours();
  if (now >= next_hello_) {
    next_hello_ = now + hello;
    say_hello();
  }
  // A mesh that is closed is not watched, but others may still be about to close it.
  if (!board_->is_open()) return false;
  accuse_silent(now);
  if (now >= next_tick_) {
    next_tick_ = now + tick;
    agreement_.tick();
  }
  flush();
  return agreement_.is_deciding() || agreement_.met() != LossAgreement::Attendance::none;
}

}  // namespace rankmesh::detail
