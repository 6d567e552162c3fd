// SPDX-License-Identifier: BSD-3-Clause
#include "record/other_meshes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/base/hash.hpp"
#include "record/diagnosis.hpp"

namespace rankmesh::record {
namespace {

// Host, process id and Record::process_origin.
using HostProcess = std::tuple<std::string_view, std::int64_t, std::array<std::uint64_t, 4>>;
constexpr std::size_t ambiguous = static_cast<std::size_t>(-1);

// The records of one mesh, and what its ranks do.
struct OneMesh {
  std::vector<std::size_t> records;  // indices in all records
  std::map<HostProcess, std::size_t> by_process;
  std::map<Rank, std::size_t> by_rank;
  Diagnosis diagnosis;
};
using Meshes = std::map<std::uint64_t, OneMesh>;

HostProcess host_process_of(const Record& record) {
  return {record.host, record.process_id, record.process_origin};
}

Meshes meshes_of(const std::vector<Record>& records) {
  Meshes meshes;
  for (std::size_t i = 0; i < records.size(); ++i) {
    OneMesh& mesh = meshes[records[i].mesh_key];
    mesh.records.push_back(i);
    mesh.by_rank.try_emplace(records[i].rank, i);
    // Containers may have equal host names and process ids.
    const auto [at, is_new] = mesh.by_process.try_emplace(host_process_of(records[i]), i);
    if (!is_new) at->second = ambiguous;
  }
  return meshes;
}

void diagnose_each(const std::vector<Record>& records, Meshes& meshes) {
  for (auto& [key, mesh] : meshes) {
    std::vector<Record> own;
    own.reserve(mesh.records.size());
    for (const std::size_t i : mesh.records) own.push_back(records[i]);
    mesh.diagnosis = diagnose(own);
    for (RankActivity& rank : mesh.diagnosis.ranks) rank.record = mesh.records[rank.record];
  }
}

// Takes ranks of another mesh, and returns the ranks of the same processes in this mesh. Returns
// nothing if one of these is not known.
RankSet ranks_in(const OneMesh& mesh, const OneMesh& other, const RankSet& ranks,
                 const std::vector<Record>& records) {
  std::vector<Rank> translated;
  bool is_known = true;
  ranks.for_each([&](Rank rank) {
    const auto record = other.by_rank.find(rank);
    if (record == other.by_rank.end()) {
      is_known = false;
      return;
    }
    const auto own = mesh.by_process.find(host_process_of(records[record->second]));
    if (own == mesh.by_process.end() || own->second == ambiguous)
      is_known = false;
    else
      translated.push_back(records[own->second].rank);
  });
  if (!is_known) return {};
  std::ranges::sort(translated);
  return RankSet::of(translated);
}

// Returns the wait of a rank in another mesh, in the form that its record in this mesh needs.
Wait wait_in(const OneMesh& mesh, const Record& own, const OneMesh& other,
             const RankActivity& activity, const std::vector<Record>& records) {
  const Record& record = records[activity.record];
  std::string_view text = activity.text;
  if (text.starts_with("in ")) text.remove_prefix(3);
  Wait wait{.text = record.mesh == own.mesh
                        ? fmt::format("{}{}", text, in_another_mesh)
                        : fmt::format("{} (in the mesh {})", text, record.mesh)};
  // The times of the two meshes may refer to the clocks of different nodes.
  const Time age = activity.since ? record.read_at - *activity.since : 0;
  wait.since = own.read_at - std::max<Time>(age, 0);
  wait.ranks = ranks_in(mesh, other, activity.waits_for, records);
  // Ranks that wait in the same call of the other mesh all need the same ranks.
  if (activity.is_certain && !wait.ranks.empty())
    wait.point = hash_bytes(fmt::format("{:x} {} {}", record.mesh_key, activity.text,
                                        activity.waits_for.to_string()))
                     .low |
                 1;
  return wait;
}

// Whether the record says only that the rank may be in another mesh.
bool is_elsewhere(const Record& record, const RankActivity& rank) {
  if (rank.activity == Activity::outside) return !record.wait;
  return rank.activity == Activity::wait && record.wait->text.ends_with(in_another_mesh);
}

// Whether the rank is in this mesh.
bool is_here(const Record& record, const RankActivity& rank) {
  return (rank.activity == Activity::call || rank.activity == Activity::wait) &&
         !is_elsewhere(record, rank);
}

}  // namespace

void add_waits_in_other_meshes(std::vector<Record>& records) {
  Meshes meshes = meshes_of(records);
  if (meshes.size() < 2) return;
  diagnose_each(records, meshes);
  std::map<HostProcess, std::vector<std::pair<const OneMesh*, const RankActivity*>>> busy;
  for (const auto& [key, mesh] : meshes)
    for (const RankActivity& rank : mesh.diagnosis.ranks)
      if (is_here(records[rank.record], rank) &&
          mesh.by_process.at(host_process_of(records[rank.record])) == rank.record)
        busy[host_process_of(records[rank.record])].emplace_back(&mesh, &rank);
  std::vector<std::pair<std::size_t, Wait>> waits;
  for (const auto& [key, mesh] : meshes)
    for (const RankActivity& rank : mesh.diagnosis.ranks) {
      const Record& own = records[rank.record];
      if (!is_elsewhere(own, rank)) continue;
      const auto elsewhere = busy.find(host_process_of(own));
      // A process that uses two other meshes at once does so with threads.
      if (elsewhere == busy.end() || elsewhere->second.size() != 1) continue;
      const auto& [other, activity] = elsewhere->second.front();
      waits.emplace_back(rank.record, wait_in(mesh, own, *other, *activity, records));
    }
  for (auto& [record, wait] : waits) records[record].wait = std::move(wait);
}

}  // namespace rankmesh::record
