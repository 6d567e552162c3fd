// SPDX-License-Identifier: BSD-3-Clause
// Runs a doctest executable. These are failures too: a filter that no test case passes, and a test
// case that asserts nothing and is not skipped. The exit status is 77 if all were skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "support/case_log.hpp"
#include "support/checks.hpp"

namespace {

unsigned cases_run = 0;
unsigned cases_skipped = 0;
unsigned cases_empty = 0;

struct CaseCounter : doctest::IReporter {
  explicit CaseCounter(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    cases_run = stats.numTestCasesPassingFilters;
  }
  void test_case_start(const doctest::TestCaseData& test) override {
    test_ = &test;
    rankmesh_test::skip_reason.clear();
    log_.begin();
  }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    log_.end(*test_, 0, "no MPI", rankmesh_test::skip_reason);
    if (!rankmesh_test::skip_reason.empty()) {
      ++cases_skipped;
      std::printf("skipped: %s: %s\n", test_->m_name, rankmesh_test::skip_reason.c_str());
    } else if (stats.numAssertsCurrentTest == 0) {
      ++cases_empty;
      std::fprintf(stderr, "%s:%u: ERROR: test case '%s' asserts nothing\n", test_->m_file.c_str(),
                   test_->m_line, test_->m_name);
    }
  }
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  const doctest::TestCaseData* test_ = nullptr;
  rankmesh_test::CaseLog log_;
};
REGISTER_LISTENER("cases", 1, CaseCounter);

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context{argc, argv};
  const int status = context.run();
  if (context.shouldExit()) return status;
  if (cases_run == 0 || cases_empty > 0) return 1;
  return status == 0 && cases_skipped == cases_run ? 77 : status;
}
