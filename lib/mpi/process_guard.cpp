// SPDX-License-Identifier: BSD-3-Clause
#include "detail/process_guard.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/blocked_signals.hpp"
#include "base/detail/launched.hpp"
#include "base/detail/patience.hpp"
#include "detail/job_end.hpp"
#include "detail/unfinished.hpp"
#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::mpi {
namespace {

// The name that precedes the messages of this file.
constexpr const char* name_of_library = "rankmesh";

// Whether exit() runs: it destroys the objects of its thread before it destroys static objects.
thread_local constinit bool is_thread_over = false;
struct EndOfThread {
  ~EndOfThread() { is_thread_over = true; }
  void watch() const {}
};
thread_local const EndOfThread end_of_thread;

enum class GuardState : std::uint8_t {
  off,
  on,
  left,  // An exception has left the Environment.
};

struct Guard {
  GuardState state = GuardState::off;
  UncleanEnd end = UncleanEnd::abort_job;
  int status = 0;
  pid_t process = 0;
  std::terminate_handler previous = nullptr;
  bool is_registered = false;  // at exit()
  bool is_static = false;      // The Environment was destroyed by exit().

  // A child process that was forked is not part of the job.
  [[nodiscard]] bool can_act() const {
    return state != GuardState::off && process == getpid() && is_active();
  }
};

Guard& guard() {
  static Guard only;  // has no destructor, so it can be used until the process ends
  return only;
}

bool is_silent() {
  const char* text = std::getenv("RANKMESH_LOG");
  return text != nullptr && std::string_view{text} == "off";
}

[[noreturn]] void run_previous(std::terminate_handler previous) {
  if (previous != nullptr) previous();
  std::abort();
}

bool is_default(std::terminate_handler handler) {
#ifdef __GLIBCXX__
  return handler == &__gnu_cxx::__verbose_terminate_handler;
#else
  return handler == nullptr;
#endif
}

void abort_job_on_signal(int) { abort_job(1); }

[[noreturn]] void at_terminate() {
  const Guard& g = guard();
  if (!g.can_act() || is_job_ending()) run_previous(g.previous);
  const std::string text = is_silent() ? ""
                           : std::current_exception() == nullptr
                               ? std::string{"std::terminate was called"}
                               : fmt::format("an exception was not caught: {}",
                                             rankmesh::detail::current_reasons().text());
  if (is_default(g.previous)) end_job(name_of_library, text, 1);
  // The handler of the program may print a stack, for example. It ends with abort(), and then the
  // job ends.
  if (!text.empty()) write_last_words(name_of_library, text);
  std::signal(SIGABRT, abort_job_on_signal);
  run_previous(g.previous);
}

void switch_off() noexcept {
  Guard& g = guard();
  g.state = GuardState::off;
  if (g.previous == nullptr) return;
  if (std::get_terminate() == &at_terminate) std::set_terminate(g.previous);
  g.previous = nullptr;
}

// Returns whether a process that has to come to MPI_Finalize has ended. The ranks that are not in
// the mesh that has lost ranks learn it only here.
bool has_process_ended() {
  if (has_companion_ended()) return true;
  if (!may_job_lose_ranks()) return false;
  return std::ranges::any_of(rankmesh::detail::states_of_launched(), [](const auto& process) {
    return process.second == rankmesh::detail::ProcessState::ended;
  });
}

// MPI_Finalize never returns if a process has ended inside it. So it runs in a thread, which is
// left behind then. A process that has come through it ends, too.
void finalize_bounded() {
  const auto is_over = std::make_shared<std::atomic<bool>>(false);
  {
    const rankmesh::detail::BlockedSignals blocked;
    std::thread{[is_over] {
      MPI_Finalize();
      *is_over = true;
    }}.detach();
  }
  std::optional<rankmesh::Deadline> end;
  constexpr int polls_per_look = 100;
  for (int polls = 1; !*is_over && !(end && end->passed()); ++polls) {
    if (polls % polls_per_look == 0 && !end && has_process_ended())
      end.emplace(rankmesh::detail::patience().finalize);
    usleep(1000);
  }
}

// Finalises MPI as soon as all ranks are about to do so. If one of them cannot finalise and calls
// MPI_Abort instead, this rank must not be in MPI_Finalize already: Open MPI 4.1's launcher waits
// in a barrier of its own then, and often crashes or hangs when it is told to end the job.
// If the job goes on without ranks that are lost, those that are left end without MPI_Finalize.
void finalize_together() {
  before_end_of_survivor();
  if (has_loss()) return;
  MPI_Request all_come = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &all_come);
  constexpr int hasty_tests = 1000;
  constexpr int tests_per_look = 100;
  const rankmesh::Deadline limit = deadline_of_companions();
  int is_done = 0;
  for (int tests = 0;
       MPI_Test(&all_come, &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && is_done == 0; ++tests) {
    if (tests % tests_per_look == 0 && has_process_ended()) return;
    if (limit.passed())
      return write_last_words(
          name_of_library,
          fmt::format("not all ranks of the job have come to its end within {} s after this one, "
                      "which ends without MPI_Finalize",
                      limit.seconds()));
    usleep(tests < hasty_tests ? 0 : 1000);
  }
  if (is_survivor() || may_job_lose_ranks())
    finalize_bounded();
  else
    MPI_Finalize();
}

// Ends the job, or leaves that to the launcher, because MPI cannot be finalised.
void end_uncleanly(const std::vector<UnfinishedReason>& reasons, int status) {
  std::vector<std::string_view> what, hints;
  for (const UnfinishedReason& reason : reasons) {
    what.push_back(reason.what);
    if (!reason.hint.empty()) hints.push_back(reason.hint);
  }
  const bool aborts = guard().end == UncleanEnd::abort_job;
  const std::string text =
      is_silent()
          ? ""
          : fmt::format("MPI cannot be finalised: {}; {}{}this rank {}", fmt::join(what, ", and "),
                        fmt::join(hints, "; "), hints.empty() ? "" : "; ",
                        is_survivor() ? "ends, and the others go on"
                        : aborts      ? "ends the job with MPI_Abort"
                                      : "leaves the job to the launcher");
  flush_stdout();
  if (aborts) end_job(name_of_library, text, status);
  before_end_of_survivor();
  if (!text.empty()) write_last_words(name_of_library, text);
  switch_off();
}

// Whether this thread may call all functions of MPI.
bool is_main_thread() {
  int is_main = 0;
  MPI_Is_thread_main(&is_main);
  return is_main != 0;
}

UnfinishedReason reason_of_exit(int status) {
  const Guard& g = guard();
  if (g.state == GuardState::left) return {"an exception left the Environment", ""};
  if (g.is_static)
    return {fmt::format("a static Environment ends with status {}", status),
            "create the Environment in main, which can return any status"};
  return {fmt::format("exit({}) was called", status),
          "return from main instead, so that other ranks do not wait"};
}

// Called by exit(), and when main returns.
void at_exit(int status, void*) {
  if (!guard().can_act() || is_job_ending()) return;
  if (!is_main_thread())
    return end_uncleanly(
        {{fmt::format("exit({}) was called in a thread that did not initialise MPI", status),
          "return from main instead, or call exit() in the thread that initialised MPI"}},
        status);
  if (has_loss()) return before_end_of_survivor();
  std::vector<UnfinishedReason> reasons = unfinished_reasons();
  if (reasons.empty() && status == 0) return finalize_together();
  reasons.insert(reasons.begin(), reason_of_exit(status));
  end_uncleanly(reasons, status);
}

}  // namespace

