#include "rankmesh/report/routes.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "detail/table.hpp"
#include "rankmesh/report/show.hpp"

namespace rankmesh::report {
namespace {

// What stands in the column of bytes for calls without a size, where sizes matter to others.
constexpr const char* without_size = "v-forms";

// One stretch of sizes of one operation, type and kind of memory.
struct Stretch {
  std::optional<ByteRange> bytes;  // nothing: calls without a size
  bool is_all = false;             // sizes do not matter
  std::vector<std::size_t> rules;
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

// Operations and types that are routed alike.
struct Entry {
  std::vector<Operation> operations;
  std::vector<TypeClass> types;  // empty: all
  std::vector<Stretch> stretches;
};

bool has_v_form(Operation operation) {
  return operation >= Operation::all_gather && operation <= Operation::all_to_all;
}

std::vector<Stretch> stretches_of(const RouteTable& routes, const RouteScope& scope,
                                  RouteQuery query) {
  const RouteSegment without = routes.resolve(scope, query).front();
  if (query.operation == Operation::barrier || is_point_to_point(query.operation))
    return {{std::nullopt, true, without.rules}};
  query.bytes = 0;
  std::vector<Stretch> stretches;
  for (const RouteSegment& segment : routes.resolve(scope, query))
    stretches.push_back({segment.bytes, false, segment.rules});
  const bool same = !has_v_form(query.operation) || stretches.front().rules == without.rules;
  if (stretches.size() == 1 && same) return {{std::nullopt, true, stretches.front().rules}};
  if (has_v_form(query.operation)) stretches.push_back({std::nullopt, false, without.rules});
  return stretches;
}

void add(std::vector<Entry>& entries, Operation operation, std::vector<TypeClass> types,
         std::vector<Stretch> stretches) {
  const auto same = std::ranges::find_if(
      entries, [&](const Entry& e) { return e.types == types && e.stretches == stretches; });
  if (same == entries.end())
    entries.push_back({{operation}, std::move(types), std::move(stretches)});
  else
    same->operations.push_back(operation);
}

std::vector<Entry> entries_of(const RouteTable& routes, const RouteScope& scope, MemoryKind kind,
                              bool capture) {
  std::vector<Entry> entries;
  for (std::size_t o = 0; o < operation_count; ++o) {
    const auto operation = static_cast<Operation>(o);
    RouteQuery query{.operation = operation, .kind = kind, .capture = capture};
    if (operation == Operation::barrier) {
      if (kind == MemoryKind::host) add(entries, operation, {}, stretches_of(routes, scope, query));
      continue;
    }
    std::vector<Entry> of_types;
    for (std::size_t c = 0; c < type_class_count; ++c) {
      query.type = static_cast<TypeClass>(c);
      auto stretches = stretches_of(routes, scope, query);
      const auto same = std::ranges::find(of_types, stretches, &Entry::stretches);
      if (same == of_types.end())
        of_types.push_back({{}, {*query.type}, std::move(stretches)});
      else
        same->types.push_back(*query.type);
    }
    for (Entry& entry : of_types)
      add(entries, operation, of_types.size() == 1 ? std::vector<TypeClass>{} : entry.types,
          entry.stretches);
  }
  return entries;
}

std::string operations_text(const std::vector<Operation>& operations, std::size_t all) {
  if (operations.size() == all) return "all";
  const auto names = [](const auto& list) {
    std::vector<std::string_view> result;
    for (const Operation operation : list) result.push_back(to_string(operation));
    return fmt::format("{}", fmt::join(result, ", "));
  };
  if (operations.size() <= all / 2) return names(operations);
  std::vector<Operation> others;
  for (std::size_t o = operation_count - all; o < operation_count; ++o)
    if (std::ranges::find(operations, static_cast<Operation>(o)) == operations.end())
      others.push_back(static_cast<Operation>(o));
  return "all but " + names(others);
}

std::string types_text(const std::vector<TypeClass>& types) {
  if (types.empty()) return "all";
  std::vector<std::string_view> names;
  for (const TypeClass type : types) names.push_back(to_string(type));
  return fmt::format("{}", fmt::join(names, " "));
}

std::string bytes_text(const Stretch& stretch) {
  if (stretch.is_all) return "all";
  if (!stretch.bytes) return without_size;
  const std::string text = RouteRule{.bytes = stretch.bytes, .transport = "mpi"}.to_string();
  return text.substr(4, text.size() - 8);  // *.*:0-32K=mpi
}

struct Memory {
  MemoryKind kind;
  bool capture;
  const char* text;
};

// Device calls inside and outside of CUDA graphs are listed apart where a rule tells them apart.
std::vector<Memory> memories_of(const RouteTable& routes) {
  if (std::ranges::any_of(routes.rules(),
                          [](const RouteRule& rule) { return rule.capture.has_value(); }))
    return {{MemoryKind::host, false, "host"},
            {MemoryKind::device, false, "device, eager"},
            {MemoryKind::device, true, "device, capture"}};
  return {{MemoryKind::host, false, "host"}, {MemoryKind::device, false, "device"}};
}

// How many nodes the groups of a name touch; nothing where that is not known, or differs.
std::optional<std::int32_t> nodes_of(const GroupFamily& family, const RouteFacts* live) {
  if (live == nullptr) return std::nullopt;
  std::optional<std::int32_t> nodes;
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    const std::int32_t here = live->placement.nodes_of(family.group(g));
    if (nodes && (*nodes == 1) != (here == 1)) return std::nullopt;
    nodes = std::max(nodes.value_or(0), here);
  }
  return nodes;
}

// Calls `row` for every stretch of every name: what is routed alike once.
template <class Row>
void for_each_row(const MeshPlan& plan, const RouteTable& routes, const RouteFacts* live,
                  Row&& row) {
  for (const GroupFamily& family : plan.families()) {
    if (family.coverage(plan.world_size()) == Coverage::overlapping || family.group_size() == 1)
      continue;
    const RouteScope scope{family.name(), family.group_size(), nodes_of(family, live)};
    for (const Memory& memory : memories_of(routes))
      for (const Entry& entry : entries_of(routes, scope, memory.kind, memory.capture))
        for (const Stretch& stretch : entry.stretches) {
          std::optional<RouteExplanation> answer;
          if (live != nullptr) {
            RouteQuery query{
                .operation = entry.operations.front(),
                .kind = memory.kind,
                .type = entry.types.empty() ? TypeClass::floating : entry.types.front(),
                .capture = memory.capture};
            if (stretch.bytes) query.bytes = stretch.bytes->begin;
            if (stretch.is_all && !is_point_to_point(query.operation)) query.bytes = 0;
            answer = live->explain(family.name(), query);
          }
          row(scope, memory, entry, stretch, answer);
        }
  }
}

// Rules that a stretch asks, as transports: `shm, else mpi`.
std::string candidates_text(const RouteTable& routes, const Stretch& stretch) {
  std::vector<std::string> names;
  for (const std::size_t r : stretch.rules) {
    const std::string& name = routes.rules()[r].transport;
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", else "));
}

std::string served_text(const RouteTable& routes, const Stretch& stretch,
                        const std::optional<RouteExplanation>& answer) {
  if (!answer) return candidates_text(routes, stretch);
  std::string text = answer->transport.empty() ? "none" : answer->transport;
  std::string last;
  for (const auto& skipped : answer->skipped)
    if (skipped.why != last) text += fmt::format(" ({})", last = skipped.why);
  return text;
}

std::string rules_text(const Stretch& stretch) {
  std::vector<std::size_t> numbers;
  for (const std::size_t r : stretch.rules) numbers.push_back(r + 1);
  return fmt::format("{}", fmt::join(numbers, ","));
}

std::string_view source_text(RouteSource source) {
  switch (source) {
    case RouteSource::code:
      return "code";
    case RouteSource::environment:
      return "environment";
    case RouteSource::file:
      return "file";
    case RouteSource::builtin:
      return "default";
  }
  return "?";
}

}  // namespace

