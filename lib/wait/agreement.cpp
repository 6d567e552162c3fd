// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/wait/agreement.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "detail/rank_texts.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh {
namespace {

using mpi::check;

constexpr std::size_t max_text = 512;

// Appends a part with its length in front, so that a part may contain any text.
void append(std::string& record, std::string_view part) {
  record += fmt::format("{}:{}", part.size(), part);
}

std::vector<std::string> split_record(std::string_view record) {
  std::vector<std::string> parts;
  while (!record.empty()) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(record.data(), record.data() + record.size(), size);
    const auto head = static_cast<std::size_t>(end - record.data()) + 1;
    if (error != std::errc{} || head > record.size() || size > record.size() - head)
      break;  // the record of another release
    parts.emplace_back(record.substr(head, size));
    record.remove_prefix(head + size);
  }
  parts.resize(std::max<std::size_t>(parts.size(), 1));
  return parts;
}

std::string ranks_text(std::vector<Rank> ranks) {
  std::ranges::sort(ranks);
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", RankSet::of(ranks).to_string(60));
}

}  // namespace

void Agreement::add(std::string field, Hash128 hash, std::string text) {
  if (text.size() > max_text) {
    text.resize(max_text);
    text += "...";
  }
  fields_.push_back({std::move(field), hash, std::move(text)});
}

// The failure, then the name, hash and text of each field.
std::string Agreement::record() const {
  std::string record;
  append(record, failure_.substr(0, 2 * max_text));
  for (const Field& field : fields_)
    for (const std::string& part : {field.name, to_string(field.hash), field.text})
      append(record, part);
  return record;
}

std::string Agreement::finding(const WaitMonitor& monitor, std::string_view activity,
                               const std::vector<std::string>& records) {
  std::map<std::string, std::vector<Rank>> failures;
  std::vector<std::vector<std::string>> parts;
  for (std::size_t r = 0; r < records.size(); ++r) {
    parts.push_back(split_record(records[r]));
    if (!parts.back().front().empty())
      failures[parts.back().front()].push_back(monitor.in_mesh(static_cast<int>(r)));
  }
  std::string text = fmt::format("the {} ranks do not agree before {}:", records.size(), activity);
  for (const auto& [message, ranks] : failures)
    text += fmt::format("\n  {} failed: {}", ranks_text(ranks), message);
  if (!failures.empty()) return text;  // failed ranks may have no fields to compare

  const auto& fields = parts.front();  // those of the first rank, in its order; other releases may
                                       // not have all of them
  for (std::size_t field = 1; field + 2 < fields.size(); field += 3) {
    detail::RankTexts hashes;
    std::map<std::string, std::string> values;  // by hash
    for (std::size_t r = 0; r < parts.size(); ++r) {
      std::string hash;
      std::string value = "unknown to this release of rankmesh";
      for (std::size_t f = 1; f + 2 < parts[r].size(); f += 3)
        if (parts[r][f] == fields[field]) {
          hash = parts[r][f + 1];
          value = parts[r][f + 2];
        }
      values.emplace(hash, value);
      hashes.emplace_back(monitor.in_mesh(static_cast<int>(r)), std::move(hash));
    }
    if (values.size() < 2) continue;
    text += fmt::format("\n  {}:", fields[field]);
    for (const auto& [hash, ranks] : detail::fewest_first(detail::variants_of(hashes)))
      text += fmt::format("\n    {}: {}", ranks_text(ranks), values[hash]);
  }
  return text;
}

Agreement::Summary Agreement::summary() const {
  std::string hashes;
  for (const auto& [name, hash, text] : fields_) {
    hashes += name;
    hashes.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  }
  return {failure_.empty() ? 0U : 1U, hash_bytes(hashes)};
}

