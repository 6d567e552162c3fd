// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "detail/findings.hpp"
#include "detail/sentences.hpp"

namespace rankmesh::record::detail {
namespace {

// Only the oldest incomplete calls of a rank can delay other ranks.
constexpr std::size_t most_open_calls = 8;

struct OpenCall {
  std::size_t group;
  std::uint64_t number;
  const Call* call;
  [[nodiscard]] std::pair<std::size_t, std::uint64_t> key() const { return {group, number}; }
};

// A rank that has made two calls in this order.
struct Order {
  std::size_t node;
  const Call *first, *second;
};

std::vector<OpenCall> open_device_calls(const Job& job, std::size_t node) {
  std::vector<OpenCall> open;
  for (const Call& call : job.record(node).calls) {
    const bool is_open = call.carrier == Carrier::nccl && !call.is_over() && !call.is_captured;
    const std::size_t group = job.group_of(node, call);
    if (is_open && group != none && call.number != 0) open.push_back({group, call.number, &call});
    if (open.size() == most_open_calls) break;
  }
  return open;
}

Finding crossed_finding(const Job& job, const Order& a, const Order& b) {
  const Record& record_a = job.record(a.node);
  const Record& record_b = job.record(b.node);
  Finding finding{.kind = Finding::Kind::circle, .severity = Finding::Severity::warning};
  finding.ranks = ranks_of(job, std::vector{a.node, b.node});
  const RankSet rank_a = ranks_of(job, {&a.node, 1}), rank_b = ranks_of(job, {&b.node, 1});
  finding.steps = {{rank_a, to_string(record_a, *a.first), rank_b},
                   {rank_b, to_string(record_b, *b.first), rank_a}};
  finding.text = fmt::format(
      "Two ranks have issued the same calls on device memory in different orders: {} issued {}, "
      "then {}; {} issued {}, then {}. On one stream, or if the device cannot run both calls at "
      "once, these calls wait for each other.",
      name_ranks(job, {&a.node, 1}), to_string(record_a, *a.first), to_string(record_a, *a.second),
      name_ranks(job, {&b.node, 1}), to_string(record_b, *b.first), to_string(record_b, *b.second));
  return finding;
}

}  // namespace

std::vector<Finding> crossed_device_calls(const Job& job) {
  using Key = std::pair<std::size_t, std::uint64_t>;
  std::map<std::pair<Key, Key>, Order> orders;
  for (std::size_t node = 0; node < job.size(); ++node) {
    const std::vector<OpenCall> open = open_device_calls(job, node);
    for (std::size_t i = 0; i < open.size(); ++i) {
      for (std::size_t j = i + 1; j < open.size(); ++j) {
        if (open[i].group == open[j].group) continue;
        const auto other = orders.find({open[j].key(), open[i].key()});
        if (other != orders.end())
          return {crossed_finding(job, other->second, {node, open[i].call, open[j].call})};
        orders.try_emplace({open[i].key(), open[j].key()}, Order{node, open[i].call, open[j].call});
      }
    }
  }
  return {};
}

}  // namespace rankmesh::record::detail
