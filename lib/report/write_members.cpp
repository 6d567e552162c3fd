// SPDX-License-Identifier: BSD-3-Clause
// Writes the long form of CSV: one row for each rank and name.
#include <string>
#include <vector>

#include "detail/writer.hpp"

namespace rankmesh::report::detail {
namespace {

// The additional columns of each rank, as text for the end of its rows.
std::vector<std::string> row_ends(const Table& of_ranks) {
  std::vector<std::string> ends;
  for (const auto& row : of_ranks.rows) {
    ends.emplace_back();
    for (const Value& value : row) ends.back() += "," + csv_field(cell_text(value, SIZE_MAX));
  }
  return ends;
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

void write_member_rows(const std::vector<NamedFamily>& families, const Table& of_ranks,
                       Writer& out) {
  out.text("rank,name,group,rank_in_group,size");
  for (const Table::Column& column : of_ranks.columns) out.text("," + csv_field(column.title));
  out.character('\n');
  const std::vector<std::string> ends = row_ends(of_ranks);
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
