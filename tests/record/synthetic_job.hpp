// SPDX-License-Identifier: BSD-3-Clause
// Records that no program has written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "rankmesh/record/record.hpp"

namespace rankmesh::test {

using record::Call;
using record::Record;
using record::State;
using record::Time;

inline CallDescriptor descriptor_of(Operation operation, std::int64_t count = 1,
                                    std::uint64_t peer = 0, int tag = 0, std::uint64_t source = 0) {
  CallDescriptor result;
  if (operation == Operation::recv) source = peer;
  result.kind = static_cast<std::uint64_t>(operation) |
                static_cast<std::uint64_t>(DataType::float32) << 8 | peer << 32;
  result.detail = static_cast<std::uint64_t>(tag) | source << 16;
  result.count = operation == Operation::barrier ? 0 : count;
  return result;
}

/// Ranks 0 to size - 1, with one group `dp` of all of them.
class SyntheticJob {
 public:
  explicit SyntheticJob(std::int64_t size, std::int64_t ranks_per_node = 1) {
    for (std::int64_t r = 0; r < size; ++r) {
      Record record;
      record.mesh_key = 7;
      record.mesh = "dp=" + std::to_string(size);
      record.world_size = size;
      record.rank = r;
      record.coordinates = "dp=" + std::to_string(r);
      record.node = static_cast<std::int32_t>(r / ranks_per_node);
      record.host = "host" + std::to_string(record.node);
      record.process_id = 100 + r;
      record.process = record::Process::running;
      record.clock_error = record.node == 0 ? 0 : 100'000;
      record.read_at = 1'000'000'000;
      record.groups.push_back(
          {.identity = 11, .names = {"dp"}, .size = size, .ranks = RankSet::range(0, size)});
      records.push_back(record);
    }
  }

  /// Adds a call and returns it.
  Call& add(std::size_t rank, const CallDescriptor& descriptor, std::optional<Time> begin = {},
            std::optional<Time> end = {}, State state = State::ended) {
    Record& record = records[rank];
    Call call;
    call.sequence = ++record.calls_made;
    call.state = state;
    call.carrier = record::Carrier::shared_memory;
    call.descriptor = descriptor;
    call.begin = begin;
    call.end = end;
    if (!is_point_to_point(descriptor.operation()))
      call.number = 1 + static_cast<std::uint64_t>(std::ranges::count_if(
                            record.calls, [](const Call& c) { return c.number != 0; }));
    record.calls.push_back(call);
    return record.calls.back();
  }

  void mark(std::size_t rank, Time time, std::string text) {
    Record& record = records[rank];
    record.marks.push_back({++record.calls_made, time, std::move(text)});
  }

  std::vector<Record> records;
};

}  // namespace rankmesh::test
