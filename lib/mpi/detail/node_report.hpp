// SPDX-License-Identifier: BSD-3-Clause
// Collects what the ranks of one node have to say when a job ends, without MPI.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "rankmesh/base/deadline.hpp"

namespace rankmesh::mpi {

/// What one rank says when it ends.
struct LastWords {
  int rank = 0;
  std::string coordinates;  ///< In a mesh; may be empty.
  std::string program;      ///< Precedes the text.
  std::string text;
};

/// The first rank of a node that ends becomes the reporter of that node; the others send their last
/// words to it. They use a datagram socket with a name in Linux's abstract namespace, because
/// MPI may be broken, and because such a socket leaves nothing behind. All functions do their best
/// and never throw: a rank that finds no reporter prints its last words itself.
class NodeReport {
 public:
  /// @param key  The same on all ranks of the job, and different in each job.
  explicit NodeReport(std::uint64_t key) noexcept;
  ~NodeReport();
  NodeReport(const NodeReport&) = delete;
  NodeReport& operator=(const NodeReport&) = delete;

  [[nodiscard]] bool is_reporter() const noexcept { return is_reporter_; }
  /// Sends the last words of this rank to the reporter. Returns whether the reporter got them.
  [[nodiscard]] bool hand_over(const LastWords& words) const noexcept;
  /// Appends the last words that other ranks send within the given time. Ends earlier if `words`
  /// has reached `enough` elements.
  void collect(std::vector<LastWords>& words, std::size_t enough, Deadline::Duration time) const;

 private:
  std::uint64_t key_;
  int socket_ = -1;
  bool is_reporter_ = false;
};

/// Returns whether two ranks say the same, apart from what each of them adds about its node.
bool have_same_text(const LastWords& a, const LastWords& b);

/// Returns the lines to print: each distinct text once, with the ranks that say it. The text that
/// arrived first is probably the cause of the others, so it is printed first.
/// @param ranks  The number of ranks in the job.
std::string report_text(const std::vector<LastWords>& words, int ranks);

}  // namespace rankmesh::mpi
