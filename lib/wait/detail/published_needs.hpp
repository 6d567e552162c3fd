// SPDX-License-Identifier: BSD-3-Clause
// The ranks for which a rank waits, in memory that the ranks of a node share.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rankmesh::detail {

/// The ranks without which the wait of another rank cannot end. One thread writes at a time; others
/// read at any time.
class PublishedNeeds {
 public:
  static constexpr std::size_t words = 8;
  static constexpr std::size_t most_ranks = 64 * words;

  struct Value {
    std::array<std::uint64_t, words> ranks{};  ///< Bit k is set if rank k of the board is needed.
    bool is_of_this_mesh = false;  ///< Whether the wait belongs to the mesh of this board.

    [[nodiscard]] bool has(std::size_t rank) const {
      return rank < most_ranks && (ranks[rank / 64] >> rank % 64 & 1) != 0;
    }
    void add(std::size_t rank) {
      if (rank < most_ranks) ranks[rank / 64] |= std::uint64_t{1} << rank % 64;
    }
    friend bool operator==(const Value&, const Value&) = default;
  };
  struct Snapshot {
    Value value;
    std::uint64_t version = 0;  ///< It changes with each change of the value.
    std::uint64_t checks = 0;   ///< How often the owner has determined the value.
  };

  /// Publishes a value that the owner has just determined.
  void write(const Value& value) {
    if (value == last_value()) {
      checks_.fetch_add(1, std::memory_order_release);
      return;
    }
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < words; ++i)
      ranks_[i].store(value.ranks[i], std::memory_order_relaxed);
    is_of_this_mesh_.store(value.is_of_this_mesh, std::memory_order_relaxed);
    version_.store(version + 2, std::memory_order_release);
  }
  /// Publishes the end of a wait. The version changes even if the next wait has the same value.
  void clear() {
    write({});
    version_.fetch_add(2, std::memory_order_release);
  }

  /// Returns nothing if the owner writes at this moment.
  [[nodiscard]] std::optional<Snapshot> read() const {
    Snapshot snapshot;
    snapshot.version = version_.load(std::memory_order_acquire);
    snapshot.checks = checks_.load(std::memory_order_acquire);
    snapshot.value = last_value();
    std::atomic_thread_fence(std::memory_order_acquire);
    if (snapshot.version % 2 != 0 || version_.load(std::memory_order_relaxed) != snapshot.version)
      return std::nullopt;
    return snapshot;
  }

 private:
  [[nodiscard]] Value last_value() const {
    Value value;
    for (std::size_t i = 0; i < words; ++i)
      value.ranks[i] = ranks_[i].load(std::memory_order_relaxed);
    value.is_of_this_mesh = is_of_this_mesh_.load(std::memory_order_relaxed);
    return value;
  }

  std::atomic<std::uint64_t> version_{0};  // odd during a write
  std::atomic<std::uint64_t> checks_{0};
  std::array<std::atomic<std::uint64_t>, words> ranks_{};
  std::atomic<bool> is_of_this_mesh_{false};
};

}  // namespace rankmesh::detail
