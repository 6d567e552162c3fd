// SPDX-License-Identifier: BSD-3-Clause
// How serious a finding about a job or a mesh is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rankmesh {

/// How serious a finding is, the worst first.
enum class Severity : std::uint8_t {
  error,    ///< The job fails, hangs or computes with the wrong ranks, or it cannot continue.
  warning,  ///< The job may fail or be slow, or it probably cannot continue.
  note,     ///< Information that usually needs no action.
};

/// Returns "error", "warning" or "note".
[[nodiscard]] constexpr std::string_view to_string(Severity severity) {
  constexpr std::string_view names[] = {"error", "warning", "note"};
  return names[static_cast<std::size_t>(severity)];
}

}  // namespace rankmesh
