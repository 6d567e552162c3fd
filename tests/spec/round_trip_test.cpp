// SPDX-License-Identifier: BSD-3-Clause
// Tests that printed strings and files parse back to the same plan, for random descriptions.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "place/mesh_file.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "support/iterations.hpp"

using rankmesh::MeshSpec;

namespace {

std::mt19937 mesh_randomness{20261121};

std::int64_t below(std::int64_t n) {
  return static_cast<std::int64_t>(mesh_randomness() % static_cast<std::uint64_t>(n));
}
bool maybe() { return below(2) == 0; }

// A random mesh of `size` ranks; `size` is a power of 2 from 4 up.
std::string random_mesh(std::int64_t size) {
  switch (below(5)) {
    case 0:
      return "megatron:tp=2,world_size=" + std::to_string(size);
    case 1:
      return "dp=auto,tp=2 | edp=auto,ep=4 ; both=dp*tp";
    case 2:
      return "torch:shape=2x" + std::to_string(size / 2) + ",dim_names=a.b";
    default:
      return "pp=2,dp=" + std::to_string(size / 4) + ",tp=2" + (maybe() ? ";mp=tp*pp" : "");
  }
}

// Random `size` ranks from `first` on.
std::string random_ranks(std::int64_t first, std::int64_t size) {
  if (maybe()) return "\"" + std::to_string(first) + "-" + std::to_string(first + size - 1) + "\"";
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), first);
  std::ranges::shuffle(ranks, mesh_randomness);
  std::string text = "[";
  for (const std::int64_t rank : ranks) text += std::to_string(rank) + ", ";
  return text + "]";
}

std::string random_options() {
  std::string text;
  if (maybe()) text += "max_ctas = " + std::to_string(1 + below(64)) + "\n";
  if (maybe()) text += "priority = " + std::to_string(below(5) - 2) + "\n";
  if (maybe()) text += "ranks_per_id = " + std::to_string(below(200)) + "\n";
  if (maybe()) text += "lazy = " + std::string{maybe() ? "true" : "false"} + "\n";
  if (maybe()) text += "duplicates = [\"side \\\"way\", \"b\"]\n";
  return text;
}

std::string random_file() {
  const std::int64_t size = std::int64_t{4} << below(3);
  std::string text;
  std::string tables;
  if (maybe()) {
    tables = "[grids.one]\nmesh = \"" + random_mesh(size) + "\"\nranks = " + random_ranks(0, size) +
             "\n[grids.another]\nmesh = \"pp=2,tp=auto\"\nranks = " +
             random_ranks(size + below(2), size) + "\n";
    if (maybe()) tables += "[options.another.tp]\n" + random_options();
  } else {
    text = "mesh = \"" + random_mesh(size) + "\"\n";
    if (below(3) == 0) text += "rank_offset = " + std::to_string(4 + 4 * below(3)) + "\n";
    if (text.find("rank_offset") == text.npos && maybe())
      text += "rank_order = " + random_ranks(0, size) + "\n";
  }
  if (maybe()) text += "world_size = 64\n";
  if (text.find("world_size = 64") != text.npos && tables.empty() &&
      text.find("rank_") == text.npos)
    text = "mesh = \"dp=auto,tp=2\"\nworld_size = 64\n";  // a mesh on the whole world has its size
  if (maybe()) text += "routes = 'tp.*:host=shm # near; \\n'\n";
  if (maybe())
    text += "source = \"A paper\\nin two lines \\\\ \\u0001 \u00e9\"\ngiven = [\"tp = 2\"]\n";
  if (maybe()) tables += "[groups]\nzz = [" + random_ranks(0, 3) + ", \"3\"]\nfirst = [[1, 0]]\n";
  if (tables.find("zz =") != tables.npos && maybe()) tables += "[options.zz]\n" + random_options();
  if (text.size() % 2 == 0)
    tables += "[settings]\nzero = 1\nseconds = 0.5\nrecompute = \"none \\\" \\n\"\n";
  return text + tables;
}

}  // namespace

TEST_CASE("random files: the TOML form parses back to the same plan, options and source") {
  int strings = 0;
  for (int round = 0; round < 500; ++round) {
    const std::string text = random_file();
    CAPTURE(text);
    const MeshSpec spec = MeshSpec::parse_toml(text, "a.toml");
    const std::string toml = to_toml(spec);
    CAPTURE(toml);
    const MeshSpec again = MeshSpec::parse_toml(toml, "b.toml");
    CHECK(to_toml(again) == toml);
    CHECK(again.world_size() == spec.world_size());
    CHECK(again.routes() == spec.routes());
    CHECK(again.provenance().source == spec.provenance().source);
    CHECK(again.provenance().given == spec.provenance().given);
    CHECK(again.settings() == spec.settings());
    CHECK((text.find("[settings]") == text.npos) == again.settings().empty());
    const std::int64_t world = spec.world_size().value_or(64);
    const auto plan = spec.plan(world);
    CHECK(again.plan(world).canonical_text() == plan.canonical_text());
    CHECK(again.plan(world).options_text() == plan.options_text());
    CHECK(again.describe() == spec.describe());
    if (!spec.fits_string()) continue;
    ++strings;
    CHECK(MeshSpec::parse_string(spec.to_string()).plan(world).digest() == plan.digest());
    CHECK(MeshSpec::parse_string(spec.to_string()).to_string() == spec.to_string());
  }
  CHECK(strings > 20);
}

