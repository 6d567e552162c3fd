// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "rankmesh/spec/mesh_spec.hpp"
#include "report/reports.hpp"
#include "report/write.hpp"
#include "support/checks.hpp"

using nlohmann::json;
using rankmesh::MeshSpec;
using rankmesh::report::Format;

TEST_CASE("every step of every rank is correct, and the groups follow") {
  for (const std::string mesh :
       {"tp=1", "pp=3,dp=2,tp=4", "pp=2,dp=2,tp=2 | pp=2,edp=1,ep=4 ; dp_tp=dp*tp",
        "megatron:world_size=24,tp=2,pp=3,rank_offset=8", "deepspeed:kind=grid,pp=2,dp=2,mp=2",
        "deepspeed:kind=groups,ep=4,mp=2,world_size=16",
        "torch:shape=2x2,dim_names=dp.tp,rank_map=1x3x5x7,world_size=8"}) {
    CAPTURE(mesh);
    const auto plan = MeshSpec::parse_string(mesh).plan();
    for (std::int64_t rank = 0; rank < plan.world_size(); ++rank) {
      const json found =
          json::parse(to_string(rankmesh::report::explain_rank(plan, rank), Format::json));
      for (std::size_t v = 0; v < plan.views().size(); ++v) {
        const auto& view = found["views"][v];
        CHECK(view["member"] == plan.views()[v].coordinates(rank).has_value());
        if (!view["member"]) continue;
        std::int64_t left = view["position"];
        for (const auto& step : view["steps"]) {
          CHECK(step["value"] == left);
          const std::int64_t stride = step["stride"];
          left = step["remainder"];
          CHECK(step["value"] == step["quotient"].get<std::int64_t>() * stride + left);
          CHECK(left < stride);
          CHECK(left >= 0);
        }
        CHECK(left == 0);
      }
      CHECK(found["groups"].size() == plan.memberships(rank).size());
      const auto document = rankmesh::report::explain_rank(plan, rank);
      CHECK_LACKS(to_string(document, Format::text), "  \n");
    }
  }
}

TEST_CASE("the order lists strides and neighbours") {
  const auto plan = MeshSpec::parse_string("pp=2,dp=2,tp=4").plan();
  const json found = json::parse(to_string(rankmesh::report::explain_order(plan), Format::json));
  const json& order = found["views"][0]["fastest_first"];
  REQUIRE(order.size() == 3);
  CHECK(order[0]["name"] == "tp");
  CHECK(order[1]["stride"] == 4);
  CHECK(order[2]["next_to_first"] == 8);
  CHECK(order[1]["within_ranks_in_a_row"] == 8);
}

// The groups of ds_model are 2^30 runs of 5 ranks; found by a fuzz target.
TEST_CASE("a rank of a huge world is explained at once") {
  const auto plan = MeshSpec::parse_string("deepspeed:kind=grid,pp=1073741824,mp=5,dp=3").plan();
  const json found = json::parse(to_string(rankmesh::report::explain_rank(plan, 42), Format::json));
  CHECK(found["groups"][0]["ranks"].get<std::string>().size() < 1100);
}
