// SPDX-License-Identifier: BSD-3-Clause
// Tests the errors of files that are valid TOML but not valid meshes.
#include <doctest/doctest.h>

#include "rankmesh/spec/mesh_spec.hpp"
#include "spec/spec_of.hpp"
#include "support/checks.hpp"

using rankmesh::MeshSpec;
using rankmesh::SpecError;

namespace {

struct Bad {
  const char* text;
  const char* reason;
};

// Checks that the parser or the plan reports the place, the reason and a hint.
void check_refused(const std::vector<Bad>& table) {
  for (const Bad& bad : table) {
    CAPTURE(bad.text);
    try {
      (void)spec_of(bad.text).plan();
      FAIL_CHECK("accepted");
    } catch (const SpecError& error) {
      CAPTURE(error.message());
      CHECK_CONTAINS(error.message(), bad.reason);
      CHECK(error.message().starts_with("x.toml:"));
      CHECK(error.message().size() < 400);
      CHECK(!error.hint().empty());
    }
  }
}

}  // namespace

TEST_CASE("invalid lists, orders and offsets are refused at their line") {
  check_refused({
      {"mesh = 'tp=4'\n[groups]\nx = 3", "x.toml:3: 'x' must be a list of groups"},
      {"mesh = 'tp=4'\n[groups]\nx = []", "x.toml:3: 'x' must be a list of groups"},
      {"mesh = 'tp=4'\n[groups]\nx = [[0, 1],\n [2, 'a']]",
       "x.toml:4: 'x' must be a list of ranks"},
      {"mesh = 'tp=4'\n[groups]\nx = [[]]", "x.toml:3: 'x' must be a list of ranks"},
      {"mesh = 'tp=4'\n[groups]\nx = ['0-1', '3-2']",
       "x.toml:3: ranks, position 2: the range from 3 to 2 falls"},
      {"mesh = 'tp=4'\n[groups]\nx = [[1, 1]]", "x.toml:3: duplicate rank 1"},
      {"mesh = 'tp=4'\n[groups]\nx = [[0, -1]]", "x.toml:3: 'x' must be a list of ranks"},
      {"mesh = 'tp=4'\n[groups]\nx = ['0-7']",
       "x.toml:3: 'x' lists rank 7, but the world has 4 ranks"},
      {"mesh = 'tp=4'\n[groups]\ntp = ['0-1']", "x.toml:3: duplicate name 'tp'"},
      {"mesh = 'tp=4'\n[groups]\n'a b' = ['0-1']", "x.toml:3: 'a b' is not a valid name"},
      {"mesh = 'tp=4'\n[groups]\nx = ['0-9999999999']",
       "x.toml:3: the groups list more than 1048576 ranks"},
      {"mesh = 'tp=4'\ngroups = 3", "x.toml:2: 'groups' must be a table"},
      {"mesh = 'tp=4'\nrank_order = [0, 1]", "x.toml:1: the mesh has 4 ranks, but 2 are listed"},
      {"mesh = 'dp=auto,tp=2'\nrank_order = [0, 1, 2]", "the world size 3 is not divisible by 2"},
      {"mesh = 'tp=2'\nrank_order = [0, 0]", "x.toml:2: duplicate rank 0"},
      {"mesh = 'tp=2'\nrank_order = [0, 9]\nworld_size = 2",
       "x.toml:1: the mesh uses rank 9, but the world has 2"},
      {"mesh = 'tp=2'\nrank_order = []", "x.toml:2: 'rank_order' must be a list of ranks"},
      {"mesh = 'tp=2'\nrank_offset = 1\nrank_order = [0, 1]", "cannot be combined"},
      {"mesh = 'tp=2'\nrank_offset = -1",
       "x.toml:2: 'rank_offset' must be a whole number from 0 up"},
      {"mesh = 'tp=2'\nrank_offset = 3\nworld_size = 4",
       "x.toml:1: the mesh uses rank 4, but the world has 4 ranks"},
      {"mesh = 'tp=auto'\nrank_offset = 4\nworld_size = 4",
       "x.toml:1: the mesh begins at rank 4, but the world has 4"},
      {"mesh = 'tp=auto'\nrank_offset = 4", "x.toml:1: mesh 'tp=auto', position 0: 'tp' is auto"},
      {"mesh = 'tp=2'\nrank_offset = 9223372036854775806",
       "x.toml:1: the ranks of the mesh overflow"},
      {"mesh = 'tp=2'\nroutes = 3", "x.toml:2: 'routes' must be a string"},
      {"mesh = 'tp=2'\nroutes = 'tp.*:host=shmem'",
       "x.toml:2: routes 'tp.*:host=shmem', position 10: unknown transport 'shmem'"},
      {"mesh = 'tp=2'\nrank_ordre = [0]", "x.toml:2: unknown key 'rank_ordre'"},
  });
  CHECK_THROWS_WITH_AS(
      (void)spec_of("mesh = 'tp=2'\nworld_size = 2").plan(4),
      doctest::Contains("x.toml:2: the mesh file is for 2 ranks, but the world has 4"), SpecError);
}