std::string routes_text(const MeshPlan& plan, const RouteTable& routes, const RouteFacts* live,
                        bool colour) {
  using enum detail::Table::Align;
  std::string text =
      fmt::format("{}  {}   {} rank{}\n\n", detail::bold("routes", colour), views_text(plan),
                  plan.world_size(), plan.world_size() == 1 ? "" : "s");
  detail::Table rules{{{"rule", right},
                       {"asked in this order; the first that matches and can serve wins", left},
                       {"from", left}}};
  for (std::size_t r = 0; r < routes.rules().size(); ++r)
    rules.add({fmt::format("{}", r + 1), routes.rules()[r].to_string(), routes.rules()[r].origin});
  detail::Table table{
      {{"name", left},
       {"size", right},
       {"nodes", right},
       {"memory", left},
       {"operations", left},
       {"types", left},
       {"bytes", left},
       {"rules", left},
       {live == nullptr ? "transport that may serve" : "transport that serves", left}}};
  std::string last_name;
  std::string last_memory;
  for_each_row(
      plan, routes, live,
      [&](const RouteScope& scope, const Memory& memory, const Entry& entry, const Stretch& stretch,
          const std::optional<RouteExplanation>& answer) {
        const bool is_first = scope.name != last_name;
        const bool same_memory = !is_first && memory.text == last_memory;
        const bool same_entry = same_memory && &stretch != &entry.stretches.front();
        const std::size_t all = operation_count - (memory.kind == MemoryKind::device ? 1 : 0);
        table.add({is_first ? scope.name : "", is_first ? fmt::format("{}", scope.ranks) : "",
                   !is_first      ? ""
                   : !scope.nodes ? "?"
                                  : fmt::format("{}", *scope.nodes),
                   same_memory ? "" : memory.text,
                   same_entry ? "" : operations_text(entry.operations, all),
                   same_entry ? "" : types_text(entry.types), bytes_text(stretch),
                   rules_text(stretch), served_text(routes, stretch, answer)});
        last_name = scope.name;
        last_memory = memory.text;
      });
  text += rules.to_string(colour) + "\n";
  if (!last_name.empty()) text += table.to_string(colour) + "\n";
  text += "  groups of one rank copy, and ask no rule\n";
  return text;
}

