// SPDX-License-Identifier: BSD-3-Clause
#include "record/alignment.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "record/matching.hpp"

namespace rankmesh::record {
namespace {

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max() / 4;
/// The bounds are scaled in steps of this fraction.
constexpr std::int64_t parts_of_bound = 1024;

/// Holds the constraints shift(b) - shift(a) <= limit between clocks, of which clock 0 stays.
class DifferenceConstraints {
 public:
  /// Creates a system without constraints between clocks.
  /// @param bounds  the largest absolute shift of each clock; 0 for clock 0.
  explicit DifferenceConstraints(std::vector<std::int64_t> bounds);

  /// Adds the constraint shift(b) - shift(a) <= limit.
  void require(std::size_t a, std::size_t b, std::int64_t limit);

  /// Shifts that satisfy the constraints, and how far each clock could still be moved.
  struct Solution {
    std::vector<std::int64_t> shifts;
    std::vector<std::int64_t> errors;
  };
  /// Returns the shifts whose largest fraction of the bound is as small as possible. Each shift is
  /// as near to 0 as the other shifts permit. Returns nothing if the constraints contradict each
  /// other. Takes O(N^3) time.
  [[nodiscard]] std::optional<Solution> solve() const;

  [[nodiscard]] std::size_t size() const { return bounds_.size(); }
  /// Returns the limit of shift(b) - shift(a), or a very large number.
  [[nodiscard]] std::int64_t limit(std::size_t a, std::size_t b) const {
    return limits_[a * size() + b];
  }

 private:
  using Shifts = std::vector<std::int64_t>;
  enum class Extreme : std::uint8_t { highest, lowest };

  [[nodiscard]] std::optional<Shifts> extreme(Extreme which, const Shifts& bounds) const;
  [[nodiscard]] Shifts scaled_bounds(std::int64_t parts) const;
  void move_towards_zero(const Shifts& bounds, Shifts& shifts) const;

