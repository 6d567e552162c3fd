// SPDX-License-Identifier: BSD-3-Clause
// The watchdog of a process, and other processes that the test forks.
#include "wait/detail/watchdog.hpp"

#include <doctest/doctest.h>

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "board_processes.hpp"
#include "support/checks.hpp"

using namespace rankmesh;
using detail::NodeBoard;
using detail::Presence;
using rankmesh_test::comes_true;
using rankmesh_test::fails;
using rankmesh_test::Kind;
using rankmesh_test::Memory;
using rankmesh_test::Messages;
using rankmesh_test::Peer;

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> has_no_threads = false;

// Watches the board of rank 3. Reports to `sink` the calls that take `stall` seconds.
detail::WatchedMesh watch(std::shared_ptr<NodeBoard> board, LogSink sink, double stall = 30) {
  return {std::move(board),
          std::make_shared<const detail::Log>(std::move(sink), LogChoice::reports),
          {},
          stall};
}

// Returns the board of rank 3.
// @param file  The file that shows whether the other rank has ended; -1 for none.
std::shared_ptr<NodeBoard> board_of(const Memory& memory, int file = -1) {
  return std::make_shared<NodeBoard>(memory.data, nullptr, file, std::vector{Rank{3}, Rank{5}},
                                     Rank{3});
}

// The rank of the board enters a call, in which it stays.
void enter_all_reduce(NodeBoard& board) {
  const CallDescriptor descriptor{.kind = static_cast<std::uint64_t>(Operation::all_reduce)};
  board.own().call.enter(detail::ShortName{"tp"}, descriptor, 7);
}

}  // namespace

// Replaces the function of the system also for rankmesh.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) noexcept {
  if (has_no_threads) return EAGAIN;
  using Function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto original = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "pthread_create"));
  return original(thread, attributes, start, argument);
}

TEST_CASE("the watchdog reports a call that takes long, once, and at doubled intervals") {
  const Memory memory;
  const auto board = board_of(memory);
  NodeBoard peer = memory.board(Rank{5});
  peer.publish(&peer, {.text = "dp.barrier, call 2", .point = 1}, true);
  Messages messages;
  const auto begin = Clock::now();
  {
    const auto watched = watch(board, messages.sink(), 0.3);
    enter_all_reduce(*board);
    CHECK(comes_true([&] { return messages.texts().size() >= 2; }));
  }
  // After 0.3 s and 0.6 s of the call, at the next ticks; and again after 1.2 s, 2.4 s, ...
  const double seconds = std::chrono::duration<double>{Clock::now() - begin}.count();
  const std::vector<std::string> texts = messages.texts();
  REQUIRE(texts.size() >= 2);
  CHECK(0.3 * static_cast<double>(1 << (texts.size() - 1)) <= seconds);
  CHECK_CONTAINS(texts[0], "rank 3 (no mesh) is in tp.all_reduce, call 7 for ");
  CHECK_CONTAINS(texts[0], "others on this node: rank 5 (no mesh) waits in dp.barrier, call 2");
}

TEST_CASE("the watchdog reports a rank that has ended, once, within a second") {
  const Memory memory;
  const auto board = board_of(memory, memory.open_file());
  Peer peer{memory};
  Messages messages;
  const auto watched = watch(board, messages.sink());
  peer.signal(SIGKILL);
  CHECK(comes_true([&] { return !messages.texts().empty(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds{600});  // two more ticks
  const std::vector<std::string> texts = messages.texts();
  REQUIRE(texts.size() == 1);
  CHECK_CONTAINS(
      texts[0],
      "the process of rank 5 (no mesh) has ended, and the rank had not closed the mesh; rank 3");
}

TEST_CASE("the watchdog does not report a rank that has told why it ends") {
  const Memory memory;
  const auto board = board_of(memory, memory.open_file());
  bool is_thrown_out = false;
  SUBCASE("by an exception") { is_thrown_out = true; }
  SUBCASE("by its last words") {}
  Peer peer{memory, 0, [&](NodeBoard& of_peer) {
              if (is_thrown_out)
                of_peer.leave(Presence::failed, "no disk");
              else
                (void)of_peer.claim_end_report(Rank{5});  // as before its last words
            }};
  Messages messages;
  const auto watched = watch(board, messages.sink());
  peer.signal(SIGKILL);
  CHECK(fails(*board));
  std::this_thread::sleep_for(std::chrono::milliseconds{600});  // two more ticks
  CHECK(messages.texts().empty());
}

TEST_CASE("a child after fork() destroys a watched mesh without its thread") {
  const Memory memory;
  auto board = board_of(memory, memory.open_file());
  auto watched = std::make_unique<detail::WatchedMesh>(
      board, std::make_shared<const detail::Log>(LogSink{}, LogChoice::off), RankNames{}, 30);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      watched.reset();
      _exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  // The parent is still on the board.
  CHECK(memory.board(Rank{5}).look(Rank{3})->kind == Kind::outside);
}

TEST_CASE("without another thread there is a warning, no watchdog, and the signals are as before") {
  const Memory memory;
  const auto board = board_of(memory);
  Messages messages;
  has_no_threads = true;
  CHECK_NOTHROW(watch(board, messages.sink()));
  has_no_threads = false;
  sigset_t blocked;
  sigemptyset(&blocked);
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  CHECK(sigismember(&blocked, SIGTERM) == 0);
  const std::vector<std::string> texts = messages.texts();
  REQUIRE(texts.size() == 1);
  CHECK_CONTAINS(texts[0], "calls that MPI carries are not watched: ");
}

TEST_CASE("a sink that throws does not end the watchdog") {
  const Memory memory;
  const auto board = board_of(memory);
  std::atomic<int> reports = 0;
  const LogSink sink = [&](LogLevel, std::string_view) {
    ++reports;
    throw std::runtime_error{"no disk"};
  };
  const auto watched = watch(board, sink, 0.1);
  enter_all_reduce(*board);
  CHECK(comes_true([&] { return reports >= 2; }));  // it goes on after the first one
}
