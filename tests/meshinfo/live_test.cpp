// SPDX-License-Identifier: BSD-3-Clause
// meshinfo inside a job of four ranks.
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>

#include <unistd.h>
#include <nlohmann/json.hpp>

#include "process.hpp"
#include "support/checks.hpp"

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

TEST_CASE("show: once, with nodes, the host and the groups inside a node") {
  const Scratch scratch;
  const auto result = in_job(scratch, "show dp=2,tp=auto");
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(count(result.out, "mesh  dp=2,tp=2   4 ranks") == 1);
  CHECK(count(result.out, "3 n0") == 1);
  CHECK(count(result.out, "in one node  most nodes") == 1);
  CHECK(count(result.out, "n0 " + host() + ": ranks 0-3, processes ") == 1);
  CHECK_LACKS(result.out, "\x1b");
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
  CHECK(lines_of(in_job(scratch, "version").out).size() == 10);
}

TEST_CASE("an error is reported once, with status 2") {
  const Scratch scratch;
  for (const std::string arguments :
       {"show tp=3", "show tp=x", "groups dp=2,tp=2 --dim ep", "rank 4 tp=4",
        "show tp=4 --world-size 8", "show --nosuch", "show tp=4 -o nowhere/f"}) {
    CAPTURE(arguments);
    const auto result = in_job(scratch, arguments);
    CHECK_LACKS(result.out, "meshinfo: ");
    CHECK_LACKS(result.out, "ranks, digest");
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
  CHECK_LACKS(result.out, host() + ":");
  CHECK_LACKS(result.out, "in one node");
}

TEST_CASE("ranks with different meshes: one error that names both meshes") {
  const Scratch scratch;
  const auto result = shell(scratch,
                            "run-mpi 4 sh -c 'if [ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} = 2 ]; then "
                            "exec meshinfo show tp=4; "
                            "else exec meshinfo show dp=2,tp=2; fi'");
  CHECK(result.out == "");
  CHECK(result.status == 2);
  CHECK(count(result.err, "meshinfo: ") == 1);
  CHECK(count(result.err, "rank 2: tp=4") == 1);
  CHECK(count(result.err, "ranks 0-1,3: dp=2,tp=2") == 1);
}

TEST_CASE("routes: the coordinators of the job report the transport, and why a rule is skipped") {
  const Scratch scratch;
  const auto result = in_job(scratch, "routes dp=2,tp=2 --format json",
                             "RANKMESH_ROUTES='tp.all_reduce:0-32K=mpi' ");
  CHECK(result.err == "");
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json["schema"] == "rankmesh.routes/1");
  CHECK(json["rules"][0]["source"] == "environment");
  CHECK(json["names"]["tp"]["nodes"] == 1);
  for (const auto& route : json["names"]["tp"]["routes"]) {
    if (route["memory"] != "host") continue;
    CHECK(route["transport"].is_string());
    if (route["operations"] == nlohmann::json{"all_reduce"} && route["bytes"][0] == 0)
      CHECK(route["rules"] == nlohmann::json{1});
  }
  CHECK(lines_of(in_job(scratch, "routes dp=2,tp=2").out).at(0).starts_with("routes  dp=2,tp=2"));
}