  Shifts bounds_;
  Shifts limits_;  ///< of each pair of clocks
};

DifferenceConstraints::DifferenceConstraints(std::vector<std::int64_t> bounds)
    : bounds_{std::move(bounds)}, limits_(bounds_.size() * bounds_.size(), no_limit) {}

void DifferenceConstraints::require(std::size_t a, std::size_t b, std::int64_t limit) {
  std::int64_t& known = limits_[a * size() + b];
  known = std::min(known, limit);
}

/// Bellman-Ford over all pairs. The bounds are the edges from and to clock 0, so the shifts begin
/// at the bounds and shrink; the highest shifts are the shortest paths from clock 0, the lowest
/// ones are the negated shortest paths to it.
std::optional<DifferenceConstraints::Shifts> DifferenceConstraints::extreme(
    Extreme which, const Shifts& bounds) const {
  Shifts distance = bounds;
  for (std::size_t round = 0; round <= size(); ++round) {
    bool has_changed = false;
    for (std::size_t a = 0; a < size(); ++a) {
      for (std::size_t b = 0; b < size(); ++b) {
        const std::int64_t edge = which == Extreme::highest ? limit(a, b) : limit(b, a);
        if (edge >= no_limit || distance[a] + edge >= distance[b]) continue;
        distance[b] = distance[a] + edge;
        if (b == 0 || distance[b] < -bounds[b]) return std::nullopt;
        has_changed = true;
      }
    }
    if (has_changed) continue;
    if (which == Extreme::lowest)
      for (std::int64_t& d : distance) d = -d;
    return distance;
  }
  return std::nullopt;
}

DifferenceConstraints::Shifts DifferenceConstraints::scaled_bounds(std::int64_t parts) const {
  Shifts result;
  for (const std::int64_t bound : bounds_)
    result.push_back(bound / parts_of_bound * parts +
                     (bound % parts_of_bound * parts + parts_of_bound - 1) / parts_of_bound);
  return result;
}

/// Moves one clock after the other. Each move keeps all constraints, so the result does too.
void DifferenceConstraints::move_towards_zero(const Shifts& bounds, Shifts& shifts) const {
  for (std::size_t round = 0; round < size(); ++round) {
    bool has_changed = false;
    for (std::size_t n = 1; n < size(); ++n) {
      std::int64_t low = -bounds[n];
      std::int64_t high = bounds[n];
      for (std::size_t other = 0; other < size(); ++other) {
        if (other == n) continue;
        if (limit(other, n) < no_limit) high = std::min(high, shifts[other] + limit(other, n));
        if (limit(n, other) < no_limit) low = std::max(low, shifts[other] - limit(n, other));
      }
      const std::int64_t best = std::clamp<std::int64_t>(0, low, high);
      has_changed = has_changed || best != shifts[n];
      shifts[n] = best;
    }
    if (!has_changed) return;
  }
}

std::optional<DifferenceConstraints::Solution> DifferenceConstraints::solve() const {
  const auto highest = extreme(Extreme::highest, bounds_);
  const auto lowest = extreme(Extreme::lowest, bounds_);
  if (!highest || !lowest) return std::nullopt;

  // The smallest fraction of the bounds for which there is a solution.
  std::int64_t too_small = -1;
  std::int64_t enough = parts_of_bound;
  while (enough - too_small > 1) {
    const std::int64_t middle = (enough + too_small) / 2;
    (extreme(Extreme::highest, scaled_bounds(middle)) ? enough : too_small) = middle;
  }
  const Shifts bounds = scaled_bounds(enough);
  Solution solution;
  solution.shifts = *extreme(Extreme::highest, bounds);
  move_towards_zero(bounds, solution.shifts);
  for (std::size_t n = 0; n < size(); ++n)
    solution.errors.push_back(std::max(std::abs((*highest)[n] - solution.shifts[n]),
                                       std::abs(solution.shifts[n] - (*lowest)[n])));
  return solution;
}

/// A rank that has to wait takes the time only after it has spun for a moment. The other members
/// may have arrived in this moment. If the rank then waited for at least this long, they had not
/// arrived.
constexpr Time least_wait = 10'000;

/// The nodes of the records. Node 0 has the index 0, even if it has no record.
struct Nodes {
  explicit Nodes(const std::vector<Record>& records) {
    indices[0] = 0;
    bounds.push_back(0);
    hosts.emplace_back();
    for (const Record& record : records) {
      const auto [place, is_new] = indices.try_emplace(record.node, bounds.size());
      if (is_new) {
        bounds.push_back(0);
        hosts.emplace_back();
      }
      const std::size_t n = place->second;
      if (n != 0) bounds[n] = std::max(bounds[n], record.clock_error);
      hosts[n] = record.host;
      of_record.push_back(n);
    }
  }

