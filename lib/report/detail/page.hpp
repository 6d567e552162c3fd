// SPDX-License-Identifier: BSD-3-Clause
// The page that shows timelines and layouts, which needs no other file. lib/report/page/embed
// generates its text from the files in lib/report/page.
#pragma once

#include <string>
#include <string_view>

#include "writer.hpp"

namespace rankmesh::report::detail {

extern const std::string_view page_head;  ///< The page up to its data.
extern const std::string_view page_tail;  ///< The page after its data.

/// Returns JSON that may be put into a script element: no `<` can end the element.
inline std::string script_json(const Json& data) {
  std::string result;
  for (const char c : json_text(data)) c == '<' ? result += "\\u003c" : result += c;
  return result;
}

}  // namespace rankmesh::report::detail
