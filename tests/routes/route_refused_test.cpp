// SPDX-License-Identifier: BSD-3-Clause
// Tests the errors of invalid rules.
#include <doctest/doctest.h>

#include <string>

#include "rankmesh/base/error.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "support/checks.hpp"

using rankmesh::RouteSource;
using rankmesh::RouteTable;
using rankmesh::SpecError;

TEST_CASE("bad rules are refused with the position, the reason and a hint") {
  struct Bad {
    const char* text;
    std::size_t position;
    const char* reason;
  };
  const Bad table[] = {
      {"mpi", 0, "expected name.operation, found 'mpi'"},
      {"tp.all_reduce", 13, "expected ':' or '='"},
      {"tp=mpi", 0, "expected name.operation, found 'tp'"},
      {".*=mpi", 0, "'' is not a valid name"},
      {"t p.*=mpi", 0, "'t p' is not a valid name"},
      {"encoder..*=mpi", 0, "'encoder.' is not a valid name"},
      {"  tp.allreduce=mpi", 5, "unknown operation 'allreduce'"},
      {"*.*:hots=mpi", 4, "unknown condition 'hots'"},
      {"*.*:=mpi", 4, "unknown condition ''"},
      {"*.*:host:device=mpi", 9, "'device' is the second condition of one kind"},
      {"*.*:0-1:1-2=mpi", 8, "'1-2' is the second condition of one kind"},
      {"*.*:32K-32K=mpi", 4, "the range '32K-32K' contains no size"},
      {"*.*:64K-32K=mpi", 4, "the range '64K-32K' contains no size"},
      {"*.*:64K=mpi", 4, "expected a range, got '64K'"},
      {"*.*:0-3X=mpi", 6, "expected a whole number, got '3X'"},
      {"*.*:0-9999999999G=mpi", 6, "the size '9999999999' is out of range"},
      {"*.*:0-99999999999999999999=mpi", 6, "expected a whole number, got '99999999999999999999'"},
      {"*.*:ranks(8-2)=mpi", 10, "the range '8-2' contains no group size"},
      {"*.*:ranks(1)=mpi", 10, "groups of one rank have no route"},
      {"*.*:ranks(2):ranks(3)=mpi", 19, "duplicate condition 'ranks' in one rule"},
      {"*.*:host=ibv", 9, "unknown transport 'ibv'"},
      {"*.*:host=", 9, "unknown transport ''"},
      {"*.*:host=mpi:0-32K", 12, "expected ';' or the end after the transport"},
      {"*.*:host=mpi shm", 9, "unknown transport 'mpi shm'"},
      {"*.*:host=nccl", 9, "nccl does not carry host memory"},
      {"*.*:device=shm", 11, "shm does not carry device memory"},
      {"*.*:capture=mpi", 12, "mpi has no rules for CUDA graphs"},
      {"*.*:many_nodes=shm", 15, "shm does not reach other nodes"},
      {"*.*:one_node=hierarchical", 13,
       "hierarchical carries calls of groups that span nodes only"},
      {"tp.send:0-32K=mpi", 0, "rules for send cannot depend on the size"},
      {"*.*:v_form:0-32K=mpi", 0, "rules for v-forms have no sizes"},
      {"*.all_reduce:v_form=mpi", 0, "and an operation with v-forms"},
      {"*.all_gather=mpi; *.all_gather:v_form=shm", 18, "can never match"},
      {"tp.barrier:float=mpi", 0, "a barrier carries no data"},
      {"tp.*=mpi; tp.all_reduce=mpi", 10, "the rule 'tp.all_reduce=mpi' can never match"},
      {"tp.*=mpi; tp.all_reduce:0-32K=shm", 10,
       "the rule 'tp.all_reduce:0-32K=shm' can never match"},
      {"*.*:0-8K=mpi; *.*:8K-inf=mpi; tp.all_reduce:4K-64K=shm", 30, "can never match"},
      {"*.*:host=shm; *.*:host:0-8=shm", 14, "can never match"},
  };
  for (const Bad& bad : table) {
    CAPTURE(bad.text);
    try {
      (void)RouteTable::parse(bad.text, RouteSource::code, "here");
      FAIL_CHECK("accepted");
    } catch (const SpecError& error) {
      CAPTURE(error.message());
      CHECK(error.position() == bad.position);
      CHECK(error.message().starts_with("here: routes '"));
      CHECK_CONTAINS(error.message(), ", position " + std::to_string(bad.position) + ": ");
      CHECK_CONTAINS(error.message(), bad.reason);
      CHECK(error.message().size() < 300);
      CHECK(!error.hint().empty());
    }
  }
}

TEST_CASE("hints suggest the nearest word") {
  const auto hint = [](const char* text) {
    try {
      (void)RouteTable::parse(text, RouteSource::code, "x");
    } catch (const SpecError& error) {
      return error.hint();
    }
    return std::string{};
  };
  CHECK(hint("*.all_reduc=mpi")
            .starts_with("did you mean 'all_reduce'? the operations are: barrier, "));
  CHECK(hint("/tmp/tuned.routes") == "write @PATH to read rules from a file");
  CHECK(hint("*.*=shn") == "did you mean 'shm'? the transports are: mpi, shm, hierarchical, nccl");
}

TEST_CASE("a word of which every character differs is not suggested") {
  const auto hint = [](const char* text) {
    try {
      RouteTable::parse(text, RouteSource::code, "x").check_names({"dp", "pp"});
    } catch (const SpecError& error) {
      return error.hint();
    }
    return std::string{};
  };
  CHECK(hint("xy.*:host=mpi") == "the names are: dp, pp");
  CHECK(hint("dx.*:host=mpi") == "did you mean 'dp'? the names are: dp, pp");
}

TEST_CASE("errors in a text of several lines have the line, and the position in it") {
  CHECK_THROWS_WITH_AS(
      (void)RouteTable::parse("*.*:0-8=shm\n# so far so good\n  *.*:host=ibv\n", RouteSource::code,
                              "x.toml:3"),
      doctest::Contains(
          "x.toml:3, line 3: routes '  *.*:host=ibv', position 11: unknown transport"),
      SpecError);
}

TEST_CASE("damaged and huge texts are refused") {
  CHECK_THROWS_AS((void)RouteTable::parse(std::string(100000, 'a'), RouteSource::code, "x"),
                  SpecError);
  std::string many;
  for (int i = 0; i < 1001; ++i)
    many += "tp.all_reduce:" + std::to_string(i) + "-" + std::to_string(i + 1) + "=mpi\n";
  CHECK_THROWS_WITH_AS((void)RouteTable::parse(many, RouteSource::code, "x"),
                       doctest::Contains("more than 1000 rules"), SpecError);
  CHECK_THROWS_AS((void)RouteTable::parse(std::string{"*.*\0=mpi", 8}, RouteSource::code, "x"),
                  SpecError);
  CHECK_THROWS_WITH_AS(
      (void)RouteTable::read("@/nowhere/at/all", RouteSource::environment, "RANKMESH_ROUTES"),
      doctest::Contains("cannot read the route file '/nowhere/at/all'"), SpecError);
  CHECK_THROWS_AS((void)RouteTable::read("@/", RouteSource::environment, "RANKMESH_ROUTES"),
                  SpecError);
}
