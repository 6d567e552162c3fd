// SPDX-License-Identifier: BSD-3-Clause
// New communicators from existing ones.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <tuple>

#include "common/settings.hpp"
#include "counters.hpp"
#include "faults.hpp"
#include "group.hpp"
#include "rendezvous.hpp"

namespace fake {
namespace {

// The members (ranks of the parent, in the child's order) connect by an ID that the first of them
// makes and writes into the parent's memory.
Outcome make_child(Comm& parent, const Config& config, const std::vector<int>& members, int way,
                   std::uint64_t turn, OnTrouble on_trouble, CommPtr& child) {
  const Segment& segment = parent.seat.segment;
  const int leader = members.front();
  Offer& offer = segment.slot(leader).offers[way];
  ncclUniqueId id;
  if (leader == parent.seat.rank) {
    if (Outcome made = make_unique_id(id, IdKind::of_child); !made.ok()) return made;
    std::memcpy(offer.id[turn & 1], &id, sizeof id);
    offer.turn = turn;
    segment.ring_all();
  } else {
    const auto arrived = [&] { return offer.turn >= turn; };
    if (Outcome done = wait_for(
            parent.seat, "ID of the child", arrived, [&] { return std::vector<int>{leader}; },
            on_trouble);
        !done.ok())
      return done;
    std::memcpy(&id, offer.id[turn & 1], sizeof id);
  }
  const auto me = std::find(members.begin(), members.end(), parent.seat.rank) - members.begin();
  child = new_comm(static_cast<int>(me), static_cast<int>(members.size()), parent.device, config);
  child->seat.parent = &parent.seat;
  // init.cc, ncclCommInitChildComm: a child that shares the parent's resources has its abort flag.
  if (parent.config.split_share == 1 && way == 0 && !broken("shared_abort_flag"))
    child->seat.abort_flag = parent.seat.abort_flag;
  Outcome done = injected_init_failure(*child);
  if (done.ok()) done = take_seat(child->seat, &id, 1, parent.device);
  child->seat.parent = nullptr;
  if (done.ok())
    add_live(child);
  else
    remove_live(child);
  return done;
}

Outcome split(Comm& parent, int color, int key, const Config& config, CommPtr& child) {
  if (Outcome bad = drain(parent); !bad.ok()) return bad;
  const auto write = [&](RankSlot& mine, int parity) {
    mine.color[parity] = color;
    mine.key[parity] = key;
  };
  if (Outcome bad = meet(parent, Meeting::split, write); !bad.ok()) return bad;
  if (color == NCCL_SPLIT_NOCOLOR && !broken("split_nocolor")) return {};
  const std::uint64_t turn = parent.met;
  std::vector<std::tuple<int, int>> order;
  for (int rank = 0; rank < parent.seat.ranks; ++rank) {
    const RankSlot& slot = parent.seat.segment.slot(rank);
    if (slot.color[turn & 1] == color)
      order.emplace_back(broken("split_order") ? 0 : slot.key[turn & 1], rank);
  }
  std::sort(order.begin(), order.end());
  std::vector<int> members;
  for (const auto& [its_key, rank] : order) members.push_back(rank);
  Outcome done = make_child(parent, config, members, 0, turn, OnTrouble::give_up, child);
  if (done.ok()) ++totals().splits;
  return done;
}

// Only the survivors call; the parent may be spoilt.
Outcome shrink(Comm& parent, const std::vector<int>& survivors, const Config& config, bool abort,
               CommPtr& child) {
  const Segment& segment = parent.seat.segment;
  if (abort) {  // sets the flag, waits for what was running, and takes the flag back
    set_abort_flag(parent);
    std::unique_lock lock(parent.mutex);
    while (parent.done != parent.issued) {
      segment.ring(parent.seat.rank);
      parent.changed.wait_for(lock, std::chrono::milliseconds(5));
    }
    *parent.seat.abort_flag = false;
  }
  const OnTrouble on_trouble = abort ? OnTrouble::go_on : OnTrouble::give_up;
  if (Outcome bad = drain(parent); !bad.ok() && !abort) return bad;
  const std::uint64_t turn = ++parent.shrunk;
  parent.seat.mine().shrunk = turn;
  segment.ring_all();
  const auto missing = [&] {
    std::vector<int> out;
    for (const int rank : survivors)
      if (segment.slot(rank).shrunk < turn) out.push_back(rank);
    return out;
  };
  if (Outcome done = wait_for(
          parent.seat, "CommShrink", [&] { return missing().empty(); }, missing, on_trouble);
      !done.ok())
    return done;
  Outcome done = make_child(parent, config, survivors, 1, turn, on_trouble, child);
  if (done.ok()) ++totals().shrinks;
  return done;
}

// No config: the parent's own. A config: nothing of the parent's is inherited.
Outcome child_config(const Comm& parent, const ncclConfig_t* given, Config& config) {
  if (given == nullptr && !broken("split_inherits")) {
    config = parent.config;
    config.name = nullptr;
    return {};
  }
  return read_config(given, config);
}

ncclResult_t add_child_job(const CommPtr& parent, ncclComm_t* out,
                           std::function<Outcome(CommPtr&)> make) {
  // A child whose handle was never given out, since the parent ended before, ends too.
  const std::shared_ptr<CommPtr> child{new CommPtr, [](CommPtr* made) {
                                         if (*made) remove_live(*made);
                                         delete made;
                                       }};
  Job job;
  job.comm = parent;
  job.blocking = parent->config.blocking;
  job.body = [child, make = std::move(make)] { return make(*child); };
  job.deliver = [child, out] {  // until then the handle stays null
    *out = child->get();
    child->reset();
  };
  return add({}, std::move(job));
}

}  // namespace
}  // namespace fake

