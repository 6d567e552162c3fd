// SPDX-License-Identifier: BSD-3-Clause
// One call as functions of MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/mpi/datatype.hpp"
#include "rankmesh/transport/call.hpp"
#include "transport/detail/mpi_user_operation.hpp"

namespace rankmesh::detail {

/// Issues a call with functions of MPI, in one or several steps. MPI counts in int, and buffers may
/// be larger. Operations without arithmetic then use a derived datatype (CountedType), whose count
/// is small. MPI cannot reduce derived datatypes, so reductions are divided into pieces.
///
/// Which functions are called depends only on values that are the same on all members.
class MpiCall {
 public:
  using Requests = std::vector<MPI_Request>;
  /// @param call      Must outlive this object.
  /// @param largest   The largest count that is passed to MPI.
  /// @param requests  Receives the requests of the non-blocking functions. If it is null, the
  ///                  blocking functions are called.
  MpiCall(const Call& call, const mpi::CommunicatorView& comm, std::int64_t largest,
          Requests* requests);

  /// Issues the call. Blocks until it is complete, unless there are requests.
  void operator()();

 private:
  // The counts and displacements of a v-form, as arrays of int for MPI.
  struct Counts {
    std::vector<int> counts, displacements;
  };

  void barrier();
  void broadcast();
  void reduce();
  void reduce_block(ConstBuffer in, Buffer out, int root, bool in_place);
  void all_reduce();
  void reduce_scatter();
  void reduce_scatter_v();
  void all_gather();
  void gather();
  void scatter();
  void all_to_all();
  void scan();

  [[nodiscard]] int root() const { return static_cast<int>(call_.root.value()); }
  [[nodiscard]] bool is_root() const { return root() == rank_; }
  [[nodiscard]] mpi::CountedType block(std::int64_t count, DataType type) const;
  [[nodiscard]] const void* in_or_in_place(bool in_place) const {
    return in_place ? MPI_IN_PLACE : static_cast<const void*>(call_.in.data);
  }
  template <class Piece>
  void in_pieces(std::int64_t count, Piece&& piece);
  [[nodiscard]] MPI_Datatype arithmetic_type() const;
  [[nodiscard]] MPI_Op reduction() const;
  [[nodiscard]] bool in_two_steps(int count) const;
  template <class B>
  [[nodiscard]] auto* place(const B& buffer, std::int64_t element) const {
    return buffer.slice(element * unit_, 0).data;
  }
  [[nodiscard]] std::int64_t own_place(const Blocks* blocks, std::int64_t count) const;
  [[nodiscard]] const std::byte* packed(const Blocks& blocks);
  const Counts& hold(const Blocks& blocks);

  const Call& call_;
  MPI_Comm comm_;
  int rank_, size_;
  std::int64_t largest_;
  Requests* requests_;
  // Kept, because MPI reads them until a non-blocking v-form is complete. A list does not move its
  // elements.
  std::list<Counts> held_;
  std::vector<std::byte> packed_;
  std::optional<MpiUserOperation> user_;
  // Elements of the call per element of MPI: the bytes of a user's element, otherwise 1.
  std::int64_t unit_ = 1;
};

/// Returns whether MPI can carry a call: the counts and displacements that it gets must fit int.
/// Local.
[[nodiscard]] bool has_int_blocks(const Call& call);
/// Checks the same.
/// @throws UnsupportedError
void require_int_blocks(const Call& call);

}  // namespace rankmesh::detail
