// SPDX-License-Identifier: BSD-3-Clause
// Overloads for operations of a group that are called on a mesh. They do not compile, and the error
// says what to write instead.
#pragma once

#include "rankmesh/export.hpp"
#include "rankmesh/group/near_misses.hpp"

namespace rankmesh {

/// Refuses the operations of a group, with a message at compile time that says how to get a group.
class MeshNearMisses {
 public:
// clang-format off
#define RANKMESH_NAME barrier
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME barrier_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME broadcast
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME broadcast_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME all_reduce
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME all_reduce_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME reduce
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME reduce_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME all_gather
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME all_gather_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME reduce_scatter
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME reduce_scatter_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME gather
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME gather_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME scatter
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME scatter_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME all_to_all
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME all_to_all_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME all_gather_v
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME all_gather_v_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME reduce_scatter_v
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME reduce_scatter_v_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME gather_v
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME gather_v_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME scatter_v
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME scatter_v_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME all_to_all_v
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME all_to_all_v_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME send
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME send_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME recv
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME recv_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME send_recv
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME send_recv_async
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME scan
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME exscan
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME probe
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
#define RANKMESH_NAME try_recv
#include "rankmesh/mesh/detail/near_miss_of_one.inc"
  // clang-format on

 protected:
  MeshNearMisses() = default;
  ~MeshNearMisses() = default;
};

}  // namespace rankmesh
