// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/version.hpp"

#include "build_values.hpp"

// The model library refers to it (lib/models.cpp).
extern "C" RANKMESH_API const char RANKMESH_CORE_SYMBOL = 0;

#define RANKMESH_TEXT(x) #x
#define RANKMESH_DOTTED(a, b, c) RANKMESH_TEXT(a) "." RANKMESH_TEXT(b) "." RANKMESH_TEXT(c)

namespace rankmesh {

const char* version_string() {
  return RANKMESH_DOTTED(RANKMESH_VERSION_MAJOR, RANKMESH_VERSION_MINOR, RANKMESH_VERSION_PATCH);
}

BuildInfo build_info() {
  return {.mpi = RANKMESH_BUILT_WITH_MPI,
          .compiler = RANKMESH_BUILT_WITH_COMPILER,
          .cuda_headers = RANKMESH_BUILT_WITH_CUDA,
          .nccl_headers = RANKMESH_BUILT_WITH_NCCL};
}

}  // namespace rankmesh
