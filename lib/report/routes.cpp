// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

// The text in the column of bytes for calls without a size, if other calls are routed by size.
constexpr const char* without_size = "v-forms";

// One stretch of sizes of one operation, type and kind of memory.
struct Stretch {
  std::optional<ByteRange> bytes;  // nothing: calls without a size
  bool is_all = false;             // the size does not matter
  std::vector<std::size_t> rules;
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

// Operations and types that are routed in the same way.
struct Entry {
  std::vector<Operation> operations;
  std::vector<TypeClass> types;  // empty: all
  std::vector<Stretch> stretches;
};

std::vector<Stretch> stretches_of(const RouteTable& routes, const RouteScope& scope,
                                  RouteQuery query) {
  const RouteSegment without = routes.resolve(scope, query).front();
  if (!has_data(query.operation) || is_point_to_point(query.operation))
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

// Returns the operations that the memory has.
std::vector<Operation> operations_on(MemoryKind kind) {
  std::vector<Operation> operations;
  for (std::size_t o = 0; o < operation_count; ++o)
    if (kind == MemoryKind::host || !operation_facts[o].nccl.empty())
      operations.push_back(static_cast<Operation>(o));
  return operations;
}

std::vector<Entry> entries_of(const RouteTable& routes, const RouteScope& scope, MemoryKind kind,
                              bool capture) {
  std::vector<Entry> entries;
  for (const Operation operation : operations_on(kind)) {
    RouteQuery query{.operation = operation, .kind = kind, .capture = capture};
    if (!has_data(operation)) {
      add(entries, operation, {}, stretches_of(routes, scope, query));
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

std::vector<std::string_view> names_of(const auto& values) {
  std::vector<std::string_view> names;
  for (const auto value : values) names.push_back(to_string(value));
  return names;
}

std::string operations_text(const std::vector<Operation>& operations, MemoryKind kind) {
  std::vector<Operation> others = operations_on(kind);
  const std::size_t all = others.size();
  if (operations.size() == all) return "all";
  if (operations.size() <= all / 2) return fmt::format("{}", fmt::join(names_of(operations), ", "));
  std::erase_if(others, [&](Operation operation) {
    return std::ranges::find(operations, operation) != operations.end();
  });
  return fmt::format("all but {}", fmt::join(names_of(others), ", "));
}

std::string types_text(const std::vector<TypeClass>& types) {
  return types.empty() ? "all" : fmt::format("{}", fmt::join(names_of(types), " "));
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

// Device calls inside and outside of CUDA graphs have rows of their own if a rule distinguishes
// them.
std::vector<Memory> memories_of(const RouteTable& routes) {
  if (std::ranges::any_of(routes.rules(),
                          [](const RouteRule& rule) { return rule.capture.has_value(); }))
    return {{MemoryKind::host, false, "host"},
            {MemoryKind::device, false, "device, eager"},
            {MemoryKind::device, true, "device, capture"}};
  return {{MemoryKind::host, false, "host"}, {MemoryKind::device, false, "device"}};
}

// Returns how many nodes the groups of a name span; nothing if that is unknown or differs.
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

// Returns whether all ranks on the nodes of the groups of a name have cores of their own; nothing
// if this is unknown or differs.
std::optional<bool> own_cores_of(const GroupFamily& family, const RouteFacts* live) {
  if (live == nullptr) return std::nullopt;
  std::optional<bool> own_cores;
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    const std::optional<bool> here = live->placement.has_own_cores(family.group(g));
    if (!here || (own_cores && *own_cores != *here)) return std::nullopt;
    own_cores = here;
  }
  return own_cores;
}

// One row of the report: those calls of a family that are routed in the same way.
struct RouteRow {
  RouteScope scope;
  Memory memory;
  Entry entry;
  Stretch stretch;
  std::optional<RouteExplanation> answer;
};

// The explanation of the live mesh for the smallest call of a row.
std::optional<RouteExplanation> answer_of(const RouteFacts* live, const std::string& name,
                                          const Memory& memory, const Entry& entry,
                                          const Stretch& stretch) {
  if (live == nullptr) return std::nullopt;
  RouteQuery query{.operation = entry.operations.front(),
                   .kind = memory.kind,
                   .type = entry.types.empty() ? TypeClass::floating : entry.types.front(),
                   .capture = memory.capture};
  if (stretch.bytes) query.bytes = stretch.bytes->begin;
  if (stretch.is_all && !is_point_to_point(query.operation)) query.bytes = 0;
  return live->explain(name, query);
}

// A row for every stretch of every name that has communicators.
std::vector<RouteRow> rows_of(const MeshPlan& plan, const RouteTable& routes,
                              const RouteFacts* live) {
  std::vector<RouteRow> rows;
  for (const GroupFamily& family : plan.families()) {
    if (family.coverage(plan.world_size()) == Coverage::overlapping || family.group_size() == 1)
      continue;
    const RouteScope scope{family.name(), family.group_size(), nodes_of(family, live),
                           own_cores_of(family, live)};
    for (const Memory& memory : memories_of(routes))
      for (const Entry& entry : entries_of(routes, scope, memory.kind, memory.capture))
        for (const Stretch& stretch : entry.stretches)
          rows.push_back({scope, memory, entry, stretch,
                          answer_of(live, family.name(), memory, entry, stretch)});
  }
  return rows;
}

// The transports of a stretch's rules in their order, without repetitions in a row.
std::vector<std::string> candidates(const RouteTable& routes, const Stretch& stretch) {
  std::vector<std::string> names;
  for (const std::size_t r : stretch.rules) {
    const std::string& name = routes.rules()[r].transport;
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

std::string served_text(const RouteTable& routes, const Stretch& stretch,
                        const std::optional<RouteExplanation>& answer) {
  if (!answer) return fmt::format("{}", fmt::join(candidates(routes, stretch), ", else "));
  std::string text = answer->transport.empty() ? "none" : answer->transport;
  std::string last;
  for (const auto& skipped : answer->skipped)
    if (skipped.why != last) text += fmt::format(" ({})", last = skipped.why);
  return text;
}

// The numbers of the rules, as they are printed.
std::vector<std::size_t> numbers_of(const Stretch& stretch) {
  std::vector<std::size_t> numbers;
  for (const std::size_t r : stretch.rules) numbers.push_back(r + 1);
  return numbers;
}

std::string_view source_text(RouteSource source) {
  return name_in({"code", "environment", "file", "default"}, source);
}

Table rules_table(const RouteTable& routes) {
  Table table{
      .columns = {{"rule", right},
                  {"the first rule that matches, and whose transport can carry the call, is used"},
                  {"from"}}};
  for (const RouteRule& rule : routes.rules())
    table.rows.push_back({table.rows.size() + 1, rule.to_string(), rule.origin});
  return table;
}

// Text leaves cells blank that repeat the row above: a name, its memory, its operations and types.
Table routes_table(const RouteTable& routes, const std::vector<RouteRow>& rows, bool is_live) {
  Table table{.columns = {{.title = "name", .level = 1},
                          {.title = "size", .align = right, .level = 1},
                          {.title = "nodes", .align = right, .level = 1},
                          {.title = "memory", .level = 2},
                          {.title = "operations", .level = 3},
                          {.title = "types", .level = 3},
                          {.title = "bytes"},
                          {.title = "rules"},
                          {.title = is_live ? "transport that carries the call"
                                            : "transport that may carry the call"}}};
  for (const auto& [scope, memory, entry, stretch, answer] : rows) {
    table.rows.push_back(
        {scope.name, scope.ranks, scope.nodes ? fmt::format("{}", *scope.nodes) : "?", memory.text,
         operations_text(entry.operations, memory.kind), types_text(entry.types),
         bytes_text(stretch), fmt::format("{}", fmt::join(numbers_of(stretch), ",")),
         served_text(routes, stretch, answer)});
  }
  return table;
}

Json route_json(const RouteTable& routes, const RouteRow& row) {
  Json route{{"memory", to_string(row.memory.kind)},
             {"capture", row.memory.capture},
             {"operations", names_of(row.entry.operations)},
             {"types", row.entry.types.empty() ? Json() : Json(names_of(row.entry.types))},
             {"bytes", nullptr},  // all, or calls without a size
             {"sized", row.stretch.is_all ? Json() : Json(row.stretch.bytes.has_value())}};
  if (const auto& bytes = row.stretch.bytes)
    route["bytes"] =
        Json::array({bytes->begin, bytes->end == ByteRange::infinite ? Json() : Json(bytes->end)});
  if (!row.stretch.rules.empty()) route["rules"] = numbers_of(row.stretch);
  const std::vector<std::string> names = candidates(routes, row.stretch);
  if (!names.empty()) route["candidates"] = names;
  if (!row.answer) return route;
  route["transport"] = row.answer->transport.empty() ? Json() : Json(row.answer->transport);
  for (const auto& skipped : row.answer->skipped)
    route["skipped"].push_back({{"rule", skipped.rule}, {"why", skipped.why}});
  return route;
}

Json routes_fields(const MeshPlan& plan, const RouteTable& routes,
                   const std::vector<RouteRow>& rows) {
  Json fields{{"mesh", views_text(plan)},
              {"world_size", plan.world_size()},
              {"rules", Json::array()},
              {"names", Json::object()}};
  for (const RouteRule& rule : routes.rules())
    fields["rules"].push_back({{"rule", rule.to_string()},
                               {"source", source_text(rule.source)},
                               {"origin", rule.origin}});
  for (const RouteRow& row : rows) {
    Json& name = fields["names"][row.scope.name];
    if (name.is_null())
      name = {{"size", row.scope.ranks}, {"nodes", row.scope.nodes}, {"routes", Json::array()}};
    name["routes"].push_back(route_json(routes, row));
  }
  return fields;
}

}  // namespace

Document routes(const MeshPlan& plan, const RouteTable& table, const RouteFacts* live) {
  const std::vector<RouteRow> rows = rows_of(plan, table, live);
  Document document{.schema = "rankmesh.routes/1",
                    .fields = routes_fields(plan, table, rows),
                    .table = routes_table(table, rows, live != nullptr)};
  document.add_line("routes", title_of(plan));
  document.add("\n");
  document.text.emplace_back(rules_table(table));
  document.add("\n");
  if (!rows.empty()) {
    document.text.emplace_back(TableHere{});
    document.add("\n");
  }
  document.add("  a group of one rank copies and uses no rule\n");
  return document;
}

}  // namespace rankmesh::report
