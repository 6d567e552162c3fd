// SPDX-License-Identifier: BSD-3-Clause
// Adds the place in a file to errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {

/// Returns `mesh.toml:3`, or only the origin if the line is 0.
inline std::string place_of(std::string_view origin, std::int64_t line) {
  return line == 0 ? std::string{origin} : std::string{origin} + ":" + std::to_string(line);
}

/// Runs `work` and puts the place in front of the message of a SpecError or UsageError, which
/// becomes a SpecError. With an empty origin SpecErrors stay as they are.
/// @param hint  the hint of errors that have none.
template <class Work>
decltype(auto) located(std::string_view origin, std::int64_t line, std::string_view hint,
                       Work&& work) {
  const std::string front = origin.empty() ? "" : place_of(origin, line) + ": ";
  try {
    return work();
  } catch (const SpecError& error) {
    if (front.empty()) throw;
    throw SpecError{front + error.message(),
                    error.hint().empty() ? std::string{hint} : error.hint(), error.position()};
  } catch (const UsageError& error) {
    throw SpecError{front + error.message(),
                    error.hint().empty() ? std::string{hint} : error.hint()};
  }
}

}  // namespace rankmesh::detail
