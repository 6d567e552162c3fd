// SPDX-License-Identifier: BSD-3-Clause
#include "detail/wait_graph.hpp"

#include <algorithm>
#include <iterator>

namespace rankmesh::record::detail {
namespace {

// Tarjan's algorithm without recursion, on nodes and the points at which they wait: a job of 10,000
// ranks has chains of 10,000 waits. Vertices below `nodes` are nodes, the others are points.
class StrongComponents {
 public:
  StrongComponents(const WaitGraph& graph, bool only_certain)
      : graph_{graph},
        only_certain_{only_certain},
        order_(graph.nodes.size() + graph.points.size()),
        low_(order_.size()),
        is_on_stack_(order_.size()) {
    for (std::size_t v = 0; v < graph.nodes.size(); ++v)
      if (order_[v] == 0) visit(v);
  }
  std::vector<std::vector<std::size_t>> found;  // nodes only

 private:
  struct Frame {
    std::size_t vertex, next;
  };

  [[nodiscard]] std::size_t successor(std::size_t vertex, std::size_t i) const {
    const std::size_t count = graph_.nodes.size();
    if (vertex < count) {
      const NodeState& state = graph_.nodes[vertex];
      const bool waits = state.point != none && (state.is_certain || !only_certain_);
      return waits && i == 0 ? count + state.point : none;
    }
    const std::vector<std::size_t>& needed = graph_.points[vertex - count].needed();
    return i < needed.size() ? needed[i] : none;
  }

  void enter(std::size_t vertex) {
    order_[vertex] = low_[vertex] = ++last_;
    stack_.push_back(vertex);
    is_on_stack_[vertex] = true;
    frames_.push_back({vertex, 0});
  }

  void leave(std::size_t vertex) {
    frames_.pop_back();
    if (!frames_.empty())
      low_[frames_.back().vertex] = std::min(low_[frames_.back().vertex], low_[vertex]);
    if (low_[vertex] != order_[vertex]) return;
    std::vector<std::size_t> nodes;
    for (std::size_t top = none; top != vertex;) {
      top = stack_.back();
      stack_.pop_back();
      is_on_stack_[top] = false;
      if (top < graph_.nodes.size()) nodes.push_back(top);
    }
    std::ranges::sort(nodes);
    if (nodes.size() > 1) found.push_back(std::move(nodes));
  }

  void visit(std::size_t start) {
    enter(start);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const std::size_t next = successor(frame.vertex, frame.next++);
      if (next == none)
        leave(frame.vertex);
      else if (order_[next] == 0)
        enter(next);
      else if (is_on_stack_[next])
        low_[frame.vertex] = std::min(low_[frame.vertex], order_[next]);
    }
  }

  const WaitGraph& graph_;
  bool only_certain_;
  std::vector<std::size_t> order_, low_;
  std::vector<bool> is_on_stack_;
  std::vector<std::size_t> stack_;
  std::vector<Frame> frames_;
  std::size_t last_ = 0;
};

}  // namespace

std::vector<std::size_t> WaitGraph::needed_by(std::size_t node) const {
  if (nodes[node].point == none) return {};
  const WaitPoint& point = points[nodes[node].point];
  std::vector<std::size_t> needed;
  std::ranges::set_union(point.needed(), point.halted, std::back_inserter(needed));
  std::erase(needed, node);
  return needed;
}

bool WaitGraph::is_halted(std::size_t node) const {
  const Record& record = job_.record(node);
  return !are_all_halted_ &&
         (record.process == Process::stopped || record.process == Process::ended);
}

std::vector<std::vector<std::size_t>> WaitGraph::circles(bool only_certain) const {
  return StrongComponents{*this, only_certain}.found;
}

std::vector<std::size_t> WaitGraph::circle_through(std::size_t start, bool only_certain) const {
  std::vector<std::size_t> from(nodes.size(), none), queue{start};
  std::vector<bool> is_known(points.size());
  for (std::size_t q = 0; q < queue.size(); ++q) {
    const std::size_t node = queue[q];
    const NodeState& state = nodes[node];
    if (state.point == none || (only_certain && !state.is_certain) || is_known[state.point])
      continue;
    is_known[state.point] = true;
    for (const std::size_t next : points[state.point].needed()) {
      if (next == start) {
        std::vector<std::size_t> circle;
        for (std::size_t v = node; v != none; v = from[v]) circle.push_back(v);
        std::ranges::reverse(circle);
        return circle;
      }
      if (from[next] != none) continue;
      from[next] = node;
      queue.push_back(next);
    }
  }
  return {};
}

WaitGraph::Waiters WaitGraph::waiters_of(const std::vector<std::size_t>& needed) const {
  std::vector<bool> is_known(nodes.size()), is_point_known(points.size());
  std::vector<std::size_t> queue = needed;
  for (const std::size_t node : needed) is_known[node] = true;
  Waiters waiters;
  for (std::size_t q = 0; q < queue.size(); ++q) {
    for (const std::size_t p : points_for_[queue[q]]) {
      if (is_point_known[p]) continue;
      is_point_known[p] = true;
      for (const std::size_t node : waiting_at_[p]) {
        if (is_known[node]) continue;
        is_known[node] = true;
        queue.push_back(node);
        waiters.nodes.push_back(node);
        waiters.next.push_back(queue[q]);
      }
    }
  }
  return waiters;
}

}  // namespace rankmesh::record::detail
