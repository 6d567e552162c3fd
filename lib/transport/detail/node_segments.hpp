// SPDX-License-Identifier: BSD-3-Clause
// Memory that the ranks of a node share.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node_messages.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/transport/shared_segment.hpp"
#include "segment_file.hpp"

namespace rankmesh::detail {

/// A segment that the ranks of this node want.
struct SegmentRequest {
  std::string activity;   ///< For messages: the creation of this segment.
  std::size_t bytes = 0;  ///< The same on all ranks of the node. 0: this node wants none.
  /// Called when this rank has mapped the segment, and before any rank may use it. All ranks see
  /// what it writes. It is called again if the node has to create another segment instead.
  std::function<void(std::byte* data)> prepare{};
};

/// The segment of this node.
struct RANKMESH_API NodeSegment {
  SharedSegment segment;  ///< Empty if the node wants none, or if it could not be created.
  int descriptor = -1;    ///< A descriptor of its file that this process has opened; -1 if none.
  std::optional<SharedMemoryError> error{};  ///< The same on all ranks of the node.

  NodeSegment() = default;
  NodeSegment(NodeSegment&& other) noexcept;
  NodeSegment& operator=(NodeSegment&&) = delete;
  ~NodeSegment();
};

/// Creates segments on a node. The first rank creates the files, and tells each other one where
/// they are (40 bytes per segment). All map them, and count in the memory itself how many ranks
/// have done so. A rank that cannot map a file tells the first rank, which then sends the outcome
/// to all; and the same begins again, with names in /dev/shm.
class SegmentCreation {
 public:
  static constexpr std::size_t most_requests = 2;
  using Announcements = std::array<SegmentAnnouncement, most_requests>;

  /// @param requests  At most two. All ranks of the node pass the same ones.
  SegmentCreation(std::vector<SegmentRequest> requests, bool is_first,
                  SharedSegment::Backing backing = SharedSegment::Backing::automatic)
      : requests_{std::move(requests)}, is_first_{is_first}, backing_{backing} {}

  /// Begins. Local. Returns what the first rank has to tell the others.
  Announcements begin();
  /// Maps the files that the first rank has announced. Local.
  void map(const Announcements& announced);
  /// Waits for the others. Collective over the ranks; blocks.
  /// @param have_met  Whether all ranks have met since they called map(). Then nobody waits, unless
  ///                  a rank has failed.
  /// @throws TimeoutError if ranks are missing; the error names them.
  std::vector<NodeSegment> finish(NodeMessages& node, bool have_met);

 private:
  // The highest errno, and the member of the node that has it.
  struct Worst {
    int error = 0;
    int member = 0;
  };
  using Outcome = std::array<Worst, most_requests>;
  using Errors = std::array<int, most_requests>;

  void settle(NodeMessages& node, bool have_met);
  void meet(NodeMessages& node);
  [[nodiscard]] bool has_failed() const;
  [[nodiscard]] const std::string& activity() const { return requests_.back().activity; }

  std::vector<SegmentRequest> requests_;
  bool is_first_;
  SharedSegment::Backing backing_;
  std::array<SegmentFile, most_requests> files_;
  std::vector<std::size_t> tried_;  // the segments that are being created
  Errors errors_{};                 // of this rank
  Outcome worst_{};
};

/// Creates segments on a node. Collective over the ranks; blocks.
/// @throws TimeoutError if ranks are missing; the error names them.
RANKMESH_API std::vector<NodeSegment> make_node_segments(
    NodeMessages node, const std::vector<SegmentRequest>& requests,
    SharedSegment::Backing backing = SharedSegment::Backing::automatic);

}  // namespace rankmesh::detail