TEST_CASE("strings and published files: the TOML form has the same digest") {
  std::vector<std::string> meshes{
      "tp=8", "pp=2,dp=auto,tp=8|pp=2,edp=auto,ep=8;x=dp*tp,y=pp",
      "megatron:world_size=64,tp=2,pp=2,ep=4", "deepspeed:kind=grid,pp=2,mp=2,dp=2",
      "jax:kind=hybrid,mesh_shape=2x2,dcn_mesh_shape=2x1,granule_of_rank=0x1x0x1x0x1x0x1"};
  for (const char* folder : {RANKMESH_EXAMPLE_MESHES, RANKMESH_EXAMPLE_SPECS})
    for (const auto& entry : std::filesystem::directory_iterator{folder})
      if (entry.path().extension() == ".toml") meshes.push_back(entry.path().string());
  for (const std::string& mesh : meshes) {
    CAPTURE(mesh);
    const MeshSpec spec = MeshSpec::parse(mesh);
    const MeshSpec again = MeshSpec::parse_toml(to_toml(spec), "again.toml");
    const std::int64_t world = spec.world_size().value_or(64);
    CHECK(again.plan(world).digest() == spec.plan(world).digest());
    CHECK(again.provenance().unknown == spec.provenance().unknown);
    CHECK(to_toml(again) == to_toml(spec));
  }
}

TEST_CASE("a mesh string never drops a part silently") {
  for (const std::string beyond : {"rank_offset = 1", "rank_order = [1, 0]", "routes = '*.*=mpi'",
                                   "[groups]\nx = [[0, 1]]", "[options.tp]\nlazy = true"}) {
    CAPTURE(beyond);
    const MeshSpec spec = MeshSpec::parse_toml("mesh = 'tp=2'\n" + std::string{beyond}, "x.toml");
    CHECK(!spec.fits_string());
    CHECK_THROWS_WITH_AS((void)spec.to_string(), doctest::Contains("a mesh string cannot express"),
                         rankmesh::UnsupportedError);
    CHECK(!spec.describe().empty());
  }
  CHECK(MeshSpec::parse_toml("mesh = 'tp=2'\nworld_size = 2\nsource = 'x'", "x.toml").to_string() ==
        "tp=2");
}

TEST_CASE("damaged files are refused as SpecErrors, or plan and are printed back") {
  const std::string pieces[] = {"[grids.a]\n",
                                "[grids.b]\n",
                                "[groups]\n",
                                "[options.a.tp]\n",
                                "[options.tp]\n",
                                "mesh = ",
                                "ranks = ",
                                "\"tp=4\"\n",
                                "\"dp=auto,tp=2\"\n",
                                "\"0-3\"\n",
                                "'4-7'\n",
                                "[1, 0]\n",
                                "[[0, 1], '2-3']\n",
                                "world_size = 8\n",
                                "rank_offset = 4\n",
                                "rank_order = ",
                                "x = ",
                                "max_ctas = ",
                                "lazy = true\n",
                                "9\n",
                                "-1\n",
                                "9223372036854775807\n",
                                "split_from = \"tp\"\n",
                                "{}\n",
                                "'0-9223372036854775806'\n",
                                "\"megatron:tp=2\"\n",
                                "duplicates = ['a']\n"};
  int planned = 0;
  const int rounds = rankmesh_test::iterations(6000, 1);
  for (int round = 0; round < rounds; ++round) {
    std::string text = round % 2 == 0 ? random_file() : "";
    for (std::int64_t edits = round % 2 == 0 ? below(4) : below(12); edits > 0; --edits) {
      std::size_t at =
          text.empty() ? 0
                       : static_cast<std::size_t>(below(static_cast<std::int64_t>(text.size())));
      if (round % 2 == 0 && maybe())
        text.erase(at, static_cast<std::size_t>(below(12)));
      else
        text.insert(round % 2 == 0 ? at : text.size(), pieces[below(std::size(pieces))]);
    }
    CAPTURE(text);
    try {
      const MeshSpec spec = MeshSpec::parse_toml(text, "x.toml");
      const auto plan = spec.plan(maybe() ? std::nullopt : std::optional<std::int64_t>{64});
      ++planned;
      CHECK(MeshSpec::parse_toml(to_toml(spec), "y.toml").plan(plan.world_size()).digest() ==
            plan.digest());
      CHECK(plan.memberships(plan.world_size() - 1).size() <= plan.families().size() * 4);
    } catch (const rankmesh::SpecError& error) {
      CHECK(!error.hint().empty());
      CHECK(error.message().size() < 500);
    }
  }
  CHECK(planned > rounds / 60);
}
