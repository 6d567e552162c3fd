// SPDX-License-Identifier: BSD-3-Clause
// Reads JSON, and what YAML writes in brackets and in quotes.
#include "detail/data.hpp"
#include "detail/input.hpp"

namespace rankmesh::detail {
namespace {

// The values in brackets, and quoted texts. Line ends count as blanks.
class FlowReader {
 public:
  FlowReader(std::string_view text, std::string_view origin, std::int64_t line)
      : text_{text}, origin_{origin}, line_{line} {}

  Data value(int depth = 0) {
    if (depth > deepest_data) fail("the text is nested too deeply");
    skip_blanks();
    Data data;
    data.line = line_;
    if (at_end()) fail("a value is missing");
    if (peek() == '{') {
      read_map(data, depth);
    } else if (peek() == '[') {
      read_list(data, depth);
    } else {
      data.text = peek() == '"' || peek() == '\'' ? quoted() : plain();
    }
    return data;
  }

  void require_end() {
    skip_blanks();
    if (!at_end()) fail("there is more text behind a value");
  }

  std::string quoted() {
    const char quote = text_[at_++];
    std::string result;
    while (true) {
      if (at_end() || peek() == '\n') fail("a quoted text is not closed on its line");
      const char c = text_[at_++];
      if (c == quote) {
        if (quote != '\'' || at_end() || peek() != '\'') return result;
        ++at_;  // '' stands for ' in a text between single quotes
      } else if (c == '\\' && quote == '"') {
        result += escaped();
        continue;
      }
      result += c;
    }
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] char peek() const { return text_[at_]; }

  [[noreturn]] void fail(std::string_view reason) const {
    refuse(origin_, line_, reason, see_yaml);
  }

  void skip_blanks() {
    while (!at_end()) {
      if (peek() == '\n') ++line_;
      if (peek() == '#' && (at_ == 0 || text_[at_ - 1] <= ' ')) {
        while (!at_end() && peek() != '\n') ++at_;
      } else if (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\n') {
        ++at_;
      } else {
        return;
      }
    }
  }

  // Names need no characters beyond ASCII, so \uXXXX is kept as it is written.
  std::string escaped() {
    if (at_end()) fail("a quoted text is not closed on its line");
    const char c = text_[at_++];
    switch (c) {
      case 'n':
        return "\n";
      case 't':
        return "\t";
      case '"':
      case '\\':
      case '/':
        return std::string{c};
      default:
        return std::string{'\\', c};
    }
  }

  std::string plain() {
    const std::size_t begin = at_;
    int brackets = 0;  // node[1-4] is one text
    while (!at_end() && peek() != '\n') {
      const char c = peek();
      if (c == '[' && at_ > begin) ++brackets;
      if (c == ']' && brackets-- == 0) break;
      if (brackets <= 0 && (c == ',' || c == '{' || c == '}')) break;
      if (c == ':' && (at_ + 1 == text_.size() || text_[at_ + 1] <= ' ')) break;
      if (c == '#' && text_[at_ - 1] <= ' ') break;
      ++at_;
    }
    const std::string_view found = stripped(text_.substr(begin, at_ - begin));
    if (found.empty()) fail("a value is missing");
    if (found.front() == '&' || found.front() == '*' || found.front() == '!' ||
        found.front() == '|' || found.front() == '>')
      fail("anchors, tags and texts of several lines are not supported");
    return std::string{found};
  }

  void read_list(Data& data, int depth) {
    data.kind = Data::Kind::list;
    ++at_;
    while (true) {
      skip_blanks();
      if (at_end()) fail("a list is not closed");
      if (peek() == ']') break;
      data.items.push_back(value(depth + 1));
      skip_blanks();
      if (!at_end() && peek() == ',')
        ++at_;
      else if (at_end() || peek() != ']')
        fail("a comma is missing in a list");
    }
    ++at_;
  }

  void read_map(Data& data, int depth) {
    data.kind = Data::Kind::map;
    ++at_;
    while (true) {
      skip_blanks();
      if (at_end()) fail("a map is not closed");
      if (peek() == '}') break;
      std::string key = peek() == '"' || peek() == '\'' ? quoted() : plain();
      skip_blanks();
      if (at_end() || peek() != ':') fail("a colon is missing behind a key");
      ++at_;
      data.fields.push_back(value(depth + 1));
      data.fields.back().key = std::move(key);
      skip_blanks();
      if (!at_end() && peek() == ',')
        ++at_;
      else if (at_end() || peek() != '}')
        fail("a comma is missing in a map");
    }
    ++at_;
  }

  std::string_view text_;
  std::string_view origin_;
  std::int64_t line_;
  std::size_t at_ = 0;
};

}  // namespace

Data read_flow(std::string_view text, std::string_view origin, std::int64_t line) {
  FlowReader reader{text, origin, line};
  Data data = reader.value();
  reader.require_end();
  return data;
}

}  // namespace rankmesh::detail
