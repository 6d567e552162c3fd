// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transport/mpi_transport.hpp"

#include <algorithm>
#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "detail/mpi_arithmetic.hpp"
#include "detail/mpi_message.hpp"
#include "detail/mpi_user_operation.hpp"
#include "detail/reduce_kernels.hpp"
#include "mpi/detail/returned_errors.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/datatype.hpp"
#include "rankmesh/mpi/error.hpp"
#include "wait/detail/node_board.hpp"

namespace rankmesh {
namespace {

using mpi::check;
using mpi::CountedType;
using Requests = std::vector<MPI_Request>;

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

// Issues a call with functions of MPI, in one or several steps. MPI counts in int, and buffers may
// be larger. Operations without arithmetic then use a derived datatype (CountedType), whose count
// is small. MPI cannot reduce derived datatypes, so reductions are divided into pieces.
class Issue {
 public:
  Issue(const Call& call, const mpi::CommunicatorView& comm, std::int64_t largest,
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

  void operator()() {
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
      case Operation::send:
      case Operation::recv:
      case Operation::send_recv:
        return detail::start_message(call_, comm_, largest_, *requests_);
    }
  }

  // Throws if a user's reduction has thrown. Call it once the operation is complete.
  void check_user() const {
    if (user_) user_->check();
  }

 private:
  [[nodiscard]] int root() const { return static_cast<int>(call_.root.value()); }
  [[nodiscard]] bool is_root() const { return root() == rank_; }
  // The type of one of n blocks. Implementations of MPI add up the counts of all blocks in an int,
  // so the limit applies to the sum.
  [[nodiscard]] CountedType block(std::int64_t count, DataType type) const {
    return {count, type, std::max<std::int64_t>(1, largest_ / size_)};
  }
  [[nodiscard]] CountedType whole(std::int64_t count, DataType type) const {
    return {count, type, largest_};
  }
  [[nodiscard]] const void* in_or_in_place(bool in_place) const {
    return in_place ? MPI_IN_PLACE : static_cast<const void*>(call_.in.data);
  }
  static bool same(const std::byte* a, const std::byte* b) { return a == b && a != nullptr; }

  // Calls piece(offset, count) for pieces of at most `largest_` elements. It runs once for 0
  // elements too, because all members must call MPI.
  template <class Piece>
  void in_pieces(std::int64_t count, Piece&& piece) {
    std::int64_t offset = 0;
    do {
      const std::int64_t n = std::min(count - offset, largest_);
      piece(offset, static_cast<int>(n));
      offset += n;
    } while (offset < count);
  }

  // The datatype of reductions. A call with a user's reduction counts bytes, while MPI counts its
  // elements; `unit_` is the size of such an element.
  [[nodiscard]] MPI_Datatype arithmetic_type() const {
    return user_ ? user_->type() : mpi::native_for_reduction(call_.in.type);
  }
  [[nodiscard]] MPI_Op reduction() const {
    return user_ ? user_->op() : detail::mpi_operation(call_.reduction, call_.in.type);
  }
  [[nodiscard]] bool in_two_steps(int count) const {
    return requests_ == nullptr && !user_ &&
           detail::needs_own_operation(call_.reduction, call_.in.type) &&
           detail::prefers_two_steps(count * static_cast<std::int64_t>(size_of(call_.in.type)));
  }
  template <class B>
  [[nodiscard]] auto* place(const B& buffer, std::int64_t element) const {
    return buffer.slice(element * unit_, 0).data;
  }

  void barrier() { RANKMESH_ISSUE(Barrier, Ibarrier, comm_); }

  void broadcast() {
    const CountedType type = whole(call_.out.count, call_.out.type);
    RANKMESH_ISSUE(Bcast, Ibcast, call_.out.data, type.count(), type.type(), root(), comm_);
  }

