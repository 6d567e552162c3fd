// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/version.hpp"

#define RANKMESH_TEXT(x) #x
#define RANKMESH_DOTTED(a, b, c) RANKMESH_TEXT(a) "." RANKMESH_TEXT(b) "." RANKMESH_TEXT(c)

namespace rankmesh {

const char* version_string() {
  return RANKMESH_DOTTED(RANKMESH_VERSION_MAJOR, RANKMESH_VERSION_MINOR, RANKMESH_VERSION_PATCH);
}

}  // namespace rankmesh
