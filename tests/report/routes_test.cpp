// SPDX-License-Identifier: BSD-3-Clause
#include "report/reports.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "rankmesh/spec/mesh_spec.hpp"
#include "report/write.hpp"
#include "support/checks.hpp"

using nlohmann::json;
using rankmesh::MeshSpec;
using rankmesh::RouteTable;
using rankmesh::report::Format;

namespace {

std::string report_of(const char* rules, Format format) {
  RouteTable table = RouteTable::parse(rules, rankmesh::RouteSource::code, "x");
  table.append(
      RouteTable::parse("*.*:host=mpi; *.*:device=nccl", rankmesh::RouteSource::code, "x"));
  return to_string(rankmesh::report::routes(MeshSpec::parse_string("tp=2").plan(), table, nullptr),
                   format);
}

}  // namespace

TEST_CASE("a rule for all sizes does not hold for v-forms, which have a row of their own") {
  const json found = json::parse(report_of("tp.all_gather:host:0-inf=shm", Format::json));
  std::vector<json> rules;
  for (const json& route : found["names"]["tp"]["routes"])
    if (route["memory"] == "host" && route["operations"] == json{"all_gather"})
      rules.push_back(route["rules"]);
  CHECK(rules == std::vector<json>{{1, 2}, {2}});
}

TEST_CASE("at most half of the operations are listed by their names, more by those left out") {
  std::string rules =
      "*.barrier:host=shm; *.broadcast:host=shm; *.reduce:host=shm; *.all_reduce:host=shm; "
      "*.all_gather:host=shm";
  CHECK_CONTAINS(report_of(rules.c_str(), Format::text),
                 " all but barrier, broadcast, reduce, all_reduce, all_gather ");
  rules += "; *.reduce_scatter:host=shm; *.gather:host=shm; *.scatter:host=shm";
  CHECK_CONTAINS(report_of(rules.c_str(), Format::text),
                 " all_to_all, send, recv, send_recv, scan");
}