TEST_CASE("bench: nccl-tests' columns, checked results, one table per name and operation") {
  const Scratch scratch;
  const auto text = in_job(scratch, "bench dp=2,tp=2 -b 8 -e 64 -f 4 -n 2 -w 1 -r 1 --op all");
  CHECK(text.status == 0);
  CHECK(text.err == "");
  CHECK(count(text.out, "#       size       count      type   redop    root") == 2 * 9);
  CHECK(count(text.out, "# Avg bus bandwidth") == 2 * 9);
  CHECK(text.out.ends_with("# Out of bounds values : 0 OK\n"));

  const auto result = in_job(scratch,
                             "bench tp=4 -b 12 -e 1K -i 500 -d int16 -o avg --json --op "
                             "all_reduce,all_gather,broadcast");
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json["wrong"] == 0);
  REQUIRE(json["tables"].size() == 3);
  // In the order of the operations, not of the options: broadcast, all_reduce, all_gather.
  const auto& broadcast = json["tables"][0]["rows"];
  CHECK(broadcast[0]["out_of_place"].is_null());
  CHECK(broadcast[0]["in_place"]["busbw"] == broadcast[0]["in_place"]["algbw"]);
  const auto& rows = json["tables"][1]["rows"];
  REQUIRE(rows.size() == 3);
  CHECK(rows[1]["size"] == 512);
  CHECK(rows[1]["count"] == 256);
  CHECK(rows[1]["redop"] == "avg");
  const auto& figures = rows[1]["out_of_place"];
  const auto is_near = [](double a, double b) { return std::abs(a - b) <= 1e-6 * b; };
  CHECK(is_near(figures["algbw"], 512 / figures["time_us"].get<double>() / 1e3));
  CHECK(is_near(figures["busbw"], 1.5 * figures["algbw"].get<double>()));  // 2 (n - 1) / n
  CHECK(json["tables"][2]["rows"][0]["size"] == 8);  // 4 blocks of a whole element
  CHECK(json["tables"][2]["rows"][0]["count"] == 1);

  // Groups of one are not measured, and all_to_all has a block for every member.
  const auto blocks = nlohmann::json::parse(
      in_job(scratch, "bench dp=4,tp=1 -b 12 -e 12 -d int16 -n 1 -w 0 --op all_to_all --json").out);
  REQUIRE(blocks["tables"].size() == 1);
  REQUIRE(blocks["tables"][0]["rows"].size() == 1);
  CHECK(blocks["tables"][0]["rows"][0]["size"] == 8);
  CHECK(blocks["tables"][0]["rows"][0]["count"] == 1);

  const auto csv = in_job(scratch,
                          "bench dp=2,tp=2 --dim tp -e 16 -n 2 -d half --op all_gather,broadcast "
                          "--output rows.csv");
  CHECK(csv.status == 0);
  CHECK(csv.out == "");
  const auto lines = lines_of(shell(scratch, "cat rows.csv").out);
  REQUIRE(lines.size() == 1 + 2 * 1 + 2 * 2);  // broadcast is in place only
  CHECK(lines[0] ==
        "name,operation,ranks,groups,size,count,type,redop,root,transport,form,time us,algbw,"
        "busbw,wrong");
  CHECK(lines[1].starts_with("tp,broadcast,2,2,8,4,float16,none,0,"));
  CHECK(lines[1].find(",in-place,") != std::string::npos);
  CHECK(lines[3].starts_with("tp,all_gather,2,2,8,2,float16,none,-1,"));
  CHECK(lines[3].find(",out-of-place,") != std::string::npos);
  CHECK(lines[3].ends_with(",0"));

  CHECK(in_job(scratch, "bench tp=4 -r 4 -e 8").status == 2);
  CHECK(in_job(scratch, "bench tp=4 --dim tq -e 8").status == 2);
  const auto nowhere = in_job(scratch, "bench tp=4 -e 8 --output /nowhere/at/all.txt");
  CHECK(nowhere.status == 2);
  CHECK_CONTAINS(nowhere.err, "cannot write '/nowhere/at/all.txt'");
}

