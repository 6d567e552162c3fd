// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/record/find.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/detail/process_stat.hpp"
#include "detail/processes.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/record/format.hpp"
#include "rankmesh/record/read.hpp"

namespace rankmesh::record {
namespace {

using detail::OpenRecord;

std::string user_name(std::uint32_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(4096);
  if (::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return found->pw_name;
  return fmt::format("{}", user);
}

std::vector<OpenRecord> records_of_user(std::uint32_t user) {
  std::vector<OpenRecord> records;
  for (const std::int64_t process : detail::all_processes())
    if (detail::user_of(process) == user) detail::add_open_records(process, records);
  return records;
}

// Returns the processes that descend from a process, nearest first.
std::vector<std::int64_t> descendants_of(std::int64_t ancestor) {
  std::multimap<std::int64_t, std::int64_t> children;
  for (const std::int64_t process : detail::all_processes())
    if (const auto stat = rankmesh::detail::read_process_stat(std::to_string(process)))
      children.emplace(stat->parent, process);
  std::vector<std::int64_t> found{ancestor};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child)
      if (std::ranges::find(found, child->second) == found.end()) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

// Returns the records that a process has open. If it has none, returns those of its descendants.
std::vector<OpenRecord> records_of_process(std::int64_t process_id, std::uint32_t user) {
  std::vector<OpenRecord> records;
  if (!detail::add_open_records(process_id, records)) {
    if (user != ::geteuid())
      throw UsageError{
          fmt::format("process {} belongs to the user {}", process_id, user_name(user)),
          "run meshinfo as that user"};
    throw UsageError{
        fmt::format("the system does not let you see what process {} has open", process_id),
        "the process may have changed its user or its rights; run meshinfo as root"};
  }
  if (!records.empty()) return records;
  for (const std::int64_t child : descendants_of(process_id))
    detail::add_open_records(child, records);
  return records;
}

[[noreturn]] void refuse_without_record(std::int64_t process_id) {
  const auto stat = rankmesh::detail::read_process_stat(std::to_string(process_id));
  throw UsageError{
      fmt::format("process {} ({}) has no record", process_id, stat ? stat->name : "ended"),
      "a rank has a record while a Mesh is open, unless RANKMESH_RECORD=off; versions of rankmesh "
      "without `meshinfo trace` write none"};
}

}  // namespace

std::vector<Source> sources_of_user() {
  return detail::without_repeats(records_of_user(::geteuid()));
}

std::vector<Source> sources_of_process(std::int64_t process_id) {
  const auto user = detail::user_of(process_id);
  if (!user)
    throw UsageError{fmt::format("there is no process {}", process_id),
                     "it may have ended, or be on another node; RANKMESH_RECORD=DIR keeps the "
                     "records of processes that have ended"};
  std::vector<OpenRecord> records = records_of_process(process_id, *user);
  if (records.empty()) refuse_without_record(process_id);
  std::set<std::uint64_t> meshes;
  for (const OpenRecord& record : records) meshes.insert(record.source.mesh_key);
  for (OpenRecord& record : records_of_user(*user))
    if (meshes.contains(record.source.mesh_key)) records.push_back(std::move(record));
  return detail::without_repeats(std::move(records));
}

std::vector<Source> sources_in(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {Source{path.string()}};
  std::vector<Source> sources;
  for (fs::directory_iterator entry{path, error}, end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == format::file_ending)
      sources.push_back({entry->path().string()});
  if (error)
    throw UsageError{fmt::format("'{}' cannot be read: {}", path.string(), error.message()),
                     "give a process id, a folder of records, or nothing"};
  if (sources.empty())
    throw UsageError{
        fmt::format("the folder '{}' has no records (*{})", path.string(), format::file_ending),
        "a job writes them if RANKMESH_RECORD names this folder"};
  std::ranges::sort(sources, {}, &Source::path);
  return sources;
}

std::vector<std::byte> copy_observed(const Source& source) {
  std::vector<std::byte> bytes = copy(source.path);
  // Keeps what `meshinfo trace --collect` has observed on the node of the process.
  std::uint32_t observed = 0;
  std::memcpy(&observed, bytes.data() + offsetof(format::Header, observed_process),
              sizeof observed);
  if (observed == 0) observe(bytes, detail::observation_of(source, bytes));
  return bytes;
}

std::vector<std::vector<Record>> by_mesh(std::vector<Record> records) {
  // When the first rank of each mesh has opened it.
  std::map<std::uint64_t, std::int64_t> opened;
  for (const Record& record : records) {
    const auto [at, is_new] = opened.try_emplace(record.mesh_key, record.opened_at);
    if (!is_new) at->second = std::min(at->second, record.opened_at);
  }
  std::ranges::stable_sort(records, {}, [&](const Record& record) {
    return std::tuple{opened[record.mesh_key], record.mesh_key, record.rank};
  });
  std::vector<std::vector<Record>> meshes;
  for (Record& record : records) {
    if (meshes.empty() || meshes.back().front().mesh_key != record.mesh_key) meshes.emplace_back();
    meshes.back().push_back(std::move(record));
  }
  return meshes;
}

Records read_all(std::span<const Source> sources) {
  Records result;
  std::exception_ptr first;
  for (const Source& source : sources) {
    try {
      result.records.push_back(read(copy_observed(source), source.path));
    } catch (const Error& error) {
      // A mesh that was closed meanwhile is left out.
      std::error_code none;
      if (source.process_id != 0 && !std::filesystem::exists(source.path, none)) continue;
      if (first == nullptr) first = std::current_exception();
      result.remarks.push_back(error.message());
    }
  }
  if (result.records.empty() && first != nullptr) std::rethrow_exception(first);
  if (result.records.empty() && !sources.empty())
    throw UsageError{"the meshes were closed before their records could be read",
                     "the job has probably ended; RANKMESH_RECORD=DIR keeps the records"};
  for (std::vector<Record>& mesh : by_mesh(std::exchange(result.records, {})))
    std::ranges::move(mesh, std::back_inserter(result.records));
  return result;
}

}  // namespace rankmesh::record
