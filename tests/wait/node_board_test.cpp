// SPDX-License-Identifier: BSD-3-Clause
// The board of a node, between processes that the test forks.
#include "wait/detail/node_board.hpp"

#include <doctest/doctest.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "board_processes.hpp"
#include "support/checks.hpp"

using namespace rankmesh;
using detail::NodeBoard;
using detail::Presence;
using rankmesh_test::becomes;
using rankmesh_test::fails;
using rankmesh_test::Kind;
using rankmesh_test::kind_of_peer;
using rankmesh_test::Memory;
using rankmesh_test::Peer;

namespace {

CallDescriptor collective(Operation operation) {
  return {.kind = static_cast<std::uint64_t>(operation)};
}
CallDescriptor message(Operation operation, std::uint64_t to, std::uint64_t from, int tag) {
  return {.kind = static_cast<std::uint64_t>(operation) | to << 32,
          .detail = from << 16 | static_cast<std::uint64_t>(tag)};
}

}  // namespace

TEST_CASE("a rank without a slot is unknown, and one that has not come is silent") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  CHECK(!board.look(Rank{4}));
  CHECK(kind_of_peer(board) == Kind::silent);
  CHECK(!board.has_failed(Rank{5}));
  CHECK(board.look(Rank{3})->kind == Kind::outside);
}

TEST_CASE("what a rank waits for, and what it has left, is on the board") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  NodeBoard peer = memory.board(Rank{5});
  CHECK(kind_of_peer(board) == Kind::outside);
  const int first = 1, second = 2;  // two waits
  peer.publish(&first, {.text = "tp.all_reduce, call 7", .point = 77}, true);
  peer.publish(&second, {.text = "another wait", .point = 78}, true);
  CHECK(kind_of_peer(board) == Kind::waits);
  CHECK(board.look(Rank{5})->key == 77);
  CHECK(board.look(Rank{5})->text == "tp.all_reduce, call 7");
  peer.end_wait(&second);
  CHECK(kind_of_peer(board) == Kind::waits);
  peer.end_wait(&first);
  CHECK(kind_of_peer(board) == Kind::outside);
  peer.publish(&first, {.text = std::string(1000, 'x'), .point = 1}, true);
  CHECK(board.look(Rank{5})->text == std::string(228, 'x') + "...");
  peer.leave(Presence::closed);
  CHECK(kind_of_peer(board) == Kind::closed);
  peer.leave(Presence::failed, "too late");
  CHECK(kind_of_peer(board) == Kind::closed);
  CHECK(!board.has_failed(Rank{5}));
}

TEST_CASE("a wait in this mesh is seen even if another thread waits in another mesh") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  NodeBoard peer = memory.board(Rank{5});
  const int elsewhere = 1, here = 2;
  const auto text = [&] { return board.look(Rank{5})->text; };
  peer.publish(&elsewhere, {.text = "a queue (in another mesh)"}, false);
  CHECK(text() == "a queue (in another mesh)");
  peer.publish(&here, {.text = "tp.all_reduce, call 7", .point = 77}, true);
  CHECK(text() == "tp.all_reduce, call 7");
  peer.end_wait(&elsewhere);
  CHECK(text() == "tp.all_reduce, call 7");
  peer.publish(&elsewhere, {.text = "a queue (in another mesh)"}, false);
  CHECK(text() == "tp.all_reduce, call 7");
  peer.end_wait(&here);
  CHECK(text() == "a queue (in another mesh)");
  peer.end_wait(&elsewhere);
  CHECK(kind_of_peer(board) == Kind::outside);
}

