// SPDX-License-Identifier: BSD-3-Clause
// Times and checks operations on one group, for bench and tune. Built only with MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/mpi/datatype.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/rankmesh.hpp"

namespace rankmesh::meshinfo {

// Combines a number of all ranks. Collective over the world.
template <class T>
T over_all_ranks(T value, MPI_Op op) {
  T result{};
  mpi::check(
      MPI_Allreduce(&value, &result, 1, mpi::native(DataTypeOf<T>::value), op, MPI_COMM_WORLD),
      "MPI_Allreduce");
  return result;
}

// One measurement: an operation on so many bytes, the memory that each rank's call uses, the values
// that it carries, and the check of its results.
struct BenchCase {
  Operation operation = Operation::all_reduce;
  DataType type = DataType::float32;
  ReduceOp reduction = ReduceOp::sum;
  MemoryKind memory = MemoryKind::host;
  std::int64_t bytes = 8;  // of a rank's larger buffer; rounded to whole blocks
  std::int64_t root = 0;
};

// Elements of a block, and bytes of the larger buffer.
struct CaseSize {
  std::int64_t count, bytes;
};
CaseSize size_of(const BenchCase& work, std::int64_t group_size);

// Whether the operation has the form: broadcast is always in place, other operations never.
bool has_form(const BenchCase& work, bool in_place);

// Elements of buffer 0 (the input) or of buffer 1 (the output; in place it is both).
struct Part {
  int buffer = 0;
  std::int64_t offset = 0, count = 0;
};
// The memory that a call reads and writes.
struct Operands {
  Part in, out;
};
Operands operands_of(const BenchCase& work, bool in_place, std::int64_t rank_in_group,
                     std::int64_t group_size);

// Stores the values that a member contributes.
void store_input(const BenchCase& work, std::byte* to, std::int64_t count, std::int64_t member);

// Returns how many elements of a rank's result differ from a plain computation, in which integers
// wrap around. Averages and half types may be rounded.
std::int64_t count_wrong(const BenchCase& work, const std::byte* results, std::int64_t count,
                         std::int64_t rank_in_group, std::int64_t group_size);

// The buffers of a rank, large enough for the largest case.
class Measure {
 public:
  // `group` is null on ranks that have no group of this name. These ranks take part only in the
  // reductions.
  Measure(GroupCoordinator* group, std::int64_t group_size, std::int64_t most_bytes,
          MemoryKind memory);

  // Returns seconds per call, the longest of all ranks. Collective over the world.
  double time(const BenchCase& work, bool in_place, std::int64_t warm_up, std::int64_t repeats);
  // Returns the wrong elements on all ranks together. Collective over the world.
  std::int64_t wrong(const BenchCase& work, bool in_place);

 private:
  void run(const BenchCase& work, bool in_place, std::int64_t times);
  [[nodiscard]] std::int64_t wrong_here(const BenchCase& work, bool in_place);
  [[nodiscard]] std::byte* memory(const Part& part, std::size_t width);

  GroupCoordinator* group_;
  std::int64_t group_size_;
  MemoryKind kind_;
  StreamRef stream_{};  // of device memory
  std::vector<std::byte> host_[2];
  device::DeviceBuffer<std::uint8_t> device_[2];
};

}  // namespace rankmesh::meshinfo
