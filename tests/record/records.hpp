// SPDX-License-Identifier: BSD-3-Clause
// Records for tests: a mesh of dp x tp ranks, and the calls of each rank.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <rankmesh/record/record.hpp>
#include "record/diagnosis.hpp"

namespace rankmesh_test {

using rankmesh::CallDescriptor;
using rankmesh::Operation;
using rankmesh::record::Call;
using rankmesh::record::Record;
using rankmesh::record::State;

inline constexpr rankmesh::record::Time second = 1'000'000'000;

/// Returns the descriptor of a collective.
inline CallDescriptor collective(Operation operation, std::int64_t count = 8,
                                 std::uint64_t root = 0) {
  CallDescriptor call;
  call.kind = static_cast<std::uint64_t>(operation) | root << 32;
  if (operation != Operation::barrier) {
    call.kind |= static_cast<std::uint64_t>(rankmesh::DataType::float32) << 8;
    call.count = count;
  }
  return call;
}

/// Returns the descriptor of a message; `source` is that of send_recv.
inline CallDescriptor message(Operation operation, std::uint64_t peer, std::uint64_t tag = 0,
                              std::int64_t count = 8, std::uint64_t source = 0) {
  CallDescriptor call = collective(operation, count, peer);
  call.detail = tag | source << 16;
  return call;
}

/// The records of a mesh, which are filled call by call.
class Job {
 public:
  static constexpr std::size_t tp = 0, dp = 1, world = 2;

  /// Creates a mesh `dp=A,tp=B` with the groups tp, dp and world.
  Job(std::int64_t dp_size, std::int64_t tp_size) {
    const std::int64_t size = dp_size * tp_size;
    for (std::int64_t rank = 0; rank < size; ++rank) {
      const std::int64_t d = rank / tp_size, t = rank % tp_size;
      Record& record = records.emplace_back();
      record.mesh_key = 7;
      record.mesh = "dp=" + std::to_string(dp_size) + ",tp=" + std::to_string(tp_size);
      record.world_size = size;
      record.rank = rank;
      record.coordinates = "dp=" + std::to_string(d) + ",tp=" + std::to_string(t);
      record.host = rank < size / 2 ? "node-a" : "node-b";
      record.node = rank < size / 2 ? 0 : 1;
      record.process_id = 100 + rank;
      record.process = rankmesh::record::Process::running;
      record.read_at = 100 * second;
      record.groups = {
          {static_cast<std::uint64_t>(1000000 + d),
           {"tp"},
           tp_size,
           rankmesh::RankSet::range(d * tp_size, tp_size)},
          {static_cast<std::uint64_t>(2000000 + t), {"dp"}, dp_size, column(t, dp_size, tp_size)},
          {3000, {"world"}, size, rankmesh::RankSet::range(0, size)}};
      numbers_.emplace_back(3);
    }
  }

  /// Adds a collective of some ranks.
  Job& call(const std::vector<std::size_t>& ranks, std::size_t group, CallDescriptor descriptor,
            State state = State::ended, bool is_async = false) {
    for (const std::size_t rank : ranks) add(rank, group, descriptor, state, is_async);
    return *this;
  }
  /// Adds a call, and returns it.
  Call& add(std::size_t rank, std::size_t group, CallDescriptor descriptor,
            State state = State::ended, bool is_async = false) {
    Record& record = records[rank];
    Call& call = record.calls.emplace_back();
    call.sequence = ++record.calls_made;
    call.state = state;
    call.is_async = is_async;
    call.group = group;
    const bool has_number = !rankmesh::is_point_to_point(descriptor.operation());
    call.number = has_number ? ++numbers_[rank][group] : 0;
    call.descriptor = descriptor;
    return call;
  }
  /// Removes the oldest calls of a rank from its record.
  Job& forget(std::size_t rank, std::size_t count) {
    auto& calls = records[rank].calls;
    calls.erase(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(count));
    return *this;
  }
  Record& operator[](std::size_t rank) { return records[rank]; }
  [[nodiscard]] rankmesh::record::Diagnosis diagnose() const {
    return rankmesh::record::diagnose(records);
  }
  /// Returns all ranks.
  [[nodiscard]] std::vector<std::size_t> all() const {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 0; rank < records.size(); ++rank) ranks.push_back(rank);
    return ranks;
  }

  std::vector<Record> records;

 private:
  static rankmesh::RankSet column(std::int64_t t, std::int64_t dp_size, std::int64_t tp_size) {
    const rankmesh::Mode mode{dp_size, tp_size};
    return rankmesh::RankSet::strided(t, {&mode, 1});
  }
  std::vector<std::vector<std::uint64_t>> numbers_;
};

/// Returns all findings, one per line: severity, kind, ranks, text.
inline std::string lines(const rankmesh::record::Diagnosis& diagnosis) {
  std::string text;
  for (const auto& finding : diagnosis.findings)
    text += std::string{to_string(finding.severity)} + " " + std::string{to_string(finding.kind)} +
            " [" + finding.ranks.to_string() + "] " + finding.text + "\n";
  return text;
}

}  // namespace rankmesh_test
