// SPDX-License-Identifier: BSD-3-Clause
#include "seat.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>

#include "common/settings.hpp"

namespace fake {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double slice_seconds = 0.05;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns a rank that has connected and then ended, its process or its communicator, and whose end
// this rank notices; else -1.
int find_ended(const Seat& seat, const std::vector<int>& ranks, Over over) {
  if (broken("gone_process")) return -1;
  for (const int rank : ranks) {
    const RankSlot& slot = seat.segment.slot(rank);
    if (slot.attached == 0) continue;
    if (over == Over::memory && slot.host == seat.mine().host && !broken("flags_are_local"))
      continue;
    if (slot.left != 0) return rank;
    if (slot.process_space == seat.mine().process_space && kill(slot.process, 0) != 0 &&
        errno == ESRCH)
      return rank;
  }
  return -1;
}

}  // namespace

double timeout_seconds() { return number("FAKE_NCCL_TIMEOUT", 60.0); }

std::string rank_list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == 16) return text + ", and " + std::to_string(ranks.size() - i) + " more";
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

Outcome wait_for(Seat& seat, const std::string& what, const Ready& ready, const Awaited& awaited,
                 OnTrouble on_trouble, Over over) {
  const auto start = Clock::now();
  auto& bell = seat.mine().doorbell;
  for (;;) {
    const std::uint32_t heard = bell;  // before looking: a change after this ends the sleep
    if (seat.gives_up()) return failed(ncclInternalError, "%s: this rank aborted", what.c_str());
    if (on_trouble == OnTrouble::give_up)
      if (Outcome trouble = seat.segment.trouble(seat.rank); !trouble.ok()) return trouble;
    if (ready()) return {};
    const double waited = seconds_since(start);
    if (waited > 2 * slice_seconds) {
      const int ended = find_ended(seat, awaited(), over);
      if (ended >= 0 && !ready())  // its last message may have come in between
        return failed(ncclRemoteError, "%s: rank %d is gone", what.c_str(), ended);
      if (ended >= 0) return {};
    }
    if (waited > seat.limit && !broken("deadline"))
      return failed(ncclSystemError, "%s: rank %d waited %.1f s (FAKE_NCCL_TIMEOUT) for %s",
                    what.c_str(), seat.rank, seat.limit, rank_list(awaited()).c_str());
    sleep_on(bell, heard, slice_seconds);
  }
}

Outcome hang(Seat& seat, const std::string& why) {
  Outcome ended = wait_for(
      seat, why, [] { return false; }, [] { return std::vector<int>{}; }, OnTrouble::give_up,
      Over::memory);
  if (ended.code == ncclSystemError) ended.text = why + ", so NCCL waits for ever";
  return ended;
}

}  // namespace fake
