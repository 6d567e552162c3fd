// SPDX-License-Identifier: BSD-3-Clause
// Runs a doctest executable on every rank of an MPI job.
//
// Each rank's messages carry its number. A failed requirement or an exception on any rank ends the
// whole job at once (the others may wait for it in a collective). Failed checks are counted over
// all ranks at the end. A test case that asserts nothing on any rank fails, unless it is skipped; a
// job whose test cases were all skipped ends with status 77.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "rankmesh/mpi/native.hpp"
#include "support/case_log.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/patience.hpp"

namespace {

int world_rank = 0;

// A test case that ran, in the order of the run, which is the same on all ranks.
struct FinishedCase {
  const doctest::TestCaseData* test;
  long asserts;
  std::string skip_reason;  // empty if it was not skipped
};
std::vector<FinishedCase> finished_cases;

std::string mpi_library() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  return rankmesh_test::has_part(version, "Open MPI") ? "Open MPI" : "MPICH";
}

class RankReporter : public doctest::IReporter {
 public:
  explicit RankReporter(const doctest::ContextOptions&) {}

  void report_query(const doctest::QueryData& query) override {  // --count, in doctest's format
    if (query.run_stats != nullptr)
      std::printf("unskipped test cases passing the current filters: %u\n",
                  query.run_stats->numTestCasesPassingFilters);
  }
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override { run_stats = stats; }
  void test_case_start(const doctest::TestCaseData& test) override {
    test_ = &test;
    rankmesh_test::skip_reason.clear();
    log_.begin();
  }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    finished_cases.push_back(
        {test_, static_cast<long>(stats.numAssertsCurrentTest), rankmesh_test::skip_reason});
    if (world_rank == 0)
      log_.end(*test_, rankmesh_test::size(), mpi_library(), rankmesh_test::skip_reason);
  }
  void test_case_exception(const doctest::TestCaseException& e) override {
    // The launcher ends all ranks once one has failed, and that rank has printed the reason.
    if (e.is_crash && rankmesh_test::has_part(e.error_string.c_str(), "SIGTERM")) std::_Exit(1);
    print(std::string{"threw: "} + e.error_string.c_str(), test_->m_file.c_str(),
          static_cast<int>(test_->m_line));
    end_job();
  }
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& a) override {
    if (!a.m_failed) return;
    std::string text =
        std::string{doctest::assertString(a.m_at)} + "( " + a.m_expr + " ) is wrong: ";
    text += a.m_threw ? std::string{"it threw "} + a.m_exception.c_str() : a.m_decomp.c_str();
    print(text, a.m_file, a.m_line);
    if ((a.m_at & doctest::assertType::is_require) != 0) end_job();
  }
  void log_message(const doctest::MessageData& m) override {
    print(m.m_string.c_str(), m.m_file, m.m_line);
    if ((m.m_severity & doctest::assertType::is_require) != 0) end_job();
  }
  void test_case_skipped(const doctest::TestCaseData&) override {}

  static inline doctest::TestRunStats run_stats{};

 private:
  void print(const std::string& text, const char* file, int line) const {
    std::ostringstream out;
    out << "[rank " << world_rank << "] " << file << ":" << line << ": "
        << (test_ != nullptr ? test_->m_name : "?") << "\n[rank " << world_rank << "]   " << text
        << "\n";
    for (int i = 0; i < doctest::IReporter::get_num_active_contexts(); ++i) {
      out << "[rank " << world_rank << "]   where ";
      doctest::IReporter::get_active_contexts()[i]->stringify(&out);
      out << "\n";
    }
    // Those that an exception has left.
    for (int i = 0; i < doctest::IReporter::get_num_stringified_contexts(); ++i)
      out << "[rank " << world_rank << "]   where "
          << doctest::IReporter::get_stringified_contexts()[i] << "\n";
    const std::string whole = out.str();  // one write, so that ranks do not mix
    if (write(STDERR_FILENO, whole.data(), whole.size()) < 0) std::perror("write");
  }
  [[noreturn]] static void end_job() {
    // MPICH's launcher drops what it has not forwarded when the job is aborted.
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::_Exit(1);
  }
  const doctest::TestCaseData* test_ = nullptr;
  rankmesh_test::CaseLog log_;
};

REGISTER_REPORTER("rank", 1, RankReporter);

struct CaseCounts {
  long skipped = 0;
  long empty = 0;  // no rank asserted anything
};

// Collective. Rank 0 prints the test cases that were skipped and those that assert nothing.
CaseCounts count_cases() {
  std::vector<long> asserts;
  for (const FinishedCase& finished : finished_cases) asserts.push_back(finished.asserts);
  MPI_Allreduce(MPI_IN_PLACE, asserts.data(), static_cast<int>(asserts.size()), MPI_LONG, MPI_SUM,
                MPI_COMM_WORLD);
  CaseCounts counts;
  for (std::size_t i = 0; i < asserts.size(); ++i) {
    const FinishedCase& finished = finished_cases[i];
    if (!finished.skip_reason.empty()) {
      ++counts.skipped;
      if (world_rank == 0)
        std::printf("skipped: %s: %s\n", finished.test->m_name, finished.skip_reason.c_str());
    } else if (asserts[i] == 0) {
      ++counts.empty;
      if (world_rank == 0)
        std::fprintf(stderr, "%s:%u: test case '%s' asserts nothing on any rank\n",
                     finished.test->m_file.c_str(), finished.test->m_line, finished.test->m_name);
    }
  }
  return counts;
}

}  // namespace

int rankmesh_test::rank() { return world_rank; }
int rankmesh_test::size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

void rankmesh_test::wait_for_all() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

bool rankmesh_test::is_same_as_on_first(const std::string& text) {
  const auto mine = static_cast<std::uint64_t>(std::hash<std::string>{}(text));
  std::uint64_t first = mine;
  MPI_Bcast(&first, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  return mine == first;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  // The launcher of another MPI library starts jobs of one rank each, where every test would pass.
  const char* expected = std::getenv("RANKMESH_EXPECTED_RANKS");
  if (expected != nullptr && std::atoi(expected) != rankmesh_test::size()) {
    std::fprintf(
        stderr,
        "the job has %d ranks, expected %s: does the launcher belong to this MPI library?\n",
        rankmesh_test::size(), expected);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  rankmesh_test::share_cores();
  doctest::Context context;
  context.applyCommandLine(argc, argv);
  context.clearFilters();
  context.applyCommandLine(argc, argv);
  context.setOption("reporters", "rank");
  context.run();
  const auto& stats = RankReporter::run_stats;
  const long mine[] = {static_cast<long>(stats.numAsserts),
                       static_cast<long>(stats.numAssertsFailed),
                       static_cast<long>(stats.numTestCasesFailed)};
  long all[3] = {};
  const CaseCounts cases = count_cases();
  MPI_Reduce(mine, all, 3, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world_rank == 0)
    std::printf("%u test cases on %d ranks: %ld checks, %ld failed, %ld skipped\n",
                stats.numTestCasesPassingFilters, rankmesh_test::size(), all[0], all[1],
                cases.skipped);
  MPI_Bcast(all, 3, MPI_LONG, 0, MPI_COMM_WORLD);
  const bool none_ran = stats.numTestCasesPassingFilters == 0;
  MPI_Finalize();
  if (all[1] != 0 || all[2] != 0 || none_ran || cases.empty != 0) return 1;
  return cases.skipped > 0 && cases.skipped == static_cast<long>(finished_cases.size()) ? 77 : 0;
}
