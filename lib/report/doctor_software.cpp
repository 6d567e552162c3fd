// SPDX-License-Identifier: BSD-3-Clause
// Rules of doctor about the launcher and the libraries.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "detail/doctor.hpp"
#include "rankmesh/base/launcher.hpp"

namespace rankmesh::report::detail {
namespace {

std::vector<std::string> library_names(const Examination& job) {
  std::vector<std::string> names;
  for (const RankFacts& facts : job.ranks)
    for (const LibraryFacts& library : facts.libraries)
      if (std::ranges::find(names, library.name) == names.end()) names.push_back(library.name);
  return names;
}

const LibraryFacts* library_of(const RankFacts& facts, const std::string& name) {
  const auto found = std::ranges::find(facts.libraries, name, &LibraryFacts::name);
  return found == facts.libraries.end() ? nullptr : &*found;
}

std::string version_of(const RankFacts& facts, const std::string& name) {
  const LibraryFacts* library = library_of(facts, name);
  return library == nullptr || library->version.empty() ? "not found" : library->version;
}

}  // namespace

Findings check_launcher(const Rule& rule, const Examination& job) {
  const RankFacts& first = job.ranks.front();
  const auto mismatch = launcher_mismatch(first.world_size, first.mpi_library,
                                          [&](const char* name) { return variable(first, name); });
  if (!mismatch) return {};
  return {finding(rule, {}, mismatch->message,
                  "each process takes itself for the whole job: it reads all data and writes the "
                  "same files as the others, or refuses the mesh because ranks are missing",
                  mismatch->hint)};
}

Findings check_library_versions(const Rule& rule, const Examination& job) {
  Findings findings;
  for (const std::string& name : library_names(job)) {
    const auto versions =
        variants(job, [&](const RankFacts& facts) { return version_of(facts, name); });
    if (versions.size() < 2) continue;
    findings.push_back(finding(
        rule, outliers(versions), fmt::format("{} differs: {}", name, to_string(versions)),
        "different versions choose different algorithms and message formats, so ranks wait for "
        "messages that never come",
        fmt::format("install the same {} on all nodes, and set the same LD_LIBRARY_PATH", name)));
  }
  return findings;
}

// Applies only if the versions are equal. Otherwise the other rule has found the difference.
Findings check_library_paths(const Rule& rule, const Examination& job) {
  Findings findings;
  for (const std::string& name : library_names(job)) {
    std::set<std::string> versions;
    for (const RankFacts& facts : job.ranks) versions.insert(version_of(facts, name));
    const auto paths = variants(job, [&](const RankFacts& facts) {
      const LibraryFacts* library = library_of(facts, name);
      return library == nullptr ? std::string{} : library->path;
    });
    if (versions.size() > 1 || paths.size() < 2) continue;
    findings.push_back(finding(
        rule, outliers(paths), fmt::format("{} is loaded from {}", name, to_string(paths)),
        "two builds of one version may have different options, and an update may reach only one "
        "of them",
        "set the same LD_LIBRARY_PATH on all ranks, or install the library under the same path on "
        "all nodes"));
  }
  return findings;
}

}  // namespace rankmesh::report::detail
