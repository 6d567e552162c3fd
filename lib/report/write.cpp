// SPDX-License-Identifier: BSD-3-Clause
#include "report/write.hpp"

#include <fmt/format.h>

#include "detail/picture.hpp"
#include "detail/writer.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::report {
namespace {

Picture picture_of(const Document& document) {
  if (document.picture) return document.picture();
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
