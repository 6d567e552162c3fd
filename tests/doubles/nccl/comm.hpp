// SPDX-License-Identifier: BSD-3-Clause
// A communicator of this process.
#pragma once

#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "config.hpp"
#include "seat.hpp"

namespace fake {

struct Reduction {  // made by ncclRedOpCreatePreMulSum
  ncclDataType_t type = ncclFloat32;
  const void* pointer =
      nullptr;  // read when the operation runs, or null where `value` holds the scalar
  unsigned char value[8] = {};
};

// The inits, splits and finalizes of a group that does not block. NCCL runs each in a thread of its
// own, and tells the communicators of the group that they are ready when all have ended; if one
// fails, or is aborted, it sets the abort flags of all, and the error is everybody's
// (asyncJobLaunch and groupLaunch in group.cc, 2.26.5: lines 334-391 and 481-486).
struct GroupRun {
  std::vector<std::weak_ptr<ncclComm>> members;
  std::atomic<int> pending{0};
  std::atomic<bool> joined{false};  // see join_run()
};

// The state of a communicator.
struct Progress {
  bool busy = false;  // said ncclInProgress; nothing else is accepted until a poll says ncclSuccess
  bool background = false;  // a helper thread is at work
  bool stuck = false;       // in progress for ever: see set_in_progress_for_ever()
  int polls = 0;            // that many polls still answer ncclInProgress
  std::vector<std::function<Outcome()>>
      launches;                   // put on the stream by the poll that ends the phase
  std::function<void()> deliver;  // hands out what the helper made
  std::shared_ptr<GroupRun> run;  // the group of the latest job
};

}  // namespace fake

struct ncclComm : std::enable_shared_from_this<ncclComm> {
  fake::Seat seat;
  int device = 0;
  fake::Config config;
  std::uint64_t name_hash = 0;
  int number = 0;  // how many communicators this process had begun before
  long long charged = 0;

  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  fake::Progress progress;
  fake::Outcome error;
  bool finalized = false, gone = false;
  unsigned connected = 0;  // algorithms, see connect.cpp
  int recordings = 0;      // operations held by captures and graphs
  int inside = 0;          // threads that are in a blocking call
  bool is_freed_in_use = false;
  std::uint64_t issued = 0, done = 0, running = 0, collectives = 0, operations = 0;
  std::uint64_t met = 0, shrunk = 0;
  long last_launch =
      0;  // of the batches that this process put on streams, the latest of this communicator
  std::vector<std::uint64_t> sent, received;  // messages per peer
  std::map<int, fake::Reduction> reductions;
  std::map<const void*, std::pair<const char*, std::size_t>> registered;  // by handle
  int next_reduction = ncclNumOps;
};

namespace fake {

using Comm = ncclComm;
using CommPtr = std::shared_ptr<Comm>;

CommPtr new_comm(int rank, int ranks, int device, const Config& config);
void add_live(const CommPtr& comm);  // from now on its handle is known
void remove_live(const CommPtr& comm);
CommPtr find_comm(ncclComm_t handle);  // null where the handle is not of a live communicator
long live_comms();
// The same on all ranks; what it is cannot be foreseen. The communicator must have been
// initialised.
std::uint64_t hash_of(const Comm& comm);

// Whether the memory was registered with the communicator, as a buffer or as a window.
bool is_registered(Comm& comm, const void* memory);

// The first error stays.
void set_error(Comm& comm, const Outcome& outcome);
Outcome current_error(Comm& comm);

enum class Use { work, query };

// The communicator behind the handle, if it can be used: known, ready (work: not in progress), not
// finalized, without an error, its name unchanged.
Outcome enter(ncclComm_t handle, CommPtr& comm, Use use = Use::work);

// Waits until what was put on streams has run.
Outcome drain(Comm& comm);

// Sets the flag that ends what waits.
void set_abort_flag(Comm& comm);
// The same for all communicators whose jobs are in one group with the latest one of this
// communicator.
void cancel_run(Comm& comm);
// NCCL joins the thread of a group that does not block when a communicator of the group is used
// again (ncclCommEnsureReady and ncclGroupJobComplete; init.cc of 2.21.5, lines 281-303). Until
// then the group stays that of the thread which began it. A poll joins it from 2.26.2 on only
// (ncclCommGetAsyncError; init.cc of 2.26.5, lines 2233-2237, of 2.25.1 without them).
void join_run(Comm& comm);
bool polls_join();
// Whether a poll has to say success before the thread that made the call can make another one.
bool is_outstanding(const GroupRun& run);

// A host-side barrier of all ranks; `kind` must be the same everywhere.
enum class Meeting { finalize = 1, split, window, connect };
Outcome meet(Comm& comm, Meeting kind,
             const std::function<void(RankSlot&, int parity)>& write = {});

// Runs `body` in a helper thread and makes the communicator busy until it is polled to success.
void run_in_background(const CommPtr& comm, const std::shared_ptr<GroupRun>& run,
                       std::function<Outcome()> body, std::function<void()> deliver = {});
void become_busy(Comm& comm);

// Runs a function in a thread of its own, as a non-blocking communicator's calls do, and waits.
void run_in_helper(const std::function<void()>& body);
// Whether calls on non-blocking communicators run in a helper thread of their own.
bool has_helpers();

}  // namespace fake
