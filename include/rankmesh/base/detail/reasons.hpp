// SPDX-License-Identifier: BSD-3-Clause
// The texts of an exception and of its causes.
#pragma once

#include <string>

#include "rankmesh/export.hpp"

namespace rankmesh::detail {

/// Why something has failed, in words. An error that another exception has caused is made of this,
/// so that its text contains each cause once, and no hint is lost.
struct RANKMESH_API Reasons {
  std::string message;  ///< Of the exception and of its causes, the outermost first.
  std::string hint;     ///< The hints of those that are an Error; empty if there are none.

  /// Returns the message, followed by the hint on a second line.
  [[nodiscard]] std::string text() const;
  /// Returns the hint, followed by that of an error with these causes.
  [[nodiscard]] std::string hint_and(const std::string& own) const;
};

/// Describes the exception that is being handled, and those that are nested in it
/// (std::throw_with_nested). Most errors already contain the text of their cause, which is then not
/// added.
RANKMESH_API Reasons current_reasons();

}  // namespace rankmesh::detail
