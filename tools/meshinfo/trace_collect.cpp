// SPDX-License-Identifier: BSD-3-Clause
// trace --collect: the folder, and the records of one node.
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/record/format.hpp"
#include "rankmesh/record/read.hpp"
#include "trace.hpp"

namespace meshinfo {

namespace fs = std::filesystem;
namespace record = rankmesh::record;

Collection::Collection(std::string folder) : folder_{std::move(folder)} {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!error) {
    // Not a range-based loop, whose step throws an exception of the standard library.
    fs::directory_iterator entry{folder_, error};
    for (; !error && entry != fs::directory_iterator{}; entry.increment(error))
      if (entry->path().extension() == record::format::file_ending)
        throw rankmesh::UsageError{
            fmt::format("the folder '{}' has records already", folder_),
            "collect into an empty folder, so that the records of two moments do not mix"};
  }
  if (error)
    throw rankmesh::UsageError{
        fmt::format("the folder '{}' cannot be used: {}", folder_, error.message()),
        "choose another folder for --collect"};
}

void Collection::add(std::span<const std::byte> bytes) {
  const record::Record found = record::read(bytes, "of another node");
  Output output{fmt::format("{}/{:016x}-rank{}{}", folder_, found.mesh_key, found.rank.value(),
                            record::format::file_ending)};
  output.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  output.finish();
  ++size_;
}

void Collection::require_records() const {
  if (size_ == 0)
    throw rankmesh::UsageError{
        "no process of this user on these nodes has a record",
        "start meshinfo on the nodes of the job, as the user of the job, while its Mesh is open"};
}

std::vector<std::vector<std::byte>> copies_of(const std::string& target) {
  std::vector<std::vector<std::byte>> copies;
  const auto sources = target.empty() ? record::sources_of_user() : meshinfo::sources_of(target);
  for (const record::Source& source : sources) {
    try {
      auto bytes = record::copy_observed(source);
      static_cast<void>(record::read(bytes, source.path));
      copies.push_back(std::move(bytes));
    } catch (const rankmesh::Error& error) {
      report_remark(error.message());
    }
  }
  return copies;
}

void collect_here(const TraceOptions& options) {
  Collection collection{options.collect};
  for (const auto& copy : copies_of(options.target)) collection.add(copy);
  collection.require_records();
}

}  // namespace meshinfo