  std::map<std::int32_t, std::size_t> indices;
  std::vector<std::int64_t> bounds;
  std::vector<std::string> hosts;
  std::vector<std::size_t> of_record;
};

/// Returns the time at which the rank had certainly begun the call.
std::optional<Time> certain_begin(const Record& record, const Call& call) {
  if (!call.begin || record.has_all_times) return call.begin;
  const Time end = call.end ? *call.end : record.read_at;
  if (call.is_over() && !call.end) return std::nullopt;
  return end - *call.begin >= least_wait ? call.begin : std::nullopt;
}

std::optional<Time> certain_end(const Call& call) {
  return call.state == State::ended ? call.end : std::nullopt;
}

/// The first end and the last begin of a collective among the ranks of a node.
struct OnNode {
  std::size_t node = 0;
  std::optional<Time> first_end, last_begin;
};

void constrain_by_meeting(const std::vector<Record>& records, const Nodes& nodes,
                          const Meeting& meeting, DifferenceConstraints& constraints) {
  std::vector<OnNode> parts;
  for (const CallIndex& index : meeting.calls) {
    const Record& record = records[index.record];
    const Call& call = record.calls[index.call];
    const std::size_t node = nodes.of_record[index.record];
    auto part = std::ranges::find(parts, node, &OnNode::node);
    if (part == parts.end()) part = parts.insert(parts.end(), OnNode{.node = node});
    if (const auto end = certain_end(call))
      part->first_end = std::min(part->first_end.value_or(*end), *end);
    if (const auto begin = certain_begin(record, call))
      part->last_begin = std::max(part->last_begin.value_or(*begin), *begin);
  }
  for (const OnNode& a : parts)
    for (const OnNode& b : parts)
      if (a.node != b.node && a.first_end && b.last_begin)
        constraints.require(a.node, b.node, *a.first_end - *b.last_begin);
}

DifferenceConstraints constraints_of(const std::vector<Record>& records, const Nodes& nodes) {
  DifferenceConstraints result{nodes.bounds};
  const Matching matching{records};
  for (const Meeting& meeting : matching.meetings()) {
    const CallIndex first = meeting.calls.front();
    if (meeting.agrees && synchronises(records[first.record].calls[first.call].descriptor))
      constrain_by_meeting(records, nodes, meeting, result);
  }
  for (const Message& message : matching.messages()) {
    const std::size_t sender = nodes.of_record[message.send.record];
    const std::size_t receiver = nodes.of_record[message.receive.record];
    if (!message.is_certain || sender == receiver) continue;
    const Record& record = records[message.send.record];
    const auto begin = certain_begin(record, record.calls[message.send.call]);
    const auto end = certain_end(records[message.receive.record].calls[message.receive.call]);
    if (begin && end) result.require(receiver, sender, *end - *begin);
  }
  return result;
}

void shift_times(Record& record, Time by) {
  record.read_at += by;
  for (Call& call : record.calls) {
    if (call.begin) *call.begin += by;
    if (call.end) *call.end += by;
  }
  for (Mark& mark : record.marks) mark.time += by;
  if (record.wait) record.wait->since += by;
}

std::string name_of_node(const Nodes& nodes, std::size_t n) {
  for (const auto& [node, index] : nodes.indices)
    if (index == n && !nodes.hosts[n].empty())
      return fmt::format("node {} ({})", node, nodes.hosts[n]);
    else if (index == n)
      return fmt::format("node {}", node);
  return "(unknown node)";
}

/// Names the two nodes whose constraints exceed the errors of their clocks by most.
std::string contradiction(const Nodes& nodes, const DifferenceConstraints& constraints) {
  std::size_t first = 0, second = 0;
  std::int64_t worst = std::numeric_limits<std::int64_t>::min();
  for (std::size_t a = 0; a < constraints.size(); ++a) {
    for (std::size_t b = 0; b < constraints.size(); ++b) {
      if (a == b) continue;
      // Shifts can change the difference by the sum of the bounds; the opposite limit narrows it.
      const std::int64_t least =
          std::max(-nodes.bounds[a] - nodes.bounds[b], -constraints.limit(b, a));
      if (least - constraints.limit(a, b) <= worst) continue;
      worst = least - constraints.limit(a, b);
      first = a;
      second = b;
    }
  }
  if (worst <= 0)
    return "the clocks of the nodes were not refined: the recorded times of three or more nodes "
           "contradict each other";
  return fmt::format(
      "the clocks of the nodes were not refined: the recorded times of {} and {} contradict each "
      "other by {:.1f} us",
      name_of_node(nodes, first), name_of_node(nodes, second), static_cast<double>(worst) / 1e3);
}

}  // namespace

std::vector<Record> align(std::vector<Record> records, std::vector<std::string>* remarks) {
  const Nodes nodes{records};
  if (nodes.bounds.size() < 2) return records;
  const DifferenceConstraints constraints = constraints_of(records, nodes);
  const auto solution = constraints.solve();
  if (!solution) {
    if (remarks != nullptr) remarks->push_back(contradiction(nodes, constraints));
    return records;
  }
  for (std::size_t r = 0; r < records.size(); ++r) {
    const std::size_t n = nodes.of_record[r];
    shift_times(records[r], solution->shifts[n]);
    records[r].clock_error = solution->errors[n];
  }
  if (remarks == nullptr) return records;
  for (std::size_t n = 1; n < nodes.bounds.size(); ++n)
    if (const std::int64_t by = solution->shifts[n]; by <= -1000 || by >= 1000)
      remarks->push_back(fmt::format("the clock of {} was shifted by {:.1f} us",
                                     name_of_node(nodes, n), static_cast<double>(by) / 1e3));
  return records;
}

}  // namespace rankmesh::record
