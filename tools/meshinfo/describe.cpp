// SPDX-License-Identifier: BSD-3-Clause
#include <charconv>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "command.hpp"
#include "rankmesh/base/error.hpp"
#include "report/reports.hpp"

namespace meshinfo {
namespace {

struct DescribeOptions {
  std::vector<std::string> words;  // the group, after the mesh was taken from them
  MeshArguments mesh;
  std::optional<std::int64_t> rank;
  OutputOptions output;
};

// A name, and the number of a group if the user gave one.
struct GroupName {
  std::string name;
  std::optional<std::int64_t> group{};
};

GroupName read_group(const std::string& word) {
  const auto colon = word.rfind(':');
  if (colon == std::string::npos) return {word};
  std::int64_t number = 0;
  const char* const last = word.data() + word.size();
  const auto [end, error] = std::from_chars(word.data() + colon + 1, last, number);
  if (error != std::errc{} || end != last)
    throw rankmesh::UsageError{
        fmt::format("GROUP must be a name, or a name with a number, got '{}'", word),
        "write tp or tp:3"};
  return {word.substr(0, colon), number};
}

// Returns the number of the group that contains the rank.
std::int64_t group_of(const rankmesh::MeshPlan& plan, const std::string& name, std::int64_t rank) {
  const auto place = plan.groups_of_product(name).find(rank);
  if (!place)
    throw rankmesh::UsageError{fmt::format("rank {} is in no group of '{}'", rank, name),
                               fmt::format("meshinfo rank {} lists its groups", rank)};
  return place->group;
}

int describe(DescribeOptions& options, Job& job) {
  sort_words(options.mesh, options.words);
  if (options.words.size() != 1)
    throw rankmesh::UsageError{options.words.empty() ? "no group is given" : "more than one group",
                               "usage: meshinfo describe MESH GROUP, such as tp or tp:3"};
  GroupName group = read_group(options.words.front());
  const auto open = inspect(job, options.mesh);
  if (!open) return ok;
  if (options.rank) group.group = group_of(open->plan, group.name, *options.rank);
  print(group.group
            ? rankmesh::report::describe_group(open->plan, group.name, *group.group, open->live())
            : rankmesh::report::describe_family(open->plan, group.name, open->live()),
        options.output);
  return ok;
}

}  // namespace

void add_describe(CLI::App& app, Program& program) {
  auto [command, options] = add_command<DescribeOptions>(
      app, program, "describe", "all groups of one name, or one group", describe);
  options.mesh.add_to(command);
  command
      .add_option("GROUP", options.words,
                  "a name or a product (tp, dp*tp), or one of its groups (tp:3)")
      ->type_name("GROUP")
      ->expected(0, 2);
  add_number(command, "--rank", "the group that contains this rank", options.rank);
  options.output.add_to(command);
  command.footer(
      "Examples:\n"
      "  meshinfo describe pp=2,dp=4,tp=8 tp\n"
      "  meshinfo describe pp=2,dp=4,tp=8 tp:3\n"
      "  meshinfo describe pp=2,dp=4,tp=8 dp --rank 37");
}

}  // namespace meshinfo
