#include "rankmesh/report/groups.hpp"

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "detail/table.hpp"

namespace rankmesh::report {
namespace {

// Gathers pieces, so that the sink is called per 64 KiB and not per number.
class Writer {
 public:
  explicit Writer(const Sink& sink) : sink_{sink}, buffer_(capacity, '\0') {}
  void text(std::string_view piece) {
    if (piece.size() > capacity - size_) flush();
    if (piece.size() > capacity) return sink_(piece);
    std::memcpy(buffer_.data() + size_, piece.data(), piece.size());
    size_ += piece.size();
  }
  void character(char c) {
    if (size_ == capacity) flush();
    buffer_[size_++] = c;
  }
  void number(std::int64_t value) {
    if (capacity - size_ < 24) flush();
    char* const begin = buffer_.data() + size_;
    size_ += static_cast<std::size_t>(std::to_chars(begin, begin + 24, value).ptr - begin);
  }
  void flush() {
    if (size_ > 0) sink_(std::string_view{buffer_}.substr(0, size_));
    size_ = 0;
  }

 private:
  static constexpr std::size_t capacity = 65536;
  const Sink& sink_;
  std::string buffer_;
  std::size_t size_ = 0;
};

using Items = std::vector<RankSet::Item>;

// How the groups look in text, where all look alike: the items of a group that would begin at 0.
// Nothing where the groups are no translates of one another, or where it would be long: then each
// is worked out.
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

// Calls line(group, has a comma, size, writes the ranks) for every group.
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

// A list of lists, of groups or of chunks of a sequence.
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

void write_json(std::int64_t world_size, std::span<const NamedFamily> families, Writer& out) {
  out.text("{\"schema\":\"rankmesh.groups/1\",\"world_size\":");
  out.number(world_size);
  out.text(",\"groups\":{");
  for (std::size_t f = 0; f < families.size(); ++f) {
    const auto& [key, family] = families[f];
    if (f > 0) out.text(",");
    out.text(nlohmann::json(key).dump());
    out.text(":[");
    json_lists(out, family);
    out.text("]");
  }
  out.text("}}\n");
}

void write_text(std::span<const NamedFamily> families, Writer& out) {
  for (std::size_t f = 0; f < families.size(); ++f) {
    const auto& [key, family] = families[f];
    if (f > 0) out.text("\n");
    out.text(fmt::format("{}  {} group{} of {}{}\n", key, family.group_count(),
                         family.group_count() == 1 ? "" : "s", family.is_uniform() ? "" : "up to ",
                         family.group_size()));
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

void write_csv(std::span<const NamedFamily> families, Writer& out) {
  out.text("name,group,size,ranks\n");
  for (const auto& [key, family] : families) {
    const std::string name = detail::csv_field(key) + ",";
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

}  // namespace

void write_groups(std::int64_t world_size, std::span<const NamedFamily> families, Format format,
                  const Sink& sink) {
  Writer out{sink};
  switch (format) {
    case Format::json:
      write_json(world_size, families, out);
      break;
    case Format::text:
      write_text(families, out);
      break;
    case Format::csv:
      write_csv(families, out);
      break;
  }
  out.flush();
}

}  // namespace rankmesh::report
