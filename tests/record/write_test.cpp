// SPDX-License-Identifier: BSD-3-Clause
// A signal writes the records of a process.
#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "rankmesh/base/error.hpp"
#include "rankmesh/record/find.hpp"
#include "rankmesh/record/write.hpp"
#include "record/recorded_rank.hpp"
#include "support/checks.hpp"
#include "support/scoped_variable.hpp"

using namespace rankmesh;
using rankmesh_test::call_of;
using rankmesh_test::facts_of_rank_1;
using rankmesh_test::RecordedRank;
using rankmesh_test::TemporaryFolder;

namespace {

std::string message_of(int signal, const std::string& folder) {
  try {
    record::write_on_signal(signal, folder);
  } catch (const UsageError& error) {
    CHECK_FALSE(error.hint().empty());
    return error.message();
  }
  return "";
}

std::size_t files_in(const std::filesystem::path& folder) {
  using Entries = std::filesystem::directory_iterator;
  return static_cast<std::size_t>(std::distance(Entries{folder}, Entries{}));
}

// A handler that waits for ever blocks all signals that end a process, except those of this limit.
void limit_seconds_of_processor() {
  const rlimit seconds{2, 2};
  if (::setrlimit(RLIMIT_CPU, &seconds) != 0) ::_exit(2);
}

// Makes children with `fork` while another thread writes records. Each child opens a mesh, raises
// the signal, and closes the mesh. Returns the number of records in the folder.
std::size_t records_after_children(pid_t (*fork)()) {
  const TemporaryFolder folder;
  record::write_on_signal(SIGUSR1, folder.path());
  const RecordedRank rank;
  CHECK(std::raise(SIGUSR1) == 0);
  std::atomic<bool> is_done{false};
  std::thread thread{[&] {
    while (!is_done) std::raise(SIGUSR1);
  }};
  for (std::uint64_t i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      limit_seconds_of_processor();
      auto facts = facts_of_rank_1();
      facts.mesh_key = 0x9900 + i;
      {
        const RecordedRank own{facts};
        std::raise(SIGUSR1);
      }
      ::_exit(0);
    }
    int status = 1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  is_done = true;
  thread.join();
  return record::read_all(record::sources_in(folder.path())).records.size();
}

}  // namespace

TEST_CASE("a signal overwrites no file that a link leads to") {
  const TemporaryFolder folder, elsewhere;
  const auto victim = elsewhere.path() / "victim";
  std::ofstream{victim} << "precious";
  const std::string name = "0000000000001234-rank1.rankmesh";
  std::filesystem::create_symlink(victim, folder.path() / (name + ".part"));
  std::filesystem::create_symlink(victim, folder.path() / name);
  record::write_on_signal(SIGUSR1, folder.path());
  const RecordedRank rank;
  CHECK(std::raise(SIGUSR1) == 0);
  CHECK(std::filesystem::file_size(victim) == 8);
  CHECK(files_in(folder.path()) == 1);
  CHECK(record::read_all(record::sources_in(folder.path())).records.size() == 1);
}