// One reduction shows whether any rank failed or differs: if all hashes are equal, the maximum of h
// and the maximum of ~h are complements of each other.
Agreement::Maxima Agreement::reduce(const mpi::CommunicatorView& comm, WaitMonitor& monitor,
                                    const WaitPoint& point, const Deadline& deadline) const {
  struct Reduction {
    Maxima mine, most;
  };
  const auto [has_failed, hash] = summary();
  MpiMemory<Reduction> reduction;
  reduction->mine = {has_failed, hash.high, hash.low, ~hash.high, ~hash.low, asks_ ? 1U : 0U};
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallreduce(reduction->mine.data(), reduction->most.data(), 6, MPI_UINT64_T, MPI_MAX,
                       comm.native(), &request),
        "MPI_Iallreduce");
  reduction.wait(request, monitor, point, deadline);
  // A rank that has given up may have completed its part of the reduction before.
  monitor.require_not_given_up(point);
  return reduction->most;
}

bool Agreement::agree(const mpi::CommunicatorView& comm, WaitMonitor& monitor,
                      std::string_view activity, const Deadline& deadline) const {
  const WaitPoint point =
      WaitPoint::of_all(comm.size(), fmt::format("the agreement before {}", activity));
  const Maxima most = reduce(comm, monitor, point, deadline);
  if (most[0] == 0 && most[1] == ~most[3] && most[2] == ~most[4]) return most[5] != 0;

  // Rank 0 collects all records, compares them, and broadcasts the result.
  struct Comparison {
    std::string record, all, text;
    std::vector<int> sizes, places;
    std::array<int, 2> head{};  // length of the text; whether all records are equal
  };
  MpiMemory<Comparison> comparison;
  const bool is_root = comm.rank() == 0;
  MPI_Request request = MPI_REQUEST_NULL;
  const auto wait = [&] { comparison.wait(request, monitor, point, deadline); };
  comparison->record = record();
  comparison->head[0] = static_cast<int>(comparison->record.size());
  comparison->sizes.resize(static_cast<std::size_t>(comm.size()));
  check(MPI_Igather(comparison->head.data(), 1, MPI_INT, comparison->sizes.data(), 1, MPI_INT, 0,
                    comm.native(), &request),
        "MPI_Igather");
  wait();
  comparison->places.resize(comparison->sizes.size());
  std::exclusive_scan(comparison->sizes.begin(), comparison->sizes.end(),
                      comparison->places.begin(), 0);
  if (is_root)
    comparison->all.resize(static_cast<std::size_t>(comparison->places.back()) +
                           static_cast<std::size_t>(comparison->sizes.back()));
  check(MPI_Igatherv(comparison->record.data(), comparison->head[0], MPI_BYTE,
                     comparison->all.data(), comparison->sizes.data(), comparison->places.data(),
                     MPI_BYTE, 0, comm.native(), &request),
        "MPI_Igatherv");
  wait();
  if (is_root) {
    std::vector<std::string> records;
    for (std::size_t r = 0; r < comparison->sizes.size(); ++r)
      records.push_back(comparison->all.substr(static_cast<std::size_t>(comparison->places[r]),
                                               static_cast<std::size_t>(comparison->sizes[r])));
    comparison->text = finding(monitor, activity, records);
    const bool all_equal =
        std::ranges::adjacent_find(records, std::ranges::not_equal_to{}) == records.end();
    const bool has_failure = std::ranges::any_of(
        records, [](const std::string& r) { return !split_record(r).front().empty(); });
    comparison->head = {static_cast<int>(comparison->text.size()),
                        (all_equal ? 1 : 0) + (has_failure ? 2 : 0)};
  }
  check(MPI_Ibcast(comparison->head.data(), 2, MPI_INT, 0, comm.native(), &request), "MPI_Ibcast");
  wait();
  comparison->text.resize(static_cast<std::size_t>(comparison->head[0]));
  check(MPI_Ibcast(comparison->text.data(), comparison->head[0], MPI_BYTE, 0, comm.native(),
                   &request),
        "MPI_Ibcast");
  wait();
  const int flags = comparison->head[1];
  throw MismatchError{comparison->text,
                      (flags & 2) != 0
                          ? "fix what the failed ranks report; nothing was left open on any rank"
                          : hint_,
                      (flags & 1) != 0};
}

}  // namespace rankmesh
