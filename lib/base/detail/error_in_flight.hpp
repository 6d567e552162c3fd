// SPDX-License-Identifier: BSD-3-Clause
// The error that unwinds the stack.
#pragma once

#include <string>

namespace rankmesh::detail {

/// Returns the message of the exception that probably unwinds the stack. This is the last Error
/// that this thread has created, if the error still exists. Otherwise, and inside a handler of an
/// exception, the result is an empty text.
///
/// A destructor that runs while an exception unwinds the stack cannot ask for the exception itself.
/// The result is wrong if the program keeps that error (with std::current_exception) and then
/// throws an exception of its own. Therefore a message that contains the result must say
/// "probably".
std::string error_in_flight();
/// Returns the reason that other ranks learn if this exception destroys a mesh: what the error
/// probably is, or the first cause if it is a PeerError. Empty if there is no such error.
std::string reason_in_flight();
/// Returns the first cause of an error for which another rank is the reason: from `because rank` on
/// if its text has these words, otherwise the whole text after `because`. So ranks that leave one
/// after the other do not tell a chain of errors.
std::string first_cause(const std::string& error);
/// Returns whether this exception is probably a LostRanks.
bool is_loss_in_flight();
/// Forgets the last Error of this thread, because the program has continued after this error. Does
/// nothing while an exception unwinds the stack.
void forget_last_error() noexcept;

}  // namespace rankmesh::detail
