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
  using Errors = std::array<int, most_requests>;

  [[nodiscard]] bool has_failed() const {
    return std::ranges::any_of(worst_, [](const Worst& one) { return one.error != 0; });
  }

  // Creates the segments that this node still lacks.
  void attempt(SharedSegment::Backing backing) {
    std::array<SegmentAnnouncement, most_requests> announced;
    std::vector<std::size_t> tried;
    for (std::size_t s = 0; s < requests_.size(); ++s) {
      if (requests_[s].bytes == 0) continue;
      if (backing != SharedSegment::Backing::automatic && worst_[s].error == 0) continue;
      files_[s] = {};
      if (node_.is_first()) announced[s] = files_[s].create(requests_[s].bytes, backing);
      tried.push_back(s);
    }
    announced = node_.from_first(announced, activity_);
    worst_ = {};
    std::erase_if(tried, [&](std::size_t s) {
      worst_[s].error = announced[s].error;
      return worst_[s].error != 0;  // all ranks know
    });
    if (!tried.empty()) map(tried, announced);
  }

  // Maps segments that the first rank has created. A rank that fails sends its errors to the first
  // rank. All others are counted in the memory.
  void map(const std::vector<std::size_t>& tried,
           const std::array<SegmentAnnouncement, most_requests>& announced) {
    Errors errors{};
    for (const std::size_t s : tried) {
      if (!node_.is_first()) files_[s].open(announced[s]);
      errors[s] = files_[s].error();
    }
    if (errors == Errors{}) {
      for (const std::size_t s : tried)
        if (requests_[s].prepare) requests_[s].prepare(files_[s].data());
      meet(files_[tried.front()]);
    } else {
      node_.tell_first(errors, activity_);
      worst_ = node_.from_first(worst_, activity_);
    }
  }

  // Counts this rank in the memory, and waits for the others. The first rank tells all if a rank
  // has failed.
  void meet(const SegmentFile& counted) {
    counted.announce_mapping();
    int mapped = node_.size();  // without those that are known to have failed
    const auto have_met = [&] { return counted.is_mapped_by(static_cast<std::size_t>(mapped)); };
    while (!node_.wait_unless_told(have_met, activity_)) {
      if (!node_.is_first()) {
        worst_ = node_.from_first(worst_, activity_);
        return;
      }
      const auto [member, errors] = node_.told_by_any<Errors>();
      for (std::size_t s = 0; s < errors.size(); ++s)
        if (errors[s] > worst_[s].error) worst_[s] = {errors[s], member};
      --mapped;
    }
    if (mapped < node_.size()) (void)node_.from_first(worst_, activity_);
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
                               const mpi::CommunicatorView& comm, const SegmentRequest& request) {
  return std::move(
      Creation{NodeMembers{control, comm, group.ranks, group.identity}, {request}}.run().front());
}

}  // namespace rankmesh::detail
