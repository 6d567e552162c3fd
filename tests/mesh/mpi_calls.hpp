// SPDX-License-Identifier: BSD-3-Clause
// What a program counts and changes through the profiling interface of MPI.
#pragma once

struct MpiCalls {
  long creations = 0;      // of communicators
  long sends = 0;          // of messages between two ranks
  int highest_tag = 0;     // of these messages
  long receives = 0;       // of messages between two ranks, by MPI_Recv
  long late_receive = 0;   // the number of the one before which this rank sleeps; 0: it does not
  int highest_of_few = 0;  // the highest tag that MPI says it has; 0: what it has
};
extern MpiCalls calls;