void begin_guard(UncleanEnd end) {
  prepare_job_end();
  Guard& g = guard();
  g.state = GuardState::on;
  g.end = end;
  g.status = 1;
  g.process = getpid();
  end_of_thread.watch();
  if (!g.is_registered) on_exit(at_exit, nullptr);
  g.is_registered = true;
  if (end == UncleanEnd::abort_job) g.previous = std::set_terminate(at_terminate);
}

bool resume_guard(UncleanEnd end) noexcept {
  Guard& g = guard();
  if (g.state != GuardState::left || !g.can_act()) return false;
  g.state = GuardState::on;
  g.end = end;
  return true;
}

void end_guard(bool by_exception) noexcept {
  Guard& g = guard();
  if (!g.can_act() || is_job_ending()) return switch_off();
  if (by_exception) {
    g.state = GuardState::left;
    return;
  }
  // exit() destroys a static Environment. Only a function that exit() calls gets the status. A
  // function that is registered now is the next one that exit() calls.
  if (is_thread_over || !is_main_thread()) {
    g.is_static = is_thread_over;
    on_exit(at_exit, nullptr);
    return;
  }
  const std::vector<UnfinishedReason> reasons = unfinished_reasons();
  if (!reasons.empty() && !has_loss()) return end_uncleanly(reasons, g.status);
  switch_off();
  finalize_together();
}

void set_status_of_end(int status) noexcept { guard().status = status; }
void abandon_guard() noexcept { switch_off(); }

}  // namespace rankmesh::mpi
