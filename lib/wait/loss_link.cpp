// SPDX-License-Identifier: BSD-3-Clause
#include "detail/loss_link.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "base/detail/blocked_signals.hpp"
#include "base/detail/patience.hpp"
#include "detail/loss_datagram.hpp"
#include "detail/loss_watch.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::int64_t tick = 10'000'000;    // nanoseconds
constexpr std::int64_t hello = 100'000'000;  // between two words to neighbours
constexpr int idle_ms = 50;
constexpr std::size_t most_bytes = 65'536;  // of a datagram

int ticks_of(double seconds) { return static_cast<int>(seconds * 1e9 / tick); }

}  // namespace

class LossThread {
 public:
  template <class Run>
  explicit LossThread(Run run) {
    const BlockedSignals blocked;
    thread_ = std::thread{std::move(run)};
  }
  ~LossThread() { thread_.join(); }
  LossThread(const LossThread&) = delete;
  LossThread& operator=(const LossThread&) = delete;

 private:
  std::thread thread_;
};

std::shared_ptr<LossPort> LossPort::of_process() {
  static auto* const mutex = new std::mutex;                 // meshes may be
  static auto* const current = new std::weak_ptr<LossPort>;  // destroyed later
  const std::lock_guard lock{*mutex};
  auto port = current->lock();
  if (port == nullptr) *current = port = std::make_shared<LossPort>();
  return port;
}

LossPort::LossPort() : buffer_(most_bytes) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t size = sizeof any;
  socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0 || ::bind(socket_, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&any), &size) != 0) {
    const int error = errno;
    if (socket_ >= 0) ::close(socket_);
    throw std::system_error{error, std::generic_category()};
  }
  port_ = any.sin_port;
  thread_ = std::make_unique<LossThread>([this] { run(); });
}

LossPort::~LossPort() {
  {
    const std::lock_guard lock{mutex_};
    is_over_ = true;
  }
  sockaddr_in self{};  // wakes the thread
  self.sin_family = AF_INET;
  self.sin_port = port_;
  self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  send(self, {});
  thread_.reset();
  ::close(socket_);
}

LossAddress LossPort::address() const {
  LossAddress address{.port = port_};
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return address;
  std::size_t count = 0;
  for (const ifaddrs* one = all; one != nullptr && count < address.hosts.size();
       one = one->ifa_next) {
    const unsigned wanted = IFF_UP | IFF_RUNNING;
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET ||
        (one->ifa_flags & (wanted | IFF_LOOPBACK)) != wanted)
      continue;
    address.hosts[count++] = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
  }
  ::freeifaddrs(all);
  return address;
}

void LossPort::add(LossLink& link) {
  const std::lock_guard lock{mutex_};
  links_.push_back(&link);
}

void LossPort::remove(LossLink& link) {
  const std::lock_guard lock{mutex_};
  std::erase(links_, &link);
}

// What cannot be sent is lost, as on the network.
void LossPort::send(const sockaddr_in& to, std::span<const std::byte> bytes) const noexcept {
  (void)::sendto(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

void LossPort::receive_all() {
  for (;;) {
    sockaddr_in source{};
    socklen_t size = sizeof source;
    const ssize_t got = ::recvfrom(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT,
                                   reinterpret_cast<sockaddr*>(&source), &size);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) continue;  // an earlier send has failed
    const std::span<const std::byte> bytes{buffer_.data(), static_cast<std::size_t>(got)};
    const auto key = key_in(bytes);
    const auto link = std::ranges::find_if(links_, [&](const auto* l) { return l->key() == key; });
    if (key && link != links_.end()) (*link)->receive(bytes, source);
  }
}

void LossPort::run() {
  ::pthread_setname_np(::pthread_self(), "rankmesh-loss");
  int wait_ms = idle_ms;
  for (;;) {
    pollfd readable{.fd = socket_, .events = POLLIN, .revents = 0};
    (void)::poll(&readable, 1, wait_ms);
    {
      const std::lock_guard lock{mutex_};
      if (is_over_) return;
      receive_all();
      const std::int64_t now = NodeBoard::now();
      wait_ms = idle_ms;
      for (LossLink* const link : links_)
        if (link->advance(now)) wait_ms = static_cast<int>(tick / 1'000'000);
    }
    LossWatch::look_at_all();
  }
}

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
      known_(facts_.node_of_rank.size()) {
  last_ = NodeBoard::now();
  find_neighbours();
  port_->add(*this);
}

LossLink::~LossLink() {
  if (::getpid() == process_)
    port_->remove(*this);
  else  // in a child process, the thread does not exist, and the mutex may be locked for ever
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): leaked on purpose
    (void)new std::shared_ptr<LossPort>{std::move(port_)};
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
  using MessageKind = LossAgreement::LossMessage::MessageKind;
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

LossLink::LinkState LossLink::wait_for(std::uint64_t rounds) const {
  std::unique_lock lock{mutex_};
  while (decided() < rounds && agreement_.failure() == LossAgreement::Failure::none &&
         agreement_.met() != LossAgreement::Attendance::closed) {
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
  if (known_[to]) return port_->send(*known_[to], bytes);
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
  known_[datagram->from] = source;
  const auto neighbour =
      std::ranges::find(neighbours_, facts_.node_of_rank[datagram->from], &Neighbour::node);
  if (neighbour != neighbours_.end())
    board_->heard(static_cast<std::size_t>(neighbour - neighbours_.begin())) = NodeBoard::now();
  if (datagram->message.kind == LossAgreement::LossMessage::MessageKind::doubt)
    return mark_late(datagram->message.decision.lost, NodeBoard::now());
  agreement_.receive(datagram->from, datagram->message);
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

// The ranks of two nodes take turns, so that each node is heard as long as one of its ranks lives.
void LossLink::say_hello() {
  ++beat_;
  for (const Neighbour& neighbour : neighbours_)
    send(neighbour.ranks[(place_ + beat_) % neighbour.ranks.size()], agreement_.hello());
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
