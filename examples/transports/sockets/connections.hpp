// SPDX-License-Identifier: BSD-3-Clause
// A socket to every other member of a group, and what waits to be sent and received there.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include <rankmesh/transport/transport_factory.hpp>

class Connections {
 public:
  /// Collective over the group; blocks.
  explicit Connections(const rankmesh::TransportGroup& group);
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  [[nodiscard]] std::size_t size() const { return peers_.size(); }
  [[nodiscard]] std::size_t self() const { return self_; }

  /// Bytes that have to pass through a socket. When they have, `open` is one less.
  struct Piece {
    std::byte* data;
    std::size_t bytes;
    std::shared_ptr<std::size_t> open;
  };
  /// Adds bytes behind all that is on the way to or from a member.
  void send(std::size_t to, Piece piece) { add(peers_[to].out, std::move(piece)); }
  void receive(std::size_t from, Piece piece) { add(peers_[from].in, std::move(piece)); }

  /// Moves what the sockets take and have. Never blocks.
  void progress();
  /// Ends the connections.
  void end();

 private:
  struct Peer {
    Peer() = default;
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    int socket = -1;
    std::deque<Piece> out{}, in{};
  };
  static void add(std::deque<Piece>& pieces, Piece piece);

  std::size_t self_;
  std::vector<Peer> peers_;
};
