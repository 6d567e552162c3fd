// SPDX-License-Identifier: BSD-3-Clause
// Writes the listed groups of a document: as lists of JSON, as lines, or as rows of CSV. The groups
// and their ranks are computed while they are written.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "detail/writer.hpp"

namespace rankmesh::report::detail {
namespace {

void write_ranks(Writer& out, const RankSet& ranks) {
  ranks.write([&](std::string_view item) {
    out.text(item);
    return true;
  });
}

bool has_comma(const RankSet& ranks) {
  int items = 0;
  ranks.items([&](const RankSet::Item&) { return ++items < 2; });
  return items > 1;
}

}  // namespace

void write_group_lists(const std::vector<NamedFamily>& families, Writer& out) {
  out.character('{');
  for (const auto& [key, family] : families) {
    if (&key != &families.front().first) out.character(',');
    out.text(json_text(Json(key)));
    out.text(":[");
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      bool is_first = true;
      out.text(g > 0 ? ",[" : "[");
      family.group(g).for_each([&](Rank rank) {
        if (!is_first) out.character(',');
        is_first = false;
        out.number(rank.value());
      });
      out.character(']');
    }
    out.character(']');
  }
  out.character('}');
}

void write_group_lines(const std::vector<NamedFamily>& families, Writer& out) {
  for (const auto& [key, family] : families) {
    if (&key != &families.front().first) out.character('\n');
    out.text(fmt::format("{}  {} of {}{}\n", key, count_text(family.group_count(), "group"),
                         family.is_uniform() ? "" : "up to ", family.group_size()));
    const std::size_t width = fmt::format("{}", family.group_count() - 1).size();
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      out.text(fmt::format("  {:>{}}  ", g, width));
      write_ranks(out, family.group(g));
      out.character('\n');
    }
  }
}

void write_group_rows(const std::vector<NamedFamily>& families, Writer& out) {
  out.text("name,group,size,ranks\n");
  for (const auto& [key, family] : families) {
    const std::string name = csv_field(key);
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      const RankSet ranks = family.group(g);
      const char* const quote = has_comma(ranks) ? "\"" : "";
      out.text(fmt::format("{},{},{},{}", name, g, ranks.size(), quote));
      write_ranks(out, ranks);
      out.text(fmt::format("{}\n", quote));
    }
  }
}

}  // namespace rankmesh::report::detail
