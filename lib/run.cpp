// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/run.hpp"

#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "mpi/detail/job_end.hpp"
#include "mpi/detail/process_guard.hpp"
#include "mpi/detail/unfinished.hpp"
#include "rankmesh/base/detail/reasons.hpp"

namespace rankmesh::detail {
namespace {

std::string name_of_program(int argc, char** argv) {
  if (argc < 1 || argv == nullptr) return "rankmesh";
  const std::string path{argv[0]};
  return path.substr(path.rfind('/') + 1);
}

// Reports the exception that is being handled. Returns the status of the process if the job need
// not be ended, because there are no other ranks.
int fail(const std::string& name, mpi::UncleanEnd end) {
  const std::string text = current_reasons().text();
  mpi::flush_stdout();
  const bool is_clean =
      mpi::is_child_of_rank() || (mpi::ranks_of_job() == 1 && mpi::unfinished_reasons().empty());
  if (!is_clean && end == mpi::UncleanEnd::abort_job) mpi::end_job(name, text, 1);
  mpi::write_last_words(name, text);
  if (!is_clean) mpi::abandon_guard();
  return 1;
}

}  // namespace

int run_program(int& argc, char**& argv, const RunOptions& options,
                const std::function<int(mpi::Environment&)>& program) {
  const std::string name = name_of_program(argc, argv);
  std::optional<mpi::Environment> environment;
  try {
    environment.emplace(argc, argv, options.threads, options.order, options.end);
    mpi::prepare_job_end();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    return 1;
  }
  int status = 1;
  try {
    status = program(*environment);
  } catch (...) {
    status = fail(name, options.end);
  }
  mpi::set_status_of_end(status);
  return status;
}

}  // namespace rankmesh::detail
