// Operations that are issued together.
#pragma once

#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

/// Operations between construction and end() are gathered and issued together: on device memory as
/// one NCCL group, so that sends and receives that would wait for each other one by one cannot
/// deadlock and many small operations cost one launch; on host memory the `_async` forms, one after
/// the other. All members of the groups that are used must gather the same operations of them.
///
///     {
///       NcclGroup together{mesh};
///       mesh["dp"].all_reduce(gradients, stream);
///       mesh["pp"].send(activations, next, 0, stream);
///       mesh["pp"].recv(gradients_of_next, next, 0, stream);
///       mesh["tp"].all_reduce(partial, stream);
///       together.end();    // issued: tp, pp, pp, dp
///     }
///
/// They are issued by priority: first the lowest GroupOptions::priority of their names; where these
/// are equal tp and every other name come before pp, and pp before dp; then in the order of the
/// calls. So operations of one group keep their order, and all ranks sort alike, whatever is ready
/// on one of them.
///
/// The results are ordered after what the streams hold at end(), not at the call; buffers must live
/// until then and as long as the operations themselves need them. A Work of a gathered operation
/// can be waited for after end(). Blocking operations on host memory, `_async` forms on device
/// memory, and whatever creates or ends a group, are refused meanwhile. One at a time per mesh; one
/// thread.
class RANKMESH_API NcclGroup {
 public:
  /// @throws UsageError where one is open already; ClosedError.
  explicit NcclGroup(Mesh& mesh);
  /// Ends it where end() was not called; what goes wrong then shows at the next operation of the
  /// groups.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  /// Issues everything. Returns once NCCL and MPI have taken it. @throws nccl::NcclError,
  /// TimeoutError: the groups are broken; what was not issued is not.
  void end();

 private:
  detail::MeshState* state_;  // null once it has ended
};

}  // namespace rankmesh
