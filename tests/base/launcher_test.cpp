// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/launcher.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "support/checks.hpp"

namespace {

using Variables = std::map<std::string, std::string>;

std::optional<rankmesh::LauncherMismatch> mismatch(
    const Variables& variables, std::int64_t world_size = 1,
    std::string_view library = "Open MPI v4.1.4, x") {
  return rankmesh::launcher_mismatch(world_size, library,
                                     [&](const char* name) -> std::optional<std::string> {
                                       const auto found = variables.find(name);
                                       if (found == variables.end()) return std::nullopt;
                                       return found->second;
                                     });
}

}  // namespace

TEST_CASE("a launcher of several processes and a world of one rank do not fit") {
  for (const char* name :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    CAPTURE(name);
    const auto found = mismatch({{name, "4"}});
    REQUIRE(found);
    CHECK_CONTAINS(found->message, std::string{name} + "=4");
    CHECK_CONTAINS(found->hint, "the mpirun of Open MPI v4.1.4");
    CHECK(!mismatch({{name, "1"}}));
    CHECK(!mismatch({{name, "4"}}, 4));
    CHECK(!mismatch({{name, ""}}));
    CHECK(!mismatch({{name, "many"}}));
  }
}

TEST_CASE("a rank above 0 proves that the launcher started several processes") {
  const auto found = mismatch({{"PMIX_RANK", "2"}});
  REQUIRE(found);
  CHECK_CONTAINS(found->message, "PMIX_RANK=2");
  CHECK(!mismatch({{"PMIX_RANK", "0"}}));
}

TEST_CASE("under Slurm the hint names srun --mpi=pmix, and pmi2 for MPICH") {
  const Variables slurm{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}};
  CHECK_CONTAINS(mismatch(slurm)->hint, "srun --mpi=pmix (");
  CHECK_CONTAINS(mismatch(slurm, 1, "MPICH Version:\t4.0.2\nx")->hint, "or srun --mpi=pmi2");
  CHECK_CONTAINS(mismatch(slurm, 1, "MPICH Version:\t4.0.2\nx")->hint,
                 "the mpirun of MPICH 4.0.2,");
  CHECK_CONTAINS(mismatch(slurm, 1, "")->hint, "the MPI library that the program is linked with");
}

