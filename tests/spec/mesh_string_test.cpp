// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <random>

#include "rankmesh/spec/mesh_spec.hpp"
#include "support/checks.hpp"

using rankmesh::MeshSpec;
using rankmesh::SpecError;

namespace {

// Parses and plans a mesh. Returns the error, or an empty one.
SpecError refusal(const std::string& text, std::optional<std::int64_t> world = std::nullopt) {
  try {
    (void)MeshSpec::parse(text).plan(world);
  } catch (const SpecError& error) {
    return error;
  }
  return {"accepted", ""};
}

}  // namespace

TEST_CASE("views and products are planned as written") {
  const auto plan = MeshSpec::parse("pp=2,dp=4,tp=8").plan();
  CHECK(plan.world_size() == 64);
  CHECK(plan.describe(37) == "pp=1,dp=0,tp=5");
  CHECK(MeshSpec::parse(" pp = 2 , dp=4\n,\ttp= 8 ").plan().digest() == plan.digest());
  CHECK(MeshSpec::parse("tp=8").plan(8).groups("tp").group_count() == 1);
}

TEST_CASE("auto takes the rest of the world") {
  const MeshSpec spec =
      MeshSpec::parse("pp=4,dp=auto,cp=2,tp=8 | pp=4,edp=auto,ep=16 ; dp_cp=dp*cp, mp=tp*pp");
  CHECK(!spec.world_size().has_value());
  const auto plan = spec.plan(512);
  CHECK(plan.groups("dp").group_size() == 8);
  CHECK(plan.groups("edp").group_size() == 8);
  CHECK(plan.groups("dp_cp").group(0).to_string() == "0-120:8");
  CHECK(plan.groups("mp").group(0).to_string() ==
        "0-7,128-135,256-263,384-391");  // in the order of the view, not of the product
  CHECK(MeshSpec::parse("dp=auto|ep=8").world_size() == 8);
  CHECK(MeshSpec::parse("auto=2,tp=auto").plan(4).groups("auto").group_size() ==
        2);  // an ordinary name
}

TEST_CASE("the first and the last rank along a dimension") {
  const MeshSpec spec = MeshSpec::parse("pp=4,dp=auto,tp=2 ; embd = ends( pp ), mp=pp*tp");
  const auto plan = spec.plan(16);
  CHECK(spec.to_string() == "pp=4,dp=auto,tp=2 ; embd=ends(pp), mp=pp*tp");
  CHECK(plan.groups("embd").group_count() == 4);
  CHECK(plan.groups("embd").group(0).to_string() == "0,12");
  CHECK(!plan.groups("embd").find(4).has_value());
  CHECK(plan.digest() != MeshSpec::parse("pp=4,dp=2,tp=2 ; embd=pp, mp=pp*tp").plan().digest());
  // `ends` is no reserved word.
  CHECK(MeshSpec::parse("ends=2,tp=2 ; x=ends*tp, y=ends(ends)").plan().groups("x").group_size() ==
        4);
  CHECK(MeshSpec::parse("pp=1,tp=2 ; embd=ends(pp)").plan().groups("embd").group_size() == 1);
  CHECK_THROWS_WITH_AS(MeshSpec::parse("pp=2 ; embd=ends(pp"), doctest::Contains("expected ')'"),
                       SpecError);
  CHECK_THROWS_WITH_AS((void)MeshSpec::parse("pp=2 ; embd=ends(tp)").plan(),
                       doctest::Contains("not a dimension"), SpecError);
}

