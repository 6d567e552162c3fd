// SPDX-License-Identifier: BSD-3-Clause
// The pages of write_html() and of pictures, which need no other file. lib/report/page/embed
// generates the texts from the files in lib/report/page and lib/report/picture.
#pragma once

#include <string>
#include <string_view>

#include "writer.hpp"

namespace rankmesh::report::detail {

extern const std::string_view page_head;     ///< The page of the timeline up to its data.
extern const std::string_view page_tail;     ///< The page of the timeline after its data.
extern const std::string_view picture_head;  ///< The page of a picture up to its data.
extern const std::string_view picture_tail;  ///< The page of a picture after its data.

/// Returns JSON that may be put into a script element: no `<` can end the element.
inline std::string script_json(const Json& data) {
  std::string result;
  for (const char c : json_text(data)) c == '<' ? result += "\\u003c" : result += c;
  return result;
}

}  // namespace rankmesh::report::detail
