// SPDX-License-Identifier: BSD-3-Clause
#include "ways_to_die.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "meeting_place.hpp"

namespace rankmesh_test {

SlowNews slow_news;

void stamp(const char* what) {
  fmt::print("time {} {}\n", what,
             std::chrono::duration_cast<std::chrono::microseconds>(
                 std::chrono::steady_clock::now().time_since_epoch())
                 .count());
  std::fflush(stdout);
}

std::string file_of_loss() {
  const char* const folder = std::getenv("SURVIVOR_FOLDER");
  return folder == nullptr ? "" : std::string{folder} + "/lost";
}

namespace {

// Stops this process. Another one continues it a while after it was excluded, however long that
// takes on a crowded machine, unless the kind begins with "stop for ever".
void stop(std::string_view kind) {
  const std::string file = file_of_loss();
  if (!kind.starts_with("stop for ever") && !file.empty() &&
      std::system(fmt::format("(for i in $(seq 500); do test -e '{}' && break; sleep 0.1; done; "
                              "sleep 0.5; kill -CONT {}) >/dev/null 2>&1 &",
                              file, ::getpid())
                      .c_str()) != 0)
    std::_Exit(4);
  ::kill(::getpid(), SIGSTOP);
}

// Computes until the others have excluded this rank.
void be_slow() {
  while (::access(file_of_loss().c_str(), F_OK) != 0) ::usleep(10'000);
  ::usleep(500'000);
}

// The next rename() of this process stops it first.
std::atomic<bool> stops_in_rename{false};

std::atomic<useconds_t> time_of_creation{0};
std::atomic<bool> sleeps_long{false};

std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::milliseconds{1};
}

}  // namespace

void make_next_creation_slow() { time_of_creation = 500'000; }

void sleep_long() { sleeps_long = true; }

// The first creation is for the reserve of the old mesh, before the next one watches.
void SlowNews::see_creation() {
  if (creations_ < 0 || ++creations_ != 2) return;
  lose();
  if (!dies_) return;
  ::usleep(200'000);  // the others come
  ::kill(::getpid(), SIGKILL);
}

void SlowNews::lose() { until_ = now() + 1'000; }

// A message begins with a mark and the number of its mesh.
bool SlowNews::loses(const void* message, std::size_t size) {
  std::array<std::uint64_t, 2> head{};
  if (size < sizeof head) return false;
  std::memcpy(head.data(), message, sizeof head);
  std::uint64_t none = 0;
  old_mesh_.compare_exchange_strong(none, head[1]);
  return head[1] == old_mesh_ && now() < until_;
}

void die(std::string_view kind) {
  stamp("death");
  if (kind.starts_with("ask")) return (void)::raise(SIGTERM);
  if (kind == "slow") return be_slow();
  if (kind == "stop in save") return (void)(stops_in_rename = true);
  if (kind.ends_with("transport")) return (void)(dies_in_operation = true);
  if (kind == "stop in wait")
    return std::thread{[] {
             ::usleep(300'000);
             stop("stop");
           }}
        .detach();
  if (kind.starts_with("stop")) return stop(kind);
  if (kind == "exit") std::exit(3);
  // Only once: this thread goes on meanwhile.
  static std::atomic_flag exits;
  if (kind == "exit in thread") {
    if (!exits.test_and_set()) std::thread{[] { std::exit(3); }}.detach();
    return;
  }
  // All processes of this host, and with "power" its network before.
  if (kind == "power" && std::system("ip link set eth0 down") != 0) std::_Exit(4);
  if (kind == "host" || kind == "power") ::kill(-1, SIGKILL);
  if (kind == "exception") throw std::runtime_error{"a mistake of the program"};
  ::kill(::getpid(), kind == "fault" ? SIGSEGV : SIGKILL);
}

}  // namespace rankmesh_test

extern "C" int rename(const char* from, const char* to) noexcept {
  if (rankmesh_test::stops_in_rename.exchange(false)) {
    rankmesh_test::stop("stop");
    const int result = ::renameat(AT_FDCWD, from, AT_FDCWD, to);
    fmt::print("renamed with {}\n", result);
    return result;
  }
  return ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}

extern "C" int MPI_Comm_create_group(MPI_Comm parent, MPI_Group group, int tag, MPI_Comm* made) {
  rankmesh_test::slow_news.see_creation();
  ::usleep(rankmesh_test::time_of_creation.exchange(0));
  return PMPI_Comm_create_group(parent, group, tag, made);
}

extern "C" ssize_t sendto(int socket, const void* message, size_t size, int flags,
                          const sockaddr* to, socklen_t size_of_address) {
  if (rankmesh_test::slow_news.loses(message, size)) return static_cast<ssize_t>(size);
  static const auto send = reinterpret_cast<decltype(&::sendto)>(::dlsym(RTLD_NEXT, "sendto"));
  return send(socket, message, size, flags, to, size_of_address);
}

extern "C" int nanosleep(const timespec* wanted, timespec* left) {
  const timespec second{.tv_sec = 1, .tv_nsec = 0};
  const bool is_long = rankmesh_test::sleeps_long && wanted->tv_nsec > 1'000'000;
  return ::clock_nanosleep(CLOCK_MONOTONIC, 0, is_long ? &second : wanted, left) == 0 ? 0 : -1;
}

extern "C" int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                      clockid_t clock, const timespec* end) {
  static const auto wait = reinterpret_cast<decltype(&::pthread_cond_clockwait)>(
      ::dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  timespec later = *end;
  if (rankmesh_test::sleeps_long) later.tv_sec += 20;
  return wait(condition, mutex, clock, &later);
}
