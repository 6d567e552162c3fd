// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/groups.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/picture.hpp"
#include "detail/writer.hpp"

namespace rankmesh::report {
namespace detail {
namespace {

using Items = std::vector<RankSet::Item>;

// Returns the items of a group that begins at 0, if all groups are translates of it and it has few
// items. Then a group is written without computing its ranks.
std::optional<Items> common_items(const GroupFamily& family) {
  constexpr std::size_t most = 64;
  if (family.first_ranks() == nullptr) return std::nullopt;
  const RankSet first = family.group(0);
  const std::int64_t start = first.front().value();
  Items items;
  first.items([&](const RankSet::Item& item) {
    items.push_back({item.first - start, item.last - start, item.step});
    return items.size() <= most;
  });
  if (items.size() > most) return std::nullopt;
  return items;
}

void write_item(Writer& out, const RankSet::Item& item, std::int64_t start) {
  out.number(start + item.first);
  if (item.step > 0) {
    out.character('-');
    out.number(start + item.last);
  }
  if (item.step > 1) {
    out.character(':');
    out.number(item.step);
  }
}

void write_items(Writer& out, const Items& items, std::int64_t start) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.character(',');
    write_item(out, items[i], start);
  }
}

void write_items(Writer& out, const RankSet& ranks) {
  bool is_first = true;
  ranks.items([&](const RankSet::Item& item) {
    if (!is_first) out.character(',');
    is_first = false;
    write_item(out, item, 0);
    return true;
  });
}

bool has_comma(const RankSet& ranks) {
  int items = 0;
  ranks.items([&](const RankSet::Item&) { return ++items < 2; });
  return items > 1;
}

// Calls line(group, has a comma, size, function that writes the ranks) for every group.
template <class Line>
void for_each_group(Writer& out, const GroupFamily& family, Line&& line) {
  if (const auto items = common_items(family)) {
    std::int64_t g = 0;
    family.first_ranks()->for_each([&](Rank first) {
      line(g++, items->size() > 1, family.group_size(),
           [&] { write_items(out, *items, first.value()); });
    });
    return;
  }
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    const RankSet ranks = family.group(g);
    line(g, has_comma(ranks), ranks.size(), [&] { write_items(out, ranks); });
  }
}

// A list of lists. A strided family is one sequence that is cut into groups.
void json_lists(Writer& out, const GroupFamily& family) {
  if (const RankSet* all = family.in_sequence()) {
    std::int64_t left = 0;  // in this group
    bool is_first = true;
    all->for_each([&](Rank rank) {
      if (left > 0) {
        out.character(',');
      } else {
        out.text(is_first ? "[" : ",[");
        is_first = false;
        left = family.group_size();
      }
      out.number(rank.value());
      if (--left == 0) out.character(']');
    });
    return;
  }
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    out.text(g > 0 ? ",[" : "[");
    bool is_first = true;
    family.group(g).for_each([&](Rank rank) {
      if (!is_first) out.character(',');
      is_first = false;
      out.number(rank.value());
    });
    out.character(']');
  }
}

}  // namespace

void write_group_lists(const std::vector<NamedFamily>& families, Writer& out) {
  out.character('{');
  for (const auto& [key, family] : families) {
    if (&key != &families.front().first) out.character(',');
    out.text(json_string(key));
    out.text(":[");
    json_lists(out, family);
    out.character(']');
  }
  out.character('}');
}

void write_group_lines(const std::vector<NamedFamily>& families, Writer& out) {
  for (const auto& [key, family] : families) {
    if (&key != &families.front().first) out.character('\n');
    out.text(fmt::format("{}  {} of {}{}\n", key,
                         rankmesh::detail::count_text(family.group_count(), "group"),
                         family.is_uniform() ? "" : "up to ", family.group_size()));
    std::int64_t power = 10;  // the first number with more digits than g
    std::string indent(2 + fmt::format("{}", family.group_count() - 1).size() - 1, ' ');
    for_each_group(out, family, [&](std::int64_t g, bool, std::int64_t, auto&& ranks) {
      if (g == power) {
        indent.pop_back();
        power *= 10;
      }
      out.text(indent);
      out.number(g);
      out.text("  ");
      ranks();
      out.character('\n');
    });
  }
}

void write_group_rows(const std::vector<NamedFamily>& families, Writer& out) {
  out.text("name,group,size,ranks\n");
  for (const auto& [key, family] : families) {
    const std::string name = csv_field(key) + ",";
    for_each_group(out, family, [&](std::int64_t g, bool quoted, std::int64_t size, auto&& ranks) {
      const std::string_view quote = quoted ? "\"" : "";
      out.text(name);
      out.number(g);
      out.character(',');
      out.number(size);
      out.character(',');
      out.text(quote);
      ranks();
      out.text(quote);
      out.character('\n');
    });
  }
}

}  // namespace detail

namespace {

Table facts_of_ranks(const LiveFacts& live) {
  Table table{.columns = {{"host"}, {"node"}, {"local_rank"}, {"process"}}};
  if (!live.devices.empty()) table.columns.push_back({"device"});
  for (std::int64_t r = 0; r < live.placement.world_size(); ++r) {
    const auto index = static_cast<std::size_t>(r);
    const std::int32_t node = live.placement.node(r);
    table.rows.push_back({live.hosts.at(static_cast<std::size_t>(node)), node,
                          live.placement.local_rank(r), live.process_ids.at(index)});
    if (!live.devices.empty()) table.rows.back().emplace_back(live.devices.at(index));
  }
  return table;
}

}  // namespace

Document groups(const MeshPlan& plan, std::vector<NamedFamily> families, const LiveFacts* live) {
  Picture picture = detail::picture_of(plan, nullptr, live);
  picture.states.front().families = families;
  return {.schema = "rankmesh.groups/1",
          .fields = {{"world_size", plan.world_size()}},
          .table = {},
          .groups = std::move(families),
          .of_ranks = live == nullptr ? Table{} : facts_of_ranks(*live),
          .picture = std::move(picture)};
}

}  // namespace rankmesh::report
