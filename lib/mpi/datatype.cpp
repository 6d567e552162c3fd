// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/mpi/datatype.hpp"

#include <string>

#include "rankmesh/mpi/error.hpp"

namespace rankmesh::mpi {

MPI_Datatype native(DataType type) {
  // In the order of DataType. A table and not a switch, because every operation needs it.
  static const MPI_Datatype types[] = {MPI_INT8_T,   MPI_UINT8_T,  MPI_INT16_T, MPI_UINT16_T,
                                       MPI_INT32_T,  MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T,
                                       MPI_UINT16_T, MPI_UINT16_T, MPI_FLOAT,   MPI_DOUBLE,
                                       MPI_UINT8_T,  MPI_UINT8_T};
  return types[static_cast<std::size_t>(type)];
}

MPI_Datatype native_for_reduction(DataType type) {
  if (is_narrow_float(type))
    throw UnsupportedError{"MPI cannot reduce elements of type " + std::string{to_string(type)},
                           "reduce float32 on the host, or reduce on devices"};
  return native(type);
}

MPI_Op native(ReduceOp op) {
  // In the order of ReduceOp; an average is a sum that is divided later.
  static const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_SUM};
  return ops[static_cast<std::size_t>(op)];
}

void CountedType::derive(std::int64_t count, std::size_t bytes_each, std::int64_t largest) {
  MPI_Datatype element = type_;
  const std::int64_t whole = count / largest;
  const std::int64_t rest = count % largest;
  MPI_Datatype chunk = MPI_DATATYPE_NULL;
  MPI_Datatype body = MPI_DATATYPE_NULL;
  MPI_Datatype tail = MPI_DATATYPE_NULL;
  check(MPI_Type_contiguous(static_cast<int>(largest), element, &chunk), "MPI_Type_contiguous");
  check(MPI_Type_contiguous(static_cast<int>(whole), chunk, &body), "MPI_Type_contiguous");
  check(MPI_Type_contiguous(static_cast<int>(rest), element, &tail), "MPI_Type_contiguous");
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {
      0, static_cast<MPI_Aint>(whole * largest * static_cast<std::int64_t>(bytes_each))};
  const MPI_Datatype types[] = {body, tail};
  check(MPI_Type_create_struct(2, lengths, places, types, &type_), "MPI_Type_create_struct");
  owned_ = true;
  count_ = 1;
  for (MPI_Datatype* part : {&chunk, &body, &tail}) check(MPI_Type_free(part), "MPI_Type_free");
  check(MPI_Type_commit(&type_), "MPI_Type_commit");
}

// MPI keeps the type alive for operations that are in progress.
void CountedType::free() noexcept { MPI_Type_free(&type_); }

}  // namespace rankmesh::mpi
