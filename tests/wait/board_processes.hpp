// SPDX-License-Identifier: BSD-3-Clause
// A board, and processes that hold the boards of other ranks.
#pragma once

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "wait/detail/node_board.hpp"

namespace rankmesh_test {

using rankmesh::Rank;
using rankmesh::detail::NodeBoard;
using Kind = rankmesh::detail::RankStatus::Kind;

// Memory of two ranks, 3 and 5 of some mesh, and the file behind it.
struct Memory {
  int file = memfd_create("rankmesh board", MFD_CLOEXEC);
  std::size_t bytes = NodeBoard::bytes(2);
  std::byte* data = nullptr;
  Memory() {
    REQUIRE(ftruncate(file, static_cast<off_t>(bytes)) == 0);
    data =
        static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    REQUIRE(data != MAP_FAILED);
  }
  ~Memory() {
    munmap(data, bytes);
    close(file);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Each board opens the file itself, as each process does.
  [[nodiscard]] int open_file() const {
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    return open(path.c_str(), O_RDWR | O_CLOEXEC);
  }
  [[nodiscard]] NodeBoard board(Rank rank) const {
    return NodeBoard{data, nullptr, open_file(), {Rank{3}, Rank{5}}, rank};
  }
};

// A process that holds the board of a rank until it is killed.
class Peer {
 public:
  // @param flags  Namespaces of its own.
  // @param rank   The rank whose board it holds.
  explicit Peer(
      const Memory& memory, int flags = 0,
      const std::function<void(NodeBoard&)>& action = [](NodeBoard&) {}, Rank rank = 5) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    process_ = fork();
    if (process_ == 0) {
      // A new process namespace begins with the next child.
      if (flags != 0 && (unshare(flags) != 0 || fork() != 0)) {
        while (wait(nullptr) > 0) {
        }
        _exit(0);
      }
      if ((flags & CLONE_NEWNS) != 0) (void)(mount("proc", "/proc", "proc", 0, nullptr));
      NodeBoard board = memory.board(rank);
      action(board);
      const pid_t self = getpid();
      if (write(ready[1], &self, sizeof self) < 0) _exit(1);
      while (true) pause();
    }
    close(ready[1]);
    has_begun_ = read(ready[0], &inner_, sizeof inner_) == sizeof inner_;
    close(ready[0]);
  }
  ~Peer() { end(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  [[nodiscard]] bool has_begun() const { return has_begun_; }
  void signal(int number) const { ::kill(process_, number); }
  void end() {
    if (process_ <= 0) return;
    // The first process of a process namespace takes all others of it along, and its parent waits.
    const std::string children =
        "pkill -KILL -P " + std::to_string(process_) + " 2>/dev/null; true";
    (void)std::system(children.c_str());
    kill(process_, SIGCONT);
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_ = 0;
  pid_t inner_ = 0;
  bool has_begun_ = false;
};

inline Kind kind_of_peer(const NodeBoard& board) { return board.look(Rank{5})->kind; }

// The system shows the state a moment after a signal.
inline bool becomes(const NodeBoard& board, Kind kind) {
  return comes_true([&] { return kind_of_peer(board) == kind; });
}

// The last process that holds the lock of a rank lets go of it soon after the rank has ended.
inline bool fails(const NodeBoard& board) {
  return comes_true([&] { return board.has_failed(Rank{5}); });
}

}  // namespace rankmesh_test
