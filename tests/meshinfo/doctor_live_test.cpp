// SPDX-License-Identifier: BSD-3-Clause
// meshinfo doctor in jobs that are healthy, and in jobs that a wrapper has made ill.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "process.hpp"
#include "support/checks.hpp"
#include "support/machine.hpp"

namespace {

using Ids = std::set<std::string>;
using rankmesh_test::Scratch;
using rankmesh_test::shell;

// Starts a job in which one rank first runs a command of the shell.
rankmesh_test::Result with_one_ill(const Scratch& scratch, int ranks, int ill,
                                   const std::string& command,
                                   const std::string& arguments = "--format json") {
  return shell(scratch,
               "run-mpi " + std::to_string(ranks) +
                   " sh -c 'if [ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} = " + std::to_string(ill) +
                   " ]; then " + command + "; fi; exec meshinfo doctor " + arguments + "'");
}

nlohmann::json parsed(const rankmesh_test::Result& result) {
  CAPTURE(result.err);
  REQUIRE(nlohmann::json::accept(result.out));
  return nlohmann::json::parse(result.out);
}

Ids ids_in(const nlohmann::json& report) {
  Ids ids;
  for (const auto& found : report["findings"]) ids.insert(found["id"].get<std::string>());
  return ids;
}

const nlohmann::json& finding_in(const nlohmann::json& report, const std::string& id) {
  for (const auto& found : report["findings"])
    if (found["id"] == id) return found;
  static const nlohmann::json none;
  return none;
}

// The variables with which a program sees other cores, such as "0-2/4": 0 to 2 of 4. They need the
// link .cores.so, because LD_PRELOAD ends at a blank.
std::string with_cores(const std::string& cores) {
  return "TEST_CORES=" + cores + " LD_PRELOAD=./.cores.so${LD_PRELOAD:+:$LD_PRELOAD} ";
}
const std::string link_cores = "ln -sf '" OTHER_CORES_PATH "' .cores.so; ";

// What doctor finds on a machine with so many cores anyway: it may have too few for the job.
Ids of_machine(const Scratch& scratch, int cores, int ranks, const std::string& before = "") {
  Ids ids = ids_in(parsed(shell(scratch, before + "meshinfo doctor --format json")));
  if (cores < ranks) ids.insert("oversubscription");
  return ids;
}

}  // namespace

TEST_CASE("nothing is found in a plain job that is not found without a job") {
  const Scratch scratch;
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    const auto result =
        shell(scratch, "run-mpi " + std::to_string(ranks) + " meshinfo doctor --format json");
    const auto report = parsed(result);
    CHECK(report["schema"] == "rankmesh.doctor/1");
    CHECK(report["in_job"] == true);
    CHECK(report["ranks"] == ranks);
    CHECK(ids_in(report) == of_machine(scratch, rankmesh_test::cores(), ranks));
    CHECK(result.status == (report["errors"] == 0 && report["warnings"] == 0 ? 0 : 1));
  }
}

TEST_CASE("nothing but too few cores is found on machines with any number of cores") {
  const Scratch scratch;
  for (const int cores : {1, 2, 3, 64}) {
    CAPTURE(cores);
    const std::string seen =
        with_cores("0-" + std::to_string(cores - 1) + "/" + std::to_string(cores));
    const auto report = parsed(shell(
        scratch, link_cores + "run-mpi 3 sh -c '" + seen + "exec meshinfo doctor --format json'"));
    CHECK(ids_in(report) == of_machine(scratch, cores, 3, link_cores + seen));
  }
}

TEST_CASE("without a job, this machine is checked, and the report says so") {
  const Scratch scratch;
  const auto result = shell(scratch, "meshinfo doctor");
  CHECK_CONTAINS(result.out, "Only this machine was checked.");
  CHECK(result.err == "");
  CHECK(parsed(shell(scratch, "meshinfo doctor --format json"))["in_job"] == false);
  const auto wrong = shell(scratch, "NCCL_SOCKET_IFNAME==nosuch meshinfo doctor");
  CHECK(wrong.status == 1);
  CHECK_CONTAINS(wrong.out, "error  nccl-interface");
}

TEST_CASE("a variable that differs on one rank") {
  const Scratch scratch;
  for (const int ranks : {2, 3}) {
    const auto result = with_one_ill(scratch, ranks, 1, "export NCCL_ALGO=Ring RANKMESH_STALL=20");
    CHECK(result.status == 1);
    const auto report = parsed(result);
    CHECK(finding_in(report, "nccl-settings")["ranks"] == "1");
    CHECK(finding_in(report, "nccl-settings")["severity"] == "error");
    CHECK(finding_in(report, "variables")["ranks"] == "1");
    CHECK_CONTAINS(finding_in(report, "variables")["what"].get<std::string>(),
                   "RANKMESH_STALL differs");
  }
}

TEST_CASE("values and names of variables of rankmesh") {
  const Scratch scratch;
  const auto report =
      parsed(with_one_ill(scratch, 2, 1,
                          "export RANKMESH_CHECK=maybe RANKMESH_ROUTES=tp.nosuch=shm "
                          "RANKMESH_DEADLNE=3"));
  CHECK(finding_in(report, "settings")["ranks"] == "1");
  const std::string what = finding_in(report, "settings")["what"].get<std::string>();
  CHECK_CONTAINS(what, "RANKMESH_CHECK must be 0 or 1, got 'maybe'");
  CHECK_CONTAINS(what, "RANKMESH_ROUTES");
  CHECK_CONTAINS(finding_in(report, "setting-names")["what"].get<std::string>(),
                 "RANKMESH_DEADLNE");
  const auto own = parsed(
      shell(scratch, "RANKMESH_ROUTES=tp.all_reduce=ucc run-mpi 2 meshinfo doctor --format json"));
  CHECK(ids_in(own) == of_machine(scratch, rankmesh_test::cores(), 2));
}

