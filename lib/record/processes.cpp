// SPDX-License-Identifier: BSD-3-Clause
// Looks into /proc for records that processes have open.
#include "detail/processes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "detail/image.hpp"
#include "rankmesh/base/detail/parse.hpp"

namespace rankmesh::record::detail {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

// Returns the names in a folder that are numbers.
std::vector<std::int64_t> numbers_in(DIR* folder) {
  std::vector<std::int64_t> numbers;
  while (const dirent* entry = ::readdir(folder))
    if (const auto number = rankmesh::detail::parse_number(entry->d_name))
      numbers.push_back(*number);
  std::ranges::sort(numbers);
  return numbers;
}

// Returns the words after a key of /proc/PID/status.
std::vector<std::int64_t> status_numbers(std::int64_t process_id, std::string_view key) {
  std::ifstream file{fmt::format("/proc/{}/status", process_id)};
  std::vector<std::int64_t> numbers;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream words{line.substr(key.size())};
    for (std::int64_t number = 0; words >> number;) numbers.push_back(number);
    break;
  }
  return numbers;
}

// Returns whether a link in /proc/PID/fd looks like a record.
bool is_name_of_record(const std::string& path) {
  char text[4096];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  if (size <= 0) return false;
  std::string_view name{text, static_cast<std::size_t>(size)};
  constexpr std::string_view deleted = " (deleted)";
  if (name.ends_with(deleted)) name.remove_suffix(deleted.size());
  return name == fmt::format("/memfd:{}", format::memory_name) ||
         name.ends_with(format::file_ending);
}

// Returns the record behind a path; nothing if it is no record, or not complete yet.
std::optional<OpenRecord> open_record(const std::string& path, std::int64_t process_id) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  const auto image = std::make_unique<Image>();
  struct stat status {};
  const bool is_file = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const ssize_t size = is_file ? ::pread(file, image->bytes.data(), format::header_bytes, 0) : 0;
  ::close(file);
  const format::Header& header = image->header();
  if (size != static_cast<ssize_t>(format::header_bytes) ||
      std::memcmp(header.magic, format::magic, sizeof header.magic) != 0)
    return std::nullopt;
  return OpenRecord{{path, process_id, header.mesh_key},
                    status.st_dev,
                    status.st_ino,
                    has_made(process_id, header.process_id, header.process_namespace)};
}

}  // namespace

std::vector<std::int64_t> all_processes() {
  const Folder folder{::opendir("/proc")};
  return folder ? numbers_in(folder.get()) : std::vector<std::int64_t>{};
}

std::optional<std::uint32_t> user_of(std::int64_t process_id) {
  const auto users = status_numbers(process_id, "Uid:");
  if (users.size() < 2) return std::nullopt;
  return static_cast<std::uint32_t>(users[1]);
}

bool add_open_records(std::int64_t process_id, std::vector<OpenRecord>& records) {
  const std::string folder_name = fmt::format("/proc/{}/fd", process_id);
  const Folder folder{::opendir(folder_name.c_str())};
  if (!folder) return false;
  for (const std::int64_t descriptor : numbers_in(folder.get())) {
    const std::string path = fmt::format("{}/{}", folder_name, descriptor);
    if (!is_name_of_record(path)) continue;
    if (auto record = open_record(path, process_id)) records.push_back(*std::move(record));
  }
  return true;
}

std::vector<Source> without_repeats(std::vector<OpenRecord> records) {
  std::ranges::stable_sort(records, [](const OpenRecord& a, const OpenRecord& b) {
    if (a.device != b.device) return a.device < b.device;
    if (a.inode != b.inode) return a.inode < b.inode;
    return a.is_of_process && !b.is_of_process;
  });
  const auto repeated = std::ranges::unique(records, [](const OpenRecord& a, const OpenRecord& b) {
    return a.device == b.device && a.inode == b.inode;
  });
  records.erase(repeated.begin(), repeated.end());
  std::vector<Source> sources;
  for (OpenRecord& record : records) sources.push_back(std::move(record.source));
  return sources;
}

bool has_made(std::int64_t process_id, std::int64_t recorded_id, std::uint64_t recorded_namespace) {
  const auto ids = status_numbers(process_id, "NSpid:");
  if (ids.empty() || ids.back() != recorded_id) return false;
  struct stat space {};
  return recorded_namespace == 0 ||
         ::stat(fmt::format("/proc/{}/ns/pid", process_id).c_str(), &space) != 0 ||
         space.st_ino == recorded_namespace;
}

}  // namespace rankmesh::record::detail
