// SPDX-License-Identifier: BSD-3-Clause
// Copies of errors that are thrown later.
#pragma once

#include <exception>

#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {

/// Two members exchange a message and differ. Only these two find it.
struct MessageMismatch : MismatchError {
  using MismatchError::MismatchError;
};

/// The copy of a MessageMismatch, for other operations of the group. The members that wait in them
/// cannot find it, so whoever throws it tells them.
struct UntoldMismatch : MismatchError {
  explicit UntoldMismatch(const MismatchError& found) : MismatchError{found} {}
};

/// Returns a copy of an error that ended a group, for the other operations of the group. Programs
/// and this library treat a MismatchError in another way than an Error, so it stays one.
inline std::exception_ptr copy_of(const Error& error) {
  const auto* mismatch = dynamic_cast<const MismatchError*>(&error);
  if (mismatch == nullptr) return std::make_exception_ptr(error);
  const bool is_of_message = dynamic_cast<const MessageMismatch*>(mismatch) != nullptr ||
                             dynamic_cast<const UntoldMismatch*>(mismatch) != nullptr;
  return is_of_message ? std::make_exception_ptr(UntoldMismatch{*mismatch})
                       : std::make_exception_ptr(*mismatch);
}

}  // namespace rankmesh::detail