TEST_CASE("invalid grids are refused at their line") {
  check_refused({
      {"[grids.a]\nranks = '0-3'", "x.toml:1: the grid 'a' has no mesh"},
      {"[grids.a]\nmesh = 'tp=2'", "x.toml:1: the grid 'a' has no ranks"},
      {"[grids.a]\nmesh = 'tp=2'\nranks = '0-3'",
       "x.toml:2: the grid 'a' has 2 ranks, but 4 are listed"},
      {"[grids.a]\nmesh = 'tp=x'\nranks = '0-3'", "x.toml:2: mesh 'tp=x', position 3"},
      {"[grids.a]\nmesh = 'b.toml'\nranks = '0-3'",
       "x.toml:2: 'mesh' must be a mesh string, not another file"},
      {"[grids.a]\nmesh = 'tp=2'\nranks = '0-1'\nrank = 3", "x.toml:4: unknown key 'rank'"},
      {"mesh = 'tp=2'\n[grids.a]\nmesh = 'tp=2'\nranks = '0-1'",
       "x.toml:1: 'mesh' cannot be combined with grids"},
      {"rank_offset = 2\n[grids.a]\nmesh = 'tp=2'\nranks = '0-1'",
       "x.toml:1: 'rank_offset' cannot be combined with grids"},
      {"grids = 2", "x.toml:1: 'grids' must be a table"},
      {"[grids]", "'grids' is empty"},
      {"[grids]\na = 2", "x.toml:2: 'a' must be a table"},
      {"[grids.'a.b']\nmesh = 'tp=2'\nranks = '0-1'", "x.toml:1: 'a.b' is not a valid name"},
      {"[grids.a]\nmesh = 'tp=4'\nranks = '0-3'\n[grids.b]\nmesh = 'tp=2'\nranks = '3-4'",
       "x.toml:5: rank 3 is in two grids, 'a' and 'b'"},
      {"[grids.a]\nmesh = 'tp=3'\nranks = '0-6:3'\n[grids.b]\nmesh = 'tp=2'\nranks = [1, 6]",
       "x.toml:5: rank 6 is in two grids, 'a' and 'b'"},
      {"[grids.a]\nmesh = 'tp=auto'\nranks = '0-99999999998:2'\n[grids.b]\nmesh = 'tp=auto'\nranks "
       "= "
       "'1-99999999999:2'",
       "interleave"},
      {"world_size = 4\n[grids.a]\nmesh = 'tp=2'\nranks = '4-5'",
       "x.toml:3: the grid 'a' uses rank 5"},
  });
  // Interleaved ranks without an overlap are accepted.
  CHECK(spec_of("[grids.a]\nmesh='tp=4'\nranks='0-6:2'\n[grids.b]\nmesh='tp=4'\nranks='1-7:2'")
            .plan()
            .world_size() == 8);
}

TEST_CASE("invalid options are refused at their line, with the nearest key or name") {
  check_refused({
      {"mesh = 'dp=2,tp=2'\n[options.dq]\nlazy = true",
       "x.toml:2: options are given for 'dq', but the mesh has no groups of that name"},
      {"mesh = 'dp=2,tp=2'\n[options.dp]\nlasy = true", "x.toml:3: unknown key 'lasy'"},
      {"mesh = 'dp=2,tp=2'\n[options.dp]\nlazy = 1", "x.toml:3: 'lazy' must be true or false"},
      {"mesh = 'dp=2,tp=2'\n[options.dp]\nmax_ctas = '4'",
       "x.toml:3: 'max_ctas' must be a whole number from 1 to"},
      {"mesh = 'dp=2,tp=2'\n[options.dp]\nmax_ctas = 0",
       "x.toml:3: 'max_ctas' must be a whole number from 1 to"},
      {"mesh = 'dp=2,tp=2'\n[options.dp]\nmax_ctas = 65",
       "x.toml:2: options of 'dp': min_ctas and max_ctas must be from 1 to 64, got 65"},
      {"mesh = 'dp=2,tp=2'\n[options.dp]\npriority = 99999999999",
       "x.toml:3: 'priority' must be a whole number"},
      {"mesh = 'dp=2,tp=2'\n[options.dp]\nduplicates = 'a'",
       "x.toml:3: 'duplicates' must be a list of strings"},
      {"mesh = 'dp=2,tp=2'\n[options.dp]\nsplit_from = 'pp'",
       "x.toml:2: 'dp' is split from 'pp', but the mesh has no groups of that name"},
      {"mesh = 'dp=2,tp=2'\n[options.dp]\nsplit_from = 'tp'",
       "x.toml:2: options of 'dp': group 0,2 does not lie inside one group of"},
      {"mesh = 'dp=2,tp=2'\n[options]\ndp = 3", "x.toml:3: 'dp' must be a table"},
      {"mesh = 'dp=2,tp=2'\noptions = []", "x.toml:2: 'options' must be a table"},
      {"[grids.a]\nmesh = 'tp=2'\nranks = '0-1'\n[options.a.dp]\nlazy = true",
       "x.toml:4: options are given for 'a.dp'"},
      {"[grids.a]\nmesh = 'tp=2'\nranks = '0-1'\n[options.a]\nlazy = true",
       "x.toml:5: 'lazy' must be a table"},
      {"[grids.a]\nmesh = 'tp=2'\nranks = '0-1'\n[options.a.tp]\n[options.'a.tp']",
       "duplicate options of 'a.tp'"},
  });
  try {
    (void)spec_of("mesh = 'dp=2,tp=2'\n[options.dp]\nlasy = true");
  } catch (const SpecError& error) {
    CHECK(error.hint().starts_with("did you mean 'lazy'?"));
  }
}
