// The shared memory of one mesh on one node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/symmetric_window.hpp"
#include "rankmesh/group/detail/channel.hpp"
#include "rankmesh/mpi/node.hpp"
#include "rankmesh/transport/shared_segment.hpp"
#include "transport/detail/shm_transport.hpp"

namespace rankmesh::detail {

struct MeshState;

/// One segment, carved by arithmetic: the plan numbers the channels, the placement the ranks of the
/// node, and the area of a rank in a channel follows from the two. So no group costs a collective
/// of its own, and the members of a group need to know nothing of other groups.
class SharedSide {
 public:
  /// Collective over the ranks of each node. Where no segment can be had, the node does without:
  /// `why()`.
  SharedSide(MeshState& state, mpi::Node node);
  ~SharedSide();
  SharedSide(const SharedSide&) = delete;
  SharedSide& operator=(const SharedSide&) = delete;

  /// Gives a channel of the plan its transport, or says in `absent` why it has none.
  void give_transport(Channel& channel);
  /// Goes on with whatever is under way in shared memory.
  void advance();
  [[nodiscard]] bool is_crowded() const { return is_crowded_; }

  /// Collective over the mesh. @param names  whose collectives use it in place.
  std::shared_ptr<const SymmetricWindow> allocate(std::size_t bytes,
                                                  const std::vector<std::string_view>& names);
  /// Takes symmetric memory away. Local; the first step of closing a mesh.
  void close_windows() noexcept;
  /// Gives the segment back, once the channels are gone. Collective over the node.
  void close();

 private:
  [[nodiscard]] std::size_t number_of(const Channel& channel) const;
  [[nodiscard]] WaitPoint step(const std::string& what) const;

  struct Allocation {
    SharedSegment segment;
    std::shared_ptr<SymmetricWindow> window;
  };

  MeshState& state_;
  mpi::Node node_;
  SharedSegment segment_;
  std::string why_;
  std::size_t slot_bytes_ = 0;
  bool is_crowded_ = false;
  std::vector<std::pair<const Channel*, ShmTransport*>> transports_;
  std::vector<Allocation> allocations_;
};

}  // namespace rankmesh::detail
