// SPDX-License-Identifier: BSD-3-Clause
#include <nlohmann/json.hpp>

#include "detail/page.hpp"

namespace rankmesh::report {

std::string detail::script_json(const nlohmann::json& data) {
  const std::string text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      result += "\\u003c";
    else
      result += c;
  }
  return result;
}

}  // namespace rankmesh::report
