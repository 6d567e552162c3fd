// SPDX-License-Identifier: BSD-3-Clause
// The error that unwinds the stack.
#pragma once

#include <string>

namespace rankmesh::detail {

/// Returns the message of the last Error that this thread has created, if the error still exists;
/// otherwise an empty text. A destructor that runs while an exception unwinds the stack cannot ask
/// for the exception itself.
std::string error_in_flight();

}  // namespace rankmesh::detail
