// SPDX-License-Identifier: BSD-3-Clause
// The JSON documents: their keys and types, exactly, and their numbers against plain loops.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "process.hpp"

namespace {

using nlohmann::json;
using Groups = std::vector<std::vector<int>>;

json parsed(const std::string& arguments) {
  const rankmesh_test::Scratch scratch;
  const auto result = rankmesh_test::shell(scratch, "meshinfo " + arguments + " --format json");
  CAPTURE(arguments);
  REQUIRE(result.err == "");
  REQUIRE(result.status == 0);
  REQUIRE(json::accept(result.out));
  std::map<int, std::set<std::string>>
      seen;  // by depth; the parser itself would drop a repeated key
  return json::parse(result.out, [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) seen[depth + 1].clear();
    if (event == json::parse_event_t::key)
      CHECK(seen[depth].insert(value.get<std::string>()).second);
    return true;
  });
}

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [key, value] : object.items()) names.insert(key);
  return names;
}

using Keys = std::set<std::string>;

}  // namespace

TEST_CASE("groups: the schema, the names and row-major lists") {
  const json document = parsed("groups pp=2,dp=3,tp=4");
  CHECK(keys(document) == Keys{"schema", "world_size", "groups"});
  CHECK(document["schema"] == "rankmesh.groups/1");
  CHECK(document["world_size"] == 24);
  CHECK(keys(document["groups"]) == Keys{"pp", "dp", "tp"});

  Groups pp, dp, tp;
  for (int d = 0; d < 3; ++d)
    for (int t = 0; t < 4; ++t) pp.push_back({4 * d + t, 12 + 4 * d + t});
  for (int p = 0; p < 2; ++p)
    for (int t = 0; t < 4; ++t) dp.push_back({12 * p + t, 12 * p + 4 + t, 12 * p + 8 + t});
  for (int first = 0; first < 24; first += 4)
    tp.push_back({first, first + 1, first + 2, first + 3});
  CHECK(document["groups"]["pp"] == json(pp));
  CHECK(document["groups"]["dp"] == json(dp));
  CHECK(document["groups"]["tp"] == json(tp));
}

TEST_CASE("groups: a product's key is the text that was asked for") {
  const json document = parsed("groups pp=2,dp=3,tp=4 --dim 'tp*pp' --dim dp");
  CHECK(keys(document["groups"]) == Keys{"tp*pp", "dp"});
  Groups expected;
  for (int d = 0; d < 3; ++d) {
    expected.emplace_back();
    for (int p = 0; p < 2; ++p)
      for (int t = 0; t < 4; ++t) expected.back().push_back(12 * p + 4 * d + t);
  }
  CHECK(document["groups"]["tp*pp"] == json(expected));
}

TEST_CASE("groups: a name that is asked for twice is one key") {
  CHECK(keys(parsed("groups tp=2 --dim tp --dim tp")["groups"]) == Keys{"tp"});
}

TEST_CASE("groups: the world size that fills auto") {
  const json document = parsed("groups dp=auto,tp=2 --world-size 6");
  CHECK(document["world_size"] == 6);
  CHECK(document["groups"]["dp"] == json(Groups{{0, 2, 4}, {1, 3, 5}}));
}

TEST_CASE("rank: the schema, and coordinates of all views merged") {
  const json document = parsed("rank 21 'pp=2,dp=4,tp=4 | pp=2,edp=2,ep=8 ; mp=pp*tp'");
  CHECK(keys(document) == Keys{"schema", "rank", "coordinates", "groups"});
  CHECK(document["schema"] == "rankmesh.rank/1");
  CHECK(document["rank"] == 21);
  CHECK(document["coordinates"] == json{{"pp", 1}, {"dp", 1}, {"tp", 1}, {"edp", 0}, {"ep", 5}});
  CHECK(keys(document["groups"]) == Keys{"pp", "dp", "tp", "edp", "ep", "mp"});
  CHECK(document["groups"]["dp"] ==
        json{{"index", 5}, {"rank_in_group", 1}, {"size", 4}, {"ranks", "17-29:4"}});
  CHECK(document["groups"]["mp"] ==
        json{{"index", 1}, {"rank_in_group", 5}, {"size", 8}, {"ranks", "4-7,20-23"}});
}

TEST_CASE("show: the schema, the views and the names") {
  const json document = parsed("show 'pp=2,dp=auto ; all=pp*dp' --world-size 8");
  CHECK(keys(document) ==
        Keys{"schema", "mesh", "world_size", "digest", "views", "names", "rank_0"});
  CHECK(document["schema"] == "rankmesh.show/1");
  CHECK(document["mesh"] == "pp=2,dp=4");
  CHECK(document["world_size"] == 8);
  CHECK(document["digest"].get<std::string>().size() == 32);
  CHECK(document["views"] ==
        json::parse(R"([[{"name":"pp","size":2,"stride":4},{"name":"dp","size":4,"stride":1}]])"));
  CHECK(document["names"].size() == 3);
  for (const json& name : document["names"])
    CHECK(keys(name) == Keys{"name", "size", "groups", "coverage", "first", "last", "stride"});
  CHECK(document["rank_0"] == json{{"groups", 3}, {"communicators", 3}});
}

TEST_CASE("presets: the schema, and every key") {
  const json document = parsed("presets deepspeed");
  CHECK(keys(document) == Keys{"schema", "presets"});
  CHECK(document["schema"] == "rankmesh.presets/1");
  REQUIRE(document["presets"].size() == 5);
  for (const json& preset : document["presets"]) {
    CHECK(keys(preset) == Keys{"system", "kind", "convention", "keys"});
    CHECK(preset["system"] == "deepspeed");
    for (const json& key : preset["keys"]) CHECK(keys(key) == Keys{"name", "form", "meaning"});
    CHECK(preset["keys"].back()["name"] == "world_size");
  }
}

TEST_CASE("version: the schema") {
  const json document = parsed("version");
  CHECK(keys(document) == Keys{"schema", "rankmesh", "libraries", "built_with"});
  CHECK(document["schema"] == "rankmesh.version/1");
  CHECK(document["rankmesh"] == RANKMESH_EXPECTED_VERSION);
}
