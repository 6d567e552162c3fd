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

// Returns a rank that has connected, has not left, and whose process has ended; else -1.
int find_gone(const Seat& seat, const std::vector<int>& ranks) {
  if (broken("gone_process")) return -1;
  for (const int rank : ranks) {
    const RankSlot& slot = seat.segment.slot(rank);
    if (slot.attached == 0 || slot.left != 0 || slot.process_space != seat.mine().process_space)
      continue;
    if (kill(slot.process, 0) != 0 && errno == ESRCH) return rank;
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
                 OnTrouble on_trouble) {
  const auto start = Clock::now();
  auto& bell = seat.mine().doorbell;
  for (;;) {
    const std::uint32_t heard = bell;  // before looking: a change after this ends the sleep
    if (seat.gives_up()) return failed(ncclInternalError, "%s: this rank aborted", what.c_str());
    if (on_trouble == OnTrouble::give_up)
      if (Outcome trouble = seat.segment.trouble(); !trouble.ok()) return trouble;
    if (ready()) return {};
    const double waited = seconds_since(start);
    if (waited > 2 * slice_seconds) {
      if (const int gone = find_gone(seat, awaited()); gone >= 0) {
        const Outcome cause =
            failed(ncclRemoteError, "%s: the process of rank %d is gone", what.c_str(), gone);
        seat.segment.spoil(seat.rank, cause);
        return cause;
      }
    }
    if (waited > seat.limit && !broken("deadline")) {
      const Outcome cause =
          failed(ncclSystemError, "%s: rank %d waited %.1f s (FAKE_NCCL_TIMEOUT) for %s",
                 what.c_str(), seat.rank, seat.limit, rank_list(awaited()).c_str());
      seat.segment.spoil(seat.rank, cause);
      return cause;
    }
    sleep_on(bell, heard, slice_seconds);
  }
}

}  // namespace fake
