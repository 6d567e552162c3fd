// Communicators: the view, which anybody may hold, and the owner, who frees.
#pragma once

#include <span>
#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// A communicator that somebody else owns. Cheap to copy; rank and size are read once.
class RANKMESH_API CommunicatorView {
 public:
  CommunicatorView() = default;
  /// @throws UsageError where MPI is not active, or `native` is null or an intercommunicator.
  explicit CommunicatorView(MPI_Comm native);

  [[nodiscard]] MPI_Comm native() const noexcept { return native_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return native_ != MPI_COMM_NULL; }

 private:
  MPI_Comm native_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 0;
};

/// Owns a communicator. Errors on it are returned, not fatal.
///
/// `free()` is collective over the communicator. The destructor never communicates: a handle that
/// was not freed is freed by MPI_Finalize (a delete callback on MPI_COMM_SELF), or not at all after
/// it.
class RANKMESH_API Communicator {
 public:
  Communicator() = default;
  /// Takes ownership; a null handle gives an empty communicator.
  explicit Communicator(MPI_Comm native);
  ~Communicator() { abandon(); }
  Communicator(Communicator&& other) noexcept : view_{std::exchange(other.view_, {})} {}
  Communicator& operator=(Communicator&& other) noexcept {
    if (this != &other) {
      abandon();
      view_ = std::exchange(other.view_, {});
    }
    return *this;
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] const CommunicatorView& view() const noexcept { return view_; }
  explicit operator bool() const noexcept { return static_cast<bool>(view_); }
  /// Collective. Does nothing on an empty communicator.
  void free();

 private:
  void abandon() noexcept;
  CommunicatorView view_;
};

/// A communicator of the same ranks in the same order with a context of its own, without the
/// original's attributes and error handler. Collective, blocking.
RANKMESH_API Communicator duplicate(const CommunicatorView& parent);

/// One MPI_Comm_split: ranks with the same colour form a communicator, ordered by key. A rank with
/// colour MPI_UNDEFINED gets an empty one. Collective over the parent, blocking; O(log P) messages
/// and O(P) bytes per rank.
RANKMESH_API Communicator split(const CommunicatorView& parent, int colour, int key);

/// The communicator of the given ranks of the parent, in their order. Collective over those ranks
/// alone, blocking.
/// @param tag  the same on all members; tells concurrent creations apart.
RANKMESH_API Communicator create_group(const CommunicatorView& parent, std::span<const int> ranks,
                                       int tag);

}  // namespace rankmesh::mpi
