// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_records.hpp"

#include <sched.h>
#include <unistd.h>

#include <fmt/format.h>

namespace rankmesh::detail {

namespace format = record::format;

std::array<WrittenRecord, 64> open_records;
std::atomic<pid_t> reader_of_records;
static_assert(std::atomic<const format::Header*>::is_always_lock_free &&
              std::atomic<pid_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

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
  while (reader_of_records.load() == ::getpid()) ::sched_yield();
}

}  // namespace rankmesh::detail
