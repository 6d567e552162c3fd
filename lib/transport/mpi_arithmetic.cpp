// SPDX-License-Identifier: BSD-3-Clause
#include "detail/mpi_arithmetic.hpp"

#include <cstring>
#include <vector>

#include "detail/reduce_kernels.hpp"
#include "rankmesh/mpi/datatype.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {
namespace {

using mpi::check;

constexpr std::size_t types = 14;
constexpr std::size_t reductions = 4;  // an average is a sum that is divided afterwards

// The function of an operation. MPI passes no more than the datatype to it, so there is one
// function for each type and reduction.
template <DataType type, ReduceOp op>
void combine(void* left, void* right, int* count, MPI_Datatype*) {
  auto* out = static_cast<std::byte*>(right);
  const std::byte* const sources[] = {static_cast<const std::byte*>(left), out};
  reduce(type, op, out, sources, 2, *count);
}

class OwnOperations {
 public:
  OwnOperations() {
    create_extremes<DataType::float32, DataType::float64>();
    create_extremes<DataType::uint8, DataType::uint16, DataType::uint32, DataType::uint64>();
    create_sums<DataType::int8, DataType::uint8, DataType::int16, DataType::uint16>();
    // MPI_Finalize deletes the attributes of MPI_COMM_SELF first, while operations can be freed.
    int key = MPI_KEYVAL_INVALID;
    check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_all, &key, nullptr),
          "MPI_Comm_create_keyval");
    check(MPI_Comm_set_attr(MPI_COMM_SELF, key, this), "MPI_Comm_set_attr");
    check(MPI_Comm_free_keyval(&key), "MPI_Comm_free_keyval");
  }
  [[nodiscard]] MPI_Op get(ReduceOp op, DataType type) const {
    return table_[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)];
  }

 private:
  template <DataType type, ReduceOp op>
  void create() {
    check(MPI_Op_create(combine<type, op>, 1,
                        &table_[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)]),
          "MPI_Op_create");
    created_.push_back(get(op, type));
  }
  template <DataType... each>
  void create_extremes() {
    (create<each, ReduceOp::min>(), ...);
    (create<each, ReduceOp::max>(), ...);
  }
  template <DataType... each>
  void create_sums() {
    (create<each, ReduceOp::sum>(), ...);
    (create<each, ReduceOp::prod>(), ...);
  }
  static int free_all(MPI_Comm, int, void* operations, void*) {
    for (MPI_Op& op : static_cast<OwnOperations*>(operations)->created_) MPI_Op_free(&op);
    return MPI_SUCCESS;
  }

  MPI_Op table_[types][reductions] = {};
  std::vector<MPI_Op> created_;
};

// A buffer as blocks of equal size, one per rank, and the elements that are left.
struct Shares {
  Shares(int count, DataType type, MPI_Comm comm) : native{mpi::native(type)} {
    int size = 0;
    check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    each = count / size;
    rest = count - each * size;
    bytes = static_cast<std::size_t>(each) * size_of(type);
    rest_at = bytes * static_cast<std::size_t>(size);
  }
  MPI_Datatype native;
  int rank = 0, each = 0, rest = 0;
  std::size_t bytes = 0, rest_at = 0;
};

}  // namespace

MPI_Op mpi_operation(ReduceOp op, DataType type) {
  if (!needs_own_operation(op, type)) return mpi::native(op);
  static const auto& operations = *new OwnOperations;  // as in default_routes.cpp
  return operations.get(op == ReduceOp::avg ? ReduceOp::sum : op, type);
}

void all_reduce_in_two_steps(const std::byte* in, std::byte* out, int count, DataType type,
                             MPI_Op op, MPI_Comm comm) {
  const Shares s{count, type, comm};
  std::byte* own = out + s.bytes * static_cast<std::size_t>(s.rank);
  // The rest comes first, because in place the next step overwrites only the beginning of the
  // buffer.
  if (s.rest > 0)
    check(MPI_Allreduce(in == out ? MPI_IN_PLACE : static_cast<const void*>(in + s.rest_at),
                        out + s.rest_at, s.rest, s.native, op, comm),
          "MPI_Allreduce");
  if (in == out) {
    check(MPI_Reduce_scatter_block(MPI_IN_PLACE, out, s.each, s.native, op, comm),
          "MPI_Reduce_scatter_block");
    if (s.rank != 0) std::memcpy(own, out, s.bytes);
  } else {
    check(MPI_Reduce_scatter_block(in, own, s.each, s.native, op, comm),
          "MPI_Reduce_scatter_block");
  }
  check(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, s.each, s.native, comm),
        "MPI_Allgather");
}

void reduce_in_two_steps(const std::byte* in, std::byte* out, int count, DataType type, MPI_Op op,
                         int root, MPI_Comm comm) {
  const Shares s{count, type, comm};
  std::vector<std::byte> own(s.bytes);
  std::vector<std::byte> rest(static_cast<std::size_t>(s.rest) * size_of(type));
  check(MPI_Reduce_scatter_block(in, own.data(), s.each, s.native, op, comm),
        "MPI_Reduce_scatter_block");
  if (s.rest > 0)
    check(MPI_Reduce(in + s.rest_at, rest.data(), s.rest, s.native, op, root, comm), "MPI_Reduce");
  check(MPI_Gather(own.data(), s.each, s.native, out, s.each, s.native, root, comm), "MPI_Gather");
  if (s.rank == root && s.rest > 0) std::memcpy(out + s.rest_at, rest.data(), rest.size());
}

}  // namespace rankmesh::detail
