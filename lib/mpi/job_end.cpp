// SPDX-License-Identifier: BSD-3-Clause
#include "detail/job_end.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/detail/log.hpp"
#include "base/detail/patience.hpp"
#include "detail/last_words.hpp"
#include "detail/unfinished.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::mpi {
namespace {

using rankmesh::detail::patience;

struct Job {
  std::uint64_t key = 0;  // 0 before prepare_job_end()
  int rank = 0;
  int ranks = 1;
  bool is_near_rank_0 = true;
  pid_t process = 0;
};

Job& job() {
  static Job only;
  return only;
}

// The time that the reporter of a node collects. On nodes other than rank 0's node, the reporters
// collect for longer. If rank 0's node ends the job too, then only that node writes.
Deadline::Duration window() {
  return job().is_near_rank_0 ? patience().last_words
                              : patience().last_words + patience().last_words_elsewhere;
}

std::atomic<bool> is_ending{false};
std::atomic<std::thread::id> ending_thread{};
std::atomic<void (*)()> before_last_words{nullptr};

// Two processes can reach each other's abstract sockets if they have the same network namespace.
std::string node_name() {
  std::array<char, 256> host{};
  std::array<char, 64> network{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  if (readlink("/proc/self/ns/net", network.data(), network.size() - 1) < 0) network[0] = '\0';
  return fmt::format("{} {}", host.data(), network.data());
}

LastWords words_of(const std::string& program, const std::string& text) {
  if (auto* const action = before_last_words.load()) action();
  return {job().rank, recorded_coordinates(), program, text};
}

void write_words(const std::vector<LastWords>& words) {
  rankmesh::detail::write_to_stderr(report_text(words, job().ranks));
}

// Returns after the message of this rank has been written, by this rank or by another one.
void report(const LastWords& own) {
  const NodeLastWords node{job().key};
  if (!node.is_reporter()) {
    if (!node.hand_over(own)) return write_words({own});
    // The reporter has written the words by then, but some launchers take seconds to end the other
    // ranks.
    return std::this_thread::sleep_for(patience().reporter);
  }
  std::vector<LastWords> words{own};
  const auto ranks = static_cast<std::size_t>(job().ranks);
  node.collect(words, ranks, window());
  write_words(words);
  std::vector<LastWords> late;
  // When MPI_Abort is called, launchers drop the output that they have not yet forwarded.
  node.collect(late, ranks, patience().forwarding);
  std::erase_if(late, [&](const LastWords& w) {
    return std::ranges::any_of(words, [&](const LastWords& o) { return have_same_text(o, w); });
  });
  if (!late.empty()) write_words(late);
}

}  // namespace

void prepare_job_end() {
  Job& j = job();
  if (j.key != 0) return;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &j.rank), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &j.ranks), "MPI_Comm_size");
  const std::string node = node_name();
  const std::uint64_t node_hash = hash_bytes(node).low;
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  std::array<std::uint64_t, 2> of_rank_0{
      hash_bytes(fmt::format("{} {} {}", node, getpid(), now)).low | 1, node_hash};
  check(MPI_Bcast(of_rank_0.data(), 2, MPI_UINT64_T, 0, MPI_COMM_WORLD), "MPI_Bcast");
  j.process = getpid();
  j.key = of_rank_0[0];
  j.is_near_rank_0 = of_rank_0[1] == node_hash;
}

void flush_stdout() noexcept {
  if (ftrylockfile(stdout) != 0) return;
  std::cout.flush();  // it may lock the same stream once more
  fflush_unlocked(stdout);
  funlockfile(stdout);
}

void end_job(const std::string& program, const std::string& text, int status) noexcept {
  if (is_ending.exchange(true))
    std::this_thread::sleep_for(2 * patience().reporter);  // in another thread
  ending_thread = std::this_thread::get_id();
  flush_stdout();  // MPI_Abort ends the process without doing so
  if (!text.empty()) report(words_of(program, text));
  abort_job(status);
}

void write_last_words(const std::string& program, const std::string& text) noexcept {
  write_words({words_of(program, text)});
}

void on_last_words(void (*action)()) noexcept { before_last_words = action; }

void abort_job(int status) noexcept {
  is_ending = true;
  ending_thread = std::this_thread::get_id();
  const int of_job = (status & 255) == 0 ? 1 : status & 255;
  before_end_of_survivor();
  if (is_active() && !is_survivor()) MPI_Abort(MPI_COMM_WORLD, of_job);
  std::_Exit(of_job);
}

bool is_job_ending() noexcept {
  if (!is_ending) return false;
  if (ending_thread.load() != std::this_thread::get_id())
    std::this_thread::sleep_for(2 * patience().reporter);
  return true;
}

bool is_child_of_rank() noexcept { return job().key != 0 && job().process != getpid(); }
int ranks_of_job() noexcept { return job().ranks; }

}  // namespace rankmesh::mpi