TEST_CASE("srun without PMIx is reported before Open MPI is initialised") {
  const auto found = [](Variables variables, std::string_view library = "Open MPI v4.1.4, x") {
    variables.merge(
        Variables{{"SLURM_STEPID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}});
    return rankmesh::srun_without_pmix(library,
                                       [&](const char* name) -> std::optional<std::string> {
                                         const auto at = variables.find(name);
                                         if (at == variables.end()) return std::nullopt;
                                         return at->second;
                                       });
  };
  for (const char* plugin : {"pmi2", "none", "cray_shasta"}) {
    const auto warning = found({{"SLURM_MPI_TYPE", plugin}});
    REQUIRE(warning);
    CHECK_CONTAINS(warning->message, std::string{"srun --mpi="} + plugin);
    CHECK_CONTAINS(warning->hint, "srun --mpi=pmix (");
  }
  CHECK(!found({{"SLURM_MPI_TYPE", "pmix"}}));
  CHECK(!found({{"SLURM_MPI_TYPE", "pmix_v4"}}));
  CHECK_CONTAINS(found({})->message, "srun --mpi=none");  // srun does not name this plugin
  CHECK(!found({{"PMIX_RANK", "1"}}));
  // A program that a batch script starts by itself is no step.
  CHECK(!rankmesh::srun_without_pmix("Open MPI v4.1.4, x",
                                     [](std::string_view name) -> std::optional<std::string> {
                                       if (name != "SLURM_MPI_TYPE") return std::nullopt;
                                       return "pmi2";
                                     }));
  CHECK(!found({{"SLURM_MPI_TYPE", "pmi2"}}, "MPICH Version:\t4.0.2\nx"));
  CHECK(!found({{"SLURM_MPI_TYPE", "pmi2"}, {"OMPI_COMM_WORLD_RANK", "1"}}));
}

TEST_CASE("what a launcher does when a rank dies") {
  const auto end = [](const Variables& variables, std::string_view library = "Open MPI v4.1.4, x",
                      bool spans_nodes = false) {
    return rankmesh::end_by_death(
        library, spans_nodes, [&](const char* name) -> std::optional<std::string> {
          const auto found = variables.find(name);
          return found == variables.end() ? std::nullopt : std::optional{found->second};
        });
  };
  const Variables alone, mpirun{{"OMPI_COMM_WORLD_SIZE", "4"}};
  const auto with = [&](Variables more) {
    more.insert(mpirun.begin(), mpirun.end());
    return more;
  };
  const Variables guarded = with({{"RANKMESH_GUARD", "7:12"}});
  CHECK(!end(alone));
  REQUIRE(end(mpirun));
  CHECK_CONTAINS(end(mpirun)->message, "when a rank dies");
  CHECK_CONTAINS(end(mpirun)->hint, "--mca orte_allowed_exit_without_sync 1 -n ... rankmesh-guard");
  CHECK(!end(with({{"OMPI_MCA_orte_enable_recovery", "1"}})));
  CHECK(end(with({{"OMPI_MCA_orte_enable_recovery", "0"}})));
  CHECK(end(with({{"OMPI_MCA_orte_allowed_exit_without_sync", "1"}})));  // only for guards
  REQUIRE(end(guarded));
  CHECK_CONTAINS(end(guarded)->message, "without MPI_Finalize");
  CHECK(!end(with({{"RANKMESH_GUARD", "7:12"}, {"OMPI_MCA_orte_allowed_exit_without_sync", "1"}})));
  CHECK_CONTAINS(end({{"PMI_SIZE", "4"}}, "MPICH Version:\t4.0.2\nx")->hint,
                 "mpirun -n ... rankmesh-guard");
  CHECK(!end({{"PMI_SIZE", "4"}, {"RANKMESH_GUARD", "7:12"}}, "MPICH Version:\t4.0.2\nx"));
  CHECK_CONTAINS(end(mpirun, "Open MPI v5.0.7, x")->hint,
                 "mpirun --prtemca prte_allowed_exit_without_sync 1 -n ... rankmesh-guard");
  CHECK(!end(guarded, "Open MPI v5.0.7, x"));
  REQUIRE(end(guarded, "Open MPI v5.0.7, x", true));
  CHECK_CONTAINS(end(guarded, "Open MPI v5.0.7, x", true)->message, "another node dies");
  CHECK_CONTAINS(end(mpirun, "Open MPI v5.0.7, x", true)->hint,
                 "mpirun --with-ft ulfm -n ... rankmesh-guard");
  CHECK(!end(with({{"OMPI_MCA_mpi_ft_enable", "1"}}), "Open MPI v5.0.7, x", true));
  CHECK(!end(with({{"OMPI_MCA_mpi_ft_enable", "1"}}), "Open MPI v5.0.7, x"));  // --with-ft ulfm
  // srun starts ranks with guards, or mpirun, which starts them.
  const Variables srun{{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEPID", "0"}, {"PMIX_RANK", "1"}};
  const auto of_srun = [&](Variables more) {
    more.insert(srun.begin(), srun.end());
    return end(more);
  };
  REQUIRE(of_srun({{"RANKMESH_GUARD", "7:12"}}));
  CHECK_CONTAINS(of_srun({{"RANKMESH_GUARD", "7:12"}})->message, "srun --mpi=pmix ends the job");
  CHECK_CONTAINS(of_srun({})->hint,
                 "salloc or sbatch, and start it with mpirun --mca orte_allowed");
  CHECK(!of_srun({{"RANKMESH_GUARD", "7:12"},
                  {"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "4"},
                  {"OMPI_MCA_orte_allowed_exit_without_sync", "1"}}));
}

TEST_CASE("variables that the ranks inherit from an outer launcher prove nothing") {
  // mpirun starts its daemons with srun, one on each of 4 nodes, and one rank in all.
  CHECK(!mismatch({{"SLURM_STEP_NUM_TASKS", "4"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
  CHECK(!mismatch({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMI_SIZE", "1"}}));
  CHECK(!mismatch({}));
}

TEST_CASE("every launcher tells the number of a process on its node") {
  const auto local_rank = [](const Variables& variables) {
    return rankmesh::launcher_local_rank([&](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional{found->second};
    });
  };
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
                           "MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "FLUX_TASK_LOCAL_ID"}) {
    CAPTURE(name);
    CHECK(local_rank({{name, "3"}}) == 3);
    for (const char* value : {"", "-1", "3x", "99999999999"}) CHECK(!local_rank({{name, value}}));
  }
  CHECK(!local_rank({}));
  // An inner mpirun counts its own processes; the outer launcher's variables are inherited.
  CHECK(local_rank({{"OMPI_COMM_WORLD_LOCAL_RANK", "2"}, {"FLUX_TASK_LOCAL_ID", "0"}}) == 2);
  const Variables slurm{{"SLURM_LOCALID", "1"}, {"SLURM_PROCID", "5"}};
  CHECK(!local_rank(slurm));
  for (const char* pmi : {"PMIX_RANK", "PMI_RANK"}) {
    Variables step = slurm;
    step[pmi] = "5";
    CHECK(local_rank(step) == 1);
    step[pmi] = "6";
    CHECK(!local_rank(step));
  }
}
