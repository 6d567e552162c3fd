// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <filesystem>

#include "rankmesh/spec/mesh_spec.hpp"
#include "support/checks.hpp"

using rankmesh::MeshSpec;
using rankmesh::SpecError;

TEST_CASE("a file has a mesh string and its source") {
  const MeshSpec spec = MeshSpec::parse_toml(R"(
mesh = "dp=auto,tp=8"
world_size = 64
source = "A paper"
locator = "Table 1"
given = ["64 GPUs"]
derived = []
unknown = ["the order of ranks"]
)",
                                             "x.toml");
  CHECK(spec.world_size() == 64);
  CHECK(spec.plan().groups("dp").group_size() == 8);
  CHECK(spec.provenance().source == "A paper");
  CHECK(spec.provenance().given == std::vector<std::string>{"64 GPUs"});
  CHECK(spec.plan().digest() == MeshSpec::parse("dp=8,tp=8").plan().digest());
}

TEST_CASE("bad files are refused with file, line and reason") {
  const std::vector<std::pair<std::string, std::string>> table{
      {"", "the file has no mesh"},
      {"mesh = 3", "x.toml:1: 'mesh' must be a string"},
      {"mesh = \"tp=8\"\nwordl_size = 8", "x.toml:2: unknown key 'wordl_size'"},
      {"mesh = \"tp=0\"", "x.toml:1: mesh 'tp=0', position 3"},
      {"mesh = \"other.toml\"", "must be a mesh string, not another file"},
      {"mesh = \"x.toml \"", "expected '='"},  // the trailing blank makes it a mesh string
      {"mesh = \"tp=8\"\nworld_size = 0", "must be a whole number from 1 up"},
      {"mesh = \"tp=8\"\nworld_size = \"8\"", "must be a whole number from 1 up"},
      {"mesh = \"tp=8\"\ngiven = [1]", "must contain strings only"},
      {"mesh = = 2", "TOML syntax error"},
      {std::string(1 << 20, '['), "TOML syntax error"},
  };
  for (const auto& [text, reason] : table) {
    CAPTURE(reason);
    try {
      (void)MeshSpec::parse_toml(text, "x.toml");
      FAIL_CHECK("accepted");
    } catch (const SpecError& error) {
      CHECK_CONTAINS(error.message(), reason);
      CHECK(error.message().size() < 400);
      CHECK(!error.hint().empty());
    }
  }
  CHECK_THROWS_AS((void)MeshSpec::parse_toml("mesh='tp=8'\nworld_size=16", "x").plan(), SpecError);
  CHECK_THROWS_AS((void)MeshSpec::parse_toml("mesh='tp=8'\nworld_size=8", "x").plan(16), SpecError);
  CHECK_THROWS_WITH_AS((void)MeshSpec::parse("no/such/file.toml"), doctest::Contains("cannot read"),
                       SpecError);
  CHECK_THROWS_AS((void)MeshSpec::parse("/.toml"), SpecError);
}

TEST_CASE("every published layout plans") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{RANKMESH_EXAMPLE_MESHES}) {
    if (entry.path().extension() != ".toml") continue;
    CAPTURE(entry.path().string());
    ++files;
    const MeshSpec spec = MeshSpec::parse(entry.path().string());
    const auto plan = spec.plan();
    CHECK(plan.world_size() == spec.world_size());
    CHECK(!spec.provenance().source.empty());
    CHECK(!spec.provenance().locator.empty());
    CHECK(!spec.provenance().given.empty());
    for (const auto& family : plan.families())
      CHECK(family.coverage(plan.world_size()) == rankmesh::Coverage::partition);
  }
  CHECK(files >= 6);
}

TEST_CASE("keys of JSON on one line keep their order") {
  const auto plan =
      MeshSpec::parse_toml(R"({"mesh":"all=4","groups":{"b":["0-1"],"a":["2-3"]}})", "x.json")
          .plan(4);
  std::vector<std::string> names;
  for (const auto& family : plan.families()) names.push_back(family.name());
  CHECK(names == std::vector<std::string>{"all", "b", "a"});
}

TEST_CASE("a file in JSON has the same keys, and a table of settings is the program's") {
  const MeshSpec spec = MeshSpec::parse_toml(
      " {\"mesh\": \"dp=2,tp=4\", \"world_size\": 8, \"given\": [\"8 GPUs\"],"
      " \"settings\": {\"zero\": 1, \"layers\": [1, 2], \"rate\": 0.5, \"full\": true}}",
      "x.json");
  CHECK(spec.world_size() == 8);
  CHECK(spec.provenance().given == std::vector<std::string>{"8 GPUs"});
  CHECK(spec.plan().digest() == MeshSpec::parse("dp=2,tp=4").plan().digest());
  const MeshSpec same =
      MeshSpec::parse_toml("mesh = \"dp=2,tp=4\"\n[settings]\nzero = 1\n", "x.toml");
  CHECK(same.plan().digest() == spec.plan().digest());
  const auto refuses = [](const std::string& text, const char* why) {
    CAPTURE(why);
    CHECK_THROWS_WITH_AS((void)MeshSpec::parse_toml(text, "x.json"), doctest::Contains(why),
                         SpecError);
  };
  refuses("{\"mesh\":\n\"tp=2\"", "x.json:2: the text is no object of JSON");
  for (const char* text : {"", "[1]", "1", "mesh = \"tp=2\"", "{} 1"})
    refuses(text, "x.json:1: the text is no object of JSON");
  refuses("{\"mesh\": null}", "x.json:1: 'mesh' has no value");
  refuses("{\"mesh\": \"tp=2\",\n\"mesh\": \"tp=4\"}", "x.json:2: the key 'mesh' is given twice");
  refuses("{}", "x.json: the file has no mesh");
  refuses("{\"mesh\": \"tp=2\",\n\n\"mseh\": 1}", "x.json:3: unknown key 'mseh'");
  refuses("{\n\"mesh\": \"tp=2\",\n\"given\": [\"a\",\n2]}",
          "x.json:3: 'given' must contain strings only");
  refuses("{\"mesh\": \"tp=2\",\n\"settings\": {},\n\"options\":\n{\"tp\": {\n\"lasy\": 1}}}",
          "x.json:5: unknown key 'lasy'");
  refuses("{\"mesh\": \"tp=2\", \"world_size\": 18446744073709551615}", "must be a whole number");
  refuses("{\"mesh\": \"tp=2\", \"given\": " + std::string(40, '[') + std::string(40, ']') + "}",
          "nested too deeply");
  refuses("{\"mesh\": \"tp=2\", \"settings\": 1}", "'settings' must be a table");
  refuses("{\"mesh\": \"x.json\"}", "not another file");
}
