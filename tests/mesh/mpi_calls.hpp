// SPDX-License-Identifier: BSD-3-Clause
// What a program counts and changes through the profiling interface of MPI.
#pragma once

struct MpiCalls {
  long creations = 0;        // of communicators
  long creations_left = -1;  // before MPI_Comm_create_group fails; -1: it does not
  long sends = 0;            // of messages between two ranks
  long barriers = 0;         // by MPI_Ibarrier or MPI_Iallreduce
};
extern MpiCalls calls;