TEST_CASE("a limit on the size of files ends no process") {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    record::write_on_signal(SIGUSR1, folder.path());
    const RecordedRank rank;
    const rlimit limit{10'000, 10'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
    std::raise(SIGUSR1);
    try {
      const RecordedRank other;
      ::_exit(3);
    } catch (const Error& error) {
      ::_exit(error.message().find("File too large") == std::string::npos ? 4 : 5);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 5);
  CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("a signal writes what the rank is in") {
  const TemporaryFolder folder;
  const std::string made = folder.path() / "a" / "b";
  record::write_on_signal(SIGUSR1, made);
  const RecordedRank rank;
  rank.make(rank.tp, call_of(Operation::all_reduce), 1);
  rank.recorder->mark("step 7");
  std::this_thread::sleep_for(std::chrono::milliseconds{2});  // then the frequency is known
  {
    const auto call = rank.begin(rank.dp, call_of(Operation::barrier), 1);
    errno = 77;
    CHECK(std::raise(SIGUSR1) == 0);
    CHECK(errno == 77);
  }
  rank.make(rank.tp, call_of(Operation::all_reduce), 2);
  CHECK(std::filesystem::exists(made + "/0000000000001234-rank1.rankmesh"));
  CHECK(files_in(made) == 1);
  const auto sources = record::sources_in(made);
  auto records = record::read_all(sources).records;
  REQUIRE(records.size() == 1);
  CHECK(records[0].mesh == "dp=2,tp=2");
  CHECK(records[0].process == record::Process::running);
  REQUIRE(records[0].calls.size() == 2);
  CHECK(to_string(records[0], records[0].calls[0]) == "tp.all_reduce(4 x float32, sum), call 1");
  CHECK(records[0].calls[0].is_over());
  CHECK(records[0].calls[1].state == record::State::issued);
  REQUIRE(records[0].calls[1].begin.has_value());
  CHECK(*records[0].calls[1].begin <= records[0].read_at);
  REQUIRE(records[0].marks.size() == 1);
  CHECK(records[0].marks[0].text == "step 7");
  CHECK(std::raise(SIGUSR1) == 0);  // replaces the file
  CHECK(files_in(made) == 1);
  records = record::read_all(sources).records;
  CHECK(records.at(0).calls.size() == 3);
}

TEST_CASE("a signal writes the meshes that are open") {
  const TemporaryFolder folder, other;
  record::write_on_signal(SIGUSR1, folder.path());
  CHECK(std::raise(SIGUSR1) == 0);
  CHECK(files_in(folder.path()) == 0);
  auto facts = facts_of_rank_1();
  const RecordedRank first{facts};
  facts.mesh_key = 0x99;
  { const RecordedRank closed{facts}; }
  facts.mesh_key = 0x77;
  const RecordedRank second{facts};
  CHECK(std::raise(SIGUSR1) == 0);
  CHECK(record::read_all(record::sources_in(folder.path())).records.size() == 2);
  record::write_on_signal(SIGUSR1, other.path());
  std::filesystem::remove_all(folder.path());
  CHECK(std::raise(SIGUSR1) == 0);
  CHECK(files_in(other.path()) == 2);
  CHECK_FALSE(std::filesystem::exists(folder.path()));
}

TEST_CASE("records can be opened, written to and removed while signals come") {
  const TemporaryFolder folder;
  record::write_on_signal(SIGUSR1, folder.path());
  std::atomic<bool> is_done{false};
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      while (!is_done) failures += std::raise(SIGUSR1) != 0;
    });
  for (std::uint64_t i = 0; i < 300; ++i) {
    const RecordedRank rank;
    for (std::uint64_t call = 1; call <= 5000; ++call)
      rank.make(rank.tp, call_of(Operation::all_reduce), call);
    if (i % 10 != 0) continue;
    CHECK(std::raise(SIGUSR1) == 0);
    CHECK(record::read_all(record::sources_in(folder.path())).remarks.empty());
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  const auto records = record::read_all(record::sources_in(folder.path()));
  CHECK(records.remarks.empty());
  CHECK(records.records.size() == 1);
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a forked child does not write the records of its parent") {
  const TemporaryFolder folder;
  record::write_on_signal(SIGUSR1, folder.path());
  const RecordedRank rank;
  const pid_t child = ::fork();
  if (child == 0) {
    std::raise(SIGUSR1);
    ::_exit(0);
  }
  int status = 1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("a child that is forked while another thread writes can write records of its own") {
  CHECK(records_after_children(::fork) == 21);
}

TEST_CASE("a child that is made without the functions of pthread_atfork writes no records") {
  CHECK(records_after_children([] {
          return static_cast<pid_t>(
              ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
        }) == 1);
}

TEST_CASE("a thread that is cancelled while it writes ends its turn") {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    limit_seconds_of_processor();
    record::write_on_signal(SIGUSR1, folder.path());
    const RecordedRank rank;
    std::thread thread{[] {
      ::pthread_cancel(::pthread_self());  // takes effect at the next call that may wait
      std::raise(SIGUSR1);
    }};
    thread.join();
    std::raise(SIGUSR1);
    ::_exit(0);
  }
  int status = 1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("signals and folders that cannot be used are refused") {
  const TemporaryFolder folder;
  const std::string path = folder.path();
  for (const int signal : {-1, 0, 1000})
    CHECK_CONTAINS(message_of(signal, path), "there is no such signal");
  CHECK_CONTAINS(message_of(SIGKILL, path), "signal 9 cannot write records: a process cannot");
  CHECK_CONTAINS(message_of(SIGSEGV, path), "would repeat for ever");
  CHECK_CONTAINS(message_of(32, path), "signal 32 cannot be handled");  // the C library uses it
  CHECK_CONTAINS(message_of(SIGUSR1, ""), "the folder '': No such file");
  CHECK_CONTAINS(message_of(SIGUSR1, "/dev/null"), "the folder '/dev/null': Not a directory");
  const rankmesh_test::ScopedVariable record{"RANKMESH_RECORD", path.c_str()};
  CHECK_CONTAINS(message_of(SIGUSR1, path + "/"), "it already has those of RANKMESH_RECORD");
}
