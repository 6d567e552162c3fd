// SPDX-License-Identifier: BSD-3-Clause
#include "connections.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace {

void check(bool is_right, const char* what) {
  if (!is_right) throw std::system_error{errno, std::generic_category(), what};
}

/// Where the other members reach this one.
struct Address {
  std::uint32_t host;
  std::uint32_t port;
};

std::uint32_t own_host(const rankmesh::TransportGroup& group) {
  if (group.nodes == 1) return htonl(INADDR_LOOPBACK);
  char name[256] = {};
  check(::gethostname(name, sizeof name - 1) == 0, "gethostname");
  addrinfo hints{};
  hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(name, nullptr, &hints, &found); code != 0)
    throw std::runtime_error{std::string{"getaddrinfo: "} + ::gai_strerror(code)};
  const std::uint32_t host = reinterpret_cast<sockaddr_in*>(found->ai_addr)->sin_addr.s_addr;
  ::freeaddrinfo(found);
  return host;
}

sockaddr_in to_system(Address address) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = address.host;
  result.sin_port = htons(static_cast<std::uint16_t>(address.port));
  return result;
}

/// A socket that is closed unless it is taken.
class Socket {
 public:
  explicit Socket(int number) : number_{number} { check(number >= 0, "socket"); }
  ~Socket() {
    if (number_ >= 0) ::close(number_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] int take() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// Listens on any port, and returns where.
Address listen_on(const Socket& listener, const rankmesh::TransportGroup& group) {
  const sockaddr_in any = to_system({own_host(group), 0});
  check(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0, "bind");
  check(::listen(listener.get(), SOMAXCONN) == 0, "listen");
  const timeval limit{static_cast<time_t>(group.timeout.count()) + 1, 0};
  ::setsockopt(listener.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  check(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size) == 0,
        "getsockname");
  return {bound.sin_addr.s_addr, ntohs(bound.sin_port)};
}

}  // namespace

// Each member connects to those before it, and accepts those behind it. A connection begins with
// the index of the member that has connected.
Connections::Connections(const rankmesh::TransportGroup& group)
    : self_{static_cast<std::size_t>(group.self.value())},
      peers_(static_cast<std::size_t>(group.ranks.size())) {
  // What may fail on this rank alone comes first, and all members learn of it: nobody can be called
  // back from MPI.
  std::optional<Socket> listener;
  Address own{0, 0};  // the port 0: this member has failed
  std::exception_ptr failure;
  try {
    listener.emplace(::socket(AF_INET, SOCK_STREAM, 0));
    own = listen_on(*listener, group);
  } catch (...) {
    failure = std::current_exception();
  }
  std::vector<Address> all(peers_.size());
  if (MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE,
                    group.comm.native()) != MPI_SUCCESS)
    throw std::runtime_error{"MPI could not exchange the addresses"};
  if (failure) std::rethrow_exception(failure);
  for (const Address& one : all)
    if (one.port == 0) throw std::runtime_error{"another member has no socket"};

  const int on = 1;
  for (std::size_t k = 0; k < self_; ++k) {
    Socket socket{::socket(AF_INET, SOCK_STREAM, 0)};
    const sockaddr_in there = to_system(all[k]);
    check(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0,
          "connect");
    check(::send(socket.get(), &self_, sizeof self_, MSG_NOSIGNAL) == sizeof self_, "send");
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    peers_[k].socket = socket.take();
  }
  for (std::size_t left = peers_.size() - 1 - self_; left > 0; --left) {
    Socket socket{::accept(listener->get(), nullptr, nullptr)};
    std::size_t k = 0;
    check(::recv(socket.get(), &k, sizeof k, MSG_WAITALL) == sizeof k, "recv");
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    peers_.at(k).socket = socket.take();
  }
}

Connections::Peer::~Peer() {
  if (socket >= 0) ::close(socket);
}

void Connections::add(std::deque<Piece>& pieces, Piece piece) {
  if (piece.bytes == 0) return;
  ++*piece.open;
  pieces.push_back(std::move(piece));
}

void Connections::progress() {
  // Moves pieces with a function of the system, until the socket takes or has nothing more.
  const auto move = [](std::deque<Piece>& pieces, auto&& part) {
    while (!pieces.empty()) {
      Piece& piece = pieces.front();
      const ssize_t bytes = part(piece.data, piece.bytes);
      if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
      if (bytes == 0) throw std::runtime_error{"another member has closed its connection"};
      check(bytes > 0, "a socket");
      piece.data += bytes;
      piece.bytes -= static_cast<std::size_t>(bytes);
      if (piece.bytes > 0) continue;
      --*piece.open;
      pieces.pop_front();
    }
  };
  for (Peer& peer : peers_) {
    move(peer.out, [&](const std::byte* data, std::size_t bytes) {
      return ::send(peer.socket, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
    move(peer.in, [&](std::byte* data, std::size_t bytes) {
      return ::recv(peer.socket, data, bytes, MSG_DONTWAIT);
    });
  }
}

void Connections::end() {
  for (const Peer& peer : peers_)
    if (peer.socket >= 0) ::shutdown(peer.socket, SHUT_RDWR);
}