  void reduce_block(ConstBuffer in, Buffer out, int root, bool in_place) {
    in_pieces(in.count / unit_, [&](std::int64_t offset, int n) {
      if (in_two_steps(n))
        return detail::reduce_in_two_steps(place(in, offset), place(out, offset), n, in.type,
                                           reduction(), root, comm_);
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

  void reduce() {
    reduce_block(call_.in, call_.out, root(), is_root() && same(call_.in.data, call_.out.data));
  }

  void all_reduce() {
    const bool in_place = same(call_.in.data, call_.out.data);
    in_pieces(call_.in.count / unit_, [&](std::int64_t offset, int n) {
      if (in_two_steps(n))
        return detail::all_reduce_in_two_steps(place(call_.in, offset), place(call_.out, offset), n,
                                               call_.in.type, reduction(), comm_);
      const void* from =
          in_place ? MPI_IN_PLACE : static_cast<const void*>(place(call_.in, offset));
      RANKMESH_ISSUE(Allreduce, Iallreduce, from, place(call_.out, offset), n, arithmetic_type(),
                     reduction(), comm_);
    });
  }

  void reduce_scatter() {
    const std::int64_t count = call_.out.count;
    if (call_.in_blocks != nullptr) {
      if (is_packed(*call_.in_blocks)) {
        const Counts& in = hold(*call_.in_blocks);
        RANKMESH_ISSUE(Reduce_scatter, Ireduce_scatter, call_.in.data, call_.out.data,
                       in.counts.data(), arithmetic_type(), reduction(), comm_);
        return;
      }
      // MPI_Reduce_scatter needs blocks without gaps, whose sum fits in an int. Otherwise each
      // block is a reduction of its own.
      for (int r = 0; r < size_; ++r) {
        const auto k = static_cast<std::size_t>(r);
        reduce_block(block_of(call_.in, call_.in_blocks, k), call_.out, r, false);
      }
      return;
    }
    if (count / unit_ <= largest_ / size_) {
      RANKMESH_ISSUE(Reduce_scatter_block, Ireduce_scatter_block, call_.in.data, call_.out.data,
                     static_cast<int>(count / unit_), arithmetic_type(), reduction(), comm_);
      return;
    }
    for (int r = 0; r < size_; ++r)
      reduce_block(call_.in.slice(r * count, count), call_.out, r, false);
  }

  // Whether the blocks follow each other without gaps, and MPI can count their sum.
  [[nodiscard]] bool is_packed(const Blocks& blocks) const {
    std::int64_t end = 0;
    for (std::size_t k = 0; k < blocks.counts().size(); ++k) {
      if (blocks.displacements()[k] != end) return false;
      end += blocks.counts()[k];
    }
    return end <= largest_;
  }

  // Where this rank's block begins in the whole buffer, in elements.
  [[nodiscard]] std::int64_t own_place(const Blocks* blocks, std::int64_t count) const {
    return blocks == nullptr ? rank_ * count
                             : blocks->displacements()[static_cast<std::size_t>(rank_)];
  }

  void all_gather() {
    const bool in_place =
        same(call_.in.data, call_.out.slice(own_place(call_.out_blocks, call_.in.count), 0).data);
    if (call_.out_blocks != nullptr) {
      const Counts& out = hold(*call_.out_blocks);
      const int n = narrow(call_.in.count);
      RANKMESH_ISSUE(Allgatherv, Iallgatherv, in_or_in_place(in_place), n,
                     mpi::native(call_.in.type), call_.out.data, out.counts.data(),
                     out.displacements.data(), mpi::native(call_.out.type), comm_);
      return;
    }
    const CountedType type = block(call_.in.count, call_.in.type);
    RANKMESH_ISSUE(Allgather, Iallgather, in_or_in_place(in_place), type.count(), type.type(),
                   call_.out.data, type.count(), type.type(), comm_);
  }

  void gather() {
    const bool in_place =
        is_root() &&
        same(call_.in.data, call_.out.slice(own_place(call_.out_blocks, call_.in.count), 0).data);
    if (call_.out_blocks != nullptr) {
      const Counts& out = hold(*call_.out_blocks);
      const int n = narrow(call_.in.count);
      RANKMESH_ISSUE(Gatherv, Igatherv, in_or_in_place(in_place), n, mpi::native(call_.in.type),
                     call_.out.data, out.counts.data(), out.displacements.data(),
                     mpi::native(call_.in.type), root(), comm_);
      return;
    }
    const CountedType type = block(call_.in.count, call_.in.type);
    RANKMESH_ISSUE(Gather, Igather, in_or_in_place(in_place), type.count(), type.type(),
                   call_.out.data, type.count(), type.type(), root(), comm_);
  }

  void scatter() {
    const bool in_place =
        is_root() &&
        same(call_.in.slice(own_place(call_.in_blocks, call_.out.count), 0).data, call_.out.data);
    void* out = in_place ? MPI_IN_PLACE : static_cast<void*>(call_.out.data);
    if (call_.in_blocks != nullptr) {
      const Counts& in = hold(*call_.in_blocks);
      const int n = narrow(call_.out.count);
      RANKMESH_ISSUE(Scatterv, Iscatterv, call_.in.data, in.counts.data(), in.displacements.data(),
                     mpi::native(call_.out.type), out, n, mpi::native(call_.out.type), root(),
                     comm_);
      return;
    }
    const CountedType type = block(call_.out.count, call_.out.type);
    RANKMESH_ISSUE(Scatter, Iscatter, call_.in.data, type.count(), type.type(), out, type.count(),
                   type.type(), root(), comm_);
  }

  void all_to_all() {
    if (call_.in_blocks != nullptr) {
      const Counts& in = hold(*call_.in_blocks);
      const Counts& out = hold(*call_.out_blocks);
      RANKMESH_ISSUE(Alltoallv, Ialltoallv, call_.in.data, in.counts.data(),
                     in.displacements.data(), mpi::native(call_.in.type), call_.out.data,
                     out.counts.data(), out.displacements.data(), mpi::native(call_.out.type),
                     comm_);
      return;
    }
    const CountedType type = block(call_.in.count / size_, call_.in.type);
    RANKMESH_ISSUE(Alltoall, Ialltoall, in_or_in_place(same(call_.in.data, call_.out.data)),
                   type.count(), type.type(), call_.out.data, type.count(), type.type(), comm_);
  }

  // The counts and displacements of a v-form, as arrays of int for MPI.
  struct Counts {
    explicit Counts(const Blocks& blocks) {
      for (const std::int64_t value : blocks.counts()) counts.push_back(narrow(value));
      for (const std::int64_t value : blocks.displacements())
        displacements.push_back(narrow(value));
    }
    std::vector<int> counts, displacements;
  };

  static int narrow(std::int64_t value) {
    if (!std::in_range<int>(value))
      throw UnsupportedError{"a count or displacement of a v-form does not fit MPI's int",
                             "send it in pieces below 2^31 elements"};
    return static_cast<int>(value);
  }

  // Keeps the arrays, because MPI reads them until a non-blocking v-form is complete. A list does
  // not move its elements.
  const Counts& hold(const Blocks& blocks) { return held_.emplace_back(blocks); }

  const Call& call_;
  MPI_Comm comm_;
  int rank_, size_;
  std::int64_t largest_;
  Requests* requests_;
  std::list<Counts> held_;
  std::optional<MpiUserOperation> user_;
  std::int64_t unit_ =
      1;  // elements of the call per element of MPI: the bytes of a user's element, otherwise 1
};

// Divides the sums of an average. MPI has no operation for averages.
void finish_average(const Call& call, int rank, int size) {
  if (call.reduction != ReduceOp::avg) return;
  const bool has_result = call.operation == Operation::all_reduce ||
                          call.operation == Operation::reduce_scatter ||
                          (call.operation == Operation::reduce && call.root.value() == rank);
  if (has_result) detail::divide(call.out.type, call.out.data, call.out.count, size);
}

class MpiPending final : public Pending {
 public:
  // @param is_foreign  Whether the communicator has a handler of the program.
  MpiPending(const Call& call, const mpi::CommunicatorView& comm, std::int64_t largest,
             bool is_foreign)
      : call_{call},
        comm_{comm.native()},
        is_foreign_{is_foreign},
        rank_{comm.rank()},
        size_{comm.size()},
        issue_{call_, comm, largest, &requests_} {
    returning_errors([&] { issue_(); });
    statuses_.resize(requests_.size());
  }
  bool test() override {
    if (complete_) return true;
    int done = 0;
    // MPI_ERR_IN_STATUS says only that one of the requests failed; its status has the error.
    int code = MPI_SUCCESS;
    returning_errors([&] {
      code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                         statuses_.data());
    });
    if (code == MPI_ERR_IN_STATUS)
      for (const MPI_Status& status : statuses_)
        if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING)
          code = status.MPI_ERROR;
    check(code, "MPI_Testall");
    if (done == 0) return false;
    if (call_.operation == Operation::recv || call_.operation == Operation::send_recv)
      detail::check_length(call_, statuses_.front());
    complete_ = true;
    issue_.check_user();
    finish_average(call_, rank_, size_);
    return true;
  }

 private:
  // MPI raises the errors of messages on their communicator, and those of collectives on
  // MPI_COMM_WORLD.
  template <class Action>
  void returning_errors(Action&& action) {
    std::optional<mpi::ReturnedErrors> of_comm, of_world;
    if (is_foreign_) of_comm.emplace(comm_);
    if (!is_point_to_point(call_.operation)) of_world.emplace(MPI_COMM_WORLD);
    action();
  }

  Call call_;
  MPI_Comm comm_;
  bool is_foreign_;
  int rank_, size_;
  Requests requests_;
  std::vector<MPI_Status> statuses_;
  Issue issue_;
  bool complete_ = false;
};

}  // namespace

MpiTransport::MpiTransport(mpi::CommunicatorView comm, std::int64_t largest_count)
    : comm_{comm},
      largest_count_{std::clamp<std::int64_t>(largest_count, 1, std::numeric_limits<int>::max())},
      is_foreign_{!mpi::returns_errors(comm.native())} {}

bool MpiTransport::supports(const Call& call) const {
  return call.in.kind == MemoryKind::host && call.out.kind == MemoryKind::host;
}

void MpiTransport::run(const Call& call, Waiter& waiter) {
  if (!is_point_to_point(call.operation)) ++calls_;
  if (waiter.published_call == nullptr) return carry(call);
  const detail::BoardEntry entry{*waiter.published_call, waiter.label, call.operation, calls_};
  carry(call);
}

void MpiTransport::carry(const Call& call) {
  std::optional<mpi::ReturnedErrors> returned_errors;
  if (is_foreign_) [[unlikely]]
    returned_errors.emplace(comm_.native());
  if (is_point_to_point(call.operation))
    return detail::run_message(call, comm_.native(), largest_count_);
  Issue issue{call, comm_, largest_count_, nullptr};
  issue();
  issue.check_user();
  finish_average(call, comm_.rank(), comm_.size());
}

std::unique_ptr<Pending> MpiTransport::start(const Call& call) {
  if (!is_point_to_point(call.operation)) ++calls_;
  return std::make_unique<MpiPending>(call, comm_, largest_count_, is_foreign_);
}

}  // namespace rankmesh
