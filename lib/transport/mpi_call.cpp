// SPDX-License-Identifier: BSD-3-Clause
#include "detail/mpi_call.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "detail/mpi_arithmetic.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {

using mpi::check;
using mpi::CountedType;

namespace {

// Calls MPI_Xxx if `requests_` is null; otherwise MPI_Ixxx, with a new request.
#define RANKMESH_ISSUE(blocking, nonblocking, ...)                                         \
  (requests_ == nullptr                                                                    \
       ? check(MPI_##blocking(__VA_ARGS__), "MPI_" #blocking)                              \
       : check(MPI_##nonblocking(__VA_ARGS__, &requests_->emplace_back(MPI_REQUEST_NULL)), \
               "MPI_" #nonblocking))

// MPICH before 4.2 crashes where a root other than rank 0 passes MPI_IN_PLACE to the blocking
// MPI_Reduce (pmodels/mpich#6540). Such a root passes a copy of its input.
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40200000
constexpr bool reduce_in_place_needs_copy = true;
#else
constexpr bool reduce_in_place_needs_copy = false;
#endif

bool same(const std::byte* a, const std::byte* b) { return a == b && a != nullptr; }

bool fit_int(const std::vector<std::int64_t>& values) {
  return std::ranges::all_of(values, [](std::int64_t value) { return std::in_range<int>(value); });
}

std::vector<int> narrow(const std::vector<std::int64_t>& values) {
  std::vector<int> narrowed;
  for (const std::int64_t value : values) narrowed.push_back(static_cast<int>(value));
  return narrowed;
}

}  // namespace

bool has_int_blocks(const Call& call) {
  if (call.operation == Operation::reduce_scatter) return true;  // see reduce_scatter_v()
  return std::ranges::all_of(std::array{call.in_blocks, call.out_blocks}, [](const Blocks* blocks) {
    return blocks == nullptr || (fit_int(blocks->counts()) && fit_int(blocks->displacements()));
  });
}

void require_int_blocks(const Call& call) {
  if (!has_int_blocks(call))
    throw UnsupportedError{fmt::format("{}_v: a count or displacement does not fit MPI's int",
                                       rankmesh::to_string(call.operation)),
                           "send the blocks in pieces of fewer than 2^31 elements"};
}

MpiCall::MpiCall(const Call& call, const mpi::CommunicatorView& comm, std::int64_t largest,
                 Requests* requests)
    : call_{call},
      comm_{comm.native()},
      rank_{comm.rank()},
      size_{comm.size()},
      largest_{largest},
      requests_{requests} {
  if (call.user == nullptr) return;
  user_.emplace(*call.user);
  unit_ = static_cast<std::int64_t>(call.user->element_bytes());
}

void MpiCall::operator()() {
  if (call_.has_blocks()) require_int_blocks(call_);
  switch (call_.operation) {
    case Operation::barrier:
      return barrier();
    case Operation::broadcast:
      return broadcast();
    case Operation::reduce:
      return reduce();
    case Operation::all_reduce:
      return all_reduce();
    case Operation::all_gather:
      return all_gather();
    case Operation::reduce_scatter:
      return reduce_scatter();
    case Operation::gather:
      return gather();
    case Operation::scatter:
      return scatter();
    case Operation::all_to_all:
      return all_to_all();
    case Operation::scan:
    case Operation::exscan:
      return scan();
    case Operation::send:
    case Operation::recv:
    case Operation::send_recv:
      return;  // see MpiMessage
  }
}

// The type of one of n blocks. Implementations of MPI add up the counts of all blocks in an int,
// so the limit applies to the sum.
CountedType MpiCall::block(std::int64_t count, DataType type) const {
  return {count, type, std::max<std::int64_t>(1, largest_ / size_)};
}
// Calls piece(offset, count) for pieces of at most `largest_` elements. It runs once for 0
// elements too, because all members must call MPI.
template <class Piece>
void MpiCall::in_pieces(std::int64_t count, Piece&& piece) {
  std::int64_t offset = 0;
  do {
    const std::int64_t n = std::min(count - offset, largest_);
    piece(offset, static_cast<int>(n));
    offset += n;
  } while (offset < count);
}

// The datatype of reductions. A call with a user's reduction counts bytes, while MPI counts its
// elements; `unit_` is the size of such an element.
MPI_Datatype MpiCall::arithmetic_type() const {
  return user_ ? user_->type() : mpi::native_for_reduction(call_.in.type);
}
MPI_Op MpiCall::reduction() const {
  return user_ ? user_->op() : mpi_operation(call_.reduction, call_.in.type);
}
bool MpiCall::in_two_steps(int count) const {
  return requests_ == nullptr && !user_ && needs_own_operation(call_.reduction, call_.in.type) &&
         prefers_two_steps(count * static_cast<std::int64_t>(size_of(call_.in.type)));
}
void MpiCall::barrier() { RANKMESH_ISSUE(Barrier, Ibarrier, comm_); }

void MpiCall::broadcast() {
  const CountedType type{call_.out.count, call_.out.type, largest_};
  RANKMESH_ISSUE(Bcast, Ibcast, call_.out.data, type.count(), type.type(), root(), comm_);
}

void MpiCall::reduce_block(ConstBuffer in, Buffer out, int root, bool in_place) {
  in_pieces(in.count / unit_, [&](std::int64_t offset, int n) {
    if (in_two_steps(n))
      return reduce_in_two_steps(place(in, offset), place(out, offset), n, in.type, reduction(),
                                 root, comm_);
    const void* from =
        in_place && root == rank_ ? MPI_IN_PLACE : static_cast<const void*>(place(in, offset));
    void* to = root == rank_ ? place(out, offset) : nullptr;
    std::vector<std::byte> copy;
    if (reduce_in_place_needs_copy && from == MPI_IN_PLACE && root != 0 && requests_ == nullptr) {
      const ConstBuffer piece = in.slice(offset * unit_, n * unit_);
      copy.assign(piece.data, piece.data + piece.bytes());
      from = copy.data();
    }
    RANKMESH_ISSUE(Reduce, Ireduce, from, to, n, arithmetic_type(), reduction(), root, comm_);
  });
}

void MpiCall::reduce() {
  reduce_block(call_.in, call_.out, root(), is_root() && same(call_.in.data, call_.out.data));
}

void MpiCall::all_reduce() {
  const bool in_place = same(call_.in.data, call_.out.data);
  in_pieces(call_.in.count / unit_, [&](std::int64_t offset, int n) {
    if (in_two_steps(n))
      return all_reduce_in_two_steps(place(call_.in, offset), place(call_.out, offset), n,
                                     call_.in.type, reduction(), comm_);
    const void* from = in_place ? MPI_IN_PLACE : static_cast<const void*>(place(call_.in, offset));
    RANKMESH_ISSUE(Allreduce, Iallreduce, from, place(call_.out, offset), n, arithmetic_type(),
                   reduction(), comm_);
  });
}

void MpiCall::scan() {
  const bool in_place = same(call_.in.data, call_.out.data);
  in_pieces(call_.in.count / unit_, [&](std::int64_t offset, int n) {
    const void* from = in_place ? MPI_IN_PLACE : static_cast<const void*>(place(call_.in, offset));
    std::byte* to = place(call_.out, offset);
    if (call_.operation == Operation::scan)
      RANKMESH_ISSUE(Scan, Iscan, from, to, n, arithmetic_type(), reduction(), comm_);
    else
      RANKMESH_ISSUE(Exscan, Iexscan, from, to, n, arithmetic_type(), reduction(), comm_);
  });
}

void MpiCall::reduce_scatter() {
  const std::int64_t count = call_.out.count;
  if (call_.in_blocks != nullptr) return reduce_scatter_v();
  if (count / unit_ <= largest_ / size_) {
    RANKMESH_ISSUE(Reduce_scatter_block, Ireduce_scatter_block, call_.in.data, call_.out.data,
                   static_cast<int>(count / unit_), arithmetic_type(), reduction(), comm_);
    return;
  }
  for (int r = 0; r < size_; ++r)
    reduce_block(call_.in.slice(r * count, count), call_.out, r, false);
}

// MPI_Reduce_scatter needs blocks without gaps, whose sum fits in an int. Otherwise each block is a
// reduction of its own. This depends only on the counts, because displacements may differ between
// members.
void MpiCall::reduce_scatter_v() {
  const Blocks& blocks = *call_.in_blocks;
  std::int64_t total = 0;
  for (const std::int64_t count : blocks.counts()) total += count;
  if (total <= largest_) {
    const Counts& in = held_.emplace_back(Counts{narrow(blocks.counts()), {}});
    RANKMESH_ISSUE(Reduce_scatter, Ireduce_scatter, packed(blocks), call_.out.data,
                   in.counts.data(), arithmetic_type(), reduction(), comm_);
    return;
  }
  for (int r = 0; r < size_; ++r)
    reduce_block(block_of(call_.in, call_.in_blocks, static_cast<std::size_t>(r)), call_.out, r,
                 false);
}

// Returns the blocks of the input without gaps: the input itself, or a copy.
const std::byte* MpiCall::packed(const Blocks& blocks) {
  std::int64_t end = 0;
  bool has_gaps = false;
  for (std::size_t k = 0; k < blocks.counts().size(); ++k) {
    has_gaps = has_gaps || blocks.displacements()[k] != end;
    end += blocks.counts()[k];
  }
  if (!has_gaps) return call_.in.data;
  packed_.reserve(static_cast<std::size_t>(call_.in.slice(0, end).bytes()));
  for (std::size_t k = 0; k < blocks.counts().size(); ++k) {
    const ConstBuffer block = block_of(call_.in, &blocks, k);
    packed_.insert(packed_.end(), block.data, block.data + block.bytes());
  }
  return packed_.data();
}

const MpiCall::Counts& MpiCall::hold(const Blocks& blocks) {
  return held_.emplace_back(Counts{narrow(blocks.counts()), narrow(blocks.displacements())});
}

// Where this rank's block begins in the whole buffer, in elements.
std::int64_t MpiCall::own_place(const Blocks* blocks, std::int64_t count) const {
  return blocks == nullptr ? rank_ * count
                           : blocks->displacements()[static_cast<std::size_t>(rank_)];
}

void MpiCall::all_gather() {
  const bool in_place =
      same(call_.in.data, call_.out.slice(own_place(call_.out_blocks, call_.in.count), 0).data);
  if (call_.out_blocks != nullptr) {
    const Counts& out = hold(*call_.out_blocks);
    const int n = static_cast<int>(call_.in.count);  // as the block
    RANKMESH_ISSUE(Allgatherv, Iallgatherv, in_or_in_place(in_place), n, mpi::native(call_.in.type),
                   call_.out.data, out.counts.data(), out.displacements.data(),
                   mpi::native(call_.out.type), comm_);
    return;
  }
  const CountedType type = block(call_.in.count, call_.in.type);
  RANKMESH_ISSUE(Allgather, Iallgather, in_or_in_place(in_place), type.count(), type.type(),
                 call_.out.data, type.count(), type.type(), comm_);
}

void MpiCall::gather() {
  const bool in_place =
      is_root() &&
      same(call_.in.data, call_.out.slice(own_place(call_.out_blocks, call_.in.count), 0).data);
  if (call_.out_blocks != nullptr) {
    const Counts& out = hold(*call_.out_blocks);
    const int n = static_cast<int>(call_.in.count);  // as the block
    RANKMESH_ISSUE(Gatherv, Igatherv, in_or_in_place(in_place), n, mpi::native(call_.in.type),
                   call_.out.data, out.counts.data(), out.displacements.data(),
                   mpi::native(call_.in.type), root(), comm_);
    return;
  }
  const CountedType type = block(call_.in.count, call_.in.type);
  RANKMESH_ISSUE(Gather, Igather, in_or_in_place(in_place), type.count(), type.type(),
                 call_.out.data, type.count(), type.type(), root(), comm_);
}

void MpiCall::scatter() {
  const bool in_place =
      is_root() &&
      same(call_.in.slice(own_place(call_.in_blocks, call_.out.count), 0).data, call_.out.data);
  void* out = in_place ? MPI_IN_PLACE : static_cast<void*>(call_.out.data);
  if (call_.in_blocks != nullptr) {
    const Counts& in = hold(*call_.in_blocks);
    const int n = static_cast<int>(call_.out.count);  // as the block
    RANKMESH_ISSUE(Scatterv, Iscatterv, call_.in.data, in.counts.data(), in.displacements.data(),
                   mpi::native(call_.out.type), out, n, mpi::native(call_.out.type), root(), comm_);
    return;
  }
  const CountedType type = block(call_.out.count, call_.out.type);
  RANKMESH_ISSUE(Scatter, Iscatter, call_.in.data, type.count(), type.type(), out, type.count(),
                 type.type(), root(), comm_);
}

void MpiCall::all_to_all() {
  if (call_.in_blocks != nullptr) {
    const Counts& in = hold(*call_.in_blocks);
    const Counts& out = hold(*call_.out_blocks);
    RANKMESH_ISSUE(Alltoallv, Ialltoallv, call_.in.data, in.counts.data(), in.displacements.data(),
                   mpi::native(call_.in.type), call_.out.data, out.counts.data(),
                   out.displacements.data(), mpi::native(call_.out.type), comm_);
    return;
  }
  const CountedType type = block(call_.in.count / size_, call_.in.type);
  RANKMESH_ISSUE(Alltoall, Ialltoall, in_or_in_place(same(call_.in.data, call_.out.data)),
                 type.count(), type.type(), call_.out.data, type.count(), type.type(), comm_);
}

}  // namespace rankmesh::detail
