#include "rankmesh/report/groups.hpp"

#include <charconv>
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
  explicit Writer(const Sink& sink) : sink_{sink} { buffer_.reserve(capacity); }
  void text(std::string_view piece) {
    if (buffer_.size() + piece.size() > capacity) flush();
    buffer_.append(piece);
  }
  void number(std::int64_t value) {
    if (buffer_.size() + 24 > capacity) flush();
    char digits[24];
    buffer_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  void flush() {
    if (!buffer_.empty()) sink_(buffer_);
    buffer_.clear();
  }

 private:
  static constexpr std::size_t capacity = 65536;
  const Sink& sink_;
  std::string buffer_;
};

void ranks_as_json(Writer& out, const RankSet& ranks) {
  out.text("[");
  for (std::int64_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) out.text(",");
    out.number(ranks[i].value());
  }
  out.text("]");
}

void ranks_as_text(Writer& out, const RankSet& ranks) {
  ranks.write([&](std::string_view item) {
    out.text(item);
    return true;
  });
}

bool has_comma(const RankSet& ranks) {
  int items = 0;
  ranks.write([&](std::string_view) { return ++items < 2; });
  return items > 1;
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
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      if (g > 0) out.text(",");
      ranks_as_json(out, family.group(g));
    }
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
    const std::size_t width = fmt::format("{}", family.group_count() - 1).size();
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      out.text(fmt::format("  {:>{}}  ", g, width));
      ranks_as_text(out, family.group(g));
      out.text("\n");
    }
  }
}

void write_csv(std::span<const NamedFamily> families, Writer& out) {
  out.text("name,group,size,ranks\n");
  for (const auto& [key, family] : families)
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      const RankSet ranks = family.group(g);
      const std::string_view quote = has_comma(ranks) ? "\"" : "";
      out.text(fmt::format("{},{},{},{}", detail::csv_field(key), g, ranks.size(), quote));
      ranks_as_text(out, ranks);
      out.text(fmt::format("{}\n", quote));
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
