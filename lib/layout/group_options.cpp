// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/group_options.hpp"

#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/option_fields.hpp"

namespace rankmesh {

bool GroupOptions::can_share(const GroupOptions& other) const {
  GroupOptions mine = *this;
  mine.lazy = other.lazy;
  mine.duplicates = other.duplicates;
  return mine == other;
}

std::string GroupOptions::to_string() const {
  const GroupOptions usual;
  std::vector<std::string> parts;
  detail::visit_options([&](const char* key, auto member, std::int64_t) {
    const auto& value = this->*member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if (value == usual.*member) return;
    if constexpr (std::is_same_v<Value, bool>)
      parts.push_back(value ? key : fmt::format("{}=false", key));
    else if constexpr (std::is_same_v<Value, std::optional<int>>)
      parts.push_back(fmt::format("{}={}", key, *value));
    else if constexpr (std::is_same_v<Value, std::vector<std::string>>)
      parts.push_back(fmt::format("{}={}", key, fmt::join(value, "+")));
    else
      parts.push_back(fmt::format("{}={}", key, value));
  });
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace rankmesh
