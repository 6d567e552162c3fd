// SPDX-License-Identifier: BSD-3-Clause
#include "detail/watchdog.hpp"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/detail/blocked_signals.hpp"
#include "detail/loss_watch.hpp"
#include "detail/open_parts.hpp"
#include "detail/rank_status.hpp"

namespace rankmesh::detail {

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
    const BlockedSignals blocked;
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

 private:
  void run() {
    ::pthread_setname_np(::pthread_self(), "rankmesh-watch");
    std::unique_lock lock{mutex_};
    constexpr std::chrono::milliseconds tick{250};
    while (!changed_.wait_for(lock, tick, [this] { return is_over_; })) {
      std::vector<std::pair<std::shared_ptr<const Log>, std::string>> reports;
      LossWatch::look_at_all();
      OpenParts<WatchedMesh>::instance().for_each([&](WatchedMesh& mesh) {
        for (std::string& text : mesh.reports()) reports.emplace_back(mesh.log(), std::move(text));
      });
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
  pthread_t thread_{};
};

WatchedMesh::WatchedMesh(std::shared_ptr<NodeBoard> board, std::shared_ptr<const Log> log,
                         RankNames names, double stall)
    : process_{::getpid()},
      board_{std::move(board)},
      log_{std::move(log)},
      names_{std::move(names)},
      stall_{stall},
      next_report_{stall} {
  try {
    watchdog_ = Watchdog::of_process();
    OpenParts<WatchedMesh>::instance().add(*this);
  } catch (const std::system_error& error) {
    // The mesh works without it.
    (*log_)(LogLevel::warning, fmt::format("calls that MPI carries are not watched: the thread of "
                                           "the watchdog cannot start: {}",
                                           error.what()));
  }
}

WatchedMesh::~WatchedMesh() {
  OpenParts<WatchedMesh>::instance().remove(*this);
  // In a child process, the thread does not exist, and the mutex may be locked for ever.
  if (watchdog_ != nullptr && ::getpid() != process_)
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): leaked on purpose
    (void)new std::shared_ptr<Watchdog>{std::move(watchdog_)};
}

std::vector<std::string> WatchedMesh::reports() {
  std::vector<std::string> texts;
  if (std::string text = stalled_call(); !text.empty()) texts.push_back(std::move(text));
  add_ended_ranks(texts);
  return texts;
}

std::string WatchedMesh::stalled_call() {
  const NodeBoard& board = *board_;
  const double seconds = board_->watch_call();
  if (seconds < stall_) next_report_ = stall_;  // another call
  if (seconds < next_report_) return {};
  next_report_ *= 2;
  const auto since = NodeBoard::now() - static_cast<std::int64_t>(seconds * 0.5e9);
  if (log_->has_default_reports() && !board.claim_stall_report(since)) return {};
  return fmt::format("rank {} {} for {:.0f} s{}", names_(board.self()),
                     predicate(*board.look(board.self()), false), seconds,
                     others_on_node(board, names_, {}));
}

// Checks the next rank of the node. If this rank has failed, it checks the following rank too, and
// so on, up to a rank that has not failed. Therefore each rank is watched by one living rank. Only
// ranks that disappeared are reported: if an exception has ended a rank, the rank itself reports
// the reason, and the errors of its peers contain it.
void WatchedMesh::add_ended_ranks(std::vector<std::string>& texts) const {
  const NodeBoard& board = *board_;
  const std::vector<Rank>& ranks = board.ranks();
  for (std::size_t k = 1; k < ranks.size(); ++k) {
    const Rank rank = ranks[(board.own_slot() + k) % ranks.size()];
    if (!board.has_failed(rank)) return;
    if (board.look(rank)->kind != RankStatus::Kind::ended || !board.claim_end_report(rank))
      continue;
    texts.push_back(fmt::format(
        "the process of rank {} has ended, and the rank had not closed the mesh; rank {} {}",
        names_(rank), names_(board.self()), predicate(*board.look(board.self()), false)));
  }
}

}  // namespace rankmesh::detail
