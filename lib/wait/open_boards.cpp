// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_boards.hpp"

#include <pthread.h>

#include <algorithm>

#include "detail/node_board.hpp"
#include "mpi/detail/job_end.hpp"

namespace rankmesh::detail {

OpenBoards& OpenBoards::instance() {
  // It is never destroyed, because meshes may be destroyed after the objects of all files.
  static OpenBoards* const boards = new OpenBoards;
  return *boards;
}

OpenBoards::OpenBoards() {
  // No thread of the parent holds the mutex during the fork. The child has no ranks: it forgets the
  // boards, and closes the files whose locks say that the parent is alive.
  ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] {
                     for (NodeBoard* board : instance().boards_) board->close_descriptor();
                     instance().boards_.clear();
                     instance().mutex_.unlock();
                   });
  // If a rank ends the job with its own message, its peers do not report its end.
  mpi::on_last_words([] {
    instance().for_each([](NodeBoard& board) { (void)board.claim_end_report(board.self()); });
  });
}

void OpenBoards::add(NodeBoard& board) {
  const std::lock_guard lock{mutex_};
  boards_.push_back(&board);
}

void OpenBoards::remove(NodeBoard& board) {
  const std::lock_guard lock{mutex_};
  std::erase(boards_, &board);
}

void OpenBoards::for_each(const std::function<void(NodeBoard&)>& action) {
  const std::lock_guard lock{mutex_};
  for (NodeBoard* board : boards_) action(*board);
}

PublishedWait::PublishedWait(const NodeBoard* own, const WaitNotice& wait) {
  OpenBoards::instance().for_each([&](NodeBoard& board) {
    const std::uint64_t number = board.publish(
        &board == own ? wait : WaitNotice{0, wait.activity + std::string{record::in_another_mesh}});
    if (number != 0) numbers_.emplace_back(&board, number);
  });
}

void PublishedWait::clear() noexcept {
  if (numbers_.empty()) return;
  // A board may have been closed meanwhile, by another thread.
  OpenBoards::instance().for_each([&](NodeBoard& board) {
    for (const auto& [published, number] : numbers_)
      if (published == &board) board.clear(number);
  });
  numbers_.clear();
}

}  // namespace rankmesh::detail
