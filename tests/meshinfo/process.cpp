// SPDX-License-Identifier: BSD-3-Clause
#include "process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace rankmesh_test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Keeps the variables that sanitizers and scripts/run-mpi read; any other would make runs differ.
std::vector<std::string> clean_environment(const std::vector<std::string>& extra) {
  std::vector<std::string> environment{std::string{"PATH="} +
                                           fs::path{MESHINFO_PATH}.parent_path().string() +
                                           ":" SCRIPTS_DIR ":" MAKE_RECORDS_DIR ":/usr/bin:/bin",
                                       "LC_ALL=C", "HOME=/nonexistent"};
  for (const char* name :
       {"ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "LD_LIBRARY_PATH", "RANKMESH_MPIRUN"})
    if (const char* value = std::getenv(name))
      environment.push_back(std::string{name} + "=" + value);
  environment.insert(environment.end(), extra.begin(), extra.end());
  return environment;
}

[[noreturn]] void become_shell(const Scratch& scratch, const std::string& command,
                               const std::vector<std::string>& environment) {
  std::vector<char*> pointers;
  for (const auto& entry : environment) pointers.push_back(const_cast<char*>(entry.c_str()));
  pointers.push_back(nullptr);
  // nohup, and shells that start commands in the background, let their children ignore these.
  for (const int signal : {SIGHUP, SIGINT}) std::signal(signal, SIG_DFL);
  const char* arguments[] = {"sh", "-c", command.c_str(), nullptr};
  if (chdir(scratch.path().c_str()) == 0)
    execve("/bin/sh", const_cast<char* const*>(arguments), pointers.data());
  _exit(127);
}

void finish(Result& result, pid_t child) {
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) < 0) throw std::runtime_error{"wait4 failed"};
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.peak_kib = usage.ru_maxrss;
}

// Reads until both ends are closed; a command that takes too long is killed with its children.
void drain(pollfd* ends, std::string** texts, nfds_t count, pid_t child, int seconds) {
  const auto end = Clock::now() + std::chrono::seconds{seconds};
  nfds_t open = count;
  while (open > 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0 || poll(ends, count, static_cast<int>(left)) < 0) {
      kill(-child, SIGKILL);
      break;
    }
    for (nfds_t i = 0; i < count; ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      char buffer[65536];
      const ssize_t n = read(ends[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        texts[i]->append(buffer, static_cast<std::size_t>(n));
      } else {
        close(ends[i].fd);
        ends[i].fd = -1;
        --open;
      }
    }
  }
  for (nfds_t i = 0; i < count; ++i)
    if (ends[i].fd >= 0) close(ends[i].fd);
}

}  // namespace

Scratch::Scratch() {
  std::string pattern = (fs::temp_directory_path() / "rankmesh-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw std::runtime_error{"cannot make a folder in " + pattern};
  path_ = pattern;
  fs::create_directory_symlink(EXAMPLE_MESHES_DIR, fs::path{path_} / "meshes");
  fs::create_directory_symlink(EXAMPLE_SPECS_DIR, fs::path{path_} / "specs");
  fs::create_directory_symlink(GOLDEN_DIR "/files", fs::path{path_} / "files");
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

bool Scratch::has(const std::string& file) const { return fs::exists(fs::path{path_} / file); }

std::string Scratch::read(const std::string& file) const {
  std::ifstream stream{fs::path{path_} / file, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, {}};
}

Result shell(const Scratch& scratch, const std::string& command,
             const std::vector<std::string>& extra, int seconds) {
  const auto environment = clean_environment(extra);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error{"no pipe"};
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error{"no process"};
  if (child == 0) {
    setpgid(0, 0);
    const int in = open("/dev/null", O_RDONLY);
    dup2(in, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    become_shell(scratch, command, environment);
  }
  setpgid(child, child);
  close(out[1]);
  close(err[1]);
  Result result;
  pollfd ends[] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* texts[] = {&result.out, &result.err};
  drain(ends, texts, 2, child, seconds);
  finish(result, child);
  return result;
}

Result shell_on_terminal(const Scratch& scratch, const std::string& command,
                         const std::vector<std::string>& extra, int columns) {
  const auto environment = clean_environment(extra);
  int terminal = -1;
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) throw std::runtime_error{"no terminal"};
  if (child == 0) become_shell(scratch, command, environment);
  Result result;
  pollfd ends[] = {{terminal, POLLIN, 0}};
  std::string* texts[] = {&result.out};
  drain(ends, texts, 1, child, 60);
  finish(result, child);
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace rankmesh_test
