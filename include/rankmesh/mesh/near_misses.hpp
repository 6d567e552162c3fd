// SPDX-License-Identifier: BSD-3-Clause
// Refuses the operations of a group on a mesh.
#pragma once

#include <span>
#include <type_traits>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/detail/refuse.hpp"

namespace rankmesh {

namespace detail {
/// What a wrong new_group() passes as its ranks, for example two iterators in braces.
struct NoRanks {
  template <class A, class... B>
    requires(!std::is_constructible_v<std::span<const Rank>, const A&, const B&...>)
  NoRanks(const A&, const B&...);
};
/// Refuses every call, at compile time, and says how to get a group.
struct NoOperation {
  template <class... A>
  RANKMESH_REFUSE(
      "a mesh is no group: call the operation on mesh[\"tp\"], with the name of a family, or on "
      "mesh[\"world\"] for all ranks")
  AnyResult
  operator()(A&&...) const {
    return {};
  }
};
}  // namespace detail

/// Has the names of a group's operations, which a mesh does not have.
class MeshNearMisses {
 public:
  /// @cond  These members only refuse calls.
  static constexpr detail::NoOperation barrier{}, barrier_async{}, broadcast{}, broadcast_async{},
      all_reduce{}, all_reduce_async{}, reduce{}, reduce_async{}, all_gather{}, all_gather_async{},
      reduce_scatter{}, reduce_scatter_async{}, gather{}, gather_async{}, scatter{},
      scatter_async{}, all_to_all{}, all_to_all_async{}, all_gather_v{}, all_gather_v_async{},
      reduce_scatter_v{}, reduce_scatter_v_async{}, gather_v{}, gather_v_async{}, scatter_v{},
      scatter_v_async{}, all_to_all_v{}, all_to_all_v_async{}, send{}, send_async{}, recv_async{},
      send_recv{}, send_recv_async{}, scan{}, scan_async{}, exscan{}, exscan_async{}, probe{},
      try_recv{};
  template <class... T, class... A>
  RANKMESH_REFUSE(
      "a mesh is no group: call the operation on mesh[\"tp\"], with the name of a family, or on "
      "mesh[\"world\"] for all ranks")
  detail::AnyResult recv(A&&...) {
    return {};
  }
  /// @endcond

 protected:
  MeshNearMisses() = default;
  ~MeshNearMisses() = default;
};

}  // namespace rankmesh
