// SPDX-License-Identifier: BSD-3-Clause
// rankmesh-guard: runs one rank of a job that may survive the death of ranks. Launchers end the job
// when one of the processes that they have started fails. The guard is that process, and stays when
// its rank is lost, until the other ranks of the node have ended. docs/surviving.md describes it.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace {

constexpr const char* usage =
    "Usage: rankmesh-guard PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs a rank of a job that may survive the death of ranks (MeshOptions::survive):\n"
    "\n"
    "    mpirun --mca orte_allowed_exit_without_sync 1 -n 8 rankmesh-guard ./program\n"
    "\n"
    "If the program fails after it has opened such a mesh, the guard stays until the other\n"
    "ranks of the node have ended, so that the launcher does not end the job. Its status is then\n"
    "0 if one of them has gone on to its end; else it is the status of the program.\n";

// The name of a guard whose rank is lost. Guards see each other's names in /proc.
constexpr const char* name_of_lost = "rank-lost";
constexpr int interval = 50;  // between two looks at the other guards, in milliseconds

[[noreturn]] void fail(int status, const std::string& text) {
  std::fprintf(stderr, "rankmesh-guard: %s\n", text.c_str());
  ::_exit(status);
}

std::string reason() { return std::generic_category().message(errno); }

// What /proc says about a process.
struct Process {
  std::string name;
  char state = 'Z';
  pid_t parent = 0;
};

std::optional<Process> process_of(const std::string& id) {
  // A process may end while its file is read, which an iterator would report by an exception.
  std::ifstream file{"/proc/" + id + "/stat"};
  std::string text(512, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  const auto open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 > text.size())
    return std::nullopt;
  Process process{text.substr(open + 1, close - open - 1), text[close + 2], 0};
  const char* const parent = text.data() + close + 4;
  std::from_chars(parent, text.data() + text.size(), process.parent);
  return process;
}

// The guards of the other ranks of this job on this node: the launcher has started them, too.
class OtherGuards {
 public:
  explicit OtherGuards(std::string own_name) : own_name_{std::move(own_name)} {
    std::error_code error;
    for (std::filesystem::directory_iterator entry{"/proc", error}, end; !error && entry != end;
         entry.increment(error)) {
      const std::string id = entry->path().filename().string();
      if (id.find_first_not_of("0123456789") == std::string::npos && id != own_id_ && find(id))
        ids_.push_back(id);
    }
  }

  // Returns whether a rank lives. Notes whether the guard of one has ended meanwhile: its rank has
  // come to its end, or the launcher ends the job.
  bool any_rank_lives() {
    bool lives = false;
    std::erase_if(ids_, [&](const std::string& id) {
      const auto process = find(id);
      const bool is_lost = process && process->name == name_of_lost;
      if (is_lost) lost_.insert(id);
      lives = lives || (process && !is_lost);
      has_one_ended_ = has_one_ended_ || (!process && !lost_.contains(id));
      return !process;
    });
    return lives;
  }
  [[nodiscard]] bool has_one_ended() const { return has_one_ended_; }

 private:
  [[nodiscard]] std::optional<Process> find(const std::string& id) const {
    auto process = process_of(id);
    if (!process || process->state == 'Z' || process->state == 'X' ||
        process->parent != ::getppid() ||
        (process->name != own_name_ && process->name != name_of_lost))
      return std::nullopt;
    return process;
  }

  const std::string own_name_;
  const std::string own_id_ = std::to_string(::getpid());
  std::vector<std::string> ids_;
  std::set<std::string> lost_;  // those of them that were seen without a rank
  bool has_one_ended_ = false;
};

// Signals that end or inform a program. The guard ignores none of those that it cannot catch, and
// stops with its rank where a terminal stops both.
sigset_t caught_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int signal :
       {SIGTSTP, SIGTTIN, SIGTTOU, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
    sigdelset(&set, signal);
  return set;
}

