// SPDX-License-Identifier: BSD-3-Clause
// meshinfo without MPI: it sees that there is a job, but cannot take part in it.
#include "bench.hpp"
#include "doctor.hpp"
#include "job.hpp"
#include "launcher.hpp"
#include "nccl_log.hpp"
#include "rankmesh/base/error.hpp"
#include "transfer_run.hpp"

namespace rankmesh::meshinfo {

struct Job::State {};

Job::Job() = default;
Job::~Job() = default;

bool Job::prints() const { return is_printing_rank(); }

void Job::join(const MeshArguments&) {
  throw UsageError{"this meshinfo was built without MPI and cannot inspect the job that it runs in",
                   "add --offline, or build rankmesh with MPI"};
}

MeshPlan Job::plan(const MeshArguments& arguments) {
  arguments.require();
  if (is_in_job()) join(arguments);
  return arguments.spec().plan(arguments.world_size);
}

OpenMesh Job::open(const MeshArguments& arguments, const std::string&) { return {plan(arguments)}; }

void Job::abort(int) {}

GatheredFacts Job::gather(double) {
  if (is_in_job()) join({});
  return {{local_facts()}, false};
}

int Job::agree(int status) { return status; }

std::optional<report::RouteFacts> OpenMesh::routes() const { return std::nullopt; }
void OpenMesh::close() {}

void gather_nccl_choices(OpenMesh&, const NcclLog&) {}

// Never called: there is no live mesh.
BenchResult bench(const OpenMesh&, const BenchOptions&, const BenchPlan&, Output*) { return {}; }
TransferRun run_transfer(const OpenMesh&, const TransferPlan&) { return {}; }
report::Document tune(const MeshPlan&, const BenchOptions&, const BenchPlan&) { return {}; }
std::vector<std::string> gather_texts(const std::string& own) { return {own}; }

void on_first_rank(const std::function<void()>& run) { run(); }

std::int64_t greatest(std::int64_t number) { return number; }

bool Job::starts_node() {
  throw UsageError{"this meshinfo was built without MPI and cannot collect from the nodes of a job",
                   "start it without mpirun on each node, with a folder for each"};
}

std::vector<LibraryInfo> components() {
  return {{"MPI", "", "", "this meshinfo was built without it"}};
}

}  // namespace rankmesh::meshinfo
