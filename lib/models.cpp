// SPDX-License-Identifier: BSD-3-Clause
// Ties the model library to the librankmesh of the same version. What it uses of librankmesh beside
// the public interface may change in every version (RANKMESH_PRIVATE_API).
#include "build_values.hpp"

extern "C" const char RANKMESH_CORE_SYMBOL;

namespace {

// An address in data is resolved while the library is loaded, not in the first call.
[[gnu::used]] const char* const core_of_this_version = &RANKMESH_CORE_SYMBOL;

}  // namespace