TEST_CASE(
    "a rank that comes too late to a close learns who has given up, and a complete close goes on") {
  const Memory memory;
  NodeBoard board = memory.board(Rank{3});
  NodeBoard peer = memory.board(Rank{5});
  board.begin_close(false, 0);
  SUBCASE("too late") {
    CHECK(board.give_up_close());
    peer.begin_close(false, 0);
    CHECK(peer.all_close());
    REQUIRE(peer.who_gave_up_close());
    CHECK(peer.ranks()[*peer.who_gave_up_close()] == Rank{3});
    CHECK(peer.give_up_close());  // it does not close alone either, and the first one stays
    CHECK(board.ranks()[*board.who_gave_up_close()] == Rank{3});
  }
  SUBCASE("in time") {
    peer.begin_close(false, 0);
    CHECK(!board.give_up_close());
    CHECK(!peer.who_gave_up_close());
    peer.begin_close(false, 0);  // another attempt
    CHECK(peer.give_up_close());
    CHECK(board.ranks()[*board.who_gave_up_close()] == Rank{5});
  }
}

TEST_CASE("ranks meet before they close the mesh, again after an attempt that has failed") {
  const Memory memory;
  NodeBoard board = memory.board(Rank{3});
  NodeBoard peer = memory.board(Rank{5});
  for (const bool has_failed : {true, false}) {
    peer.begin_close(has_failed, 3);
    CHECK(!peer.all_close());
    board.begin_close(false, 4);
    CHECK(board.balance_of_all() == 7);
    for (const NodeBoard* one : {&board, &peer}) {
      CHECK(one->all_close());
      CHECK(one->has_failed_to_close() == has_failed);
    }
  }
}

TEST_CASE("a rank that an exception has thrown out has failed, with the reason") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  {
    NodeBoard peer = memory.board(Rank{5});
    peer.leave(Presence::failed, "no disk");
  }
  CHECK(fails(board));
  CHECK(kind_of_peer(board) == Kind::failed);
  CHECK(board.look(Rank{5})->text == "no disk");
  CHECK(board.claim_end_report(Rank{5}));
  CHECK(!board.claim_end_report(Rank{5}));
}

TEST_CASE("a call that MPI carries is on the board without a clock; the watchdog adds the time") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  NodeBoard peer = memory.board(Rank{5});
  const detail::ShortName dp{"dp"};
  CHECK(peer.watch_call() == 0);
  detail::CurrentCall& current = peer.own().call;
  current.enter(dp, collective(Operation::all_gather), 12);
  CHECK(kind_of_peer(board) == Kind::in_call);
  CHECK(board.look(Rank{5})->text == "dp.all_gather, call 12");
  (void)peer.watch_call();
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  CHECK(peer.watch_call() >= 0.02);
  current.leave();
  CHECK(peer.watch_call() == 0);
  current.enter(dp, message(Operation::send_recv, 3, 70'000, 16'383), 0);
  CHECK(board.look(Rank{5})->text == "dp.send_recv to member 3 from member 70000 (tag 16383)");
  CHECK(peer.watch_call() < 0.02);  // another call
  current.leave();
  current.enter(dp, message(Operation::recv, 2, 2, 7), 0);
  CHECK(board.look(Rank{5})->text == "dp.recv from member 2 (tag 7)");
  current.leave();
  const detail::ShortName cut{"a group whose name does not fit into its words"};
  current.enter(cut, collective(Operation::barrier), 1);
  CHECK(board.look(Rank{5})->text == "a group whose name does not fit.barrier, call 1");
  current.leave();
  CHECK(kind_of_peer(board) == Kind::outside);
  CHECK(peer.watch_call() == 0);
}

TEST_CASE("one rank of the node reports a stall") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  const NodeBoard peer = memory.board(Rank{5});
  const std::int64_t since = NodeBoard::now();
  CHECK(board.claim_stall_report(since));
  CHECK(!peer.claim_stall_report(since));
  CHECK(peer.claim_stall_report(NodeBoard::now()));
}

TEST_CASE("readers never see parts of two texts") {
  const auto text = std::make_unique<PublishedText>();
  std::atomic<bool> is_over = false;
  std::thread writer{[&] {
    for (int i = 0; i < 20000; ++i)
      text->write(static_cast<std::uint64_t>(i % 2), i % 2,
                  std::string(100, i % 2 == 0 ? 'a' : 'b'));
    is_over = true;
  }};
  bool is_whole = true;
  while (!is_over)
    if (const auto value = text->read())
      is_whole = is_whole && value->text == std::string(100, value->key == 0 ? 'a' : 'b') &&
                 value->since == static_cast<std::int64_t>(value->key);
  writer.join();
  CHECK(is_whole);
}

