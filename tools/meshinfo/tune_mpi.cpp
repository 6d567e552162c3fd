// SPDX-License-Identifier: BSD-3-Clause
// meshinfo tune in a job: every transport on a mesh of its own, in turns, then the rules that
// follow.
#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "bench.hpp"
#include "launcher.hpp"
#include "measure.hpp"
#include "place/mesh_file.hpp"
#include "place/tuning.hpp"
#include "rankmesh/mesh/routes_machine.hpp"
#include "rankmesh/rankmesh.hpp"
#include "terminal.hpp"

namespace rankmesh::meshinfo {

using report::Document;
using report::Json;

namespace {

constexpr int rounds = 7;  // each measures every transport once; the median counts

// A transport that is compared, and a mesh whose routes name no other transport. Each transport
// needs its own mesh for the comparison.
struct Candidate {
  std::string transport;
  std::unique_ptr<Mesh> mesh;
  GroupCoordinator* group = nullptr;  // of the present subject; null if this rank is in
                                      // none of its groups
  std::unique_ptr<Measure> measure;   // of the present subject
};

// Groups that are measured together, and the conditions of the rules that follow.
struct Subject {
  std::string name;  // in the output: of the family, or for example ranks(3)
  std::int64_t size = 0;
  RouteRule conditions;
};

// Whether the transport carries the case in the group of every rank.
bool is_carried(const Candidate& candidate, const BenchCase& work, std::int64_t bytes) {
  const bool is_mine =
      candidate.group == nullptr ||
      candidate.group->explain(work.operation, bytes).transport == candidate.transport;
  return over_all_ranks(is_mine ? 1 : 0, MPI_MIN) != 0;
}

// Returns the mesh's own file with these routes instead of its own.
std::string as_toml(const std::string& mesh, const std::string& routes) {
  MeshSpec spec = MeshSpec::parse(mesh);
  spec.set_routes(routes);
  return to_toml(spec);
}

class Tuner {
 public:
  Tuner(const MeshPlan& mesh, const BenchOptions& options, const BenchPlan& plan);
  Document run();

 private:
  [[nodiscard]] std::vector<Subject> subjects() const;
  void measure_subject(const Subject& subject);
  void measure_operation(const Subject& subject, Operation operation);
  std::map<std::string, double> time(std::vector<Candidate*> able, const BenchCase& work);
  void add_timing(const std::string& name, Operation operation, const RouteTiming& timing);

