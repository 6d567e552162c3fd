// SPDX-License-Identifier: BSD-3-Clause
// What the doubles are told through the environment.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace fake {

inline std::optional<std::string> setting(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

inline double number(const char* name, double fallback) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return fallback;
  char* end = nullptr;
  const double parsed = std::strtod(value, &end);
  return end == value ? fallback : parsed;
}

// True where FAKE_BREAK (a comma list) names this behaviour: the tests of the doubles
// use it to show that each of them fails when its behaviour is taken out.
inline bool broken(std::string_view behaviour) {
  static const std::string list =
      setting("FAKE_BREAK").value_or("");  // once: worker threads ask, too
  std::string_view rest(list);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    if (rest.substr(0, comma) == behaviour) return true;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace fake
