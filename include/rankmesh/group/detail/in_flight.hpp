// What a mesh remembers of an operation that is under way.
#pragma once

#include <memory>
#include <string>

#include "rankmesh/group/detail/channel.hpp"

namespace rankmesh::detail {

struct InFlight {
  std::shared_ptr<Channel> channel;
  std::shared_ptr<MeshServices> services;
  std::unique_ptr<Pending> pending;  ///< null once it is complete or has failed
  WaitPoint step;
  StreamRef stream;  ///< the caller's
  bool on_device = false;
  bool is_gathered = false;    ///< of a batch that has not ended: it is not issued
  bool is_shared = false;      ///< in shared memory
  std::shared_ptr<void> kept;  ///< buffers that were given away
  std::string failure;         ///< why it will never be complete

  /// Makes progress, and forgets the operation where that ends it. @throws what it failed with.
  bool test();
  /// Waits on the host. @throws TimeoutError, after which the group is broken and the memory stays
  /// lent.
  void wait(const Deadline& deadline);

 private:
  void fail(const std::string& why);
  void forget();
};

/// Makes progress on everything that the mesh has under way; failures are kept for who waits.
void progress(MeshServices& services);
/// Waits for everything on this channel (null: on any). @throws what the first failed with.
void finish_in_flight(MeshServices& services, const Channel* channel, const Deadline& deadline);
/// Leaves what is under way to MPI, with its memory.
void abandon_in_flight(MeshServices& services) noexcept;

}  // namespace rankmesh::detail
