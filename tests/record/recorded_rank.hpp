// SPDX-License-Identifier: BSD-3-Clause
// A rank that records calls without making them, for tests of what reads records.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/detail/process_identity.hpp"
#include "rankmesh/record/find.hpp"
#include "record/detail/recorded_call.hpp"
#include "record/detail/recorder.hpp"

namespace rankmesh_test {

/// A folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rankmesh-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no temporary folder"};
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Returns the facts of rank 1 of 4, with the grid dp=2,tp=2.
inline rankmesh::detail::Recorder::Facts facts_of_rank_1() {
  rankmesh::detail::Recorder::Facts facts;
  facts.mesh_key = 0x1234;
  facts.world_size = 4;
  facts.rank = rankmesh::Rank{1};
  facts.mesh = "dp=2,tp=2";
  facts.coordinates = "dp=0,tp=1";
  facts.host = "node-a";
  return facts;
}

/// Returns the path of the record of a mesh that this process has open. Other tests that run at the
/// same time may have records with the same key.
inline std::string own_record(std::uint64_t mesh_key) {
  for (const rankmesh::record::Source& source : rankmesh::record::sources_of_process(::getpid()))
    if (source.mesh_key == mesh_key && source.process_id == ::getpid()) return source.path;
  return "";
}

/// Returns a call on 4 floats.
inline rankmesh::CallDescriptor call_of(rankmesh::Operation operation, std::int64_t count = 4) {
  rankmesh::CallDescriptor call;
  call.kind = static_cast<std::uint64_t>(operation) |
              static_cast<std::uint64_t>(rankmesh::DataType::float32) << 8;
  call.count = count;
  return call;
}

/// The record of a rank and the groups tp (0,1) and dp (1,3).
struct RecordedRank {
  using Recorder = rankmesh::detail::Recorder;
  using Recording = rankmesh::detail::Recording;

  explicit RecordedRank(const Recorder::Facts& facts = facts_of_rank_1(),
                        const std::string& folder = "", bool has_all_times = true,
                        bool has_call_sites = false)
      : recorder{std::make_shared<Recorder>(facts, folder, has_all_times, has_call_sites)},
        tp{Recorder::recording_of(recorder, "tp", {"tp"},
                                  rankmesh::RankSet::range(rankmesh::Rank{0}, 2))},
        dp{Recorder::recording_of(
            recorder, "dp", {"dp"},
            rankmesh::RankSet::of(std::vector{rankmesh::Rank{1}, rankmesh::Rank{3}}))} {}

  /// Records a collective; it is in its state until the result is destroyed.
  [[nodiscard]] rankmesh::detail::RecordedCall begin(
      const Recording& group, const rankmesh::CallDescriptor& call, std::uint64_t number,
      rankmesh::record::State state = rankmesh::record::State::issued) const {
    return {group, call, number, rankmesh::record::Carrier::shared_memory, state};
  }
  /// Records a collective that has ended.
  void make(const Recording& group, const rankmesh::CallDescriptor& call,
            std::uint64_t number) const {
    auto recorded = begin(group, call, number);
    recorded.end();
  }

  std::shared_ptr<Recorder> recorder;
  Recording tp, dp;
};

}  // namespace rankmesh_test
