// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_records.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cstdint>

#include <fmt/format.h>

namespace rankmesh::detail {

namespace format = record::format;

std::array<WrittenRecord, 64> open_records;
static_assert(std::atomic<const format::Header*>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

namespace {

std::atomic<std::uint64_t> turns_taken, turns_ended;
std::atomic<pid_t> process_of_turns;
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<pid_t>::is_always_lock_free);

void wait_for_end_of(std::uint64_t turns) {
  while (turns_ended.load() < turns) ::sched_yield();
}

bool has_turns() { return process_of_turns.load() == ::getpid(); }

// The child does not have the threads whose turns are not over.
void drop_turns_of_parent() {
  turns_ended.store(turns_taken.load());
  process_of_turns.store(::getpid());
}

}  // namespace

void use_turns_of_handlers() {
  // If this fails, or a child is made without these functions (clone), the child writes no records.
  [[maybe_unused]] static const int code = ::pthread_atfork(nullptr, nullptr, drop_turns_of_parent);
  if (!has_turns()) drop_turns_of_parent();
}

bool take_turn_of_handlers() {
  if (!has_turns()) return false;
  wait_for_end_of(turns_taken.fetch_add(1));
  return true;
}

void end_turn_of_handlers() { turns_ended.fetch_add(1); }

void add_open_record(const format::Header& header) {
  for (WrittenRecord& record : open_records) {
    bool expected = false;
    if (!record.is_used.compare_exchange_strong(expected, true)) continue;
    const auto print = [&](std::array<char, 64>& name, const char* ending) {
      const auto end = fmt::format_to_n(name.data(), name.size() - 1, "{:016x}-rank{}{}{}",
                                        header.mesh_key, header.rank, format::file_ending, ending);
      *end.out = '\0';
    };
    print(record.name, "");
    print(record.name_while_written, ".part");
    record.header.store(&header);
    return;
  }
}

void remove_open_record(const format::Header& header) {
  for (WrittenRecord& record : open_records) {
    if (record.header.load() != &header) continue;
    record.header.store(nullptr);
    wait_for_handlers();
    record.is_used.store(false);
    return;
  }
}

void wait_for_handlers() {
  if (has_turns()) wait_for_end_of(turns_taken.load());
}

}  // namespace rankmesh::detail
