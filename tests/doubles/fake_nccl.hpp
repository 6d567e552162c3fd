// SPDX-License-Identifier: BSD-3-Clause
// What the CPU double of libnccl exports beside NCCL's own functions, for tests that count leaks
// or make something fail. Look the functions up with dlsym where the library is opened at run time.
// It is a tool of the tests; nothing in the product falls back to it.
#pragma once

enum FakeNcclCall {
  fake_all_reduce,
  fake_reduce,
  fake_broadcast,
  fake_all_gather,
  fake_reduce_scatter,
  fake_all_to_all,
  fake_gather,
  fake_scatter,
  fake_send,
  fake_recv,
  fake_calls_end
};

struct FakeNcclCounters {
  // Totals since the start of this process.
  long unique_ids;     // made by ncclGetUniqueId
  long inits;          // communicators that came to life from unique IDs
  long splits;         // communicators that came to life by split
  long shrinks;        // ... by shrink
  long launches;       // batches of operations put on a stream: one per communicator and group
  long largest;        // the most operations of one of these batches
  long connections;    // meetings of the ranks that the first operations of an algorithm have made
  long lone_aborts;    // communicators aborted outside a group call
  long unsafe_aborts;  // communicators freed while another thread was in a call on them
  long stuck_ends;     // finalizes, destructions and aborts in which NCCL would wait for ever
  long overlapping_groups;  // groups before 2.27 that met an earlier one of their thread
  long long entries;  // calls of functions that take a communicator, and of the group functions
  long long polls;    // of these, calls of ncclCommGetAsyncError
  long long helpers;  // threads that were started for calls on non-blocking communicators
  long long calls[fake_calls_end];
  // Alive now.
  long communicators;
  long roots;          // unique IDs whose ranks have not all come: a thread and a socket each
  long hanging;        // blocking calls that the fault "hang" holds
  long threads;        // roots and helpers of non-blocking calls
  long segments;       // mappings of memory shared with other ranks
  long registrations;  // ncclCommRegister
  long windows;        // ncclCommWindowRegister
  long memory;         // ncclMemAlloc
  long reductions;     // ncclRedOpCreatePreMulSum
};

extern "C" {

void fake_nccl_counters(FakeNcclCounters* counters);

// Adds faults, in the notation of FAKE_NCCL_FAULTS (see README.md); "" takes all away, those of
// the environment too. Returns 0, or -1 where the text is not understood.
int fake_nccl_inject(const char* faults);

// A communicator's name, read now through the pointer that its config gave; null where it has none.
const char* fake_nccl_name(void* communicator);

// When a communicator's latest batch was put on its stream: FakeNcclCounters::launches right after.
// 0 before its first batch, -1 for no communicator.
long fake_nccl_last_launch(void* communicator);

// Makes all connections of a communicator, without a meeting of its ranks.
void fake_nccl_connect(void* communicator);

// By what NCCL orders the communicators of a group; the same on all ranks. 0 for no communicator.
unsigned long long fake_nccl_hash(void* communicator);

// The CTA limits, traffic class and split share that a communicator was made with.
struct FakeNcclConfig {
  int blocking, min_ctas, max_ctas, traffic_class, split_share, cga_cluster_size;
  int cta_policy, nvls_ctas, graph_usage_mode;
};
int fake_nccl_config(void* communicator, FakeNcclConfig* config);

}  // extern "C"
