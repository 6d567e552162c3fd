// SPDX-License-Identifier: BSD-3-Clause
// Overloads for wrong calls. They do not compile, and the error says in one line what to
// write instead.
#pragma once

#include <initializer_list>
#include <utility>

#include "rankmesh/export.hpp"
#include "rankmesh/group/detail/miss.hpp"
#include "rankmesh/group/scans.hpp"

#define RANKMESH_PASTE_NAMES(a, b) a##b
#define RANKMESH_PASTE(a, b) RANKMESH_PASTE_NAMES(a, b)

namespace rankmesh {

namespace detail {
/// The result of a call that does not compile. It converts to everything and has the functions of a
/// Work, so that the reason is the only error.
struct AnyResult {
  template <class T>
  operator T() const {
    __builtin_unreachable();
  }
  void wait() const {}
  [[nodiscard]] bool test() const { return true; }
};
}  // namespace detail

/// Refuses calls that no operation accepts, with a message at compile time that says what to write.
/// Without this class, compilers would list every form of the operation and why it does not match.
/// In a requires-expression, these calls count as valid.
class NearMisses : public Scans {
 public:
  /// @cond  These overloads only refuse calls.
// clang-format off
#define RANKMESH_CALLED broadcast
#define RANKMESH_USAGE "write broadcast(values, root)"
#define RANKMESH_NAME broadcast
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME broadcast_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED all_reduce
#define RANKMESH_USAGE "write all_reduce(values, op) in place, or all_reduce(in, out, op); op is a ReduceOp or a function"
#define RANKMESH_NAME all_reduce
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME all_reduce_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED reduce
#define RANKMESH_USAGE "write reduce(values, root, op) in place, or reduce(in, out, root, op); op is a ReduceOp or a function"
#define RANKMESH_NAME reduce
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME reduce_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED all_gather
#define RANKMESH_USAGE "write all_gather(in, out), or auto all = all_gather(in)"
#define RANKMESH_NAME all_gather
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME all_gather_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED reduce_scatter
#define RANKMESH_USAGE "write reduce_scatter(in, out, op), or auto mine = reduce_scatter(in, op)"
#define RANKMESH_NAME reduce_scatter
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME reduce_scatter_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED gather
#define RANKMESH_USAGE "write gather(in, out, root), or auto all = gather(in, root)"
#define RANKMESH_NAME gather
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME gather_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED scatter
#define RANKMESH_USAGE "write scatter(in, out, root), or auto mine = scatter(in, root) for one value each"
#define RANKMESH_NAME scatter
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME scatter_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED all_to_all
#define RANKMESH_USAGE "write all_to_all(in, out), or auto all = all_to_all(in)"
#define RANKMESH_NAME all_to_all
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME all_to_all_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED all_gather_v
#define RANKMESH_USAGE "write all_gather_v(in, out, counts), or auto all = all_gather_v(in)"
#define RANKMESH_NAME all_gather_v
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME all_gather_v_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED reduce_scatter_v
#define RANKMESH_USAGE "write reduce_scatter_v(in, out, counts, op), or auto mine = reduce_scatter_v(in, counts, op)"
#define RANKMESH_NAME reduce_scatter_v
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME reduce_scatter_v_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED gather_v
#define RANKMESH_USAGE "write gather_v(in, out, counts, root), or auto all = gather_v(in, root)"
#define RANKMESH_NAME gather_v
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME gather_v_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED scatter_v
#define RANKMESH_USAGE "write scatter_v(in, out, counts, root), or auto mine = scatter_v(in, counts, root)"
#define RANKMESH_NAME scatter_v
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME scatter_v_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED all_to_all_v
#define RANKMESH_USAGE "write all_to_all_v(in, out, in_counts, out_counts), or auto all = all_to_all_v(in, in_counts)"
#define RANKMESH_NAME all_to_all_v
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME all_to_all_v_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED send
#define RANKMESH_USAGE "write send(values, to, tag); the tag may be left out"
#define RANKMESH_NAME send
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME send_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED recv
#define RANKMESH_USAGE "write recv(values, from, tag), or auto x = recv<float>(from, tag); the tag may be left out"
#define RANKMESH_NAME recv
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME recv_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED send_recv
#define RANKMESH_USAGE "write send_recv(in, out, to, from, tag); the tag may be left out"
#define RANKMESH_NAME send_recv
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#define RANKMESH_NAME send_recv_async
#define RANKMESH_ASYNC true
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

  #define RANKMESH_CALLED scan
#define RANKMESH_USAGE "write scan(values, op) in place, or auto x = scan(value, op); op is a ReduceOp or a function"
#define RANKMESH_NAME scan
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

#define RANKMESH_CALLED exscan
#define RANKMESH_USAGE "write exscan(values, op) in place, or auto x = exscan(value, op); op is a ReduceOp or a function"
#define RANKMESH_NAME exscan
#define RANKMESH_ASYNC false
#include "rankmesh/group/detail/near_misses_of_one.inc"
#undef RANKMESH_CALLED
#undef RANKMESH_USAGE

  // clang-format on
  /// @endcond

  /// Refuses, at compile time, to receive and return a T that is not a single value.
  template <class T>
    requires(!Value<T>)
  RANKMESH_REFUSE(
      "only single values are returned: write recv(values, from) for memory that has the size of "
      "the "
      "message, or rankmesh::exchange::recv_object<T>(group, from)") detail::AnyResult
      recv(Peer, int = 0) {
    return {};
  }
  template <WritableMemory Out>
    requires(!detail::is_borrowed<Out>)
  RANKMESH_REFUSE("nobody can read what a temporary container receives: pass a variable")
      detail::AnyResult recv(Out&&, Peer, int = 0, StreamRef = {}) {
    return {};
  }
  using Scans::try_recv;
  template <WritableMemory Out>
    requires(!DeviceMemory<Out> && !detail::is_borrowed<Out>)
  RANKMESH_REFUSE("nobody can read what a temporary container receives: pass a variable")
      detail::AnyResult try_recv(Out&&, Peer, int = 0) {
    return {};
  }

 protected:
  using Scans::Scans;
  ~NearMisses() = default;
};

}  // namespace rankmesh

#undef RANKMESH_PASTE
#undef RANKMESH_PASTE_NAMES
