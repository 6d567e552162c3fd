// SPDX-License-Identifier: BSD-3-Clause
#include "detail/node_segments.hpp"

#include <unistd.h>

#include <algorithm>

namespace rankmesh::detail {

bool SegmentCreation::has_failed() const {
  return std::ranges::any_of(worst_, [](const Worst& one) { return one.error != 0; });
}

// Chooses the segments that this node still lacks.
SegmentCreation::Announcements SegmentCreation::begin() {
  Announcements announced;
  tried_.clear();
  for (std::size_t s = 0; s < requests_.size(); ++s) {
    const bool is_created = files_[s].size() != 0 && worst_[s].error == 0;
    if (requests_[s].bytes == 0 || is_created) continue;
    files_[s] = {};
    if (is_first_) announced[s] = files_[s].create(requests_[s].bytes, backing_);
    tried_.push_back(s);
  }
  return announced;
}

void SegmentCreation::map(const Announcements& announced) {
  worst_ = {};
  errors_ = {};
  std::erase_if(tried_, [&](std::size_t s) {
    worst_[s].error = announced[s].error;
    return worst_[s].error != 0;  // all ranks know
  });
  for (const std::size_t s : tried_) {
    if (!is_first_) files_[s].open(announced[s]);
    errors_[s] = files_[s].error();
  }
  if (tried_.empty() || errors_ != Errors{}) return;
  for (const std::size_t s : tried_)
    if (requests_[s].prepare) requests_[s].prepare(files_[s].data());
  files_[tried_.front()].announce_mapping();
}

std::vector<NodeSegment> SegmentCreation::finish(NodeMessages& node, bool have_met) {
  settle(node, have_met);
  if (has_failed() && backing_ == SharedSegment::Backing::automatic) {
    backing_ = SharedSegment::Backing::named;
    map(node.from_first(begin(), activity()));
    settle(node, false);
  }
  std::vector<NodeSegment> segments(requests_.size());
  for (std::size_t s = 0; s < requests_.size(); ++s) {
    if (requests_[s].bytes == 0) continue;
    if (const auto [error, member] = worst_[s]; error != 0) {
      segments[s].error =
          segment_error(requests_[s].activity, files_[s].size(), member, node.size(), error);
    } else {
      segments[s].segment = SharedSegment{files_[s]};
      segments[s].descriptor = files_[s].release_descriptor();
    }
  }
  return segments;
}

// Finds out whether all ranks have mapped the segments. A rank that has failed sends its errors to
// the first rank. All others are counted in the memory.
void SegmentCreation::settle(NodeMessages& node, bool have_met) {
  if (tried_.empty()) return;
  const auto ranks = static_cast<std::size_t>(node.size());
  if (errors_ == Errors{} && have_met && files_[tried_.front()].is_mapped_by(ranks)) return;
  if (errors_ == Errors{}) return meet(node);
  node.tell_first(errors_, activity());
  worst_ = node.from_first(worst_, activity());
}

// Waits for the others. The first rank tells all if a rank has failed.
void SegmentCreation::meet(NodeMessages& node) {
  const SegmentFile& counted = files_[tried_.front()];
  int mapped = node.size();  // without those that are known to have failed
  const auto have_met = [&] { return counted.is_mapped_by(static_cast<std::size_t>(mapped)); };
  while (!node.wait_unless_told(have_met, activity())) {
    if (!is_first_) {
      worst_ = node.from_first(worst_, activity());
      return;
    }
    const auto [member, errors] = node.told_by_any<Errors>();
    for (std::size_t s = 0; s < errors.size(); ++s)
      if (errors[s] > worst_[s].error) worst_[s] = {errors[s], member};
    --mapped;
  }
  if (mapped < node.size()) (void)node.from_first(worst_, activity());
}

std::vector<Rank> ranks_of_node(const ControlPlane& control) {
  const Placement& placement = control.placement;
  std::vector<Rank> ranks;
  for (std::int64_t r = 0; r < placement.world_size(); ++r)
    if (placement.node(r) == placement.node(control.rank())) ranks.emplace_back(r);
  return ranks;
}

NodeSegment::NodeSegment(NodeSegment&& other) noexcept
    : segment{std::move(other.segment)},
      descriptor{std::exchange(other.descriptor, -1)},
      error{std::move(other.error)} {}

NodeSegment::~NodeSegment() {
  if (descriptor >= 0) ::close(descriptor);
}

std::vector<NodeSegment> make_node_segments(NodeMessages node,
                                            const std::vector<SegmentRequest>& requests,
                                            SharedSegment::Backing backing) {
  if (std::ranges::none_of(requests, [](const SegmentRequest& r) { return r.bytes > 0; }))
    return std::vector<NodeSegment>(requests.size());
  SegmentCreation creation{requests, node.is_first(), backing};
  creation.map(node.from_first(creation.begin(), requests.back().activity));
  return creation.finish(node, false);
}

}  // namespace rankmesh::detail
