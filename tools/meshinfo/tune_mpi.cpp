// meshinfo tune on a live mesh: every transport on a mesh of its own, in turns; then the rules that
// follow.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "bench_options.hpp"
#include "measure.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/rankmesh.hpp"
#include "rankmesh/routes/tuning.hpp"

namespace meshinfo {

using rankmesh::Operation;

namespace {

constexpr int rounds = 7;  // each measures every transport once; the median counts

struct Candidate {
  std::string transport;
  std::unique_ptr<rankmesh::Mesh> mesh;
  std::unique_ptr<Measure> measure;  // of the name at hand
};

// Whether the transport carries it on every rank's group.
bool is_carried(const Candidate& candidate, rankmesh::GroupCoordinator* group, const Work& work,
                std::int64_t bytes) {
  int mine =
      group == nullptr || group->explain(work.operation, bytes).transport == candidate.transport;
  int all = 0;
  rankmesh::mpi::check(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD),
                       "MPI_Allreduce");
  return all != 0;
}

// Medians over rounds in which the candidates take turns, by transport; results are checked first.
std::map<std::string, double> timed(std::vector<Candidate*>& candidates, const Work& work,
                                    const BenchOptions& options, std::string& notes) {
  const bool in_place = !Measure::has_form(work, false);
  std::erase_if(candidates, [&](Candidate* candidate) {
    const std::int64_t wrong = candidate->measure->wrong(work, in_place);
    if (wrong > 0)
      notes += fmt::format("# {} gave {} wrong elements in {} of {} bytes: it gets no rule\n",
                           candidate->transport, wrong, to_string(work.operation), work.bytes);
    return wrong > 0;
  });
  std::map<std::string, std::vector<double>> all;
  for (int round = 0; round < (candidates.size() > 1 ? rounds : 1); ++round)
    for (Candidate* candidate : candidates)
      all[candidate->transport].push_back(candidate->measure->time(
          work, in_place, round == 0 ? options.warm_up : 1, options.repeats));
  std::map<std::string, double> medians;
  for (auto& [transport, times] : all) {
    std::ranges::sort(times);
    medians[transport] = times[times.size() / 2];
  }
  return medians;
}

// The mesh's own file with these routes in the place of its own.
std::string as_toml(const std::string& mesh, const std::string& routes) {
  std::string text = "routes = '''\n" + routes + "'''\n";
  const std::string whole = rankmesh::MeshSpec::parse(mesh).to_toml();
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t end = std::min(whole.find('\n', at), whole.size());
    const std::string line = whole.substr(at, end - at);
    if (!line.starts_with("routes = ")) text += line + "\n";
    at = end + 1;
  }
  return text;
}

}  // namespace

int tune(rankmesh::Mesh& mesh, const BenchOptions& options, const BenchPlan& plan) {
  for (const std::string& name : options.names) (void)mesh.plan().index_of(name);
  const bool prints = mesh.rank() == rankmesh::Rank{0};
  const std::unique_ptr<Output> output = open_output(options.path);
  std::vector<Candidate> candidates;
  for (const char* transport : {"mpi", "shm"}) {
    rankmesh::MeshOptions of_mesh;
    of_mesh.devices = rankmesh::DeviceUse::off;
    of_mesh.routes = fmt::format("*.*:host={}", transport);
    candidates.push_back({transport,
                          std::make_unique<rankmesh::Mesh>(
                              MPI_COMM_WORLD, std::string_view{options.mesh.mesh}, of_mesh),
                          nullptr});
  }
  std::string rules;
  std::string notes;
  int measured = 0;
  for (const auto& family : mesh.plan().families()) {
    const bool is_asked = options.names.empty() ||
                          std::ranges::find(options.names, family.name()) != options.names.end();
    const std::int64_t size = family.group_size();
    if (!is_asked || size == 1 || family.coverage(mesh.size()) == rankmesh::Coverage::overlapping)
      continue;
    const bool is_member = family.find(mesh.rank()).has_value();
    for (Candidate& candidate : candidates)
      candidate.measure =
          std::make_unique<Measure>(is_member ? &(*candidate.mesh)[family.name()] : nullptr, size,
                                    plan.sizes.back(), rankmesh::MemoryKind::host);
    for (const Operation operation : plan.operations) {
      std::vector<rankmesh::RouteTiming> timings;
      for (const std::int64_t bytes : plan.sizes) {
        const Work work{operation, plan.type, plan.reduction, plan.memory, bytes, 0};
        const std::int64_t actual = Measure::size_of(work, size).bytes;
        if (!timings.empty() && actual <= timings.back().bytes) continue;
        std::vector<Candidate*> able;
        for (Candidate& candidate : candidates)
          if (is_carried(candidate, is_member ? &(*candidate.mesh)[family.name()] : nullptr, work,
                         actual))
            able.push_back(&candidate);
        timings.push_back({actual, timed(able, work, options, notes)});
        ++measured;
        std::string line = fmt::format("# {}.{} {}:", family.name(), to_string(operation), actual);
        for (const auto& [transport, seconds] : timings.back().seconds)
          line += fmt::format(" {} {:.2f} us", transport, seconds * 1e6);
        notes += line + "\n";
        if (operation == Operation::barrier) break;
      }
      for (const rankmesh::RouteRule& rule : rankmesh::tuned_rules(
               family.name(), operation, timings, operation != Operation::barrier))
        rules += rule.to_string() + "\n";
    }
    for (Candidate& candidate : candidates) candidate.measure.reset();
  }
  for (Candidate& candidate : candidates) candidate.mesh->close();
  if (!prints) return ok;
  if (rules.empty())
    rules = "# no transport took less than 95 % of mpi's time: the defaults stay\n";
  const std::string text = fmt::format(
                               "# meshinfo tune {}: {} ranks, {} measurements, medians of up to "
                               "{}, the longest of all ranks\n",
                               options.mesh.mesh, mesh.size(), measured, rounds) +
                           rules + notes;
  (void)rankmesh::RouteTable::parse(rules, rankmesh::RouteSource::file,
                                    "the rules that were found");
  output->write(options.path.ends_with(".toml") ? as_toml(options.mesh.mesh, text) : text);
  output->finish();
  return ok;
}

}  // namespace meshinfo