std::string routes_json(const MeshPlan& plan, const RouteTable& routes, const RouteFacts* live) {
  nlohmann::ordered_json json{{"schema", "rankmesh.routes/1"},
                              {"mesh", views_text(plan)},
                              {"world_size", plan.world_size()},
                              {"rules", nlohmann::ordered_json::array()},
                              {"names", nlohmann::ordered_json::object()}};
  for (const RouteRule& rule : routes.rules())
    json["rules"].push_back({{"rule", rule.to_string()},
                             {"source", source_text(rule.source)},
                             {"origin", rule.origin}});
  for_each_row(plan, routes, live,
               [&](const RouteScope& scope, const Memory& memory, const Entry& entry,
                   const Stretch& stretch, const std::optional<RouteExplanation>& answer) {
                 auto& of_name = json["names"][scope.name];
                 if (of_name.is_null()) {
                   of_name = {{"size", scope.ranks},
                              {"nodes", nullptr},
                              {"routes", nlohmann::ordered_json::array()}};
                   if (scope.nodes) of_name["nodes"] = *scope.nodes;
                 }
                 nlohmann::ordered_json route{{"memory", to_string(memory.kind)},
                                              {"capture", memory.capture}};
                 for (const Operation operation : entry.operations)
                   route["operations"].push_back(to_string(operation));
                 route["types"] = nullptr;  // all
                 for (const TypeClass type : entry.types) route["types"].push_back(to_string(type));
                 route["bytes"] = nullptr;  // all, or calls without a size
                 if (stretch.bytes) {
                   route["bytes"] = {stretch.bytes->begin, nullptr};
                   if (stretch.bytes->end != ByteRange::infinite)
                     route["bytes"][1] = stretch.bytes->end;
                 }
                 route["sized"] = stretch.is_all
                                      ? nlohmann::ordered_json{}
                                      : nlohmann::ordered_json(stretch.bytes.has_value());
                 for (const std::size_t r : stretch.rules) route["rules"].push_back(r + 1);
                 for (const std::size_t r : stretch.rules) {
                   const std::string& name = routes.rules()[r].transport;
                   auto& list = route["candidates"];
                   if (list.is_null() || list.back() != name) list.push_back(name);
                 }
                 if (answer) {
                   route["transport"] = nullptr;
                   if (!answer->transport.empty()) route["transport"] = answer->transport;
                   for (const auto& skipped : answer->skipped)
                     route["skipped"].push_back({{"rule", skipped.rule}, {"why", skipped.why}});
                 }
                 of_name["routes"].push_back(std::move(route));
               });
  return json.dump(2) + "\n";
}

}  // namespace rankmesh::report
