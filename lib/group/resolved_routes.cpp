// SPDX-License-Identifier: BSD-3-Clause
#include "detail/resolved_routes.hpp"

#include <algorithm>
#include <utility>

#include "rankmesh/transport/transport.hpp"

namespace rankmesh::detail {
namespace {

bool is_same(const RouteScope& a, const RouteScope& b) {
  return a.ranks == b.ranks && a.nodes == b.nodes && a.own_cores == b.own_cores && a.name == b.name;
}

}  // namespace

RoutePattern::RoutePattern(const RouteTable& routes, const RouteScope& scope,
                           const HostTransports& transports) {
  const bool has_types =
      std::ranges::any_of(routes.rules(), [](const RouteRule& r) { return r.type.has_value(); });
  for (std::size_t o = 0; o < operation_count; ++o) {
    const auto operation = static_cast<Operation>(o);
    for (std::size_t c = 0; c < type_class_count; ++c) {
      PatternCell& cell = rows[o][c];
      if (c > 0 && !has_types) {
        cell = rows[o][0];
        continue;
      }
      RouteQuery query{.operation = operation, .type = static_cast<TypeClass>(c)};
      if (!has_data(operation)) query.type.reset();
      cell.by_size = cell.without_size = add(routes, transports, routes.resolve(scope, query));
      if (has_data(operation) && !is_point_to_point(operation)) {
        query.bytes = 0;
        cell.by_size = add(routes, transports, routes.resolve(scope, query));
      }
    }
  }
}

// Returns the number of the list for one operation and type. Equal lists are stored once.
std::uint32_t RoutePattern::add(const RouteTable& routes, const HostTransports& transports,
                                const std::vector<RouteSegment>& segments) {
  std::vector<PatternChoice> list;
  std::vector<std::uint32_t> candidates;
  for (const RouteSegment& segment : segments) {
    candidates.clear();
    for (const std::size_t r : segment.rules) {
      const auto transport =
          std::ranges::find(transports.list, routes.rules()[r].transport,
                            [](const auto& of_group) { return of_group->name(); });
      const auto number = static_cast<std::uint32_t>(transport - transports.list.begin());
      if (transport != transports.list.end() &&
          std::ranges::find(candidates, number) == candidates.end())
        candidates.push_back(number);
    }
    const auto after_first = candidates.begin() + 1;
    auto known = std::search(others.begin(), others.end(), after_first, candidates.end());
    if (known == others.end()) known = others.insert(known, after_first, candidates.end());
    const auto end = segment.bytes.end == ByteRange::infinite
                         ? endless
                         : static_cast<std::uint64_t>(segment.bytes.end);
    const auto count = static_cast<std::uint32_t>(candidates.size() - 1);
    const PatternChoice choice{end, candidates.front(), count,
                               count == 0 ? 0 : static_cast<std::uint32_t>(known - others.begin())};
    if (!list.empty() && list.back().routes_like(choice))
      list.back().end = choice.end;
    else
      list.push_back(choice);
  }
  const auto same = std::ranges::find(lists, list);
  const auto number = static_cast<std::uint32_t>(same - lists.begin());
  if (same == lists.end()) lists.push_back(std::move(list));
  return number;
}

const RoutePattern& ResolvedRoutes::pattern(const RouteScope& scope,
                                            const HostTransports& transports) {
  RouteScope like = scope;
  // A name matters only if a rule is for it.
  const auto is_for = [&](const RouteRule& rule) { return rule.name == scope.name; };
  if (std::ranges::none_of(routes_.rules(), is_for)) like.name.clear();
  const auto has_same = [](const std::string& name, const auto& transport) {
    return name == transport->name();
  };
  for (const KnownPattern& known : known_)
    if (is_same(known.scope, like) &&
        std::ranges::equal(known.transports, transports.list, has_same))
      return known.pattern;
  std::vector<std::string> names;
  for (const auto& transport : transports.list) names.emplace_back(transport->name());
  RoutePattern pattern{routes_, like, transports};
  return known_.emplace_back(KnownPattern{std::move(like), std::move(names), std::move(pattern)})
      .pattern;
}

}  // namespace rankmesh::detail
