// SPDX-License-Identifier: BSD-3-Clause
// Records are found in processes and in folders.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "rankmesh/base/error.hpp"
#include "rankmesh/record/find.hpp"
#include "record/recorded_rank.hpp"
#include "support/checks.hpp"
#include "support/machine.hpp"

using namespace rankmesh;
using rankmesh_test::facts_of_rank_1;
using rankmesh_test::RecordedRank;
using rankmesh_test::TemporaryFolder;

namespace {

// A forked process that does something and then sleeps.
class Child {
 public:
  explicit Child(const std::function<void()>& work) {
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::alarm(60);  // it ends even if the test does not
      work();
      static_cast<void>(::write(ready[1], "x", 1) + 1);
      for (;;) ::pause();
    }
    char byte = 0;
    CHECK(::read(ready[0], &byte, 1) == 1);
    for (const int end : ready) ::close(end);
  }
  ~Child() {
    ::kill(process_, SIGKILL);
    int status = 0;
    ::waitpid(process_, &status, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  [[nodiscard]] pid_t process() const { return process_; }

 private:
  pid_t process_ = 0;
};

// Records are found in all processes of the user. So the keys of this process and its children must
// differ from those of other tests that run at the same time.
const std::uint64_t own_keys = static_cast<std::uint64_t>(::getpid()) << 16;

std::vector<record::Source> of_mesh(std::vector<record::Source> sources, std::uint64_t number) {
  std::erase_if(sources,
                [&](const record::Source& source) { return source.mesh_key != own_keys + number; });
  return sources;
}

template <class Error>
std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    CHECK_FALSE(error.hint().empty());
    return error.message();
  }
  return "";
}

RecordedRank::Recorder::Facts facts_of(std::uint64_t number, std::int64_t rank) {
  auto facts = facts_of_rank_1();
  facts.mesh_key = own_keys + number;
  facts.rank = Rank{rank};
  return facts;
}

}  // namespace

TEST_CASE("all ranks of a job are found from one") {
  const RecordedRank first{facts_of(0x51, 0)};
  const RecordedRank other_job{facts_of(0x52, 0)};
  const Child second{[] { new RecordedRank{facts_of(0x51, 1)}; }};
  // The child has both records of this process too, and they count once.
  CHECK(of_mesh(record::sources_of_user(), 0x51).size() == 2);
  const auto found = record::read_all(of_mesh(record::sources_of_process(second.process()), 0x51));
  REQUIRE(found.records.size() == 2);
  CHECK(found.records[0].rank == Rank{0});
  CHECK(found.records[0].process_id == ::getpid());
  CHECK(found.records[1].rank == Rank{1});
  CHECK(found.records[1].process_id == second.process());
}

TEST_CASE("a record that only a forked child has open belongs to an ended rank") {
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t rank = ::fork();
  if (rank == 0) {
    auto facts = facts_of(0x53, 0);
    const auto identity = rankmesh::detail::ProcessIdentity::own();
    facts.process.start_time = identity.start_time;
    facts.process.pid_namespace = identity.pid_namespace;
    new RecordedRank{facts};
    const pid_t child = ::fork();
    if (child == 0)
      for (;;) ::pause();
    static_cast<void>(::write(ready[1], &child, sizeof child) + 1);
    ::_exit(0);
  }
  pid_t child = 0;
  REQUIRE(::read(ready[0], &child, sizeof child) == sizeof child);
  int status = 0;
  ::waitpid(rank, &status, 0);
  const auto found = record::read_all(of_mesh(record::sources_of_process(child), 0x53));
  ::kill(child, SIGKILL);
  for (const int end : ready) ::close(end);
  REQUIRE(found.records.size() == 1);
  CHECK(found.records[0].process_id == rank);
  CHECK(found.records[0].process == record::Process::ended);
}

TEST_CASE("the process may be the launcher of the ranks") {
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const Child launcher{[&] {
    const Child* const rank = new Child{[] { new RecordedRank{facts_of(0x54, 0)}; }};
    const pid_t process = rank->process();
    static_cast<void>(::write(ready[1], &process, sizeof process) + 1);
  }};
  pid_t rank = 0;
  REQUIRE(::read(ready[0], &rank, sizeof rank) == sizeof rank);
  CHECK(of_mesh(record::sources_of_process(launcher.process()), 0x54).size() == 1);
  ::kill(rank, SIGKILL);
  for (const int end : ready) ::close(end);
}

TEST_CASE("a file that a rank has open is found in the process too") {
  const TemporaryFolder folder;
  const RecordedRank rank{facts_of(0x55, 0), folder.path()};
  CHECK(of_mesh(record::sources_of_process(::getpid()), 0x55).size() == 1);
}

TEST_CASE("what has no record is refused") {
  const Child child{[] {}};
  CHECK_CONTAINS(message_of<UsageError>(
                     [&] { static_cast<void>(record::sources_of_process(child.process())); }),
                 "has no record");
  CHECK(message_of<UsageError>([] {
          static_cast<void>(record::sources_of_process(999'999'999));
        }) == "there is no process 999999999");
  const TemporaryFolder folder;
  CHECK_CONTAINS(
      message_of<UsageError>([&] { static_cast<void>(record::sources_in(folder.path())); }),
      "has no records (*.rankmesh)");
  CHECK_CONTAINS(message_of<UsageError>(
                     [&] { static_cast<void>(record::sources_in(folder.path() / "missing")); }),
                 "cannot be read: No such file");
  std::ofstream{folder.path() / "bad.rankmesh"} << "rankmesh.record";
  CHECK_CONTAINS(message_of<DataError>([&] {
                   static_cast<void>(record::read_all(record::sources_in(folder.path())));
                 }),
                 "is not a record");
}

TEST_CASE("processes of other users are refused") {
  SKIP_UNLESS(rankmesh_test::is_root(), "needs root, to become another user");
  const Child child{[] { new RecordedRank{facts_of(0x56, 0)}; }};
  int results[2];
  REQUIRE(::pipe(results) == 0);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
    std::string message = "nothing was refused";
    try {
      static_cast<void>(record::sources_of_process(child.process()));
    } catch (const UsageError& error) {
      message = error.message();
    }
    static_cast<void>(::write(results[1], message.data(), message.size()) + 1);
    ::_exit(0);
  }
  char message[256] = "";
  CHECK(::read(results[0], message, sizeof message - 1) > 0);
  for (const int end : results) ::close(end);
  int status = 0;
  ::waitpid(stranger, &status, 0);
  CHECK_CONTAINS(message, "belongs to the user root");
}

TEST_CASE("records of meshes that are closed before they are read") {
  const std::vector<record::Source> gone{{"/proc/self/fd/99999", ::getpid(), 1}};
  CHECK_THROWS_WITH_AS(
      record::read_all(gone),
      doctest::Contains("the meshes were closed before their records could be read"), UsageError);
  const RecordedRank rank{facts_of(0x57, 0)};
  auto sources = record::sources_of_process(::getpid());
  sources.insert(sources.begin(), gone.front());
  const auto found = record::read_all(sources);
  CHECK(found.records.size() == 1);
  CHECK(found.remarks.empty());
}
