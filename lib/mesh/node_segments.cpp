// SPDX-License-Identifier: BSD-3-Clause
#include "detail/node_segments.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "transport/detail/segment_file.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::size_t most_requests = 2;

// The segments of this node while they are created.
class Creation {
 public:
  Creation(NodeMembers members, const std::vector<SegmentRequest>& requests)
      : node_{std::move(members)}, requests_{requests}, activity_{requests.back().activity} {}

  std::vector<NodeSegment> run() {
    std::vector<NodeSegment> segments(requests_.size());
    if (std::ranges::none_of(requests_, [](const auto& r) { return r.bytes > 0; })) return segments;
    attempt(SharedSegment::Backing::automatic);
    if (has_failed()) attempt(SharedSegment::Backing::named);
    for (std::size_t s = 0; s < requests_.size(); ++s) {
      if (requests_[s].bytes == 0) continue;
      if (const auto [error, member] = worst_[s]; error != 0) {
        segments[s].error =
            segment_error(requests_[s].activity, files_[s].size(), member, node_.size(), error);
      } else {
        segments[s].segment = SharedSegment{files_[s]};
        segments[s].descriptor = files_[s].release_descriptor();
      }
    }
    return segments;
  }

 private:
  // The highest errno, and the member of the node that has it.
  struct Worst {
    int error = 0;
    int member = 0;
  };
  using Outcome = std::array<Worst, most_requests>;

  [[nodiscard]] bool has_failed() const {
    return std::ranges::any_of(worst_, [](const Worst& one) { return one.error != 0; });
  }

  // Creates the segments that this node still lacks.
  void attempt(SharedSegment::Backing backing) {
    std::array<bool, most_requests> is_tried{};
    std::array<SegmentAnnouncement, most_requests> announced;
    for (std::size_t s = 0; s < requests_.size(); ++s) {
      is_tried[s] = requests_[s].bytes > 0 &&
                    (backing == SharedSegment::Backing::automatic || worst_[s].error != 0);
      if (!is_tried[s]) continue;
      files_[s] = {};
      if (node_.is_first()) announced[s] = files_[s].create(requests_[s].bytes, backing);
    }
    announced = node_.from_first(announced, activity_);
    std::array<int, most_requests> errors{};
    for (std::size_t s = 0; s < requests_.size(); ++s) {
      if (is_tried[s] && !node_.is_first()) files_[s].open(announced[s]);
      errors[s] = files_[s].error();
    }
    const auto all = node_.to_first(errors, activity_);
    worst_ = {};
    for (std::size_t member = 0; member < all.size(); ++member)
      for (std::size_t s = 0; s < requests_.size(); ++s)
        if (all[member][s] > worst_[s].error)
          worst_[s] = {all[member][s], static_cast<int>(member)};
    worst_ = node_.from_first(worst_, activity_);
  }

  NodeMembers node_;
  const std::vector<SegmentRequest>& requests_;
  const std::string& activity_;
  std::array<SegmentFile, most_requests> files_;
  Outcome worst_{};
};

}  // namespace

std::vector<Rank> ranks_of_node(const Placement& placement, Rank self) {
  std::vector<Rank> ranks;
  for (std::int64_t r = 0; r < placement.world_size(); ++r)
    if (placement.node(r) == placement.node(self)) ranks.emplace_back(r);
  return ranks;
}

NodeSegment::NodeSegment(NodeSegment&& other) noexcept
    : segment{std::move(other.segment)},
      descriptor{std::exchange(other.descriptor, -1)},
      error{std::move(other.error)} {}

NodeSegment::~NodeSegment() {
  if (descriptor >= 0) ::close(descriptor);
}

std::vector<NodeSegment> make_node_segments(ControlPlane& control, const Placement& placement,
                                            const std::vector<SegmentRequest>& requests) {
  return Creation{NodeMembers{control, placement}, requests}.run();
}

NodeSegment make_group_segment(ControlPlane& control, const GroupDescription& group,
                               const mpi::Members& members, const SegmentRequest& request) {
  return std::move(Creation{NodeMembers{control, members, group.ranks, group.identity}, {request}}
                       .run()
                       .front());
}

}  // namespace rankmesh::detail