TEST_CASE("the canonical string parses back to the same plan") {
  for (const char* text :
       {"tp=8", "pp=2,dp=4,tp=8", "pp=4,dp=auto,tp=8|pp=4,edp=auto,ep=8;x=dp*tp,y=pp",
        "pp=4,tp=2 ; embd=ends(pp)"}) {
    const MeshSpec spec = MeshSpec::parse(text);
    const MeshSpec again = MeshSpec::parse(spec.to_string());
    CHECK(again.to_string() == spec.to_string());
    const std::int64_t world = spec.world_size().value_or(512);
    CHECK(again.plan(world).digest() == spec.plan(world).digest());
  }
}
TEST_CASE("bad strings are refused with position and reason") {
  struct Bad {
    std::string text;
    std::size_t position;
    std::string reason;
  };
  const std::vector<Bad> table{
      {"", 0, "empty"},
      {"   ", 3, "empty"},
      {"pp=0", 3, "must be at least 1, got 0"},
      {"pp=-1", 3, "must be a whole number, got '-1'"},
      {"pp=2,tp", 7, "expected '='"},
      {"pp=2,", 5, "expected a dimension"},
      {"=2", 0, "expected a dimension"},
      {"2=pp", 0, "expected a dimension"},
      {"pp=2,pp=3", 5, "duplicate dimension 'pp' in one view"},
      {"pp=2;pp=pp", 5, "duplicate name 'pp'"},
      {"pp=2;x=pp,x=pp", 10, "duplicate name 'x'"},
      {"pp=99999999999999999999", 3, "overflows"},
      {"a=4294967296,b=4294967296", 0, "overflows 64 bits"},
      {"a=auto,b=auto", 9, "both auto"},
      {"pp=2 3", 5, "expected ','"},
      {"pp=2;", 5, "expected the name of a product"},
      {"pp=2;x", 6, "expected '='"},
      {"pp=2;x=", 7, "expected a dimension"},
      {"pp=2;x=zz", 5, "which is not a dimension of the mesh"},
      {"pp=2|dp=3", 5, "dp=3 has 3 ranks"},
      {"pp=2,dp=4|dp=4,pp=2", 10, "different groups in two views"},
      {"pp=2,dp=2|ep=4;x=dp*ep", 15, "no view contains all"},
      {"pp=2,dp=2;x=dp*dp", 10, "twice"},
      {"p.p=2", 1, "expected '='"},
      {"pp=2x", 3, "must be a whole number, got '2x'"},
      {"nosuch:tp=2", 0, "unknown preset 'nosuch'"},
      {"dp=auto", 0, "not known"},
  };
  for (const Bad& bad : table) {
    const SpecError error = refusal(bad.text);
    CAPTURE(bad.text);
    CHECK(error.position() == bad.position);
    CHECK_CONTAINS(error.message(), bad.reason);
    CHECK(!error.hint().empty());
  }
}

TEST_CASE("a name has at most 64 characters") {
  const std::string longest(64, 'n');
  CHECK(MeshSpec::parse(longest + "=2").plan().groups(longest).group_size() == 2);
  CHECK(MeshSpec::parse("a=2,b=2 ; " + longest + "=a*b").plan().groups(longest).group_size() == 4);
  const SpecError error = refusal("dp=2," + longest + "n=2");
  CHECK_CONTAINS(error.message(), "64 characters");
  CHECK(error.position() == 5);
}

TEST_CASE("a world that does not fit is refused") {
  CHECK_CONTAINS(refusal("pp=2,tp=4", 16).message(), "has 8 ranks, but the world has 16");
  CHECK_CONTAINS(refusal("pp=2,dp=auto", 7).message(), "the world size 7 is not divisible by 2");
  CHECK_CONTAINS(refusal("dp=auto", 0).message(), "the world size must be at least 1, got 0");
}

TEST_CASE("damaged text is refused quickly, however long") {
  std::mt19937 random{3};
  std::string junk(1 << 20, ' ');
  for (char& c : junk) c = static_cast<char>(random());
  CHECK(refusal(junk).message().size() < 300);
  CHECK(refusal(std::string(1 << 20, 'a')).message().size() < 300);
  const std::string alphabet = "apt=,|;*:0123456789auto \n_";
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 24, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    try {
      const auto plan = MeshSpec::parse(text).plan();
      CHECK(plan.world_size() >= 1);
      for (const auto& family : plan.families())
        CHECK(family.group_count() * family.group_size() == plan.world_size());
    } catch (const SpecError& error) {
      CHECK(!error.hint().empty());
    }
  }
}

TEST_CASE("an error quotes the text as it is, and replaces control characters alone") {
  CHECK_CONTAINS(refusal("pp=2, tp=x").message(), "mesh 'pp=2, tp=x', position 9");
  CHECK_CONTAINS(refusal("pp=2,\ttp=\x7f~").message(), "mesh 'pp=2,?tp=?~', position 9");
}
