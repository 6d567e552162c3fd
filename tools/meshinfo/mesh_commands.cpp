// SPDX-License-Identifier: BSD-3-Clause
// The commands that say what a mesh is: show, rank, describe, groups, count, diff, explain, routes
// and convert.
#include <algorithm>

#include <fmt/format.h>

#include "command.hpp"
#include "nccl_log.hpp"
#include "place/mesh_file.hpp"
#include "rankmesh/base/detail/parse.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "rankmesh/spec/routes.hpp"
#include "report/reports.hpp"

namespace rankmesh::meshinfo {
namespace {

using report::NamedFamily;

struct ShowOptions : ReportOptions {
  std::string devices = "auto";
};

int show(const ShowOptions& options, Job& job) {
  const NcclLog log{options.devices != "off"};  // NCCL reads its variables when it is loaded
  OpenMesh open = job.open(options.mesh, options.devices);
  gather_nccl_choices(open, log);
  open.close();
  if (!job.prints()) return ok;
  const auto machine = options.machine.machine(open.plan.world_size(), open.live());
  print(report::show(open.plan, open.live(), options.output.width(), pointer_to(machine)),
        options.output);
  return ok;
}

// A command with words in any order: the mesh, and what the command asks for.
struct WordOptions : ReportOptions {
  std::vector<std::string> words;  // without the mesh, once it was taken from them
  std::optional<std::int64_t> rank;
};

// Reads ranks and ranges of ranks: 3, 40-43, 0-56:8, 1,2.
std::vector<Rank> read_ranks(const std::vector<std::string>& words) {
  constexpr std::int64_t most_of_list = 65536, most = 1 << 20;
  std::vector<Rank> ranks;
  for (const std::string& word : words) {
    RankSet given;
    try {
      given = RankSet::parse(word, most_of_list);
    } catch (const Error& error) {
      throw UsageError{fmt::format("R must be a rank or a range of ranks, got '{}'", word),
                       "write 3, 40-43 or 0-56:8; meshinfo groups lists all ranks"};
    }
    if (given.size() > most - std::ssize(ranks))
      throw UsageError{fmt::format("'{}' makes more than {} ranks", word, most),
                       "ask for fewer ranks; meshinfo groups lists all ranks"};
    given.for_each([&](Rank r) { ranks.push_back(r); });
  }
  if (ranks.empty()) throw UsageError{"no rank is given", "usage: meshinfo rank MESH R..."};
  return ranks;
}

int rank(WordOptions& options, Job& job) {
  sort_words(options.mesh, options.words);
  const std::vector<Rank> ranks = read_ranks(options.words);
  const auto open = inspect(job, options.mesh);
  if (!open) return ok;
  const auto machine = options.machine.machine(open->plan.world_size(), open->live());
  print(ranks.size() == 1
            ? report::rank(open->plan, ranks.front(), open->live(), pointer_to(machine))
            : report::ranks(open->plan, ranks, open->live(), pointer_to(machine)),
        options.output);
  return ok;
}

// Returns the number of the group that the user means, or nothing for all groups of the name.
std::optional<std::int64_t> group_of(const std::string& word, std::string& name) {
  const auto colon = word.rfind(':');
  name = word.substr(0, colon);
  if (colon == std::string::npos) return std::nullopt;
  if (const auto number = detail::parse_number(word.substr(colon + 1))) return number;
  throw UsageError{fmt::format("GROUP must be a name, or a name with a number, got '{}'", word),
                   "write tp or tp:3"};
}

int describe(WordOptions& options, Job& job) {
  sort_words(options.mesh, options.words);
  if (options.words.size() != 1)
    throw UsageError{options.words.empty() ? "no group is given" : "more than one group",
                     "usage: meshinfo describe MESH GROUP, such as tp or tp:3"};
  std::string name;
  auto group = group_of(options.words.front(), name);
  const auto open = inspect(job, options.mesh);
  if (!open) return ok;
  if (options.rank) {
    const auto place = open->plan.groups_of_product(name).find(*options.rank);
    if (!place)
      throw UsageError{
          fmt::format("rank {} is in no group of '{}'", *options.rank, name),
          *options.rank < open->plan.world_size()
              ? fmt::format("meshinfo rank {} lists its groups", *options.rank)
              : fmt::format("the mesh has ranks 0 to {}", open->plan.world_size() - 1)};
    group = place->group;
  }
  print(group ? report::describe_group(open->plan, name, *group, open->live())
              : report::describe_family(open->plan, name, open->live()),
        options.output);
  return ok;
}

struct GroupsOptions : ReportOptions {
  std::vector<std::string> names;
};

// The families that are asked for, each once; all if none is.
std::vector<NamedFamily> families_of(const MeshPlan& plan, const std::vector<std::string>& names) {
  std::vector<NamedFamily> families;
  for (const std::string& name : names)
    if (std::ranges::find(families, name, &NamedFamily::first) == families.end())
      families.emplace_back(name, plan.groups_of_product(name));
  if (names.empty())
    for (const auto& family : plan.families()) families.emplace_back(family.name(), family);
  return families;
}

// The mesh is opened only for what an open mesh alone knows: the hosts of a machine, and the facts
// about the ranks, which only the long form has.
int groups(const GroupsOptions& options, Job& job) {
  const bool is_long = options.output.chosen_format() == report::Format::long_csv;
  const bool has_machine = options.machine.is_given();
  if (is_long && has_machine)
    throw UsageError{"the format long has no columns for a machine",
                     "use --format csv, or leave the machine out"};
  OpenMesh open =
      is_long || has_machine ? job.open(options.mesh) : OpenMesh{job.plan(options.mesh)};
  open.close();
  if (!job.prints()) return ok;
  const auto machine = options.machine.machine(open.plan.world_size(), open.live());
  auto families = families_of(open.plan, options.names);
  print(machine ? report::group_places(open.plan, families, *machine)
                : report::groups(open.plan, std::move(families), open.live()),
        options.output);
  return ok;
}

int count(const ReportOptions& options, Job& job) {
  const MeshPlan plan = job.plan(options.mesh);
  if (!job.prints()) return ok;
  const auto machine = options.machine.machine(plan.world_size());
  print(report::count(plan, rankmesh::count(plan), pointer_to(machine)), options.output);
  return ok;
}

struct DiffOptions : ReportOptions {
  std::string a, b;
};

// The size of the world is used only if a mesh leaves its size open, because the two meshes may
// have different sizes. The job plays no part.
int diff(const DiffOptions& options, const Job& job) {
  if (!job.prints()) return ok;
  const auto plan_of = [&](const std::string& mesh) {
    const auto spec = MeshSpec::parse(mesh);
    return spec.plan(spec.world_size() ? std::nullopt : options.mesh.world_size);
  };
  const MeshPlan a = plan_of(options.a), b = plan_of(options.b);
  const PlanDiff difference = rankmesh::diff(a, b);
  const auto machine = options.machine.machine(std::max(a.world_size(), b.world_size()));
  print(report::diff(difference, a, b, options.a, options.b, pointer_to(machine)), options.output);
  return difference.is_empty() ? ok : check_failed;
}

struct ExplainOptions : ReportOptions {
  std::int64_t rank = 0;
};

int explain_rank(const ExplainOptions& options, Job& job) {
  const MeshPlan plan = job.plan(options.mesh);
  if (job.prints()) print(report::explain_rank(plan, options.rank), options.output);
  return ok;
}

int explain_order(const ReportOptions& options, Job& job) {
  const MeshPlan plan = job.plan(options.mesh);
  if (job.prints()) print(report::explain_order(plan), options.output);
  return ok;
}

int routes(const ShowOptions& options, Job& job) {
  const MeshSpec spec = options.mesh.spec();
  OpenMesh open = job.open(options.mesh, options.devices);
  std::optional<Document> document;
  if (job.prints()) {
    const auto live = open.routes();  // coordinators answer as long as the mesh is open
    document = report::routes(open.plan, routes_of(spec, open.plan), pointer_to(live));
  }
  open.close();
  if (document) print(*document, options.output);
  return ok;
}

struct ConvertOptions {
  MeshArguments mesh;
  std::string form = "toml";
  std::string path;
};

// Commands read a file by its name, so the name must not say another form.
void check_name(const ConvertOptions& options) {
  const bool is_toml = options.form == "toml", has_json = options.path.ends_with(".json");
  if (!has_json && (is_toml || !options.path.ends_with(".toml"))) return;
  throw UsageError{
      fmt::format("convert writes {}, but '{}' has the name of a file in {}",
                  is_toml ? "TOML" : "a mesh string", options.path, has_json ? "JSON" : "TOML"),
      is_toml ? "give -o a name that ends in .toml"
              : "give -o a name that ends in .txt, or leave out --to string"};
}

// The result is a mesh and not a report, so it has no other forms. The job plays no part.
int convert(const ConvertOptions& options, const Job& job) {
  if (!job.prints()) return ok;
  check_name(options);
  const auto spec = options.mesh.spec();
  // A mesh that cannot be planned is refused, as by every other subcommand.
  if (options.mesh.world_size || spec.world_size())
    static_cast<void>(spec.plan(options.mesh.world_size));
  write_file(options.path == "-" ? "" : options.path, options.form == "toml"
                                                          ? to_toml(spec, options.mesh.world_size)
                                                          : spec.to_string() + "\n");
  return ok;
}

}  // namespace

void add_show(CLI::App& app, Program& program) {
  auto [command, options] = add_command<ShowOptions>(
      app, program, "show", "the mesh as a whole: the grid if it is small, and every name", show);
  options.add_to(command, true);
  add_devices(
      command, options.devices,
      "in a job: open NCCL communicators too (auto), leave devices alone (off), let several "
      "ranks share one (shared)");
}

void add_rank(CLI::App& app, Program& program) {
  auto [command, options] = add_command<WordOptions>(
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

void add_describe(CLI::App& app, Program& program) {
  auto [command, options] = add_command<WordOptions>(
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

void add_groups(CLI::App& app, Program& program) {
  auto [command, options] =
      add_command<GroupsOptions>(app, program, "groups", "the ranks of every group", groups);
  options.mesh.add_to(command);
  options.machine.add_to(command);
  options.output.has_pictures = true;
  options.output.add_to(command, {"long"});
  add_list(command, "--dim", options.names, "NAME",
           "only this name or product (dp*tp); may be repeated");
  command.footer(
      "The format long is CSV with one row per rank and name, for pandas and R. In a job,\n"
      "its rows have the host, the node, the local rank and the process of the rank too.\n"
      "\n"
      "Examples:\n"
      "  meshinfo groups pp=2,dp=4,tp=8 --dim tp --dim 'dp*tp'\n"
      "  mpirun -n 8 meshinfo groups dp=2,tp=4 --format long -o groups.csv");
}

void add_count(CLI::App& app, Program& program) {
  auto [command, options] = add_command<ReportOptions>(
      app, program, "count", "how many groups and communicators the mesh makes", count);
  options.add_to(command, true);
}

void add_diff(CLI::App& app, Program& program) {
  auto [command, options] = add_command<DiffOptions>(
      app, program, "diff", "the differences between two meshes; exit status 1 if there are any",
      diff);
  for (auto [name, to] : {std::pair{"A", &options.a}, std::pair{"B", &options.b}})
    add_word(command, name, *to, "MESH",
             "a mesh string, a preset or a path ending in .toml or .json")
        ->required();
  add_number(command, "--world-size", "number of ranks, if a mesh leaves it open (auto)",
             options.mesh.world_size);
  command.add_flag("--offline", options.mesh.offline, "ignore the job that this runs in");
  options.machine.add_to(command);
  options.output.has_pictures = true;
  options.output.add_to(command);
}

void add_explain(CLI::App& app, Program& program) {
  CLI::App* both =
      app.add_subcommand("explain", "the arithmetic behind a rank, or behind the order");
  both->require_subcommand(1);
  auto [of_rank, rank_options] = add_command<ExplainOptions>(
      *both, program, "rank", "coordinates and groups of one rank, step by step", explain_rank);
  add_number(of_rank, "RANK", "the rank", rank_options.rank)->required();
  rank_options.mesh.add_to(of_rank);
  rank_options.output.add_to(of_rank);
  auto [of_order, order_options] = add_command<ReportOptions>(
      *both, program, "order", "which dimension varies fastest, and which ranks are neighbours",
      explain_order);
  order_options.mesh.add_to(of_order);
  order_options.output.add_to(of_order);
}

void add_routes(CLI::App& app, Program& program) {
  auto [command, options] = add_command<ShowOptions>(
      app, program, "routes", "which transport carries which operation, and by which rule", routes);
  options.mesh.add_to(command);
  options.output.add_to(command);
  add_devices(command, options.devices, "in a job: as for meshinfo show (auto, off or shared)");
}

void add_convert(CLI::App& app, Program& program) {
  auto [command, options] = add_command<ConvertOptions>(
      app, program, "convert", "the mesh as a file, or as a string, in its canonical form",
      convert);
  options.mesh.add_to(command);
  add_word(command, "--to", options.form, "FORM", "toml (the default) or string",
           {"toml", "string"});
  add_word(command, "-o,--output", options.path, "FILE", "write to a file; - is standard output");
}

}  // namespace rankmesh::meshinfo
