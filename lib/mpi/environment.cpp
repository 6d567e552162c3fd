// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/mpi/environment.hpp"

#include <cstdlib>
#include <exception>

#include <fmt/format.h>

#include "detail/loaded_components.hpp"
#include "detail/process_guard.hpp"
#include "rankmesh/base/launcher.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::mpi {
namespace {

const char* to_string(ThreadLevel level) {
  switch (level) {
    case ThreadLevel::single:
      return "MPI_THREAD_SINGLE";
    case ThreadLevel::funneled:
      return "MPI_THREAD_FUNNELED";
    case ThreadLevel::serialized:
      return "MPI_THREAD_SERIALIZED";
    case ThreadLevel::multiple:
      return "MPI_THREAD_MULTIPLE";
  }
  return "?";
}

// MPI_Init may end the process with a message that does not name the launcher. Therefore the
// warning must come first.
void warn_of_launcher() {
  const auto mismatch = srun_without_pmix(library_text());
  if (mismatch && launcher_rank().value_or(0) == 0)
    fmt::print(stderr, "rankmesh: warning: {}; {}\n", mismatch->message, mismatch->hint);
}

}  // namespace

std::string library_text() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  return {text, static_cast<std::size_t>(length)};
}

Environment::Environment(ThreadLevel wanted, NcclLaunchOrder order, UncleanEnd end)
    : Environment{nullptr, nullptr, wanted, order, end} {}
Environment::Environment(int& argc, char**& argv, ThreadLevel wanted, NcclLaunchOrder order,
                         UncleanEnd end)
    : Environment{&argc, &argv, wanted, order, end} {}

Environment::Environment(int* argc, char*** argv, ThreadLevel wanted, NcclLaunchOrder order,
                         UncleanEnd end)
    : exceptions_{std::uncaught_exceptions()} {
  int finalised = 0;
  check(MPI_Finalized(&finalised), "MPI_Finalized");
  if (finalised != 0)
    throw UsageError{"MPI has already been finalised", "create one Environment at the top of main"};
  int initialised = 0;
  check(MPI_Initialized(&initialised), "MPI_Initialized");
  int level = 0;
  if (initialised != 0) {
    check(MPI_Query_thread(&level), "MPI_Query_thread");
  } else {
    warn_of_launcher();
    check(MPI_Init_thread(argc, argv, static_cast<int>(wanted), &level), "MPI_Init_thread");
  }
  keep_components_loaded();
  level_ = static_cast<ThreadLevel>(level);
  if (order == NcclLaunchOrder::implicit) setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
  // rankmesh calls MPI only from the thread that calls rankmesh, so a program that has initialised
  // MPI for one thread needs nothing more.
  const bool is_enough = initialised != 0 && wanted <= ThreadLevel::funneled;
  if (level_ < wanted && !is_enough) {
    if (initialised == 0) MPI_Finalize();
    throw UsageError{
        fmt::format("MPI offers {}, but {} was requested", to_string(level_), to_string(wanted)),
        "initialise MPI with MPI_Init_thread, or request a lower level"};
  }
  if (initialised == 0) begin_guard(end);
  initialised_here_ = initialised == 0 || resume_guard(end);
}

Environment::~Environment() {
  if (initialised_here_) end_guard(std::uncaught_exceptions() > exceptions_);
}

}  // namespace rankmesh::mpi
