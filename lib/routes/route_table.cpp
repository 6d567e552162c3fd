// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/routes/route_table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

std::string size_text(std::int64_t bytes) {
  if (bytes == ByteRange::infinite) return "inf";
  for (const auto& [unit, letter] :
       {std::pair{std::int64_t{1} << 30, 'G'}, {1 << 20, 'M'}, {1 << 10, 'K'}})
    if (bytes != 0 && bytes % unit == 0) return fmt::format("{}{}", bytes / unit, letter);
  return fmt::format("{}", bytes);
}

}  // namespace

std::string_view to_string(TypeClass type_class) {
  return detail::name_in({"int", "float", "half", "fp8"}, type_class);
}

bool carries_everything(std::string_view transport) {
  return transport == "mpi" || transport == "nccl";
}

std::string RouteRule::to_string() const {
  std::string text = name.empty() ? "*" : name;
  text += operation ? fmt::format(".{}", rankmesh::to_string(*operation)) : ".*";
  if (kind) text += fmt::format(":{}", rankmesh::to_string(*kind));
  if (bytes) text += fmt::format(":{}-{}", size_text(bytes->begin), size_text(bytes->end));
  if (v_form) text += ":v_form";
  if (type) text += fmt::format(":{}", rankmesh::to_string(*type));
  const bool is_open = most_ranks == std::numeric_limits<std::int64_t>::max();
  if (least_ranks == most_ranks)
    text += fmt::format(":ranks({})", least_ranks);
  else if (is_open && least_ranks > 2)
    text += fmt::format(":ranks({}-inf)", least_ranks);
  else if (!is_open)
    text += fmt::format(":ranks({}-{})", least_ranks, most_ranks);
  if (one_node) text += *one_node ? ":one_node" : ":many_nodes";
  if (own_cores) text += *own_cores ? ":own_cores" : ":shared_cores";
  if (capture) text += *capture ? ":capture" : ":eager";
  return text + "=" + transport;
}

bool RouteRule::fits(const RouteScope& scope) const {
  if (!name.empty() && name != scope.name) return false;
  if (scope.ranks < least_ranks || scope.ranks > most_ranks) return false;
  if (own_cores && scope.own_cores && *own_cores != *scope.own_cores) return false;
  return !one_node || !scope.nodes || *one_node == (*scope.nodes == 1);
}

void RouteTable::append(const RouteTable& later) {
  rules_.insert(rules_.end(), later.rules_.begin(), later.rules_.end());
  machines_.insert(machines_.end(), later.machines_.begin(), later.machines_.end());
}

std::string RouteTable::to_string() const {
  std::string text;
  for (const RouteRule& rule : rules_) text += (text.empty() ? "" : "; ") + rule.to_string();
  return text;
}

void RouteTable::check_names(const std::vector<std::string>& names) const {
  for (const RouteRule& rule : rules_)
    if (!rule.name.empty() && std::ranges::find(names, rule.name) == names.end())
      throw SpecError{
          fmt::format("{}: the route '{}' is for '{}', but the mesh has no groups of that name",
                      rule.origin, rule.to_string(), rule.name),
          detail::suggest(rule.name, names, "the names are"), rule.position};
}

std::vector<RouteSegment> RouteTable::resolve(const RouteScope& scope,
                                              const RouteQuery& query) const {
  // The two ends of a message may use different operations and, by mistake, different types. Both
  // ends must nevertheless use the same transport, so that the receiver notices the mistake.
  const bool is_host_message = is_point_to_point(query.operation) && query.kind == MemoryKind::host;
  std::vector<std::size_t> matching;
  std::vector<std::int64_t> begins{0};
  for (std::size_t r = 0; r < rules_.size(); ++r) {
    const RouteRule& rule = rules_[r];
    if (rule.operation && *rule.operation != query.operation &&
        !(is_host_message && is_point_to_point(*rule.operation)))
      continue;
    // A rule without a memory kind applies to the kind of its transport; transports of a program
    // carry host memory unless the rule says something else.
    const bool is_for_device = rule.transport == "nccl" || rule.kind == MemoryKind::device;
    if (is_for_device != (query.kind == MemoryKind::device)) continue;
    if (rule.v_form && (query.bytes || !has_v_form(query.operation))) continue;
    if (rule.type && (is_host_message || rule.type != query.type)) continue;
    if (rule.capture && *rule.capture != query.capture) continue;
    if ((rule.bytes && !query.bytes) || !rule.fits(scope)) continue;
    matching.push_back(r);
    if (!rule.bytes) continue;
    begins.push_back(rule.bytes->begin);
    if (rule.bytes->end != ByteRange::infinite) begins.push_back(rule.bytes->end);
  }
  std::ranges::sort(begins);
  begins.erase(std::ranges::unique(begins).begin(), begins.end());
  std::vector<RouteSegment> segments;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    RouteSegment segment{{begins[i], i + 1 < begins.size() ? begins[i + 1] : ByteRange::infinite},
                         {}};
    for (const std::size_t r : matching) {
      const RouteRule& rule = rules_[r];
      if (rule.bytes &&
          (rule.bytes->begin > segment.bytes.begin || rule.bytes->end <= segment.bytes.begin))
        continue;
      segment.rules.push_back(r);
      // If the nodes or the cores are not known, it is not certain that a rule that tests them
      // applies, so the next rules stay candidates.
      if (carries_everything(rule.transport) && rule.is_certain(scope)) break;
    }
    if (!segments.empty() && segments.back().rules == segment.rules)
      segments.back().bytes.end = segment.bytes.end;
    else
      segments.push_back(std::move(segment));
  }
  return segments;
}

std::string RouteExplanation::to_string() const {
  std::string text = question + ": ";
  if (transport.empty())
    text += "no transport carries it";
  else if (rule.empty())
    text += fmt::format("{}, since a group of one rank only copies", transport);
  else
    text += fmt::format("{}, by '{}' ({})", transport, rule, origin);
  if (!how.empty()) text += "\n  " + how;
  for (const Skipped& one : skipped)
    text += fmt::format("\n  skipped '{}' ({}): {}", one.rule, one.origin, one.why);
  for (const RouteExplanation& form : async_form) text += "\n" + form.to_string();
  return text;
}

}  // namespace rankmesh
