// SPDX-License-Identifier: BSD-3-Clause
#include "detail/resolved_routes.hpp"

#include <algorithm>
#include <string>

namespace rankmesh::detail {
namespace {

bool is_same(const RouteScope& a, const RouteScope& b) {
  return a.ranks == b.ranks && a.nodes == b.nodes && a.own_cores == b.own_cores && a.name == b.name;
}

bool is_same(const RouteQuery& a, const RouteQuery& b) {
  return a.operation == b.operation && a.kind == b.kind && a.bytes == b.bytes && a.type == b.type &&
         a.capture == b.capture;
}

}  // namespace

// A name matters only if a rule is for it.
ResolvedRoutes::Scope& ResolvedRoutes::scope_like(const RouteScope& scope) {
  RouteScope like = scope;
  const auto is_for = [&](const RouteRule& rule) { return rule.name == scope.name; };
  if (std::ranges::none_of(routes_.rules(), is_for)) like.name.clear();
  for (Scope& known : scopes_)
    if (is_same(known.scope, like)) return known;
  return scopes_.emplace_back(Scope{std::move(like), {}});
}

const std::vector<RouteSegment>& ResolvedRoutes::resolve(const RouteScope& scope,
                                                         const RouteQuery& query) {
  Scope& known = scope_like(scope);
  for (const auto& [asked, answer] : known.answers)
    if (is_same(asked, query)) return answer;
  return known.answers.emplace_back(query, routes_.resolve(known.scope, query)).second;
}

}  // namespace rankmesh::detail
