// SPDX-License-Identifier: BSD-3-Clause
#include "detail/hidden_rule.hpp"

namespace rankmesh::detail {
namespace {

bool is_for_device(const RouteRule& rule) {
  return rule.transport == "nccl" || rule.kind == MemoryKind::device;
}

// Whether rule a matches every call that rule b matches, apart from sizes.
bool covers(const RouteRule& a, const RouteRule& b) {
  const auto wider = [](const auto& x, const auto& y) { return !x || x == y; };
  return (a.name.empty() || a.name == b.name) && wider(a.operation, b.operation) &&
         wider(a.type, b.type) && (!a.v_form || b.v_form) && a.least_ranks <= b.least_ranks &&
         a.most_ranks >= b.most_ranks && wider(a.one_node, b.one_node) &&
         wider(a.own_cores, b.own_cores) && wider(a.capture, b.capture) &&
         is_for_device(a) == is_for_device(b);
}

// Whether rule b gets no call if rule a is tried first, apart from sizes.
bool hides(const RouteRule& a, const RouteRule& b) {
  return covers(a, b) && (carries_everything(a.transport) || a.transport == b.transport) &&
         // Only rules without sizes match calls without a size.
         (!a.bytes || b.bytes);
}

}  // namespace

const RouteRule* rule_that_hides_last(std::span<const RouteRule> rules) {
  const RouteRule& last = rules.back();
  const ByteRange range = last.bytes.value_or(ByteRange{});
  std::int64_t covered = range.begin;  // earlier rules match all sizes below
  const RouteRule* by = nullptr;
  for (bool grows = true; grows && covered < range.end;) {
    grows = false;
    for (const RouteRule& rule : rules.first(rules.size() - 1)) {
      const ByteRange other = rule.bytes.value_or(ByteRange{});
      if (!hides(rule, last) || other.begin > covered || other.end <= covered) continue;
      covered = other.end;
      by = &rule;
      grows = true;
      break;
    }
  }
  return covered >= range.end ? by : nullptr;
}

}  // namespace rankmesh::detail