// Ends as the rank has ended, so that the launcher reports it.
[[noreturn]] void end_like(int status) {
  if (!WIFSIGNALED(status)) ::_exit(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const rlimit none{0, 0};  // the rank has written its core
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  ::raise(number);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::_exit(128 + number);
}

class Guard {
 public:
  explicit Guard(char** command) {
    if (::prctl(PR_GET_NAME, name_.data()) != 0) fail(126, reason());
    ::signal(SIGCHLD, SIG_DFL);  // the launcher may ignore it
    const sigset_t caught = caught_signals();
    ::sigprocmask(SIG_BLOCK, &caught, &mask_);
    signals_ = ::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0 || ::pipe2(words_.data(), O_CLOEXEC | O_NONBLOCK) != 0)
      fail(126, "cannot start: " + reason());
    const pid_t self = ::getpid();
    rank_ = ::fork();
    if (rank_ < 0) fail(126, "cannot start " + std::string{command[0]} + ": " + reason());
    if (rank_ == 0) become_rank(command, self);
    ::close(words_[1]);
  }

  [[noreturn]] void run() {
    int status = 0;
    while (::waitpid(rank_, &status, WNOHANG) == 0) wait_for_news(-1);
    hear();
    if ((status == 0 && !is_idle_) || !others_) end_like(status);
    ::prctl(PR_SET_NAME, name_of_lost);
    rank_ = 0;
    if (is_idle_) wait_for_news(10 * interval);  // until the others have seen the name
    const pid_t launcher = ::getppid();
    while (others_->any_rank_lives() && ::getppid() == launcher) wait_for_news(interval);
    if (others_->has_one_ended()) ::_exit(0);
    end_like(status);
  }

 private:
  // The rank ends with its guard. It stays in the guard's process group, which launchers signal.
  [[noreturn]] void become_rank(char** command, pid_t guard) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != guard) ::_exit(126);
    ::fcntl(words_[1], F_SETFD, 0);
    struct stat pipe {};
    if (::fstat(words_[1], &pipe) != 0) fail(126, "cannot start: " + reason());
    const std::string words = std::to_string(words_[1]) + ":" + std::to_string(pipe.st_ino);
    ::setenv("RANKMESH_GUARD", words.c_str(), 1);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
    ::execvp(command[0], command);
    fail(errno == ENOENT ? 127 : 126, "cannot start " + std::string{command[0]} + ": " + reason());
  }

  // Waits for signals and for the word of the rank, for so many milliseconds at most.
  void wait_for_news(int limit) {
    std::array<pollfd, 2> polls{{{.fd = signals_, .events = POLLIN, .revents = 0},
                                 {.fd = words_[0], .events = POLLIN, .revents = 0}}};
    ::poll(polls.data(), polls.size(), limit);
    hear();
    pass_on_signals();
  }

  // The rank writes to the pipe when it opens a mesh that may survive: then the other ranks of the
  // node have come, too. And when it has no place in the next mesh: then its end does not say that
  // the job has gone on. If all writers have closed the pipe, there is nothing more to hear.
  void hear() {
    char word = 0;
    ssize_t bytes = -1;
    while (words_[0] >= 0 && (bytes = ::read(words_[0], &word, 1)) == 1) {
      if (!others_) others_.emplace(name_.data());
      is_idle_ = word == 'i';
    }
    if (bytes != 0) return;
    ::close(words_[0]);
    words_[0] = -1;
  }

  void pass_on_signals() const {
    signalfd_siginfo signal{};
    while (::read(signals_, &signal, sizeof signal) == sizeof signal) {
      const auto number = static_cast<int>(signal.ssi_signo);
      if (number == SIGCHLD) continue;
      if (rank_ == 0) {
        // There is nobody to whom it could be passed on.
        if (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT)
          end_like(number);
        continue;
      }
      // The terminal signals the whole group, and so do launchers, which make a group for each of
      // their processes: the rank has the signal already.
      const bool is_of_group =
          signal.ssi_code == SI_KERNEL ||
          (static_cast<pid_t>(signal.ssi_pid) == ::getppid() && ::getpgrp() == ::getpid());
      if (!is_of_group || ::getpgid(rank_) != ::getpgrp()) ::kill(rank_, number);
    }
  }

  std::array<char, 16> name_{};
  sigset_t mask_{};
  int signals_ = -1;
  std::array<int, 2> words_{-1, -1};
  std::optional<OtherGuards> others_{};  // once the rank may be lost
  bool is_idle_ = false;                 // the rank has no place in the mesh that goes on
  pid_t rank_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h") {
    std::fputs(usage, stdout);
    return 0;
  }
  if (first.empty() || first.starts_with('-')) {
    std::fputs(usage, stderr);
    return 2;
  }
  Guard{argv + 1}.run();
}