using namespace fake;

extern "C" {

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* out,
                           ncclConfig_t* given) {
  CommPtr parent;
  Config config;
  Outcome bad = enter(handle, parent);
  if (bad.ok() && out == nullptr) bad = failed(ncclInvalidArgument, "CommSplit: a null pointer");
  if (bad.ok()) *out = nullptr;
  if (bad.ok() && color < 0 && color != NCCL_SPLIT_NOCOLOR)
    bad = failed(ncclInvalidArgument, "CommSplit: colour %d", color);
  if (bad.ok()) bad = child_config(*parent, given, config);
  if (!bad.ok()) return add(bad, Job{});
  return add_child_job(parent, out,
                       [=](CommPtr& child) { return split(*parent, color, key, config, child); });
}

ncclResult_t ncclCommShrink(ncclComm_t handle, int* excluded, int excluded_count, ncclComm_t* out,
                            ncclConfig_t* given, int flags) {
  CommPtr parent;
  Config config;
  const bool abort = (flags & NCCL_SHRINK_ABORT) != 0;
  Outcome bad = enter(handle, parent, abort ? Use::query : Use::work);
  if (bad.ok() && (out == nullptr || excluded == nullptr || excluded_count < 1))
    bad = failed(ncclInvalidArgument, "CommShrink: a null pointer, or nothing to exclude");
  std::vector<int> survivors;
  for (int rank = 0; bad.ok() && rank < parent->seat.ranks; ++rank)
    if (std::find(excluded, excluded + excluded_count, rank) == excluded + excluded_count)
      survivors.push_back(rank);
  if (bad.ok() &&
      std::find(survivors.begin(), survivors.end(), parent->seat.rank) == survivors.end())
    bad = failed(ncclInvalidArgument, "CommShrink: rank %d excludes itself; only survivors call",
                 parent->seat.rank);
  if (bad.ok()) *out = nullptr;
  if (bad.ok()) bad = child_config(*parent, given, config);
  if (!bad.ok()) return add(bad, Job{});
  return add_child_job(parent, out, [=](CommPtr& child) {
    return shrink(*parent, survivors, config, abort, child);
  });
}

}  // extern "C"
