// SPDX-License-Identifier: BSD-3-Clause
// How a rank of the survivor dies, stops or loses its messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rankmesh_test {

/// Says when something has happened; tests/survive/check prints how long it took.
void stamp(const char* what);

/// A file that exists when a survivor has learned of a loss; empty if nobody asks.
std::string file_of_loss();

/// Ends this rank, stops it, or lets it end later, as the kind says. Without a kind, it is killed.
void die(std::string_view kind = {});

/// The next communicator that this rank creates takes it half a second.
void make_next_creation_slow();

/// From now on, threads of this rank that would sleep longer than a millisecond sleep a second, and
/// those that wait for a condition until a time wait 20 s longer. So a spare rank learns of a
/// loss after all others, by its own look.
void sleep_long();

/// What the ranks do while MPI creates the communicators of the groups of the next mesh. The old
/// mesh then hears of a death a second after the next one.
class SlowNews {
 public:
  void begin() { creations_ = 0; }
  /// This rank dies in the next mesh.
  void die_in_next() { dies_ = true; }
  /// Loses messages of the first mesh, for a second.
  void lose();

  void see_creation();
  [[nodiscard]] bool loses(const void* message, std::size_t size);

 private:
  std::atomic<int> creations_{-1};  // since the loss; -1: none is lost
  std::atomic<bool> dies_{false};
  std::atomic<std::uint64_t> old_mesh_{0};
  std::atomic<std::int64_t> until_{0};
};
extern SlowNews slow_news;

}  // namespace rankmesh_test
