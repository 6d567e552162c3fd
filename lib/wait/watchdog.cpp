// SPDX-License-Identifier: BSD-3-Clause
#include "detail/watchdog.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "detail/rank_activities.hpp"

namespace rankmesh::detail {

namespace {

// Blocks all signals in this thread, and in the threads that it starts, as long as it exists.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

// A board, and what was reported of it.
struct WatchedBoard {
  std::shared_ptr<NodeBoard> board;
  std::shared_ptr<const Log> log;
  RankNames names;
  double stall;
  double next_report = stall;

  // Returns what has to be reported now; usually nothing.
  [[nodiscard]] std::vector<std::string> reports() {
    std::vector<std::string> texts;
    if (std::string text = stalled_call(); !text.empty()) texts.push_back(std::move(text));
    add_ended_ranks(texts);
    return texts;
  }

 private:
  [[nodiscard]] std::string stalled_call() {
    const double seconds = board->watch_call();
    if (seconds < stall) next_report = stall;  // another call, or none
    if (seconds < next_report) return {};
    next_report *= 2;
    const auto since = NodeBoard::now() - static_cast<std::int64_t>(seconds * 0.5e9);
    if (log->has_default_reports() && !board->claim_stall_report(since)) return {};
    const auto own = board->look(board->self());
    return fmt::format("rank {} {} for {:.0f} s{}", names(board->self()),
                       own ? predicate(*own, false) : "is in a call", seconds, others());
  }

  [[nodiscard]] std::string others() const {
    std::vector<RankAndActivity> ranks;
    for (const Rank rank : board->ranks())
      if (rank != board->self())
        if (auto activity = board->look(rank)) ranks.push_back({rank, std::move(*activity)});
    return ranks.empty() ? "" : "; others on this node: " + describe(ranks, names);
  }

  // Checks the next rank of the node. If this rank has failed, it checks the following rank too,
  // and so on, up to a rank that has not failed. Therefore each rank is watched by one living rank.
  // Only ranks that disappeared are reported: if an exception has ended a rank, the rank itself
  // reports the reason, and the errors of its peers contain it.
  void add_ended_ranks(std::vector<std::string>& texts) const {
    const std::vector<Rank>& ranks = board->ranks();
    const auto self =
        static_cast<std::size_t>(std::ranges::find(ranks, board->self()) - ranks.begin());
    for (std::size_t k = 1; k < ranks.size(); ++k) {
      const Rank rank = ranks[(self + k) % ranks.size()];
      if (!board->has_failed(rank)) return;
      const auto activity = board->look(rank);
      if (!activity || activity->kind != RankActivity::Kind::ended) continue;
      if (!board->claim_end_report(rank)) continue;
      const auto own = board->look(board->self());
      texts.push_back(fmt::format(
          "the process of rank {} has ended, and the rank had not closed "
          "the mesh; rank {} {}",
          names(rank), names(board->self()), own ? predicate(*own, false) : "is silent"));
    }
  }
};

class Watchdog {
 public:
  // Returns the watchdog of this process, which the last owner ends.
  static std::shared_ptr<Watchdog> of_process() {
    static auto* const mutex = new std::mutex;                 // objects of files may
    static auto* const current = new std::weak_ptr<Watchdog>;  // be destroyed later
    const std::lock_guard lock{*mutex};
    auto watchdog = current->lock();
    if (watchdog == nullptr) *current = watchdog = std::make_shared<Watchdog>();
    return watchdog;
  }

  Watchdog() {
    const BlockedSignals blocked;  // signals of the program are handled by its own threads
    // std::thread would free memory in the new thread, for which the C library then sets up an
    // arena of 64 MiB of addresses.
    const int error = ::pthread_create(
        &thread_, nullptr,
        [](void* watchdog) -> void* {
          static_cast<Watchdog*>(watchdog)->run();
          return nullptr;
        },
        this);
    if (error != 0) throw std::system_error{error, std::generic_category()};
  }
  ~Watchdog() {
    {
      const std::lock_guard lock{mutex_};
      is_over_ = true;
    }
    changed_.notify_one();
    ::pthread_join(thread_, nullptr);
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void add(std::shared_ptr<WatchedBoard> board) {
    const std::lock_guard lock{mutex_};
    boards_.push_back(std::move(board));
  }
  void remove(const std::shared_ptr<WatchedBoard>& board) {
    const std::lock_guard lock{mutex_};
    std::erase(boards_, board);
  }

 private:
  void run() {
    ::pthread_setname_np(::pthread_self(), "rankmesh-watch");
    std::unique_lock lock{mutex_};
    constexpr std::chrono::milliseconds tick{250};
    while (!changed_.wait_for(lock, tick, [this] { return is_over_; })) {
      std::vector<std::pair<std::shared_ptr<const Log>, std::string>> reports;
      for (const auto& board : boards_)
        for (std::string& text : board->reports())
          reports.emplace_back(board->log, std::move(text));
      if (reports.empty()) continue;
      // The program's sink may take long.
      lock.unlock();
      for (const auto& [log, text] : reports) log->report(text);
      reports.clear();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::vector<std::shared_ptr<WatchedBoard>> boards_;
  pthread_t thread_{};
};

WatchedMesh::WatchedMesh(std::shared_ptr<NodeBoard> board, std::shared_ptr<const Log> log,
                         const RankNames& names, double stall)
    : process_{::getpid()} {
  try {
    watchdog_ = Watchdog::of_process();
  } catch (const std::system_error& error) {
    // The mesh works without it.
    (*log)(LogLevel::warning, fmt::format("calls that MPI carries are not watched: the thread of "
                                          "the watchdog cannot start: {}",
                                          error.what()));
    return;
  }
  board_ =
      std::make_shared<WatchedBoard>(WatchedBoard{std::move(board), std::move(log), names, stall});
  watchdog_->add(board_);
}

WatchedMesh::~WatchedMesh() {
  if (watchdog_ == nullptr) return;
  // In a child process, the thread does not exist, and the mutex may be locked for ever.
  if (::getpid() == process_)
    watchdog_->remove(board_);
  else
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): leaked on purpose
    (void)new std::shared_ptr<Watchdog>{std::move(watchdog_)};
}

}  // namespace rankmesh::detail
