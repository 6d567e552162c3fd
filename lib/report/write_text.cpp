// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detail/wrap.hpp"
#include "detail/writer.hpp"

namespace rankmesh::report::detail {
namespace {

// Collects the pieces of a line, and writes the line when it is complete. A line that is too wide
// is continued on further lines, which are indented.
class LineWriter {
 public:
  LineWriter(const TextStyle& style, Writer& out) : style_{style}, out_{out} {}

  void add(std::string_view text, bool is_bold) {
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      add_piece(text.substr(0, end), is_bold);
      finish();
      text.remove_prefix(end + 1);
    }
    add_piece(text, is_bold);
  }
  // Writes what the last line has, without an end of line.
  void flush() { write(); }

 private:
  void add_piece(std::string_view text, bool is_bold) {
    if (is_bold && style_.colour && !text.empty())
      bold_.emplace_back(line_.size(), line_.size() + text.size());
    line_ += text;
  }
  void finish() {
    write();
    out_.character('\n');
  }
  void write();
  void write_part(std::size_t begin, std::size_t end);

  const TextStyle& style_;
  Writer& out_;
  std::string line_;
  std::vector<std::pair<std::size_t, std::size_t>> bold_;  // begin and end
};

void LineWriter::write() {
  const std::size_t indent = continuation_indent(line_, style_.width);
  for (const auto& [begin, end] : wrapped(line_, style_.width, indent)) {
    if (begin > 0) {
      out_.character('\n');
      out_.text(std::string(indent, ' '));
    }
    write_part(begin, end);
  }
  line_.clear();
  bold_.clear();
}

void LineWriter::write_part(std::size_t begin, std::size_t end) {
  const std::string_view line = line_;
  for (const auto& [from, to] : bold_) {
    if (from >= end || to <= begin) continue;
    const std::size_t first = std::max(from, begin), last = std::min(to, end);
    out_.text(line.substr(begin, first - begin));
    out_.text("\x1b[1m");
    out_.text(line.substr(first, last - first));
    out_.text("\x1b[0m");
    begin = last;
  }
  out_.text(line.substr(begin, end - begin));
}

}  // namespace

void write_text(const Document& document, const TextStyle& style, Writer& out) {
  LineWriter lines{style, out};
  for (const auto& piece : document.text) {
    if (const auto* span = std::get_if<Span>(&piece)) {
      lines.add(span->text, span->is_bold);
      continue;
    }
    lines.flush();
    if (const auto* table = std::get_if<Table>(&piece))
      write_table(*table, SIZE_MAX, style, out);
    else
      write_table(document.table, std::get<TableHere>(piece).most_rows, style, out);
  }
  lines.flush();
  if (document.groups) write_group_lines(*document.groups, out);
}

}  // namespace rankmesh::report::detail
