// meshinfo inside a job of four ranks.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include <unistd.h>
#include <nlohmann/json.hpp>

#include "process.hpp"

namespace {

using rankmesh_test::lines_of;
using rankmesh_test::Scratch;
using rankmesh_test::shell;

rankmesh_test::Result in_job(const Scratch& scratch, const std::string& arguments,
                             const std::string& before = "") {
  return shell(scratch, before + "run-mpi 4 meshinfo " + arguments);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

std::string host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

TEST_CASE("show: once, with nodes, the host and what lies inside a node") {
  const Scratch scratch;
  const auto result = in_job(scratch, "show dp=2,tp=auto");
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(count(result.out, "mesh  dp=2,tp=2   4 ranks") == 1);
  CHECK(count(result.out, "3 n0") == 1);
  CHECK(count(result.out, "in one node  most nodes") == 1);
  CHECK(count(result.out, "n0 " + host() + ": ranks 0-3, processes ") == 1);
  CHECK(result.out.find('\x1b') == std::string::npos);
}

TEST_CASE("show: every rank's host and process id as JSON") {
  const Scratch scratch;
  const auto result = in_job(scratch, "show dp=2,tp=2 --format json");
  REQUIRE(nlohmann::json::accept(result.out));
  const auto ranks = nlohmann::json::parse(result.out)["ranks"];
  REQUIRE(ranks.size() == 4);
  std::set<int> processes;
  for (int r = 0; r < 4; ++r) {
    const auto& entry = ranks[static_cast<std::size_t>(r)];
    CHECK(entry["rank"] == r);
    CHECK(entry["coordinates"] == nlohmann::json{{"dp", r / 2}, {"tp", r % 2}});
    CHECK(entry["host"] == host());
    CHECK(entry["node"] == 0);
    CHECK(entry["local_rank"] == r);
    processes.insert(entry["pid"].get<int>());
  }
  CHECK(processes.size() == 4);
}

TEST_CASE("rank: once, with host, node-local rank and process id; the mesh from RANKMESH") {
  const Scratch scratch;
  const auto result = in_job(scratch, "rank 2", "RANKMESH=dp=2,tp=2 ");
  CHECK(result.status == 0);
  CHECK(count(result.out, "rank 2 of 4   dp=1,tp=0") == 1);
  CHECK(count(result.out, "host " + host() + ", local rank 2, process ") == 1);
}

TEST_CASE("groups and version: once") {
  const Scratch scratch;
  const auto groups = in_job(scratch, "groups dp=auto,tp=2 --format json");
  CHECK(groups.out ==
        "{\"schema\":\"rankmesh.groups/1\",\"world_size\":4,\"groups\":{\"dp\":[[0,2],[1,3]],"
        "\"tp\":[[0,1],[2,3]]}}\n");
  CHECK(groups.status == 0);
  CHECK(lines_of(in_job(scratch, "version").out).size() == 5);
}

TEST_CASE("an error is said once, with status 2") {
  const Scratch scratch;
  for (const std::string arguments :
       {"show tp=3", "show tp=x", "groups dp=2,tp=2 --dim ep", "rank 4 tp=4", "show tp=4 --world-size 8",
        "show --nosuch", "show tp=4 -o nowhere/f"}) {
    CAPTURE(arguments);
    const auto result = in_job(scratch, arguments);
    CHECK(result.out.find("meshinfo: ") == std::string::npos);
    CHECK(result.out.find("ranks, digest") == std::string::npos);
    CHECK(count(result.err, "meshinfo: ") == 1);
    CHECK(count(result.err, "  hint: ") == 1);
    CHECK(result.status == 2);
  }
}

TEST_CASE("--offline ignores the job: its size, its hosts, its ranks") {
  const Scratch scratch;
  const auto result = in_job(scratch, "show dp=2,tp=4 --offline");
  CHECK(result.status == 0);
  CHECK(count(result.out, "mesh  dp=2,tp=4   8 ranks") == 4);  // every process by itself
  CHECK(result.out.find(host() + ":") == std::string::npos);
  CHECK(result.out.find("in one node") == std::string::npos);
}

TEST_CASE("ranks with different meshes: one error that names both") {
  const Scratch scratch;
  const auto result =
      shell(scratch,
            "run-mpi 4 sh -c 'if [ $OMPI_COMM_WORLD_RANK = 2 ]; then exec meshinfo show tp=4; "
            "else exec meshinfo show dp=2,tp=2; fi'");
  CHECK(result.out == "");
  CHECK(result.status == 2);
  CHECK(count(result.err, "meshinfo: ") == 1);
  CHECK(count(result.err, "rank 2: tp=4") == 1);
  CHECK(count(result.err, "ranks 0-1,3: dp=2,tp=2") == 1);
}
