// SPDX-License-Identifier: BSD-3-Clause
#include "detail/router.hpp"

#include <algorithm>

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
  if (call.operation != Operation::barrier)
    query.type = class_of(call.operation == Operation::send ? call.in.type : call.out.type);
  if (!call.has_blocks() && !is_point_to_point(call.operation) &&
      call.operation != Operation::barrier)
    query.bytes = routed_bytes(call.operation, call, size);
  return query;
}

}  // namespace

Router::Router(ResolvedRoutes& routes, const HostTransports& transports,
               const GroupDescription& group, std::string_view family)
    : size_{group.ranks.size()},
      scope_{std::string{family}, size_, group.nodes, group.has_own_cores} {
  if (size_ == 1) {  // one rank only copies, so no rule applies
    Transport* local = transports.list.front().get();
    choices_.push_back({{endless, local, local}});
    for (Row& row : rows_) row.cells.fill({choices_.front().data(), choices_.front().data()});
    return;
  }
  const bool has_types = std::ranges::any_of(
      routes.table().rules(), [](const RouteRule& rule) { return rule.type.has_value(); });
  for (std::size_t o = 0; o < operation_count; ++o) {
    Row& row = rows_[o];
    const auto operation = static_cast<Operation>(o);
    for (std::size_t c = 0; c < type_class_count; ++c) {
      if (c > 0 && !has_types) {
        row.cells[c] = row.cells[0];
        continue;
      }
      RouteQuery query{.operation = operation, .type = static_cast<TypeClass>(c)};
      if (operation == Operation::barrier) query.type.reset();
      Cell& cell = row.cells[c];
      cell.by_size = cell.without_size = add(routes, transports, query);
      if (operation != Operation::barrier && !is_point_to_point(operation)) {
        query.bytes = 0;
        cell.by_size = add(routes, transports, query);
      }
      row.by_type = row.by_type || cell.by_size != row.cells[0].by_size ||
                    cell.without_size != row.cells[0].without_size;
    }
  }
}

// Returns the choices for one operation and type, one per range of sizes. Equal lists are stored
// once, so the constructor can compare cells by the addresses of their lists.
const Router::Choice* Router::add(ResolvedRoutes& routes, const HostTransports& transports,
                                  const RouteQuery& query) {
  std::vector<Choice> list;
  for (const RouteSegment& segment : routes.resolve(scope_, query)) {
    std::vector<Transport*> candidates;
    for (const std::size_t r : segment.rules) {
      Transport* transport = transports.find(routes.table().rules()[r].transport);
      if (transport != nullptr && std::ranges::find(candidates, transport) == candidates.end())
        candidates.push_back(transport);
    }
    const std::vector<Transport*> others{candidates.begin() + 1, candidates.end()};
    auto known = std::ranges::search(others_, others).begin();
    if (known == others_.end() && !others.empty())
      known = others_.insert(known, others.begin(), others.end());
    const std::uint64_t end = segment.bytes.end == ByteRange::infinite
                                  ? endless
                                  : static_cast<std::uint64_t>(segment.bytes.end);
    const Choice choice{end, others.empty() ? candidates.front() : nullptr, candidates.front(),
                        static_cast<std::uint32_t>(others.size()),
                        others.empty() ? 0 : static_cast<std::uint32_t>(known - others_.begin())};
    if (!list.empty() && list.back().routes_like(choice))
      list.back().end = choice.end;
    else
      list.push_back(choice);
  }
  const auto same = std::ranges::find(choices_, list);
  return same != choices_.end() ? same->data() : choices_.emplace_back(std::move(list)).data();
}

Transport& Router::first_that_supports(const Choice& choice, const Call& call) const {
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
    const Transport* local =
        on_device ? static_cast<const Transport*>(device) : transports.find("local");
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
      const Transport* transport =
          is_nccl ? static_cast<const Transport*>(device) : transports.find(rule.transport);
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
