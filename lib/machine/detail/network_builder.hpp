// SPDX-License-Identifier: BSD-3-Clause
// Collects switches and hosts that a text names in any order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "parts.hpp"

namespace rankmesh::detail {

class NetworkBuilder {
 public:
  explicit NetworkBuilder(std::string_view origin) : origin_{origin} {}

  /// Returns the switch of this name, which is created if it is not known yet.
  std::int32_t switch_called(const std::string& name, LevelKind kind, std::int64_t line);
  /// Puts a switch below another.
  /// @throws SpecError if it is already below a third switch.
  void put_switch(std::int32_t child, std::int32_t parent, std::int64_t line);
  /// Puts a host below a switch.
  /// @throws SpecError if it is already below another switch.
  void put_host(const std::string& name, std::int32_t parent, std::int64_t line);
  /// Returns the result.
  /// @throws SpecError if no host is known, or if switches form a circle.
  Network finish();

 private:
  std::string_view origin_;
  Network network_;
  std::unordered_map<std::string, std::int32_t> switches_, hosts_;
};

}  // namespace rankmesh::detail
