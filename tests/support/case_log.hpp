// SPDX-License-Identifier: BSD-3-Clause
// A log of the test cases that ran, for scripts/test-cells.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace rankmesh_test {

/// Appends a line for each test case that ends to the file that RANKMESH_CASE_LOG names. The line
/// holds, between tabs: the file and the name of the case, the number of ranks (0: no job), what
/// tells this program's runs apart (its name, the routes and the NCCL library), the MPI library,
/// "ran" or "skipped", and the seconds.
class CaseLog {
 public:
  void begin() { start_ = std::chrono::steady_clock::now(); }

  void end(const doctest::TestCaseData& test, int ranks, const std::string& mpi,
           const std::string& skip_reason) const {
    const char* const path = std::getenv("RANKMESH_CASE_LOG");
    if (path == nullptr) return;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
    std::ostringstream line;
    line << last_part(test.m_file.c_str(), 2) << '\t' << test.m_name << '\t' << ranks << '\t'
         << last_part(program_invocation_name, 1) << variable("RANKMESH_ROUTES")
         << variable("RANKMESH_NCCL_LIBRARY") << '\t' << mpi << '\t'
         << (skip_reason.empty() ? "ran" : "skipped") << '\t' << seconds.count() << '\n';
    const std::string text = line.str();  // one write, so that lines of several jobs do not mix
    const int file = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || ::write(file, text.data(), text.size()) < 0) std::perror(path);
    if (file >= 0) ::close(file);
  }

 private:
  static std::string last_part(const std::string& path, int parts) {
    std::size_t begin = path.size();
    for (; parts > 0 && begin != std::string::npos && begin > 0; --parts)
      begin = path.rfind('/', begin - 1);
    return begin == std::string::npos || path.empty() ? path : path.substr(begin + 1);
  }
  static std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : ' ' + last_part(value, 1);
  }
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace rankmesh_test
