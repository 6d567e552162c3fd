// SPDX-License-Identifier: BSD-3-Clause
// The job that meshinfo runs in, if a launcher started it, and the live mesh of that job.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "output.hpp"
#include "rankmesh/device/libraries.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/placement.hpp"
#include "report/live_facts.hpp"

namespace rankmesh {
class Mesh;
}

namespace rankmesh::meshinfo {

// The plan of a mesh; in a job also the mesh itself and the facts about its ranks.
struct OpenMesh {
  MeshPlan plan;
  std::shared_ptr<Mesh> mesh{};  // null outside of a job
  std::optional<report::LiveFacts> facts{};

  [[nodiscard]] const report::LiveFacts* live() const { return facts ? &*facts : nullptr; }
  // Returns the routes of the open mesh; nothing outside of a job. The result refers to the mesh.
  [[nodiscard]] std::optional<report::RouteFacts> routes() const;
  // Closes the live mesh. Collective over the job.
  void close();
};

struct GatheredFacts;

// MPI is started by the first call that needs it, and finalised by the destructor. Built from
// job_mpi.cpp, or from job_none.cpp without MPI.
class Job {
 public:
  Job();
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Whether this process prints: it is rank 0, or there is no job.
  [[nodiscard]] bool prints() const;
  // Returns the plan for the job's world; outside of a job for the world that the arguments give.
  // Collective over the job.
  MeshPlan plan(const MeshArguments& arguments);
  // Opens the mesh in a job, and gathers the facts on rank 0; outside of a job only plans it. The
  // mapping is shown even if devices cannot be used: then the facts have the reason. Collective
  // over the job.
  // @param devices  auto, off or shared.
  OpenMesh open(const MeshArguments& arguments, const std::string& devices = "off");
  // Gathers the facts of all ranks for doctor; outside of a job only those of this process.
  // Collective over the job.
  // @param timeout  The time that a step may take, in seconds; 0: no limit.
  GatheredFacts gather(double timeout);
  // Returns the status of rank 0. Collective over the job, if this process has joined it.
  int agree(int status);
  // Starts MPI, and returns whether this is the first rank of its node. Collective over the job.
  bool starts_node();

  // Ends the whole job after an error, if this process has joined one: other ranks may be missing,
  // and the mesh is not closed.
  void abort(int status);

 private:
  struct State;
  // Starts MPI, if it is not started yet.
  void start();
  void join(const MeshArguments& arguments);
  std::unique_ptr<State> state_;
};

// Returns the node of each rank of the job, in which MPI has started. Collective over the job.
Placement nodes_of_job();

// Runs a function on rank 0. If it throws an Error, all ranks throw. Collective over the job.
void on_first_rank(const std::function<void()>& run);

// Opens the output on rank 0; null on the others. Collective over the job.
inline std::unique_ptr<Output> open_output(const std::string& path) {
  std::unique_ptr<Output> output;
  on_first_rank([&] { output = std::make_unique<Output>(path); });
  return output;
}

// Returns the greatest number of all ranks. Collective over the job.
std::int64_t greatest(std::int64_t number);

// Gathers one text per rank, on rank 0; empty on the others. Collective over the job.
std::vector<std::string> gather_texts(const std::string& own);

// Returns the libraries that rankmesh uses.
std::vector<LibraryInfo> components();

}  // namespace rankmesh::meshinfo
