// SPDX-License-Identifier: BSD-3-Clause
// Carries out one call on the two levels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transport/detail/shm_transport.hpp"
#include "transport/levels/scheme.hpp"

namespace rankmesh::levels {

/// The sizes at which a group changes how it carries out a call. They are equal on all members.
struct Limits {
  /// Up to this size of a call, one member of each node carries the message; above it,
  /// Shape::carriers members of each node carry the message.
  std::int64_t one_carrier_bytes = 16 << 10;
  /// The size of a piece.
  std::int64_t piece_bytes = 1 << 20;
};

/// What the calls of a group have in common. The calls are carried out one after the other.
struct Setting {
  Shape shape;
  mpi::CommunicatorView comm;
  ShmTransport* inside;  ///< The members of this node; null if this is the only one.
  Limits limits;
  /// The scratch memory of pieces in flight, which the next call reuses.
  static constexpr std::size_t pieces_under_way = 3;
  struct Memory {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  std::array<Memory, pieces_under_way> memory{};
};

/// Carries out one call. Pieces overlap: while the carriers exchange one piece, the members collect
/// the next piece. All members of a node begin the steps in shared memory in the same order:
/// collect 0, collect 1, spread 0, collect 2, spread 1, and so on.
///
/// There is no helper thread: the call makes progress in advance(). If the call fails, this object
/// must be leaked, because MPI and other members may still use its memory.
class Execution {
 public:
  /// @param call    Its buffers must stay valid; the Call itself is copied.
  /// @param number  of the call in its group.
  Execution(const Call& call, std::uint64_t number, std::shared_ptr<Setting> setting);

  /// Continues as far as the other members allow, and returns whether the call is complete.
  /// @throws Counterparts::Difference if another node makes another call, and what the transport in
  ///         shared memory throws.
  bool advance();
  /// Returns the members without which the call cannot continue, as ranks in the group.
  [[nodiscard]] std::vector<std::int64_t> awaited() const;
  [[nodiscard]] bool is_in_mpi() const;
  [[nodiscard]] const Call& call() const { return call_; }
  [[nodiscard]] std::uint64_t number() const { return number_; }

 private:
  // A piece in flight.
  struct Stages {
    Stages(const Piece& p, Counterparts& counterparts, int tag)
        : piece{p}, messages{counterparts, tag} {}
    Piece piece;
    Messages messages;
    std::unique_ptr<Pending> step;  // in shared memory
    int round = 0;
    bool has_collected = false, has_exchanged = false, has_begun_spread = false, is_done = false;
  };
  void divide();
  [[nodiscard]] std::vector<int> counterparts() const;
  [[nodiscard]] std::optional<Stages>& stages(std::int64_t piece) {
    return under_way_[static_cast<std::size_t>(piece) % under_way_.size()];
  }
  bool begin_next_step();
  bool begin_collect(std::int64_t piece);
  bool begin_spread(std::int64_t piece);
  bool advance_piece(std::int64_t piece);
  bool advance_exchange(std::int64_t piece, Stages& stages);
  void use_memory(Piece& piece, Setting::Memory& memory) const;

  Call call_;
  std::uint64_t number_;
  std::shared_ptr<Setting> setting_;
  const Scheme& scheme_;
  Piece whole_;             // a piece with all elements
  std::int64_t piece_ = 0;  // elements (of each block) per piece
  std::int64_t pieces_ = 1;
  Counterparts counterparts_;
  std::array<std::optional<Stages>, Setting::pieces_under_way> under_way_;
  std::int64_t begun_ = 0;   // steps in shared memory, of 2 x pieces_
  std::int64_t done_ = 0;    // pieces
  bool has_opened_ = false;  // piece 0 has been exchanged, so all calls have been compared
};

}  // namespace rankmesh::levels
