// SPDX-License-Identifier: BSD-3-Clause
#include "detail/router.hpp"

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

// Returns why the group does not have a transport that a rule names.
std::string why_absent(const HostTransports& transports, const std::string& name) {
  const auto known = transports.absent.find(name);
  return known != transports.absent.end() ? known->second
                                          : fmt::format("the group has no {} transport", name);
}

// Describes a call for the rules. In v-forms and in messages, members have different counts, so
// these calls have no size: a rule with a size could choose different transports on two members.
RouteQuery query_of(const Call& call, std::int64_t size, bool capture) {
  RouteQuery query{.operation = call.operation, .kind = call.out.kind, .capture = capture};
  if (call.operation == Operation::send) query.kind = call.in.kind;
  if (has_data(call.operation))
    query.type = class_of(call.operation == Operation::send ? call.in.type : call.out.type);
  if (!call.has_blocks() && !is_point_to_point(call.operation) && has_data(call.operation))
    query.bytes = routed_bytes(call.operation, call, size);
  return query;
}

}  // namespace

Router::Router(ResolvedRoutes& routes, const HostTransports& transports,
               const GroupDescription& group, std::string_view family)
    : size_{group.ranks.size()},
      scope_{std::string{family}, size_, group.nodes, group.has_own_cores} {
  if (size_ == 1) {  // one rank only copies, so no rule applies
    RoutedTransport* local = transports.list.front().get();
    choices_.push_back({{endless, local, local}});
    for (Row& row : rows_) row.cells.fill({choices_.front().data(), choices_.front().data()});
    return;
  }
  const RoutePattern& pattern = routes.pattern(scope_, transports);
  const auto at = [&](std::uint32_t number) { return transports.list[number].get(); };
  for (const std::uint32_t number : pattern.others) others_.push_back(at(number));
  for (const std::vector<RoutePattern::PatternChoice>& list : pattern.lists) {
    std::vector<Choice>& choices = choices_.emplace_back();
    choices.reserve(list.size());
    for (const RoutePattern::PatternChoice& choice : list)
      choices.push_back({choice.end, choice.others == 0 ? at(choice.first) : nullptr,
                         at(choice.first), choice.others, choice.begin_others});
  }
  for (std::size_t o = 0; o < operation_count; ++o)
    for (std::size_t c = 0; c < type_class_count; ++c) {
      const RoutePattern::PatternCell& cell = pattern.rows[o][c];
      rows_[o].cells[c] = {choices_[cell.by_size].data(), choices_[cell.without_size].data()};
      rows_[o].by_type = rows_[o].by_type || cell != pattern.rows[o][0];
    }
}

RoutedTransport& Router::first_that_supports(const Choice& choice, const Call& call) const {
  if (choice.first->supports(call)) return *choice.first;
  for (std::uint32_t i = 0; i + 1 < choice.others; ++i)
    if (others_[choice.begin_others + i]->supports(call)) return *others_[choice.begin_others + i];
  return *others_[choice.begin_others + choice.others -
                  1];  // the last one throws if it does not carry the call
}

RouteExplanation Router::explain(const RouteTable& routes, const HostTransports& transports,
                                 const DeviceTransport* device, const Call& call, bool capture,
                                 const std::string& why_no_device) const {
  const RouteQuery query = query_of(call, size_, capture);
  RouteExplanation explanation;
  const bool on_device = query.kind == MemoryKind::device;
  if (size_ == 1) {
    const RoutedTransport* local =
        on_device ? static_cast<const RoutedTransport*>(device) : transports.find("local");
    if (local != nullptr) explanation.transport = local->name();
    return explanation;
  }
  RouteQuery of_table = query;
  if (query.bytes) of_table.bytes = 0;
  for (const RouteSegment& segment : routes.resolve(scope_, of_table)) {
    if (query.bytes && *query.bytes >= segment.bytes.end) continue;
    for (const std::size_t r : segment.rules) {
      const RouteRule& rule = routes.rules()[r];
      const bool is_nccl = on_device && rule.transport == "nccl";
      const RoutedTransport* transport =
          is_nccl ? static_cast<const RoutedTransport*>(device) : transports.find(rule.transport);
      std::string why;
      if (transport == nullptr)
        why = is_nccl ? why_no_device : why_absent(transports, rule.transport);
      else if (!transport->supports(call))
        why = transport->why_not(call);
      if (why.empty()) {
        explanation.transport = transport->name();
        explanation.rule = rule.to_string();
        explanation.origin = rule.origin;
        explanation.how = transport->how(call);
        return explanation;
      }
      explanation.skipped.push_back({rule.to_string(), rule.origin, why});
    }
    break;
  }
  return explanation;
}

}  // namespace rankmesh::detail