TEST_CASE("tune: writes a file that can be read back, as a mesh file and as rules alone") {
  const Scratch scratch;
  const auto result =
      in_job(scratch, "tune dp=2,tp=2 -e 16 -n 2 -w 1 --op all_reduce,barrier -o tuned.toml");
  CHECK(result.err == "");
  CHECK(result.status == 0);
  CHECK(result.out == "");
  const auto shown = in_job(scratch, "show tuned.toml");
  CAPTURE(shown.err);
  CHECK(shown.status == 0);
  const auto text = shell(scratch, "cat tuned.toml").out;
  CHECK_CONTAINS(text, "mesh = \"dp=2,tp=2\"");
  CHECK_CONTAINS(text, "# tp.all_reduce 16: mpi ");
  CHECK_CONTAINS(text, "# dp.barrier 0: mpi ");
  CHECK_CONTAINS(text, "# machine: ");

  CHECK(in_job(scratch, "tune tuned.toml --dim tp -e 8 -n 2 --op all_reduce -o tuned.routes")
            .status == 0);
  CHECK(in_job(scratch, "routes dp=2,tp=2", "RANKMESH_ROUTES=@tuned.routes ").status == 0);
  const auto json = nlohmann::json::parse(
      in_job(scratch, "tune tp=4 -e 8 -n 2 --op all_reduce,barrier --format json").out);
  CHECK(json["schema"] == "rankmesh.tune/1");
  CHECK(json["world_size"] == 4);
  REQUIRE(json["measurements"].size() == 2);
  CHECK(json["measurements"][0]["operation"] == "barrier");
  CHECK(json["measurements"][1]["size"] == 8);
  CHECK(json["measurements"][1]["time_us"]["mpi"].get<double>() > 0);
  const auto csv = in_job(scratch, "tune tp=4 -e 8 -n 2 --op all_reduce --format csv");
  CHECK(lines_of(csv.out).at(0) == "name,operation,size,transport,time us");
  CHECK(lines_of(csv.out).at(1).starts_with("tp,all_reduce,8,mpi,"));
  CHECK(shell(scratch, "ls | grep tuned").out == "tuned.routes\ntuned.toml\n");
}

TEST_CASE("tune --by-size: rules for groups of 2, 3 and 4 ranks, which warn on another machine") {
  const Scratch scratch;
  const auto result = in_job(
      scratch, "tune tp=4 --by-size -b 64 -e 64 -n 2 -w 1 --op all_reduce,barrier -o sizes.routes");
  CHECK(result.err == "");
  CHECK(result.status == 0);
  const auto text = shell(scratch, "cat sizes.routes").out;
  for (const char* measured : {"# ranks(2).all_reduce 64: mpi ", "# ranks(3).barrier 0: mpi ",
                               "# ranks(4).all_reduce 64: mpi "})
    CHECK_CONTAINS(text, measured);
  CHECK(in_job(scratch, "tune tp=4 --by-size --dim tp").status == 2);

  CHECK(in_job(scratch, "routes dp=2,tp=2", "RANKMESH_ROUTES=@sizes.routes ").err == "");
  shell(scratch, "sed -i 's/^# machine: .*/# machine: 1 core, MPI of yesterday/' sizes.routes");
  const auto elsewhere = in_job(scratch, "routes dp=2,tp=2", "RANKMESH_ROUTES=@sizes.routes ");
  CHECK(elsewhere.status == 0);
  CHECK_CONTAINS(elsewhere.err,
                 "sizes.routes:2: the routes were measured on another machine (1 core, MPI of "
                 "yesterday) than this one (");
}

TEST_CASE("transfer --run: moves all elements and verifies them") {
  const Scratch scratch;
  const auto result =
      in_job(scratch,
             "transfer '[64,48] f32 @ dp=2,tp=2 : (tp, _) sum(dp)' '[64,48] bf16 @ tp=3 on "
             "1-3 : (_, tp)' --run --format json");
  CHECK(result.status == 0);
  REQUIRE(nlohmann::json::accept(result.out));
  const auto run = nlohmann::json::parse(result.out)["run"];
  CHECK(run["elements"] == 64 * 48);
  CHECK(run["wrong"] == 0);
  CHECK(run["seconds"] > 0.0);
  const auto few = in_job(scratch, "transfer '[8] f32 @ tp=5 : (tp)' '[8] f32 @ tp=1 : (_)' --run");
  CHECK(few.status == 2);
  CHECK_CONTAINS(few.err, "the plan has 5 ranks, the group 4");
}

TEST_CASE("a job opens the mesh of the settings that search writes") {
  const Scratch scratch;
  for (const std::string file : {"best.toml", "best.json"}) {
    const auto written = shell(scratch,
                               "meshinfo search files/mixtral.json --machine H200 --devices 4 "
                               "--memory 400GB --sequence 4096 --tokens-per-step 1Mi --fix pp=2 "
                               "--settings " +
                                   file);
    REQUIRE(written.status == 0);
    const auto shown = in_job(scratch, "show " + file);
    CHECK(shown.err == "");
    CHECK(shown.status == 0);
    CHECK_CONTAINS(shown.out, "4 ranks");
  }
}
