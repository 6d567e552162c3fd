// SPDX-License-Identifier: BSD-3-Clause
// The board of a node, between processes that the test forks.
#include "wait/detail/node_board.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/checks.hpp"
#include "wait/detail/watchdog.hpp"

using namespace rankmesh;
using detail::BoardEntry;
using detail::NodeBoard;
using detail::Presence;
using detail::RankActivity;
using Kind = RankActivity::Kind;

namespace {

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

// Collects log messages.
class Messages {
 public:
  LogSink sink() {
    return [this](LogLevel, std::string_view text) {
      const std::lock_guard lock{mutex_};
      texts_.emplace_back(text);
    };
  }
  std::vector<std::string> texts() {
    const std::lock_guard lock{mutex_};
    return texts_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

// A process that holds the board of rank 5 until it is killed.
class Peer {
 public:
  // @param flags  Namespaces of its own.
  explicit Peer(
      const Memory& memory, int flags = 0,
      const std::function<void(NodeBoard&)>& action = [](NodeBoard&) {}) {
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
      NodeBoard board = memory.board(Rank{5});
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

Kind kind_of_peer(const NodeBoard& board) { return board.look(Rank{5})->kind; }

// Waits until the system shows the state, which follows a signal after a moment.
bool becomes(const NodeBoard& board, Kind kind) {
  for (int i = 0; i < 200; ++i) {
    if (kind_of_peer(board) == kind) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return false;
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
  const std::uint64_t number = peer.publish(77, "tp.all_reduce, call 7");
  CHECK(number != 0);
  CHECK(peer.publish(78, "another wait") == 0);
  CHECK(kind_of_peer(board) == Kind::waits);
  CHECK(board.look(Rank{5})->key == 77);
  CHECK(board.look(Rank{5})->text == "tp.all_reduce, call 7");
  peer.clear(number + 1);
  CHECK(kind_of_peer(board) == Kind::waits);
  peer.clear(number);
  CHECK(kind_of_peer(board) == Kind::outside);
  peer.publish(1, std::string(1000, 'x'));
  CHECK(board.look(Rank{5})->text == std::string(231, 'x'));
  peer.leave(Presence::closed);
  CHECK(kind_of_peer(board) == Kind::closed);
  peer.leave(Presence::failed, "too late");
  CHECK(kind_of_peer(board) == Kind::closed);
  CHECK(!board.has_failed(Rank{5}));
}

TEST_CASE("a rank that an exception has thrown out has failed, with the reason") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  {
    NodeBoard peer = memory.board(Rank{5});
    peer.leave(Presence::failed, "no disk");
  }
  CHECK(board.has_failed(Rank{5}));
  CHECK(kind_of_peer(board) == Kind::failed);
  CHECK(board.look(Rank{5})->text == "no disk");
  CHECK(board.claim_end_report(Rank{5}));
  CHECK(!board.claim_end_report(Rank{5}));
}

TEST_CASE("a call that MPI carries is on the board without a clock; the watchdog adds the time") {
  const Memory memory;
  const NodeBoard board = memory.board(Rank{3});
  NodeBoard peer = memory.board(Rank{5});
  const std::uint32_t label = peer.label("dp");
  CHECK(peer.label("tp") != label);
  CHECK(peer.label("dp") == label);
  CHECK(peer.watch_call() == 0);
  {
    const BoardEntry entry{peer, label, Operation::all_gather, 12};
    CHECK(kind_of_peer(board) == Kind::in_call);
    CHECK(board.look(Rank{5})->text == "dp.all_gather, call 12");
    CHECK(board.look(Rank{5})->seconds == 0);
    (void)peer.watch_call();
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    CHECK(peer.watch_call() >= 0.02);
    CHECK(board.look(Rank{5})->seconds >= 0.02);
  }
  {
    const BoardEntry entry{peer, label, Operation::send_recv,
                           detail::PublishedMessage{3, 70'000, 16'383}.packed()};
    CHECK(board.look(Rank{5})->text == "dp.send_recv to member 3 from member 70000 (tag 16383)");
  }
  {
    const BoardEntry entry{peer, label, Operation::recv,
                           detail::PublishedMessage{0, 2, 7}.packed()};
    CHECK(board.look(Rank{5})->text == "dp.recv from member 2 (tag 7)");
  }
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

TEST_CASE("the watchdog reports a call that takes long, once, and at doubled intervals") {
  const Memory memory;
  const auto board =
      std::make_shared<NodeBoard>(memory.data, nullptr, -1, std::vector{Rank{3}, Rank{5}}, Rank{3});
  NodeBoard peer = memory.board(Rank{5});
  peer.publish(1, "dp.barrier, call 2");
  Messages messages;
  const detail::WaitContext context{
      .board = board,
      .log = std::make_shared<const detail::Log>(messages.sink(), LogChoice::reports),
      .stall = Deadline::Duration{0.3}};
  {
    const detail::WatchedMesh watched{context, {}};
    const BoardEntry entry{*board, board->label("tp"), Operation::all_reduce, 7};
    std::this_thread::sleep_for(std::chrono::milliseconds{1300});
  }
  const std::vector<std::string> texts = messages.texts();
  REQUIRE(texts.size() ==
          2);  // after 0.3 s and 0.6 s, at the next ticks; the next is due after 1.2 s of the call
  CHECK_CONTAINS(texts[0], "rank 3 (no mesh) is in tp.all_reduce, call 7 for ");
  CHECK_CONTAINS(texts[0], "others on this node: rank 5 (no mesh) waits in dp.barrier, call 2");
}

TEST_CASE("the watchdog reports a rank that has ended, once, within a second") {
  const Memory memory;
  const auto board = std::make_shared<NodeBoard>(memory.data, nullptr, memory.open_file(),
                                                 std::vector{Rank{3}, Rank{5}}, Rank{3});
  Peer peer{memory};
  Messages messages;
  const detail::WaitContext context{
      .board = board,
      .log = std::make_shared<const detail::Log>(messages.sink(), LogChoice::reports),
      .stall = Deadline::Duration{30}};
  const detail::WatchedMesh watched{context, {}};
  peer.signal(SIGKILL);
  std::this_thread::sleep_for(std::chrono::milliseconds{1000});
  const std::vector<std::string> texts = messages.texts();
  REQUIRE(texts.size() == 1);
  CHECK_CONTAINS(
      texts[0],
      "the process of rank 5 (no mesh) has ended, and the rank had not closed the mesh; rank 3");
}

TEST_CASE("the watchdog does not report a rank that has told why it ends") {
  const Memory memory;
  const auto board = std::make_shared<NodeBoard>(memory.data, nullptr, memory.open_file(),
                                                 std::vector{Rank{3}, Rank{5}}, Rank{3});
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
  const detail::WaitContext context{
      .board = board,
      .log = std::make_shared<const detail::Log>(messages.sink(), LogChoice::reports),
      .stall = Deadline::Duration{30}};
  const detail::WatchedMesh watched{context, {}};
  peer.signal(SIGKILL);
  std::this_thread::sleep_for(std::chrono::milliseconds{700});
  CHECK(messages.texts().empty());
  CHECK(board->has_failed(Rank{5}));
}

TEST_CASE("a child after fork() destroys a watched mesh without its thread") {
  const Memory memory;
  auto board = std::make_shared<NodeBoard>(memory.data, nullptr, memory.open_file(),
                                           std::vector{Rank{3}, Rank{5}}, Rank{3});
  const detail::WaitContext context{
      .board = board,
      .log = std::make_shared<const detail::Log>(LogSink{}, LogChoice::off),
      .stall = Deadline::Duration{30}};
  auto watched = std::make_unique<detail::WatchedMesh>(context, RankNames{});
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);
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
  CHECK(board.has_failed(Rank{5}));
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
  CHECK(board.has_failed(Rank{5}));
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
  CHECK(board.has_failed(Rank{5}));
}
