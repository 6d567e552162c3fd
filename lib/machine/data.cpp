// SPDX-License-Identifier: BSD-3-Clause
// Reads blocks of YAML by their indentation. JSON is a part of YAML's flow syntax, so flow_data.cpp
// serves both, and every value knows its line.
#include "detail/data.hpp"

#include <algorithm>

#include "detail/input.hpp"

namespace rankmesh::detail {
namespace {

// Maps and lists by indentation.
class BlockReader {
 public:
  BlockReader(std::string_view text, std::string_view origin) : origin_{origin} {
    std::int64_t number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      add_line(text.substr(0, end), ++number);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  Data read() {
    if (lines_.empty()) refuse(origin_, 0, "the text is empty", see_yaml);
    Data data = block(0);
    if (next_ < lines_.size())
      fail("this line is indented less or more than the lines above it require");
    return data;
  }

 private:
  struct Row {
    std::size_t indent;
    std::string_view text;
    std::int64_t number;
  };

  void add_line(std::string_view line, std::int64_t number) {
    std::size_t indent = 0;
    while (indent < line.size() && line[indent] == ' ') ++indent;
    const std::string_view text = stripped(without_comment(line.substr(indent)));
    if (text.empty() || text == "---") return;
    if (text.front() == '\t' || line[indent] == '\t')
      refuse(origin_, number, "a line is indented by a tab", "indent by blanks");
    lines_.push_back({indent, text, number});
  }

  static std::string_view without_comment(std::string_view line) {
    char quote = '\0';
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (quote != '\0') {
        if (c == quote) quote = '\0';
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
        return line.substr(0, i);
      }
    }
    return line;
  }

  [[noreturn]] void fail(std::string_view reason) const {
    refuse(origin_, lines_[std::min(next_, lines_.size() - 1)].number, reason, see_yaml);
  }

  static bool is_item(std::string_view text) { return text == "-" || text.starts_with("- "); }

  Data block(int depth) {
    if (depth > deepest_data) fail("the text is nested too deeply");
    const Row row = lines_[next_];
    if (is_item(row.text)) return list(row.indent, depth);
    if (key_end(row) != std::string_view::npos) return map(row.indent, depth);
    ++next_;
    return scalar(row.text, row.number);
  }

  Data list(std::size_t indent, int depth) {
    Data data{.kind = Data::Kind::list, .line = lines_[next_].number};
    while (next_ < lines_.size() && lines_[next_].indent == indent && is_item(lines_[next_].text)) {
      Row& row = lines_[next_];
      const std::string_view rest = stripped(row.text.substr(1));
      if (rest.empty()) {
        const std::int64_t number = row.number;
        ++next_;
        data.items.push_back(nested(indent, false, number, depth));
        continue;
      }
      // The text after the dash is a block. The column of its first character is its indentation.
      row.indent += static_cast<std::size_t>(rest.data() - row.text.data());
      row.text = rest;
      data.items.push_back(block(depth + 1));
    }
    return data;
  }

  Data map(std::size_t indent, int depth) {
    Data data{.kind = Data::Kind::map, .line = lines_[next_].number};
    while (next_ < lines_.size() && lines_[next_].indent == indent &&
           !is_item(lines_[next_].text)) {
      const Row row = lines_[next_];
      const std::size_t end = key_end(row);
      if (end == std::string_view::npos) fail("a colon is missing behind a key");
      std::string_view key = stripped(row.text.substr(0, end));
      if (key.size() > 1 && (key.front() == '"' || key.front() == '\'') &&
          key.back() == key.front())
        key = key.substr(1, key.size() - 2);
      const std::string_view rest = stripped(row.text.substr(end + 1));
      ++next_;
      data.fields.push_back(rest.empty() ? nested(indent, true, row.number, depth)
                                         : scalar(rest, row.number));
      data.fields.back().key = key;
    }
    return data;
  }

  // The block below a key or a dash; an empty text if there is none. A list may have the
  // indentation of its key.
  Data nested(std::size_t indent, bool is_below_key, std::int64_t number, int depth) {
    const bool is_deeper = next_ < lines_.size() && lines_[next_].indent > indent;
    const bool is_list = is_below_key && next_ < lines_.size() && lines_[next_].indent == indent &&
                         is_item(lines_[next_].text);
    if (is_deeper || is_list) return block(depth + 1);
    return {.line = number};
  }

  // The position of the colon behind the key, or npos.
  static std::size_t key_end(const Row& row) {
    const std::string_view text = row.text;
    if (text.front() == '{' || text.front() == '[') return std::string_view::npos;
    std::size_t i = 0;
    if (text.front() == '"' || text.front() == '\'') {
      i = text.find(text.front(), 1);
      if (i == std::string_view::npos) return i;
    }
    for (; i < text.size(); ++i)
      if (text[i] == ':' && (i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\t'))
        return i;
    return std::string_view::npos;
  }

  // A value on one line, or a value in brackets that continues on the next lines.
  Data scalar(std::string_view text, std::int64_t number) {
    if (text.front() != '[' && text.front() != '{' && text.front() != '"' && text.front() != '\'') {
      if (std::string_view{"&*!|>"}.find(text.front()) != std::string_view::npos)
        refuse(origin_, number, "anchors, tags and texts of several lines are not supported",
               see_yaml);
      return {.text = std::string{text}, .line = number};
    }
    std::string whole{text};
    for (std::int64_t open = open_brackets(text); open > 0 && next_ < lines_.size(); ++next_) {
      whole.append("\n").append(lines_[next_].text);
      open += open_brackets(lines_[next_].text);
    }
    return read_flow(whole, origin_, number);
  }

  static std::int64_t open_brackets(std::string_view text) {
    const auto opens = [](char c) { return c == '[' || c == '{'; };
    const auto closes = [](char c) { return c == ']' || c == '}'; };
    return std::ranges::count_if(text, opens) - std::ranges::count_if(text, closes);
  }

  std::string_view origin_;
  std::vector<Row> lines_;
  std::size_t next_ = 0;
};

}  // namespace

const Data* Data::find(std::string_view wanted) const {
  const auto field = std::ranges::find(fields, wanted, &Data::key);
  return field == fields.end() ? nullptr : &*field;
}

Data read_data(std::string_view text, std::string_view origin) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && (text[first] == '{' || text[first] == '['))
    return read_flow(text, origin, 1);
  return BlockReader{text, origin}.read();
}

}  // namespace rankmesh::detail
