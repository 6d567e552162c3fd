#include "detail/router.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "detail/rewritten.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

Transport* find(const Channel& channel, std::string_view name) {
  for (const auto& transport : channel.transports)
    if (transport->name() == name) return transport.get();
  return nullptr;
}

std::string why_absent(const Channel& channel, const std::string& name) {
  const auto known = channel.absent.find(name);
  return known != channel.absent.end() ? known->second : fmt::format("the group has no {} transport", name);
}

RouteQuery query_of(const Call& call, std::int64_t size, bool capture) {
  RouteQuery query{.operation = call.operation, .kind = call.out.kind, .capture = capture};
  if (call.operation == Operation::send) query.kind = call.in.kind;
  if (call.operation != Operation::barrier)
    query.type = class_of(call.operation == Operation::send ? call.in.type : call.out.type);
  if (call.in_counts.empty() && call.out_counts.empty() && !is_point_to_point(call.operation) &&
      call.operation != Operation::barrier)
    query.bytes = routed_bytes(call, size);
  return query;
}

}  // namespace

Router::Router(const RouteTable& routes, const Channel& channel, std::string_view name, RankInGroup rank,
               bool is_polled)
    : size_{channel.ranks.size()}, is_polled_{is_polled}, scope_{std::string{name}, size_, channel.nodes} {
  if (size_ == 1) {  // copies: no rule is asked
    Transport* local = channel.transports.front().get();
    choices_.push_back({{ByteRange::infinite, local, local}});
    for (std::size_t o = 0; o < operation_count; ++o) {
      rows_[o].cells.fill({choices_.front().data(), choices_.front().data()});
      make_plain(static_cast<Operation>(o), rank, false);
    }
    return;
  }
  for (std::size_t o = 0; o < operation_count; ++o) {
    Row& row = rows_[o];
    const auto operation = static_cast<Operation>(o);
    const RoutedBytes how = routed_bytes(operation);
    row.of_out = how.of_out;
    row.factor = how.of_group ? size_ : 1;
    for (std::size_t c = 0; c < type_class_count; ++c) {
      RouteQuery query{.operation = operation, .type = static_cast<TypeClass>(c)};
      if (operation == Operation::barrier) query.type.reset();
      Cell& cell = row.cells[c];
      cell.by_size = cell.without_size = add(routes, channel, query);
      if (operation != Operation::barrier && !is_point_to_point(operation)) {
        query.bytes = 0;
        cell.by_size = add(routes, channel, query);
        // One transport for all sizes and another for calls without one: two stretches, for the look-up.
        if (cell.by_size != cell.without_size && cell.by_size->end == ByteRange::infinite) {
          Choice one = *cell.by_size;
          one.end = 1;
          cell.by_size = choices_.emplace_back(std::vector{one, *cell.by_size}).data();
        }
      }
      row.by_type = row.by_type || cell.by_size != row.cells[0].by_size ||
                    cell.without_size != row.cells[0].without_size;
    }
    make_plain(operation, rank, is_polled);
  }
}

void Router::make_plain(Operation operation, RankInGroup rank, bool is_polled) {
  const Row& row = rows_[static_cast<std::size_t>(operation)];
  Plain& plain = plain_[static_cast<std::size_t>(operation)];
  if (is_polled || row.by_type) return;
  switch (operation) {
    case Operation::barrier:
    case Operation::all_reduce:
      plain.in_factor = plain.out_factor = 1;
      break;
    case Operation::all_gather:
      plain.in_factor = size_;
      plain.out_factor = 1;
      plain.in_place = static_cast<std::uintptr_t>(rank.value());
      break;
    case Operation::reduce_scatter:
      plain.in_factor = 1;
      plain.out_factor = size_;
      plain.in_place = ~std::uintptr_t{0};  // nowhere: in that ends where out begins is apart
      break;
    case Operation::broadcast:
    case Operation::reduce:
    case Operation::gather:
    case Operation::scatter:
    case Operation::all_to_all:
    case Operation::send:
    case Operation::recv:
    case Operation::send_recv:
      return;
  }
  if (reduces(operation))  // others are rewritten first
    for (unsigned type = 0; type < 32; ++type)
      if (is_narrow_float(static_cast<DataType>(type))) plain.types &= ~(1U << type);
  plain.choices = row.cells[0].by_size;
  plain.never = 0;
}

// The choices of one operation and type, shared with an equal list that is there already.
const Router::Choice* Router::add(const RouteTable& routes, const Channel& channel, const RouteQuery& query) {
  std::vector<Choice> list;
  for (const RouteSegment& segment : routes.resolve(scope_, query)) {
    std::vector<Transport*> candidates;
    for (const std::size_t r : segment.rules) {
      Transport* transport = find(channel, routes.rules()[r].transport);
      if (transport != nullptr && std::ranges::find(candidates, transport) == candidates.end())
        candidates.push_back(transport);
    }
    const std::vector<Transport*> others{candidates.begin() + 1, candidates.end()};
    auto known = std::ranges::search(others_, others).begin();
    if (known == others_.end() && !others.empty())
      known = others_.insert(known, others.begin(), others.end());
    const Choice choice{segment.bytes.end, others.empty() ? candidates.front() : nullptr, candidates.front(),
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

const Router::Choice* Router::choice_by_type(const Call& call) const {
  return cell_of(rows_[static_cast<std::size_t>(call.operation)], call).by_size;
}

Transport& Router::first_that_supports(const Choice& choice, const Call& call) const {
  if (choice.first->supports(call)) return *choice.first;
  for (std::uint32_t i = 0; i + 1 < choice.others; ++i)
    if (others_[choice.begin_others + i]->supports(call)) return *others_[choice.begin_others + i];
  return *others_[choice.begin_others + choice.others - 1];  // says itself what it does not carry
}

RouteExplanation Router::explain(const RouteTable& routes, const Channel& channel, const Call& call,
                                 bool capture, const std::string& no_device) const {
  const RouteQuery query = query_of(call, size_, capture);
  RouteExplanation explanation;
  const bool on_device = query.kind == MemoryKind::device;
  if (size_ == 1) {
    const Transport* local = on_device ? channel.device.get() : channel.transports.front().get();
    if (local != nullptr) explanation.transport = local->name();
    return explanation;
  }
  RouteQuery of_table = query;
  if (query.bytes) of_table.bytes = 0;
  for (const RouteSegment& segment : routes.resolve(scope_, of_table)) {
    if (query.bytes && *query.bytes >= segment.bytes.end) continue;
    for (const std::size_t r : segment.rules) {
      const RouteRule& rule = routes.rules()[r];
      const Transport* transport = on_device ? channel.device.get() : find(channel, rule.transport);
      std::string why;
      if (transport == nullptr)
        why = on_device ? no_device : why_absent(channel, rule.transport);
      else if (!transport->supports(call))
        why = transport->why_not(call);
      if (why.empty()) {
        explanation.transport = transport->name();
        explanation.rule = rule.to_string();
        explanation.origin = rule.origin;
        return explanation;
      }
      explanation.skipped.push_back({rule.to_string(), rule.origin, why});
    }
    break;
  }
  return explanation;
}

}  // namespace rankmesh::detail
