// SPDX-License-Identifier: BSD-3-Clause
// Classes for MPI communicators: CommunicatorView, which does not own a communicator, and
// Communicator, which owns one.
#pragma once

#include <span>
#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// Refers to a communicator without owning it. A view is cheap to copy, because it stores the rank
/// and the size.
class RANKMESH_API CommunicatorView {
 public:
  CommunicatorView() = default;
  /// @throws UsageError if MPI is not active, or if `native` is MPI_COMM_NULL or an
  /// intercommunicator.
  explicit CommunicatorView(MPI_Comm native);

  /// Returns the communicator of MPI.
  [[nodiscard]] MPI_Comm native() const noexcept { return native_; }
  /// Returns this rank's number in the communicator.
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// Returns the number of ranks.
  [[nodiscard]] int size() const noexcept { return size_; }
  /// Returns whether there is a communicator.
  explicit operator bool() const noexcept { return native_ != MPI_COMM_NULL; }

 private:
  MPI_Comm native_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 0;
};

/// Owns a communicator, and sets its error handler to MPI_ERRORS_RETURN. An object of this class
/// can be moved but not copied.
///
/// The destructor does not call free(), because free() is collective and a destructor must never
/// communicate. If the program has not called free() before the destructor runs, a delete callback
/// on MPI_COMM_SELF frees the communicator at the start of MPI_Finalize.
class RANKMESH_API Communicator {
 public:
  Communicator() = default;
  /// Takes ownership of `native`. If `native` is MPI_COMM_NULL, the new object is empty.
  explicit Communicator(MPI_Comm native);
  ~Communicator() { abandon(); }
  /// Takes over the communicator of `other`, which is then empty.
  Communicator(Communicator&& other) noexcept : view_{std::exchange(other.view_, {})} {}
  /// Leaves this object's communicator to MPI_Finalize, as the destructor does, and takes over the
  /// communicator of `other`.
  Communicator& operator=(Communicator&& other) noexcept {
    if (this != &other) {
      abandon();
      view_ = std::exchange(other.view_, {});
    }
    return *this;
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Returns a view of the communicator, which does not own it.
  [[nodiscard]] const CommunicatorView& view() const noexcept { return view_; }
  /// Returns whether there is a communicator.
  explicit operator bool() const noexcept { return static_cast<bool>(view_); }
  /// Frees the communicator. This function is collective over the communicator. It does nothing if
  /// this object is empty.
  void free();

 private:
  void abandon() noexcept;
  CommunicatorView view_;
};

/// Creates a communicator of the same ranks in the same order. The new communicator has its own
/// context. It does not inherit the attributes and the error handler of the parent. This function
/// is collective over the parent, and it blocks.
RANKMESH_API Communicator duplicate(const CommunicatorView& parent);

/// Calls MPI_Comm_split: ranks with the same colour form a communicator, in which they are ordered
/// by key. A rank that passes the colour MPI_UNDEFINED gets an empty object. This function is
/// collective over the parent, and it blocks. For a parent of P ranks, it costs O(log P) messages
/// and O(P) bytes per rank.
RANKMESH_API Communicator split(const CommunicatorView& parent, int colour, int key);

/// Creates a communicator of the given ranks of the parent, in the given order. This function is
/// collective over these ranks only, and it blocks.
/// @param tag  a tag that is the same on all members and differs from the tag of any other creation
/// that runs at the same time.
RANKMESH_API Communicator create_group(const CommunicatorView& parent, std::span<const int> ranks,
                                       int tag);

}  // namespace rankmesh::mpi
