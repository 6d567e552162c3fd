// SPDX-License-Identifier: BSD-3-Clause
// Writes the listed groups of a document: as lists of JSON, as lines, or as rows of CSV. The groups
// and their ranks are computed while they are written.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "detail/writer.hpp"

namespace rankmesh::report::detail {
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

// Calls member(group, rank in group, size of the group, rank) for every member of every group.
template <class Member>
void for_each_member(const GroupFamily& family, Member&& member) {
  if (const RankSet* all = family.in_sequence()) {
    std::int64_t group = 0, place = 0;
    all->for_each([&](Rank rank) {
      member(group, place, family.group_size(), rank);
      if (++place < family.group_size()) return;
      place = 0;
      ++group;
    });
    return;
  }
  for (std::int64_t group = 0; group < family.group_count(); ++group) {
    const RankSet ranks = family.group(group);
    std::int64_t place = 0;
    ranks.for_each([&](Rank rank) { member(group, place++, ranks.size(), rank); });
  }
}

}  // namespace

void write_group_lists(const std::vector<NamedFamily>& families, Writer& out) {
  out.character('{');
  for (const auto& [key, family] : families) {
    if (&key != &families.front().first) out.character(',');
    out.text(json_text(Json(key)));
    out.text(":[");
    for_each_member(family,
                    [&](std::int64_t group, std::int64_t place, std::int64_t size, Rank rank) {
                      if (place > 0)
                        out.character(',');
                      else
                        out.text(group > 0 ? ",[" : "[");
                      out.number(rank.value());
                      if (place + 1 == size) out.character(']');
                    });
    out.character(']');
  }
  out.character('}');
}

void write_group_lines(const std::vector<NamedFamily>& families, Writer& out) {
  for (const auto& [key, family] : families) {
    if (&key != &families.front().first) out.character('\n');
    out.text(fmt::format("{}  {} of {}{}\n", key, count_text(family.group_count(), "group"),
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

void write_member_rows(const std::vector<NamedFamily>& families, const Table& of_ranks,
                       Writer& out) {
  out.text("rank,name,group,rank_in_group,size" + csv_titles(of_ranks) + '\n');
  std::vector<std::string> ends;  // what is known about each rank
  for (const auto& row : of_ranks.rows) ends.push_back(csv_cells(of_ranks, row));
  for (const auto& [key, family] : families) {
    const std::string name = csv_field(key);
    for_each_member(family,
                    [&](std::int64_t group, std::int64_t place, std::int64_t size, Rank rank) {
                      out.number(rank.value());
                      out.character(',');
                      out.text(name);
                      for (const std::int64_t number : {group, place, size}) {
                        out.character(',');
                        out.number(number);
                      }
                      if (!ends.empty()) out.text(ends.at(static_cast<std::size_t>(rank.value())));
                      out.character('\n');
                    });
  }
}

}  // namespace rankmesh::report::detail