TEST_CASE("a text that is too long is cut, and says so") {
  PublishedText text;
  text.write(1, 2, std::string(PublishedText::capacity - 1, 'a'));
  CHECK(text.read()->text == std::string(PublishedText::capacity - 1, 'a'));
  text.write(1, 2, std::string(PublishedText::capacity, 'a'));
  CHECK(text.read()->text == std::string(PublishedText::capacity - 4, 'a') + "...");
}

TEST_CASE("a process that is stopped, continued, or killed is told apart") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  Peer peer{memory};
  CHECK(peer.has_begun());
  CHECK(kind_of_peer(board) == Kind::outside);
  peer.signal(SIGSTOP);
  CHECK(becomes(board, Kind::stopped));
  CHECK(!board.has_failed(Rank{5}));
  peer.signal(SIGCONT);
  CHECK(becomes(board, Kind::outside));
  peer.signal(SIGKILL);  // nobody has waited for it yet, so it is a zombie
  CHECK(becomes(board, Kind::ended));
  CHECK(fails(board));
  peer.end();
  CHECK(kind_of_peer(board) == Kind::ended);
}

TEST_CASE("a child that a rank has forked does not keep the rank alive") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  Peer peer{memory, 0, [](NodeBoard&) {
              if (fork() == 0) {
                std::this_thread::sleep_for(std::chrono::seconds{3});
                _exit(0);
              }
            }};
  CHECK(!board.has_failed(Rank{5}));
  peer.signal(SIGKILL);
  CHECK(becomes(board, Kind::ended));
  CHECK(fails(board));
}

TEST_CASE("between process namespaces a rank is silent or waits, and its end is noticed") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  Peer peer{memory, CLONE_NEWPID | CLONE_NEWNS};
  SKIP_UNLESS(peer.has_begun(), "process namespaces are not permitted");
  // Its process id is 1 there, and process 1 of this namespace is another one.
  CHECK(kind_of_peer(board) == Kind::silent);
  CHECK(!board.has_failed(Rank{5}));
  peer.end();
  CHECK(becomes(board, Kind::ended));
  CHECK(fails(board));
}

TEST_CASE("ranks with the same process id in different process namespaces are told apart") {
  const Memory memory;
  // /proc is that of this process, so the start times are not known.
  const Peer first{memory, CLONE_NEWPID, [](NodeBoard&) {}, Rank{3}};
  SKIP_UNLESS(first.has_begun(), "process namespaces are not permitted");
  const Peer second{memory, CLONE_NEWPID, [](const NodeBoard& board) {
                      for (const std::size_t slot : {0U, 1U})
                        if (board.index_of(board.area(slot).identity()) != slot) _exit(1);
                    }};
  CHECK(second.has_begun());
}

TEST_CASE("a rank whose main thread alone has ended has not ended") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  Peer peer{memory, 0, [](NodeBoard& of_peer) {
              of_peer.publish(&of_peer, {.text = "tp.all_reduce, call 7", .point = 77}, true);
              // It ends the main thread as pthread_exit() does, without unwinding the stack.
              (void)std::signal(SIGUSR1, [](int) { ::syscall(SYS_exit, 0); });
              std::thread{[] {
                while (true) std::this_thread::sleep_for(std::chrono::seconds{1});
              }}.detach();
            }};
  peer.signal(SIGUSR1);
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  CHECK(kind_of_peer(board) == Kind::waits);
  CHECK(!board.has_failed(Rank{5}));
  peer.signal(SIGKILL);
  CHECK(becomes(board, Kind::ended));
}

TEST_CASE("a rank has not ended if this process cannot read its state") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  const Peer peer{memory};
  std::vector<int> files;
  for (int file = open("/dev/null", O_RDONLY); file >= 0; file = open("/dev/null", O_RDONLY))
    files.push_back(file);
  const Kind kind = kind_of_peer(board);
  for (const int file : files) close(file);
  CHECK(kind == Kind::silent);
}
