// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/base/detail/suggest.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::meshinfo {
namespace {

// The variables of the job as `env` prints them.
std::string slurm_variables() {
  std::string text;
  for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_TASKS_PER_NODE"})
    if (const char* value = std::getenv(name)) text += fmt::format("{}={}\n", name, value);
  return text;
}

// The source may be the misspelt name of a format, or of a source that is no file.
std::string hint_of_source(const std::string& source, std::size_t colon) {
  const std::string kinds =
      "give a file, FORMAT:FILE, slurm (its variables), or hwloc (the running node)";
  if (colon != std::string::npos && machine_format(source.substr(0, colon))) return kinds;
  if (colon != std::string::npos)
    return detail::suggest(source.substr(0, colon), machine_format_names(), "the formats are");
  const std::string meant = detail::nearest(source, std::vector<std::string>{"slurm", "hwloc"});
  return meant.empty() ? kinds : fmt::format("did you mean '{}'? {}", meant, kinds);
}

void read_source(const std::string& source, MachineReader& reader) {
  if (source == "slurm") {
    reader.read(slurm_variables(), "the environment", MachineFormat::slurm_job);
    return;
  }
  if (source == "hwloc") {
    reader.read_this_node();
    return;
  }
  const std::size_t colon = source.find(':');
  const auto format =
      colon == std::string::npos ? std::nullopt : machine_format(source.substr(0, colon));
  const std::string path = format ? source.substr(colon + 1) : source;
  reader.read(read_input("machine", path, hint_of_source(source, colon)), path,
              format.value_or(MachineFormat::automatic));
}

void set_job(const report::LiveFacts& live, std::int64_t world_size, MachineReader& reader) {
  std::vector<std::int32_t> nodes;
  for (std::int64_t r = 0; r < world_size; ++r) nodes.push_back(live.placement.node(r));
  reader.set_job(std::move(nodes), live.hosts);
}

}  // namespace

void MachineArguments::add_to(CLI::App& command) {
  add_list(command, "--machine", sources, "FILE",
           "hosts, network or node: a file, FORMAT:FILE, slurm (its variables), or hwloc (the "
           "node that this runs on); may be repeated");
  add_number(command, "--ranks-per-node", "slots of a node, if no file says it",
             numbers.ranks_per_node);
  add_number(command, "--ranks-per-domain", "slots of an NVLink domain", numbers.ranks_per_domain);
  add_number(command, "--nodes-per-leaf", "consecutive nodes that share a leaf switch",
             numbers.nodes_per_leaf);
}

bool MachineArguments::is_given() const {
  return !sources.empty() || numbers.ranks_per_node || numbers.ranks_per_domain ||
         numbers.nodes_per_leaf;
}

std::optional<Machine> MachineArguments::machine(std::optional<std::int64_t> world_size,
                                                 const report::LiveFacts* live) const {
  if (!is_given()) return std::nullopt;
  MachineReader reader;
  for (const std::string& source : sources) read_source(source, reader);
  MachineNumbers all = numbers;
  all.world_size = world_size;
  if (live != nullptr) set_job(*live, world_size.value(), reader);
  return reader.machine(all);
}

Machine MachineArguments::require(std::int64_t world_size, const report::LiveFacts* live) const {
  if (auto described = machine(world_size, live)) return *std::move(described);
  if (live == nullptr)
    throw UsageError{"no machine is given",
                     "give --machine FILE, or --ranks-per-node N, or run the command in the job"};
  MachineReader reader;
  set_job(*live, world_size, reader);
  return reader.machine({.world_size = world_size});
}

}  // namespace rankmesh::meshinfo