  const MeshPlan& mesh_;
  const BenchOptions& options_;
  const BenchPlan& plan_;
  std::vector<Candidate> candidates_;
  std::string rules_;
  std::string notes_;  // as comments of the route file
  int measured_ = 0;
  int rule_count_ = 0;
  Progress progress_;
  std::int64_t done_ = 0, total_ = 0;  // measurements; total_ counts sizes that may be the same
  Document document_{.schema = "rankmesh.tune/1"};
};

Tuner::Tuner(const MeshPlan& mesh, const BenchOptions& options, const BenchPlan& plan)
    : mesh_{mesh}, options_{options}, plan_{plan}, progress_{is_printing_rank()} {
  for (const char* transport : {"mpi", "shm"}) {
    MeshOptions of_mesh;
    of_mesh.devices = DeviceUse::off;
    of_mesh.routes = fmt::format("*.*:host={}", transport);
    candidates_.push_back(
        {transport,
         std::make_unique<Mesh>(MPI_COMM_WORLD, std::string_view{options.mesh.mesh}, of_mesh)});
  }
  document_.fields = {{"mesh", options.mesh.mesh},
                      {"world_size", mesh.world_size()},
                      {"iters", options.repeats},
                      {"measurements", Json::array()},
                      {"rules", Json::array()}};
  document_.table.add_columns({"name", "operation", "size", "transport", "time us"});
}

// Returns the medians over rounds in which the transports take turns. Results are checked first.
std::map<std::string, double> Tuner::time(std::vector<Candidate*> able, const BenchCase& work) {
  const bool in_place = !has_form(work, false);
  std::erase_if(able, [&](Candidate* candidate) {
    const std::int64_t wrong = candidate->measure->wrong(work, in_place);
    if (wrong > 0)
      notes_ += fmt::format("# {} gave {} wrong elements in {} of {} bytes: it gets no rule\n",
                            candidate->transport, wrong, to_string(work.operation), work.bytes);
    return wrong > 0;
  });
  std::map<std::string, std::vector<double>> all;
  for (int round = 0; round < (able.size() > 1 ? rounds : 1); ++round)
    for (Candidate* candidate : able)
      all[candidate->transport].push_back(candidate->measure->time(
          work, in_place, round == 0 ? options_.warm_up : 1, options_.repeats));
  std::map<std::string, double> medians;
  for (auto& [transport, times] : all) {
    std::ranges::sort(times);
    medians[transport] = times[times.size() / 2];
  }
  return medians;
}

void Tuner::add_timing(const std::string& name, Operation operation, const RouteTiming& timing) {
  ++measured_;
  notes_ += fmt::format("# {}.{} {}:", name, to_string(operation), timing.bytes);
  Json times = Json::object();
  for (const auto& [transport, seconds] : timing.seconds) {
    notes_ += fmt::format(" {} {:.2f} us", transport, seconds * 1e6);
    times[transport] = seconds * 1e6;
    document_.table.rows.push_back(
        {name, to_string(operation), timing.bytes, transport, seconds * 1e6});
  }
  notes_ += '\n';
  document_.fields["measurements"].push_back({{"name", name},
                                              {"operation", to_string(operation)},
                                              {"size", timing.bytes},
                                              {"time_us", std::move(times)}});
}

// Returns the families of the mesh or, with --by-size, groups of 2, 3, 4, 8, ... ranks. The rules
// of a size apply up to the next size.
std::vector<Subject> Tuner::subjects() const {
  std::vector<Subject> subjects;
  if (!options_.by_size) {
    for (const auto& family : mesh_.families())
      if (is_measured(family, mesh_.world_size(), options_))
        subjects.push_back({family.name(), family.group_size(), {.name = family.name()}});
    return subjects;
  }
  const Placement& placement = candidates_.front().mesh->placement();
  for (std::int64_t size = 2; size <= mesh_.world_size(); size = size < 4 ? size + 1 : 2 * size) {
    if (!subjects.empty()) subjects.back().conditions.most_ranks = size - 1;
    const auto members = RankSet::range(0, size);
    RouteRule conditions;
    conditions.least_ranks = size;
    conditions.one_node = placement.nodes_of(members) == 1;
    conditions.own_cores = placement.has_own_cores(members);
    subjects.push_back({fmt::format("ranks({})", size), size, conditions});
  }
  return subjects;
}

void Tuner::measure_operation(const Subject& subject, Operation operation) {
  std::vector<RouteTiming> timings;
  for (const std::int64_t bytes : plan_.sizes) {
    const BenchCase work{operation, plan_.type, plan_.reduction, plan_.memory, bytes, 0};
    const std::int64_t actual = size_of(work, subject.size).bytes;
    if (!timings.empty() && actual <= timings.back().bytes) continue;
    progress_.show_step(done_, total_, progress_text(subject.name, operation, actual));
    std::vector<Candidate*> able;
    for (Candidate& candidate : candidates_)
      if (is_carried(candidate, work, actual)) able.push_back(&candidate);
    timings.push_back({actual, time(std::move(able), work)});
    add_timing(subject.name, operation, timings.back());
    ++done_;
    if (!has_data(operation)) break;  // it has no sizes
  }
  for (RouteRule& rule : tuned_rules(subject.conditions, operation, timings, has_data(operation))) {
    rules_ += rule.to_string() + "\n";
    ++rule_count_;
    document_.fields["rules"].push_back(rule.to_string());
  }
}

void Tuner::measure_subject(const Subject& subject) {
  std::vector<Rank> members;
  for (std::int64_t r = 0; r < subject.size; ++r) members.emplace_back(r);
  std::vector<std::shared_ptr<GroupCoordinator>> dynamic;
  for (Candidate& candidate : candidates_) {
    Mesh& mesh = *candidate.mesh;
    candidate.group = nullptr;
    if (options_.by_size) {
      if (mesh.rank().value() < subject.size)
        candidate.group = dynamic.emplace_back(mesh.new_group(members)).get();
    } else if (mesh_.families()[mesh_.index_of(subject.name)].find(mesh.rank())) {
      candidate.group = &mesh[subject.name];
    }
    candidate.measure = std::make_unique<Measure>(candidate.group, subject.size, plan_.sizes.back(),
                                                  MemoryKind::host);
  }
  for (const Operation operation : plan_.operations) measure_operation(subject, operation);
  for (Candidate& candidate : candidates_) candidate.measure.reset();
}

Document Tuner::run() {
  const std::vector<Subject> measured = subjects();
  total_ = measurements_of(plan_) * std::ssize(measured);
  for (const Subject& subject : measured) measure_subject(subject);
  progress_.finish(fmt::format("tune: {} measurements in {}, {} rules found", measured_,
                               duration_text(progress_.seconds()), rule_count_));
  const std::string machine =
      routes_machine(candidates_.front().mesh->placement().cores(0).value());
  document_.fields["machine"] = machine;
  for (Candidate& candidate : candidates_) candidate.mesh->close();
  if (rules_.empty())
    rules_ = "# no transport took less than 95 % of mpi's time: the defaults stay\n";
  // Checks that the file can be read back.
  (void)RouteTable::parse(rules_, RouteSource::file, "the rules that were found");
  const std::string text = fmt::format(
                               "# meshinfo tune {}: {} ranks, {} measurements, medians of up to "
                               "{}, the longest of all ranks\n# machine: {}\n",
                               options_.mesh.mesh, mesh_.world_size(), measured_, rounds, machine) +
                           rules_ + notes_;
  document_.add(options_.output.path.ends_with(".toml") ? as_toml(options_.mesh.mesh, text) : text);
  return std::move(document_);
}

}  // namespace

Document tune(const MeshPlan& mesh, const BenchOptions& options, const BenchPlan& plan) {
  return Tuner{mesh, options, plan}.run();
}

}  // namespace rankmesh::meshinfo
