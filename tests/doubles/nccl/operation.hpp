// SPDX-License-Identifier: BSD-3-Clause
// One collective, send or receive as it was called.
#pragma once

#include <nccl.h>

#include <string>

#include "comm.hpp"
#include "fake_nccl.hpp"

namespace fake {

struct Operation {
  FakeNcclCall kind = fake_all_reduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  Reduction scalar = {};  // where `op` was made by ncclRedOpCreatePreMulSum
  int root = -1;          // or the peer
  cudaStream_t stream = nullptr;
  bool is_undefined = false;  // another operation of the group uses memory that this one uses

  bool premultiplies() const { return op >= ncclNumOps; }
  bool point_to_point() const { return kind == fake_send || kind == fake_recv; }
};

std::size_t type_bytes(ncclDataType_t type);  // 0 for unknown types
const char* call_name(int kind);
std::string describe(const Posted& posted);
Posted posted_form(const Operation& operation);

struct Extent {
  std::size_t send, receive;  // 0 where this rank does not use the buffer
};
Extent bytes_used(const Comm& comm, const Operation& operation);

// Everything that can be said about the arguments without the other ranks.
Outcome check(Comm& comm, Operation& operation);

}  // namespace fake
