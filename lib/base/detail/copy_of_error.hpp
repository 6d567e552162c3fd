// SPDX-License-Identifier: BSD-3-Clause
// Copies of errors that are thrown later.
#pragma once

#include <exception>

#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {

/// Returns a copy of an error that ended a group, for the other operations of the group. Programs
/// and this library treat a MismatchError in another way than an Error, so it stays one.
inline std::exception_ptr copy_of(const Error& error) {
  if (const auto* mismatch = dynamic_cast<const MismatchError*>(&error))
    return std::make_exception_ptr(*mismatch);
  return std::make_exception_ptr(error);
}

}  // namespace rankmesh::detail
