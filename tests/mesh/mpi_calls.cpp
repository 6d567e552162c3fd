// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_calls.hpp"

#include "rankmesh/mpi/native.hpp"

MpiCalls calls;

// The library's calls come through here. NOLINTBEGIN
#define CREATES(name, parameters, arguments) \
  extern "C" int MPI_##name parameters {     \
    ++calls.creations;                       \
    return PMPI_##name arguments;            \
  }
CREATES(Comm_create, (MPI_Comm c, MPI_Group g, MPI_Comm* r), (c, g, r))
CREATES(Comm_split, (MPI_Comm c, int colour, int key, MPI_Comm* r), (c, colour, key, r))
CREATES(Comm_split_type, (MPI_Comm c, int type, int key, MPI_Info i, MPI_Comm* r),
        (c, type, key, i, r))
CREATES(Comm_dup, (MPI_Comm c, MPI_Comm* r), (c, r))
CREATES(Comm_dup_with_info, (MPI_Comm c, MPI_Info i, MPI_Comm* r), (c, i, r))
CREATES(Comm_idup, (MPI_Comm c, MPI_Comm* r, MPI_Request* q), (c, r, q))
extern "C" int MPI_Comm_create_group(MPI_Comm c, MPI_Group g, int tag, MPI_Comm* r) {
  if (calls.creations_left == 0) return MPI_ERR_OTHER;
  if (calls.creations_left > 0) --calls.creations_left;
  ++calls.creations;
  return PMPI_Comm_create_group(c, g, tag, r);
}
extern "C" int MPI_Iallreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op,
                              MPI_Comm c, MPI_Request* r) {
  ++calls.barriers;
  return PMPI_Iallreduce(in, out, n, type, op, c, r);
}
extern "C" int MPI_Ibarrier(MPI_Comm c, MPI_Request* r) {
  ++calls.barriers;
  return PMPI_Ibarrier(c, r);
}
extern "C" int MPI_Send(const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {
  ++calls.sends;
  return PMPI_Send(b, n, t, to, tag, c);
}
extern "C" int MPI_Isend(const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c,
                         MPI_Request* r) {
  ++calls.sends;
  return PMPI_Isend(b, n, t, to, tag, c, r);
}
extern "C" int MPI_Sendrecv(const void* b, int n, MPI_Datatype t, int to, int tag, void* in, int m,
                            MPI_Datatype u, int from, int with, MPI_Comm c, MPI_Status* s) {
  ++calls.sends;
  return PMPI_Sendrecv(b, n, t, to, tag, in, m, u, from, with, c, s);
}
// NOLINTEND