// Each rank has a /proc and a /dev/shm of its own, as in containers. MPI libraries do not expect
// that, and have to be told not to use shared memory. The launcher of Open MPI has to be told not
// to compare users: in a namespace, that of an ordinary user has another number.
TEST_CASE("ranks of a node that cannot share memory") {
  const Scratch scratch;
  const std::string alone =
      "unshare --map-root-user --mount --pid --fork sh -c '"
      "mount -t proc proc /proc && mount -t tmpfs shm /dev/shm && exec ";
  SKIP_UNLESS(shell(scratch, alone + "true'").status == 0, "needs namespaces of its own");
  const std::string job =
      "OMPI_MCA_btl=self,tcp PMIX_MCA_psec=none MPIR_CVAR_NOLOCAL=1 run-mpi 2 " + alone;
  const auto report = parsed(shell(scratch, job + "meshinfo doctor --format json'"));
  // Without shared memory each rank is a node for MPICH, and has a finding of its own.
  std::string ranks;
  for (const auto& finding : report["findings"])
    if (finding["id"] == "no-shared-memory")
      ranks += (ranks.empty() ? "" : "-") + finding["ranks"].get<std::string>();
  CHECK(ranks == "0-1");
  const auto show = shell(scratch, job + "meshinfo show tp=2'");
  CHECK_CONTAINS(show.out, "the ranks of n0 share no memory, so groups inside it use MPI");
}

TEST_CASE("a low limit of descriptors on one rank") {
  const Scratch scratch;
  const auto report = parsed(with_one_ill(scratch, 3, 2, "ulimit -n 200"));
  CHECK(finding_in(report, "limits")["ranks"] == "2");
  CHECK(finding_in(report, "descriptors")["ranks"] == "2");
}

TEST_CASE("ranks that are bound to the same core") {
  const Scratch scratch;
  const auto result =
      shell(scratch, link_cores + "run-mpi 2 sh -c 'rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; " +
                         with_cores("$((rank * 2))-2/4") + "exec meshinfo doctor --format json'");
  CHECK(result.status == 1);
  const auto report = parsed(result);
  CHECK(finding_in(report, "overlapping-bindings")["ranks"] == "0-1");
  CHECK_CONTAINS(finding_in(report, "overlapping-bindings")["what"].get<std::string>(),
                 "rank 1: core 2");
}

TEST_CASE("a rank that is bound to one core by the operating system") {
  SKIP_UNLESS(rankmesh_test::cores() >= 2, "needs 2 cores, to bind a rank to one of them");
  const Scratch scratch;
  const auto first = shell(scratch, "taskset -cp $$ | sed 's/.*: //; s/[-,].*//'");
  REQUIRE(first.status == 0);
  const std::string core = first.out.substr(0, first.out.find('\n'));
  const auto result =
      with_one_ill(scratch, 2, 1, "exec taskset -c " + core + " meshinfo doctor --format json");
  CHECK(result.status == 1);
  CHECK_CONTAINS(finding_in(parsed(result), "overlapping-bindings")["what"].get<std::string>(),
                 "rank 1: core " + core);
}

TEST_CASE("text, CSV and a file") {
  const Scratch scratch;
  const auto result = with_one_ill(scratch, 2, 1, "export RANKMESH_STALL=20", "-o report.csv");
  CHECK(result.out == "");
  CHECK(scratch.read("report.csv").starts_with("severity,id,ranks,hosts,what,why,fix\n"));
  const auto text = with_one_ill(scratch, 2, 1, "export RANKMESH_STALL=20", "");
  CHECK_CONTAINS(text.out, "warning  variables  rank 1 (");
  CHECK_CONTAINS(text.out, "  what  RANKMESH_STALL differs: rank 1: 20; rank 0: not set\n");
}

TEST_CASE("a launcher that does not fit: one report, from the first process") {
  const Scratch scratch;
  const std::string second = "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 ";
  const auto result = shell(scratch, "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 meshinfo doctor tp=2");
  CHECK(result.status == 1);
  CHECK_CONTAINS(result.out, "error  launcher  the whole job");
  CHECK_CONTAINS(result.out, "srun --mpi=pmix");
  const auto other = shell(scratch, second + "meshinfo doctor tp=2");
  CHECK(other.status == 1);
  CHECK(other.out == "");

  const auto show = shell(scratch, "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 meshinfo show tp=2");
  CHECK(show.status == 2);
  CHECK(show.out == "");
  CHECK(
      show.err.starts_with("meshinfo: the MPI world has 1 rank, although the launcher started 2: "
                           "SLURM_STEP_NUM_TASKS=2 is set\n  hint: start the program with srun "
                           "--mpi=pmix"));
  const auto silent = shell(scratch, second + "meshinfo show tp=2");
  CHECK(silent.out == "");
  CHECK(silent.err == "");
  CHECK(shell(scratch, second + "meshinfo show tp=2 --offline").status == 0);
}

TEST_CASE("a rank that does not come: the other one says where it waits, and ends") {
  const Scratch scratch;
  const auto result = with_one_ill(scratch, 2, 1, "sleep 20", "--timeout 1");
  CHECK(result.status != 0);
  CHECK_CONTAINS(result.err, "meshinfo: rank 0 (host ");
  CHECK_CONTAINS(result.err, "has waited 1 s in ");
}

TEST_CASE("a mesh of another size than the job") {
  const Scratch scratch;
  const auto result = shell(scratch, "run-mpi 2 meshinfo doctor tp=3");
  CHECK(result.status == 2);
  CHECK_CONTAINS(result.err, "tp=3 has 3 ranks, but the world has 2 ranks");
}
