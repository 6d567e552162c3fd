// SPDX-License-Identifier: BSD-3-Clause
// The record of this rank in one mesh.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/detail/process_identity.hpp"
#include "call_sites.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/record/format.hpp"
#include "rankmesh/record/record.hpp"
#include "recorded_call.hpp"

namespace rankmesh::detail {

/// Owns the memory of a record: a memfd, which other processes of the same user open through
/// /proc, or a file in a folder, which outlives the process.
///
/// Thread safety: the thread that uses the mesh calls the functions; the watchdog also calls
/// stamp().
class RANKMESH_API Recorder {
 public:
  /// What a record says about its mesh and its rank.
  struct Facts {
    std::uint64_t mesh_key = 0;
    std::int64_t world_size = 0;
    Rank rank;
    std::string mesh, coordinates, host;
    std::vector<std::string> transports{};  ///< Those of the program; see format::Header.
    ProcessIdentity process{};              ///< See format::Header.
    std::array<std::uint64_t, 2> boot{};    ///< See format::Header.
  };

  /// Makes the record. Local.
  /// @param folder  The folder of the file. If it is empty, the record is in a memfd.
  /// @param has_call_sites  Whether the places in the program that make the calls are noted. Then
  /// the times of all calls are taken, too.
  /// @throws Error if the system refuses the memory or the file.
  Recorder(const Facts& facts, const std::string& folder, bool has_all_times,
           bool has_call_sites = false);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Adds a group. Local. The members add groups of the same identity and ranks in the same order.
  /// @param self  The owner of this recorder, which the result keeps.
  static Recording recording_of(const std::shared_ptr<Recorder>& self, const std::string& identity,
                                const std::vector<std::string>& names, const RankSet& ranks);
  /// Records a text, cut to record::format::mark_bytes bytes.
  void mark(std::string_view text);
  /// Publishes what the rank waits for, since now. Without ranks, it is a call of a group.
  void publish(const record::Wait& wait);
  void end_wait();
  /// Relates the clock of this node to that of node 0.
  void set_clock(std::int32_t node, std::int64_t offset, std::int64_t error);
  void leave(record::Presence how, std::string_view reason);
  /// Relates the counter to the clock again.
  void stamp();
  [[nodiscard]] std::uint64_t mesh_key() const { return header_->mesh_key; }
  /// Returns the folder of the file; empty for a memfd.
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  std::uint64_t group_number(const std::string& identity, const std::vector<std::string>& names,
                             const RankSet& ranks);
  // Adds a line to the last part of the record, unless more than `most` bytes would be used.
  bool add_line(const std::string& text, std::size_t most);

  std::string folder_;
  int descriptor_ = -1;
  record::format::Header* header_ = nullptr;
  std::uint64_t groups_ = 0;  // the lines so far
  std::map<std::string, std::uint64_t> equal_groups_;
  std::optional<CallSites> call_sites_;
  std::mutex clock_;
};

}  // namespace rankmesh::detail
