// SPDX-License-Identifier: BSD-3-Clause
#include "doctor.hpp"

#include <memory>
#include <optional>

#include <fmt/format.h>

#include "command.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/launcher.hpp"
#include "report/doctor.hpp"

namespace meshinfo {
namespace {

using rankmesh::report::Examination;

struct DoctorOptions {
  MeshArguments mesh;
  OutputOptions output;
  double timeout = 60;
};

// If a launcher started several processes, but the world has one rank, this world cannot be
// compared with the mesh. The finding about the launcher then says more than the error that the
// mesh does not fit the world.
std::optional<rankmesh::MeshPlan> plan_of(const DoctorOptions& options,
                                          const GatheredFacts& facts) {
  if (options.mesh.mesh.empty() || facts.ranks.empty()) return std::nullopt;
  const rankmesh::MeshSpec spec =
      options.mesh.spec();  // refuses an invalid one, also without a job
  if (!facts.in_job) return std::nullopt;
  const auto& first = facts.ranks.front();
  if (rankmesh::launcher_mismatch(first.world_size, first.mpi_library)) return std::nullopt;
  return spec.plan(first.world_size);
}

int doctor(const DoctorOptions& options, Job& job) {
  if (!(options.timeout >= 0 && options.timeout <= 86400))
    throw rankmesh::UsageError{
        fmt::format("--timeout takes seconds from 0 to 86400, got {}", options.timeout),
        "0 means no time limit"};
  const GatheredFacts facts = job.gather(options.timeout);
  int status = ok;
  // If the launcher does not belong to the MPI library, each process is rank 0 of a world of its
  // own.
  if (!facts.ranks.empty()) {
    const auto plan = plan_of(options, facts);
    const Examination examination{facts.ranks, pointer_to(plan)};
    const auto findings = rankmesh::report::examine(examination);
    if (rankmesh::report::has_trouble(findings)) status = check_failed;
    if (job.prints())
      print(rankmesh::report::doctor(examination, findings, facts.in_job), options.output);
  }
  return job.agree(status);
}

}  // namespace

void add_doctor(CLI::App& app, Program& program) {
  auto [command, options] = add_command<DoctorOptions>(
      app, program, "doctor",
      "in a job: compare all ranks and say what is wrong, and how to fix it", doctor);
  options.mesh.add_to(command);
  options.output.add_to(command);
  options.output.add_short_formats_to(command);
  command
      .add_option("--timeout", options.timeout,
                  "seconds after which a step that hangs ends doctor (60; 0: never)")
      ->type_name("SECONDS");
}

}  // namespace meshinfo
