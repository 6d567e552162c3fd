// SPDX-License-Identifier: BSD-3-Clause
// The openings of meshes on a communicator of the program.
#pragma once

#include <cstdint>

#include "rankmesh/mpi/native.hpp"

namespace rankmesh::detail {

/// A communicator of the program on which this process opens a mesh now. The ranks exchange
/// messages on it until the mesh has its own.
class OpeningOnce {
 public:
  /// @throws UsageError if another thread opens a mesh on it.
  explicit OpeningOnce(MPI_Comm comm);
  ~OpeningOnce();
  OpeningOnce(const OpeningOnce&) = delete;
  OpeningOnce& operator=(const OpeningOnce&) = delete;
  /// Returns how many meshes this process has begun to open on the communicator, with this one.
  /// Messages of an opening that has failed may still be there.
  [[nodiscard]] std::uint64_t number() const { return number_; }

 private:
  MPI_Comm comm_;
  std::uint64_t number_ = 0;
};

}  // namespace rankmesh::detail
