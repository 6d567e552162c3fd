// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/scheme.hpp"

namespace rankmesh::levels {

extern const Scheme barrier, broadcast, reduce, all_reduce, all_gather, reduce_scatter, gather,
    scatter;

const Scheme* scheme_of(Operation operation) {
  for (const Scheme* scheme : {&barrier, &broadcast, &reduce, &all_reduce, &all_gather,
                               &reduce_scatter, &gather, &scatter})
    if (scheme->operation == operation) return scheme;
  return nullptr;
}

}  // namespace rankmesh::levels
