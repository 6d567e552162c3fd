// SPDX-License-Identifier: BSD-3-Clause
// Communicators: a view that does not own, and an owner that frees.
#pragma once

#include <span>
#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// Refers to a communicator without owning it. A view is cheap to copy, because it reads rank and
/// size only once.
class RANKMESH_API CommunicatorView {
 public:
  CommunicatorView() = default;
  /// @throws UsageError  MPI is not active, or `native` is null or an intercommunicator.
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

/// Owns a communicator. Its error handler is MPI_ERRORS_RETURN. Move-only.
///
/// `free()` is collective over the communicator, so the destructor cannot call it; a destructor
/// never communicates. If the program has not freed a communicator before the destructor runs, a
/// delete callback on MPI_COMM_SELF frees it at the start of MPI_Finalize.
class RANKMESH_API Communicator {
 public:
  Communicator() = default;
  /// Takes ownership. A null handle makes an empty object.
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
  /// Frees the communicator. Collective; does nothing if this object is empty.
  void free();

 private:
  void abandon() noexcept;
  CommunicatorView view_;
};

/// Creates a communicator of the same ranks in the same order. The new communicator has its own
/// context, but it does not have the attributes and the error handler of the original. Collective
/// over the parent; blocks.
RANKMESH_API Communicator duplicate(const CommunicatorView& parent);

/// Calls MPI_Comm_split: ranks with the same colour form a communicator, ordered by key. A rank
/// with the colour MPI_UNDEFINED gets an empty communicator. Collective over the parent; blocks.
/// Costs O(log P) messages and O(P) bytes per rank.
RANKMESH_API Communicator split(const CommunicatorView& parent, int colour, int key);

/// Creates a communicator of the given ranks of the parent, in the given order. Collective over
/// these ranks only; blocks.
/// @param tag  Must be the same on all members, and must differ from the tag of any other creation
/// that runs at the same time.
RANKMESH_API Communicator create_group(const CommunicatorView& parent, std::span<const int> ranks,
                                       int tag);

}  // namespace rankmesh::mpi
