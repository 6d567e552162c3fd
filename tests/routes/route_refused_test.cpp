// Rules that mean nothing.
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
      {".*=mpi", 0, "'' is no name of groups"},
      {"t p.*=mpi", 0, "'t p' is no name of groups"},
      {"encoder..*=mpi", 0, "'encoder.' is no name of groups"},
      {"  tp.allreduce=mpi", 5, "there is no operation 'allreduce'"},
      {"*.*:hots=mpi", 4, "there is no condition 'hots'"},
      {"*.*:=mpi", 4, "there is no condition ''"},
      {"*.*:host:device=mpi", 9, "'device' is a second condition of its kind"},
      {"*.*:0-1:1-2=mpi", 8, "'1-2' is a second condition of its kind"},
      {"*.*:32K-32K=mpi", 4, "no size lies in '32K-32K'"},
      {"*.*:64K-32K=mpi", 4, "no size lies in '64K-32K'"},
      {"*.*:64K=mpi", 4, "'64K' is no range"},
      {"*.*:0-3X=mpi", 6, "'3X' is no whole number"},
      {"*.*:0-9999999999G=mpi", 6, "'9999999999' is no size in bytes"},
      {"*.*:0-99999999999999999999=mpi", 6, "'99999999999999999999' is no whole number"},
      {"*.*:ranks(8-2)=mpi", 10, "no size of a group lies in '8-2'"},
      {"*.*:ranks(1)=mpi", 10, "groups of one rank need no route"},
      {"*.*:ranks(2):ranks(3)=mpi", 19, "'ranks' stands twice in one rule"},
      {"*.*:host=ibv", 9, "there is no transport 'ibv'"},
      {"*.*:host=", 9, "there is no transport ''"},
      {"*.*:host=mpi:0-32K", 12, "expected ';' or the end after the transport"},
      {"*.*:host=mpi shm", 9, "there is no transport 'mpi shm'"},
      {"*.*:host=nccl", 9, "nccl does not carry host memory"},
      {"*.*:device=shm", 11, "shm does not carry device memory"},
      {"*.*:capture=mpi", 12, "mpi is never inside a CUDA graph"},
      {"*.*:many_nodes=shm", 15, "shm does not reach other nodes"},
      {"tp.send:0-32K=mpi", 0, "send has no rules by size"},
      {"tp.barrier:float=mpi", 0, "barrier carries no data"},
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

TEST_CASE("hints name what is near") {
  const auto hint = [](const char* text) {
    try {
      (void)RouteTable::parse(text, RouteSource::code, "x");
    } catch (const SpecError& error) {
      return error.hint();
    }
    return std::string{};
  };
  CHECK(hint("*.all_reduc=mpi")
            .starts_with("did you mean 'all_reduce'? operations are *: barrier, "));
  CHECK(hint("/tmp/tuned.routes") == "a file of rules is written @PATH");
  CHECK(hint("*.*=shn") == "did you mean 'shm'? transports are: mpi, shm, nccl");
}

TEST_CASE("in a text of several lines the line is said, and the position counts from its begin") {
  CHECK_THROWS_WITH_AS(
      (void)RouteTable::parse("*.*:0-8=shm\n# so far so good\n  *.*:host=ibv\n", RouteSource::code,
                              "x.toml:3"),
      doctest::Contains("x.toml:3, line 3: routes '  *.*:host=ibv', position 11: there is"),
      SpecError);
}

TEST_CASE("neither junk nor size is dangerous") {
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
