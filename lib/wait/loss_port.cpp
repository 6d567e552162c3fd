// SPDX-License-Identifier: BSD-3-Clause
// The socket of a process, and the thread that moves its links.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "base/detail/blocked_signals.hpp"
#include "detail/loss_datagram.hpp"
#include "detail/loss_link.hpp"
#include "detail/loss_watch.hpp"

namespace rankmesh::detail {
namespace {

constexpr int idle_ms = 50;
constexpr std::size_t most_bytes = 65'536;  // of a datagram

bool is_refusal(msghdr& message) {
  const cmsghdr* const control = CMSG_FIRSTHDR(&message);
  if (control == nullptr || control->cmsg_level != IPPROTO_IP || control->cmsg_type != IP_RECVERR)
    return false;
  sock_extended_err error{};
  std::memcpy(&error, CMSG_DATA(control), sizeof error);
  return error.ee_origin == SO_EE_ORIGIN_ICMP && error.ee_type == ICMP_DEST_UNREACH &&
         error.ee_code == ICMP_PORT_UNREACH;
}

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
  const int reports = 1;
  (void)::setsockopt(socket_, IPPROTO_IP, IP_RECVERR, &reports, sizeof reports);
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

// What cannot be sent is lost, as on the network. The first try may report an earlier refusal.
void LossPort::send(const sockaddr_in& to, std::span<const std::byte> bytes) const noexcept {
  const auto try_to_send = [&] {
    return ::sendto(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                    reinterpret_cast<const sockaddr*>(&to), sizeof to) >= 0;
  };
  if (!try_to_send() && errno == ECONNREFUSED) (void)try_to_send();
}

LossLink* LossPort::link_of(std::span<const std::byte> bytes) const {
  const auto key = key_in(bytes);
  const auto link = std::ranges::find_if(links_, [&](const auto* l) { return l->key() == key; });
  return key && link != links_.end() ? *link : nullptr;
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
    if (LossLink* const link = link_of(bytes)) link->receive(bytes, source);
  }
}

// A host says that a port is closed by a message with the beginning of the datagram.
void LossPort::receive_refusals() {
  for (;;) {
    sockaddr_in to{};
    iovec memory{.iov_base = buffer_.data(), .iov_len = buffer_.size()};
    alignas(cmsghdr) std::array<std::byte, 256> control{};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_iov = &memory;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (got < 0) return;
    LossLink* const link = link_of({buffer_.data(), static_cast<std::size_t>(got)});
    if (link != nullptr && is_refusal(message)) link->refuse(to);
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
      receive_refusals();
      const std::int64_t now = NodeBoard::now();
      wait_ms = idle_ms;
      for (LossLink* const link : links_)
        if (link->advance(now)) wait_ms = static_cast<int>(LossLink::tick / 1'000'000);
    }
    LossWatch::look_at_all();
  }
}

}  // namespace rankmesh::detail
