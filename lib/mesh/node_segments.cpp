// SPDX-License-Identifier: BSD-3-Clause
#include "detail/node_segments.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <utility>

#include "base/detail/process_identity.hpp"
#include "rankmesh/base/hash.hpp"
#include "transport/detail/segment_file.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::size_t most_requests = 2;

// What each rank tells all others.
struct NodeFacts {
  Hash128 node;
  Agreement::Summary devices;
  std::uint64_t key = 0;       // for the mesh: that of rank 0 counts
  std::uint64_t has_sent = 0;  // messages on the communicator of the program
  cpu_set_t cores;             // on which this rank may run: one, or all of the node, or a few
};

NodeFacts own_facts() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const auto boot = own_boot();
  std::string node{host.data()};
  node.append(reinterpret_cast<const char*>(boot.data()), sizeof boot);
  std::random_device random;
  NodeFacts facts{.node = hash_bytes(node),
                  .devices = {},
                  .key = std::uint64_t{random()} << 32 | random(),
                  .has_sent = 0,
                  .cores = {}};
  CPU_ZERO(&facts.cores);
  if (::sched_getaffinity(0, sizeof facts.cores, &facts.cores) != 0)
    for (long i = 0; i < ::sysconf(_SC_NPROCESSORS_ONLN); ++i) CPU_SET(i, &facts.cores);
  return facts;
}

Placement placement_of(const std::vector<NodeFacts>& facts) {
  struct Node {
    std::int32_t number = 0;
    cpu_set_t cores;
  };
  std::map<std::pair<std::uint64_t, std::uint64_t>, Node> nodes;
  std::vector<Node*> node_of;
  for (const NodeFacts& one : facts) {
    const auto number = static_cast<std::int32_t>(nodes.size());
    const auto [entry, is_new] =
        nodes.try_emplace({one.node.high, one.node.low}, Node{number, one.cores});
    Node& node = entry->second;
    CPU_OR(&node.cores, &node.cores, &one.cores);
    node_of.push_back(&node);
  }
  std::vector<std::int32_t> numbers;
  std::vector<std::int32_t> cores;
  for (const Node* node : node_of) {
    numbers.push_back(node->number);
    cores.push_back(CPU_COUNT(&node->cores));
  }
  return Placement{numbers, cores};
}

// The segments of this node while they are created.
class Creation {
 public:
  Creation(ControlPlane& control, const Placement& placement,
           const std::vector<SegmentRequest>& requests)
      : control_{control},
        placement_{placement},
        requests_{requests},
        ranks_{ranks_of_node(placement, control.rank())},
        point_{
            WaitPoint::of_all(control.comm().size(), "the creation of the nodes' shared memory")} {}

  std::vector<NodeSegment> run() {
    std::vector<NodeSegment> segments(requests_.size());
    // All nodes alike: with one rank each, none wants memory to share, or all want some.
    if (placement_.node_count() == placement_.world_size() &&
        std::ranges::none_of(requests_, [](const auto& r) { return r.bytes > 0; }))
      return segments;
    const bool is_done = attempt(SharedSegment::Backing::automatic);
    if (!is_done) attempt(SharedSegment::Backing::named);
    for (std::size_t s = 0; s < requests_.size(); ++s) {
      if (!is_wanted(s)) continue;
      if (const auto [error, member] = worst_[s]; error != 0) {
        segments[s].error = segment_error(requests_[s].activity, files_[s].size(), member,
                                          static_cast<int>(ranks_.size()), error);
      } else {
        segments[s].segment = SharedSegment{files_[s]};
        segments[s].descriptor = files_[s].release_descriptor();
      }
    }
    return segments;
  }

 private:
  using Errors = std::array<std::int32_t, most_requests>;

  [[nodiscard]] bool is_wanted(std::size_t s) const { return requests_[s].bytes > 0; }

  // Creates the segments that this node still lacks. Returns whether no node lacks any afterwards.
  bool attempt(SharedSegment::Backing backing) {
    const bool is_first = control_.rank() == ranks_.front();
    std::array<SegmentAnnouncement, most_requests> mine;
    std::array<bool, most_requests> is_tried{};
    for (std::size_t s = 0; s < requests_.size(); ++s) {
      is_tried[s] =
          is_wanted(s) && (backing == SharedSegment::Backing::automatic || worst_[s].error != 0);
      if (!is_tried[s]) continue;
      files_[s] = {};
      if (is_first) mine[s] = files_[s].create(requests_[s].bytes, backing);
    }
    const auto announced =
        gather(control_.all(), mine, point_)[static_cast<std::size_t>(ranks_.front().value())];
    Errors errors{};
    for (std::size_t s = 0; s < requests_.size(); ++s) {
      if (is_tried[s] && !is_first) files_[s].open(announced[s]);
      if (is_tried[s]) errors[s] = files_[s].error();
    }
    const std::vector<Errors> all = gather(control_.all(), errors, point_);
    for (std::size_t s = 0; s < requests_.size(); ++s) {
      if (!is_tried[s]) continue;
      worst_[s] = {};
      for (std::size_t member = 0; member < ranks_.size(); ++member)
        if (const int error = all[static_cast<std::size_t>(ranks_[member].value())][s];
            error > worst_[s].error)
          worst_[s] = {error, static_cast<int>(member)};
    }
    return std::ranges::all_of(all, [](const Errors& one) { return one == Errors{}; });
  }

  struct Worst {
    int error = 0;
    int member = 0;
  };
  ControlPlane& control_;
  const Placement& placement_;
  const std::vector<SegmentRequest>& requests_;
  std::vector<Rank> ranks_;
  WaitPoint point_;
  std::array<SegmentFile, most_requests> files_;
  std::array<Worst, most_requests> worst_{};
};

}  // namespace

NodeSegment::NodeSegment(NodeSegment&& other) noexcept
    : segment{std::move(other.segment)},
      descriptor{std::exchange(other.descriptor, -1)},
      error{std::move(other.error)} {}

NodeSegment::~NodeSegment() {
  if (descriptor >= 0) ::close(descriptor);
}

JobFacts gather_facts(const Participants& participants, const Agreement::Summary& devices) {
  const WaitPoint point =
      WaitPoint::of_all(participants.comm.size(), "the creation of the control communicator");
  NodeFacts mine = own_facts();
  mine.devices = devices;
  mine.has_sent = participants.monitor->has_sent() ? 1 : 0;
  const std::vector<NodeFacts> facts = gather(participants, mine, point);
  if (std::ranges::any_of(facts, [](const NodeFacts& one) { return one.has_sent != 0; }))
    participants.monitor->receive_leftovers(point, participants.deadline());
  return {.placement = placement_of(facts),
          .key_of_mesh = facts.front().key,
          .agree_on_devices = std::ranges::all_of(facts, [&](const NodeFacts& one) {
            return one.devices == devices && one.devices.has_failed == 0;
          })};
}

std::vector<Rank> ranks_of_node(const Placement& placement, Rank self) {
  std::vector<Rank> ranks;
  for (std::int64_t r = 0; r < placement.world_size(); ++r)
    if (placement.node(r) == placement.node(self)) ranks.emplace_back(r);
  return ranks;
}

std::vector<NodeSegment> make_node_segments(ControlPlane& control, const Placement& placement,
                                            const std::vector<SegmentRequest>& requests) {
  return Creation{control, placement, requests}.run();
}

}  // namespace rankmesh::detail
