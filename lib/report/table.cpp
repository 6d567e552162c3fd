#include <algorithm>

#include <fmt/format.h>

#include "detail/table.hpp"

namespace rankmesh::report::detail {

std::string bold(const std::string& text, bool colour) {
  return colour ? "\x1b[1m" + text + "\x1b[0m" : text;
}
std::string dim(const std::string& text, bool colour) {
  return colour ? "\x1b[2m" + text + "\x1b[0m" : text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted{"\""};
  for (const char c : text) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
  return quoted + '"';
}

std::string Table::to_string(bool colour) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(columns_[c].title.size());
    for (const auto& row : rows_) widths[c] = std::max(widths[c], row[c].size());
  }
  const auto line = [&](const auto& cell) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      text += "  ";
      text += columns_[c].align == Align::left ? fmt::format("{:<{}}", cell(c), widths[c])
                                               : fmt::format("{:>{}}", cell(c), widths[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::string text = bold(line([&](std::size_t c) { return columns_[c].title; }), colour) + "\n";
  for (const auto& row : rows_) text += line([&](std::size_t c) { return row[c]; }) + "\n";
  return text;
}

std::string Table::to_csv() const {
  std::string text;
  const auto line = [&](const auto& cell) {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) text += ',';  // g++ 12 warns of `"," + std::string`
      text += csv_field(cell(c));
    }
    text += '\n';
  };
  line([&](std::size_t c) { return columns_[c].title; });
  for (const auto& row : rows_) line([&](std::size_t c) { return row[c]; });
  return text;
}

}  // namespace rankmesh::report::detail
