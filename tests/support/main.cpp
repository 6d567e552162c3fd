// Runs a doctest executable; a filter that no test passes is a failure.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

namespace {

unsigned tests_run = 0;

struct Count : doctest::IReporter {
  explicit Count(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    tests_run = stats.numTestCasesPassingFilters;
  }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("count", 1, Count);

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context{argc, argv};
  const int status = context.run();
  return context.shouldExit() || tests_run > 0 ? status : 1;
}
