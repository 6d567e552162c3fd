// SPDX-License-Identifier: BSD-3-Clause
// The boards of all meshes of this process.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace rankmesh::detail {

class NodeBoard;
struct WaitNotice;

/// Lists the boards of the meshes that this process has open: one watchdog serves all of them, and
/// a rank that waits in one mesh says so on the boards of the others too.
///
/// Thread safety: any thread may call any function. fork() waits until no thread uses the list, and
/// the list of the child is empty.
class OpenBoards {
 public:
  static OpenBoards& instance();

  void add(NodeBoard& board);
  void remove(NodeBoard& board);
  /// Calls a function with each board. The boards stay open until it returns.
  void for_each(const std::function<void(NodeBoard&)>& action);

 private:
  OpenBoards();
  std::mutex mutex_;
  std::vector<NodeBoard*> boards_;
};

/// Publishes a wait on all boards of this process, until the object is destroyed.
class PublishedWait {
 public:
  PublishedWait() = default;
  /// @param own  The board of the mesh that waits; null if it has none yet. The others get a notice
  ///             without a key and without ranks.
  PublishedWait(const NodeBoard* own, const WaitNotice& wait);
  ~PublishedWait() { clear(); }
  PublishedWait(PublishedWait&& other) noexcept : numbers_{std::exchange(other.numbers_, {})} {}
  PublishedWait& operator=(PublishedWait&& other) noexcept {
    std::swap(numbers_, other.numbers_);
    return *this;
  }
  PublishedWait(const PublishedWait&) = delete;
  PublishedWait& operator=(const PublishedWait&) = delete;

 private:
  void clear() noexcept;
  std::vector<std::pair<NodeBoard*, std::uint64_t>> numbers_;
};

}  // namespace rankmesh::detail
