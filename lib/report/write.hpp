// SPDX-License-Identifier: BSD-3-Clause
// The forms of a report, and the function that writes a document in one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace rankmesh::report {

struct Document;

/// The forms of a report. `long_csv` has one row for each rank and name, as pandas and R expect it;
/// a report that does not list groups has the rows of `csv` instead. `svg` and `html` are the
/// picture of the report: a drawing, and a page that a browser opens.
enum class Format : std::uint8_t { text, json, csv, long_csv, svg, html };

/// How the text form of a report looks.
struct TextStyle {
  bool colour = false;  ///< true if the text may contain ANSI escape codes
  /// The number of columns of the terminal. No line is wider, unless a single word is wider. Texts
  /// are wrapped, lists of ranks are shortened, and a table that is too wide is divided.
  std::size_t width = SIZE_MAX;
};

/// Receives a report piece by piece. The sink may throw an exception to end the report.
using Sink = std::function<void(std::string_view)>;

/// Writes a document piece by piece. A list of groups is written in pieces of at most 64
/// KiB.
/// @param style  how the text form looks; the other forms ignore it.
/// @throws UsageError if the format is a picture, but the document has none.
void write(const Document& document, Format format, const Sink& sink, const TextStyle& style = {});

/// Returns the output of write() as a string.
std::string to_string(const Document& document, Format format, const TextStyle& style = {});

}  // namespace rankmesh::report
