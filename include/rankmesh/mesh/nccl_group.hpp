// Device operations that NCCL carries out together.
#pragma once

#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

/// Operations on device memory between construction and end() are gathered and issued together, in the order
/// of the calls: sends and receives that would wait for each other one by one cannot deadlock, and many small
/// operations cost one launch. All members of the groups that are used must gather the same operations of
/// them.
///
///     {
///       NcclGroup together{mesh};
///       mesh["pp"].send(activations, next, 0, stream);
///       mesh["pp"].recv(gradients, next, 0, stream);
///       together.end();
///     }
///
/// The results are ordered after what the streams hold at end(), not at the call. Operations on host memory,
/// and whatever creates or ends a group, are refused meanwhile. Does nothing where the mesh has no devices.
/// One at a time per mesh; one thread.
class RANKMESH_API NcclGroup {
 public:
  /// @throws UsageError where one is open already; ClosedError.
  explicit NcclGroup(Mesh& mesh);
  /// Ends it where end() was not called; what goes wrong then shows at the next operation of the groups.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  /// Issues everything. Returns once NCCL has taken it. @throws nccl::NcclError, TimeoutError: the groups are
  /// broken.
  void end();

 private:
  detail::MeshState* state_;  // null once it has ended
};

}  // namespace rankmesh
