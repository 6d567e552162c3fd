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
#include "transport/levels/plan.hpp"

namespace rankmesh::levels {

/// The sizes at which a group changes how it carries out a call. They are equal on all members.
struct Sizes {
  /// Up to this size of a call, one member of each node carries the message; above it,
  /// Shape::carriers members of each node carry the message.
  std::int64_t one_carrier_bytes = 16 << 10;
  /// The size of a chunk.
  std::int64_t chunk_bytes = 1 << 20;
};

/// What the calls of a group have in common. The calls are carried out one after the other.
struct Setting {
  Shape shape;
  mpi::CommunicatorView comm;
  ShmTransport* inside;  ///< The members of this node; null if this is the only one.
  Sizes sizes;
  /// The scratch memory of chunks in flight, which the next call reuses.
  static constexpr std::size_t chunks_under_way = 3;
  std::array<std::vector<std::byte>, chunks_under_way> memory{};
  /// The group of a member that is alone on its node, and reads its own data only.
  shm::Group alone{.id = nullptr,
                   .areas = {},
                   .locals = {},
                   .self = 0,
                   .size = 1,
                   .slot_bytes = 0,
                   .limits = {},
                   .sources = std::make_unique<const std::byte*[]>(1),
                   .direct = nullptr};
};

/// Carries out one call. Chunks overlap: while the carriers exchange one chunk, the members collect
/// the next chunk. All members of a node begin the steps in shared memory in the same order:
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
  /// @throws Difference if another node makes another call, and what the transport in shared memory
  ///         throws.
  bool advance();
  /// Returns the members without which the call cannot continue, as ranks in the group.
  [[nodiscard]] std::vector<std::int64_t> awaited() const;
  [[nodiscard]] bool is_in_mpi() const;

 private:
  // A chunk in flight.
  struct Stages {
    Stages(const Chunk& c, Peers& peers, int tag) : chunk{c}, messages{peers, tag} {}
    Chunk chunk;
    PeerMessages messages;
    std::unique_ptr<Pending> step;  // in shared memory
    int round = 0;
    bool has_collected = false, has_exchanged = false, has_begun_spread = false, is_done = false;
  };
  [[nodiscard]] Chunk whole_call() const;
  [[nodiscard]] std::vector<int> peers() const;
  [[nodiscard]] std::optional<Stages>& stages(std::int64_t chunk) {
    return under_way_[static_cast<std::size_t>(chunk) % under_way_.size()];
  }
  bool begin_next_step();
  bool begin_collect(std::int64_t chunk);
  bool begin_spread(std::int64_t chunk);
  void begin_step(Stages& stages, const shm::Algorithm* step, bool& is_over);
  bool advance_chunk(std::int64_t chunk);
  bool advance_exchange(std::int64_t chunk, Stages& stages);

  Call call_;
  std::uint64_t number_;
  std::shared_ptr<Setting> setting_;
  const Plan& plan_;
  Chunk whole_;  // with all elements
  std::int64_t elements_per_chunk_;
  std::int64_t chunks_;
  Peers peers_;
  std::array<std::optional<Stages>, Setting::chunks_under_way> under_way_;
  std::int64_t begun_ = 0;   // steps in shared memory, of 2 x chunks_
  std::int64_t done_ = 0;    // chunks
  bool has_opened_ = false;  // chunk 0 has been exchanged, so all calls have been compared
};

}  // namespace rankmesh::levels
