// SPDX-License-Identifier: BSD-3-Clause
// trace --collect: the first rank of each node copies the records of its node, and rank 0 stores
// them in a folder.
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "launcher.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/record/format.hpp"
#include "rankmesh/record/read.hpp"
#include "trace.hpp"

namespace rankmesh::meshinfo {
namespace {

namespace fs = std::filesystem;

constexpr unsigned rights_of_records = 0600;  // as the files that a rank writes

// The folder of --collect.
class Collection {
 public:
  // Makes the folder.
  // @throws UsageError  It cannot be made, or has records already.
  explicit Collection(std::string folder) : folder_{std::move(folder)} {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (!error) {
      // Not a range-based loop, whose step throws an exception of the standard library.
      fs::directory_iterator entry{folder_, error};
      for (; !error && entry != fs::directory_iterator{}; entry.increment(error))
        if (entry->path().extension() == record::format::file_ending)
          throw UsageError{
              fmt::format("the folder '{}' has records already", folder_),
              "collect into an empty folder, so that the records of two moments do not mix"};
    }
    if (error)
      throw UsageError{fmt::format("the folder '{}' cannot be used: {}", folder_, error.message()),
                       "choose another folder for --collect"};
  }

  // Writes a copy of a record. After the first error, it does nothing.
  void add(const std::string& copy) {
    try {
      if (failure_ != nullptr) return;
      const record::Record found = record::read(std::as_bytes(std::span{copy}), "of another node");
      write_file(fmt::format("{}/{:016x}-rank{}{}", folder_, found.mesh_key, found.rank.value(),
                             record::format::file_ending),
                 copy, rights_of_records);
      ++size_;
    } catch (const Error&) {
      failure_ = std::current_exception();
    }
  }

  // @throws UsageError, DataError  Nothing was added, or a record could not be added.
  void require_records() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (size_ == 0)
      throw UsageError{
          "no process of this user on these nodes has a record",
          "start meshinfo on the nodes of the job, as the user of the job, while its Mesh is open"};
  }

 private:
  std::string folder_;
  std::size_t size_ = 0;
  std::exception_ptr failure_;
};

// Returns copies of the records that the target names, with the states of their processes. What
// cannot be read is reported to standard error. The list may be empty.
std::vector<std::string> copies_of(const std::string& target) {
  std::vector<std::string> copies;
  for (const record::Source& source :
       target.empty() ? record::sources_of_user() : sources_of(target)) {
    try {
      const auto bytes = record::copy_observed(source);
      static_cast<void>(record::read(bytes, source.path));
      copies.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } catch (const Error& error) {
      report_remark(error.message());
    }
  }
  return copies;
}

}  // namespace

void collect(const TraceOptions& options, Job& job) {
  std::optional<Collection> collection;  // on rank 0
  if (!is_in_job()) {
    collection.emplace(options.collect);
    for (const std::string& copy : copies_of(options.target)) collection->add(copy);
    return collection->require_records();
  }
  if (!options.target.empty())
    throw UsageError{"--collect in a job copies the records of all jobs of this user",
                     "leave the process id or the folder out, or start meshinfo without mpirun"};
  const bool is_leader = job.starts_node();
  on_first_rank([&] { collection.emplace(options.collect); });
  const std::vector<std::string> copies = is_leader ? copies_of("") : std::vector<std::string>{};
  // One record of each node at a time, so that rank 0 never holds all of them.
  const auto most = static_cast<std::size_t>(greatest(std::ssize(copies)));
  for (std::size_t i = 0; i < most; ++i)
    for (const std::string& copy : gather_texts(i < copies.size() ? copies[i] : ""))
      if (!copy.empty()) collection->add(copy);
  on_first_rank([&] { collection->require_records(); });
}

}  // namespace rankmesh::meshinfo
