// SPDX-License-Identifier: BSD-3-Clause
// One rank's place in a shared segment, and the only way in which the double waits for other ranks.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "segment.hpp"

namespace fake {

double timeout_seconds();

struct Seat {
  Segment segment;
  int rank = 0;
  int ranks = 0;
  // This rank aborts: every wait of it ends. Communicators that share the resources of one parent
  // share its flag too.
  std::shared_ptr<std::atomic<bool>> abort_flag = std::make_shared<std::atomic<bool>>(false);

  double limit = timeout_seconds();  // read when the communicator is begun, by the caller's thread
  const Seat* parent = nullptr;      // while a child is made: its abort counts too

  bool cancelled() const { return *abort_flag; }
  bool gives_up() const { return cancelled() || (parent != nullptr && parent->cancelled()); }
  RankSlot& mine() const { return segment.slot(rank); }
};

using Ready = std::function<bool()>;
using Awaited = std::function<std::vector<int>()>;  // the ranks that are still missing

enum class OnTrouble { give_up, go_on };

// How ranks wait for each other. Hosts wait over the sockets of the bootstrap, which notice that a
// peer has closed its end. Kernels look at memory and at their own abort flag (checkAbort in
// device/prims_simple.h): only over sockets or InfiniBand, between hosts, does NCCL notice the
// peer.
enum class Over { sockets, memory };

// Waits until ready() holds; ends early where this rank cancels, a peer is seen to have ended, or
// FAKE_NCCL_TIMEOUT passes, which NCCL does not have.
Outcome wait_for(Seat& seat, const std::string& what, const Ready& ready, const Awaited& awaited,
                 OnTrouble on_trouble = OnTrouble::give_up, Over over = Over::sockets);

// What NCCL makes of calls that do not match: a wait that only an abort of this rank ends. `why`
// becomes the error when FAKE_NCCL_TIMEOUT passes.
Outcome hang(Seat& seat, const std::string& why);

std::string rank_list(const std::vector<int>& ranks);

}  // namespace fake
