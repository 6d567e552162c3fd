// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include <fmt/format.h>

#include "command.hpp"
#include "rankmesh/base/error.hpp"
#include "report/reports.hpp"

namespace meshinfo {
namespace {

struct RankOptions : ReportOptions {
  std::vector<std::string> words;  // the ranks, after the mesh was taken from them
};

// Reads ranks and ranges of ranks: 3, 40-43, 0-56:8, 1,2.
std::vector<rankmesh::Rank> read_ranks(const std::vector<std::string>& words) {
  constexpr std::int64_t most = 65536;
  std::vector<rankmesh::Rank> ranks;
  for (const std::string& word : words) {
    try {
      rankmesh::RankSet::parse(word, most).for_each([&](rankmesh::Rank r) { ranks.push_back(r); });
    } catch (const rankmesh::Error& error) {
      throw rankmesh::UsageError{
          fmt::format("R must be a rank or a range of ranks, got '{}'", word),
          "write 3, 40-43 or 0-56:8; meshinfo groups lists all ranks"};
    }
  }
  if (ranks.empty())
    throw rankmesh::UsageError{"no rank is given", "usage: meshinfo rank MESH R..."};
  return ranks;
}

int rank(RankOptions& options, Job& job) {
  sort_words(options.mesh, options.words);
  const std::vector<rankmesh::Rank> ranks = read_ranks(options.words);
  const auto open = inspect(job, options.mesh);
  if (!open) return ok;
  const auto described = options.machine.machine(open->plan.world_size(), open->live());
  const rankmesh::Machine* machine = described ? &*described : nullptr;
  print(ranks.size() == 1 ? rankmesh::report::rank(open->plan, ranks.front(), open->live(), machine)
                          : rankmesh::report::ranks(open->plan, ranks, open->live(), machine),
        options.output);
  return ok;
}

}  // namespace

void add_rank(CLI::App& app, Program& program) {
  auto [command, options] = add_command<RankOptions>(
      app, program, "rank", "one or several ranks: their coordinates and their groups", rank);
  options.mesh.add_to(command);
  command.add_option("R", options.words, "ranks and ranges of ranks: 3, 40-43, 0-56:8")
      ->type_name("R");
  options.machine.add_to(command);
  options.output.add_to(command);
  command.footer(
      "Examples:\n"
      "  meshinfo rank pp=2,dp=4,tp=8 37\n"
      "  meshinfo rank pp=2,dp=4,tp=8 3 17 40-43 --format csv");
}

}  // namespace meshinfo
