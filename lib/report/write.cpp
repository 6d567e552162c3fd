// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/write.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "detail/picture.hpp"
#include "detail/writer.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::report {

std::string detail::cell_text(const Value& value, std::size_t most) {
  if (const auto* text = value.get_if<std::string>()) return *text;
  if (const auto* number = value.get_if<std::int64_t>()) return fmt::format("{}", *number);
  if (const auto* number = value.get_if<double>()) return fmt::format("{}", *number);
  if (const auto* truth = value.get_if<bool>()) return *truth ? "true" : "false";
  if (const auto* ranks = value.get_if<Ranks>())
    return ranks->set.to_string(std::min(most, ranks->most));
  return {};
}

namespace {

const Picture& picture_of(const Document& document) {
  if (document.picture) return *document.picture;
  throw UsageError{fmt::format("the report {} has no picture", document.schema),
                   "write it as text, JSON or CSV"};
}

}  // namespace

void write(const Document& document, Format format, const Sink& sink, const TextStyle& style) {
  detail::Writer out{sink};
  switch (format) {
    case Format::text:
      detail::write_text(document, style, out);
      break;
    case Format::json:
      detail::write_json(document, out);
      break;
    case Format::csv:
      detail::write_csv(document, out);
      break;
    case Format::long_csv:
      document.groups ? detail::write_member_rows(*document.groups, document.of_ranks, out)
                      : detail::write_csv(document, out);
      break;
    case Format::svg:
      detail::write_svg(picture_of(document), out);
      break;
    case Format::html:
      detail::write_picture_page(picture_of(document), out);
      break;
  }
  out.flush();
}

std::string to_string(const Document& document, Format format, const TextStyle& style) {
  std::string text;
  write(
      document, format, [&](std::string_view piece) { text += piece; }, style);
  return text;
}

}  // namespace rankmesh::report
