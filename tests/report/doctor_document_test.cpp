// SPDX-License-Identifier: BSD-3-Clause
// The report of doctor, and the facts as JSON.
#include <doctest/doctest.h>

#include <string>

#include <nlohmann/json.hpp>

#include "doctor_job.hpp"
#include "rankmesh/base/error.hpp"
#include "report/write.hpp"
#include "support/checks.hpp"

using rankmesh::report::Format;
using rankmesh::report::RankFacts;
using rankmesh_test::Facts;
using rankmesh_test::findings_of;
using rankmesh_test::healthy_job;

namespace {

std::string text_of(const Facts& job, Format format, bool in_job = true) {
  return to_string(rankmesh::report::doctor({job}, findings_of(job),
                                            in_job ? "" : "mpirun -n 4 meshinfo doctor"),
                   format);
}

Facts sick_job() {
  Facts job = healthy_job();
  job[3].ptrace_scope = 2;
  job[3].limits.descriptors = 1024;
  job[5].variables["NCCL_ALGO"] = "Ring";
  return job;
}

}  // namespace

TEST_CASE("the text has the worst finding first, the nodes, and a summary") {
  const std::string text = text_of(sick_job(), Format::text);
  CHECK(
      text.starts_with("doctor  8 ranks on 4 nodes, Open MPI v5.0.3\n\n"
                       "error  nccl-settings  rank 5 (h2)\n  what  NCCL_ALGO differs"));
  CHECK(text.find("warning  limits  rank 3 (h1)") < text.find("note  ptrace-scope  rank 3 (h1)"));
  CHECK_CONTAINS(text, "  h2    4-5        4         16 GiB     +0.04  h3         2.0    24\n");
  CHECK_CONTAINS(text, "\n1 error, 1 warning, 1 note; ");
}

TEST_CASE("a healthy job, and one process without a job") {
  CHECK_CONTAINS(text_of(healthy_job(), Format::text), "Nothing was found; ");
  const std::string alone = text_of(healthy_job(1, 1), Format::text, false);
  CHECK_CONTAINS(alone, "without a job");
  CHECK_CONTAINS(alone, "Only this machine was checked.");
}

TEST_CASE("JSON has the findings, the counts and the nodes") {
  const auto json = nlohmann::json::parse(text_of(sick_job(), Format::json));
  CHECK(json["schema"] == "rankmesh.doctor/1");
  CHECK(json["errors"] == 1);
  CHECK(json["warnings"] == 1);
  CHECK(json["notes"] == 1);
  REQUIRE(json["findings"].size() == 3);
  CHECK(json["findings"][0]["id"] == "nccl-settings");
  CHECK(json["findings"][0]["severity"] == "error");
  CHECK(json["findings"][0]["ranks"] == "5");
  CHECK(json["findings"][0]["hosts"] == "h2");
  REQUIRE(json["nodes"].size() == 4);
  CHECK(json["nodes"][1]["host"] == "h1");
  CHECK(json["nodes"][1]["link"]["to_rank"] == 4);
}

TEST_CASE("CSV has a row for each finding") {
  const std::string csv = text_of(sick_job(), Format::csv);
  CHECK(csv.starts_with("severity,id,ranks,hosts,what,why,fix\nerror,nccl-settings,5,h2,"));
  CHECK(text_of(healthy_job(), Format::csv) == "severity,id,ranks,hosts,what,why,fix\n");
}

TEST_CASE("only errors and warnings count as trouble") {
  Facts job = healthy_job();
  job[0].ptrace_scope = 3;
  CHECK(!rankmesh::report::has_trouble(findings_of(job)));
  CHECK(rankmesh::report::has_trouble(findings_of(sick_job())));
}

TEST_CASE("facts survive the way through JSON") {
  RankFacts facts = healthy_job()[2];
  facts.variables["NCCL_DEBUG"] = "\xff\"\n";
  const RankFacts read = rankmesh::report::rank_facts_from_json(to_json(facts));
  CHECK(read.host == "h1");
  CHECK(read.cores == facts.cores);
  CHECK(read.limits.descriptors == 65536);
  CHECK(read.devices[0].has_ecc);
  CHECK(read.clock->error == facts.clock->error);
  CHECK(read.link->to == 4);
  facts.variables.erase("NCCL_DEBUG");
  CHECK(to_json(rankmesh::report::rank_facts_from_json(to_json(facts))) == to_json(facts));
}

TEST_CASE("facts of another version of rankmesh lack fields; other texts are refused") {
  CHECK(rankmesh::report::rank_facts_from_json("{\"rank\":3,\"new\":1}").rank == 3);
  for (const char* text : {"", "{", "[]", "3", "{\"rank\":\"three\"}"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(static_cast<void>(rankmesh::report::rank_facts_from_json(text)),
                    rankmesh::DataError);
  }
}

TEST_CASE("only variables that concern communication are read") {
  using rankmesh::report::is_examined_variable;
  for (const char* name : {"NCCL_ALGO", "UCX_TLS", "RANKMESH", "RANKMESH_LOG", "LD_LIBRARY_PATH",
                           "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "MPICH_GPU_SUPPORT_ENABLED"})
    CHECK(is_examined_variable(name));
  for (const char* name : {"HOME", "AWS_SECRET_ACCESS_KEY", "PATH", "SLURM_JWT"})
    CHECK(!is_examined_variable(name));
}
