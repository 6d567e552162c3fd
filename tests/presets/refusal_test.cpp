// SPDX-License-Identifier: BSD-3-Clause
// Tests the errors of presets, also for configurations that a system accepts.
#include <doctest/doctest.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "support/checks.hpp"

using rankmesh::MeshSpec;

namespace {

struct Case {
  const char* mesh;
  std::size_t position;
  const char* reason;  // a part of the message
};

const Case cases[] = {
    {"megatrn:tp=2", 0, "unknown preset 'megatrn'"},
    {"megatron:", 9, "expected a key"},
    {"megatron:tp", 11, "expected '='"},
    {"megatron:tp=", 12, "has no value"},
    {"megatron:tp=2,tp=4", 14, "duplicate key 'tp'"},
    {"megatron:tp=2,qp=4", 14, "has no key 'qp'"},
    {"megatron:tp=0", 12, "cannot be '0'"},
    {"megatron:tp=-1", 12, "cannot be '-1'"},
    {"megatron:tp=99999999999999999999", 12, "cannot be"},
    {"megatron:tp=2", 0, "needs the world size"},
    {"megatron:world_size=10,tp=4", 20, "is not divisible by tp*cp*pp = 4"},
    {"megatron:world_size=8,tp=2,order=tp-tp-dp-pp", 33, "contains 'tp' 2 times"},
    {"megatron:world_size=8,tp=2,order=tp-xp-dp-pp", 33, "unknown dimension 'xp'"},
    {"megatron:world_size=8,tp=2,order=tp-pp", 33, "leaves out 'dp', whose size is 4"},
    {"megatron:world_size=8,tp=2,order=dp-pp", 33, "leaves out 'tp', whose size is 2"},
    {"megatron:world_size=8,etp=2,order=dp-pp", 34, "leaves out 'tp', whose size is 2"},
    {"megatron:world_size=16,tp=2,pp=2,cp=2,order=tp-cp-pp-ep-dp", 44, "does not end in pp"},
    {"megatron:world_size=12,num_dist_opt=5", 36, "is not divisible by num_dist_opt = 5"},
    {"hypercommgrid:shape=2x3,dim_names=a", 34, "1 names for 2 sizes"},
    {"hypercommgrid:shape=2x3,dim_names=a.a", 34, "cannot be 'a.a'"},
    {"hypercommgrid:shape=2x3,dim_names=a.b,world_size=7", 49, "multiply to 6"},
    {"hypercommgrid:shape=2,dim_names=a,rank_offset=9223372036854775807", 0, "64 bits"},
    {"vllm:world_size=16,dp=2,tp=4", 16, "the sizes multiply to 8, but the world has 16 ranks"},
    {"vllm:tp=4,dcp=3", 14, "does not divide tp=4"},
    {"vllm:tp=3000000000,pp=3000000000,dp=3000000000", 0, "64 bits"},
    {"tensorrt_llm:tp=2,cp=2", 0, "needs the key 'layout'"},
    {"tensorrt_llm:tp=4,moe_ep=3", 25, "the experts have 4 ranks"},
    {"tensorrt_llm:tp=4,moe_cluster=2,moe_ep=2", 30,
     "moe_cluster=2 cannot be combined with expert parallelism"},
    {"tensorrt_llm:layout=cp_fastest,tp=4,cp=2,moe_ep=2", 48, "under ulysses"},
    {"tensorrt_llm:tp=4,world_size=8", 29, "multiply to 4"},
    {"deepspeed:tp=2", 0, "needs the key 'kind'"},
    {"deepspeed:kind=grids", 15, "has no kind 'grids'"},
    {"deepspeed:kind=topology,axes=a.b,dims=2", 38, "1 sizes for 2 axes"},
    {"deepspeed:kind=groups,world_size=8,ep=3", 38, "is not divisible by ep = 3"},
    {"deepspeed:kind=groups,world_size=8,mp=2,use_data_before_expert=true", 63,
     "use_data_before_expert needs mp=1"},
    {"deepspeed:kind=folding,world_size=8,tp=3", 39, "is not divisible by tp = 3"},
    {"colossalai:kind=hybrid,world_size=9,tp=2", 34,
     "is not divisible by the product of all sizes except 'dp' = 2"},
    {"torch:shape=2x2,dim_names=a.b,rank_map=0x1x2", 39,
     "rank_map lists 3 ranks, but the mesh has 4"},
    {"torch:shape=2x2,dim_names=a.b,rank_map=0x1x2x2", 0, "duplicate rank 2"},
    {"torch:shape=2x2,dim_names=a.b,rank_map=0x1x2x7,world_size=5", 58,
     "contains rank 7, but world_size is 5"},
    {"torch:shape=2x2", 0, "needs the key 'dim_names'"},
    {"sglang:tp=8,attn_dp=3", 20, "is not divisible by attn_dp*attn_cp = 3"},
    {"jax:mesh_shape=2x2,dcn_mesh_shape=2", 34, "1 sizes for 2 axes"},
    {"jax:mesh_shape=2,dcn_mesh_shape=2,granule_of_rank=0x0x0x1", 50, "granule 0 has 3 ranks"},
    {"jax:mesh_shape=2,dcn_mesh_shape=2,granule_of_rank=0x0x0x0", 50,
     "granule_of_rank has 1 granules"},
    {"jax:mesh_shape=100000x2,dcn_mesh_shape=100000x3", 15, "needs a table"},
    {"llama3:tp=8,dp=2,world_size=17", 28, "multiply to 16"},
    {"vllm:tp=4 | a=2", 10, "expected ',' ';' or the end"},
    {"vllm:tp=4 ; tp=dp*pp", 12, "duplicate name 'tp'"},
    {"vllm:tp=4 ; x=dp*q", 12, "the product 'x' contains 'q'"},
};

}  // namespace

TEST_CASE("invalid presets are refused with position, reason and hint") {
  for (const Case& c : cases) {
    CAPTURE(c.mesh);
    try {
      static_cast<void>(MeshSpec::parse(c.mesh).plan());
      FAIL_CHECK("accepted");
    } catch (const rankmesh::SpecError& error) {
      CAPTURE(error.message());
      CHECK(error.position() == c.position);
      CHECK_CONTAINS(error.message(), c.reason);
      CHECK_FALSE(error.hint().empty());
    }
  }
}

TEST_CASE("the world is checked against the job") {
  CHECK_THROWS_AS((void)MeshSpec::parse("vllm:dp=2,tp=4").plan(16), rankmesh::SpecError);
  CHECK_THROWS_AS((void)MeshSpec::parse("megatron:world_size=8,tp=2").plan(16),
                  rankmesh::SpecError);
  CHECK_THROWS_AS((void)MeshSpec::parse("megatron:tp=2,rank_offset=8").plan(8),
                  rankmesh::SpecError);
  CHECK(MeshSpec::parse("vllm:tp=4").plan(16).coordinate(15, "dp").value() == 3);
  CHECK(MeshSpec::parse("vllm:external_dp=2,dp=2,tp=4").plan(16).world_size() == 16);
  CHECK(MeshSpec::parse("megatron:tp=2,rank_offset=8").plan(24).groups("tp").group(0).front() == 8);
  CHECK(MeshSpec::parse("megatron:world_size=8,tp=2,rank_offset=8").plan(32).world_size() == 32);
  CHECK(MeshSpec::parse("torch:shape=2,dim_names=a,rank_map=5x3").plan().world_size() == 6);
  CHECK(MeshSpec::parse("torch:shape=2,dim_names=a,rank_map=5x3").plan(9).world_size() == 9);
  const MeshSpec grid = MeshSpec::parse("hypercommgrid:shape=2x3,dim_names=a.b");
  CHECK(grid.plan(9).world_size() == 9);
  CHECK(grid.plan(9).groups("a").group_count() == 3);
  CHECK_THROWS_AS((void)grid.plan(5), rankmesh::SpecError);
  CHECK_THROWS_AS(
      (void)MeshSpec::parse("hypercommgrid:shape=2x3,dim_names=a.b,world_size=6").plan(9),
      rankmesh::SpecError);
  CHECK(MeshSpec::parse("vllm:tp=4").world_size() == std::nullopt);
  CHECK(MeshSpec::parse("vllm:dp=2,tp=4").world_size() == 8);
  CHECK(MeshSpec::parse("megatron:tp=4").world_size() == std::nullopt);
}

TEST_CASE("products on a preset") {
  const auto plan = MeshSpec::parse("llama3:tp=2,cp=2,pp=2,dp=2 ; dp_cp = dp*cp, mp=tp*pp").plan();
  CHECK(plan.groups("dp_cp").group(0).to_string() == "0,2,8,10");
  CHECK(plan.groups("mp").group(0).to_string() == "0-1,4-5");
  const auto numbered = MeshSpec::parse("colossalai:kind=mesh,shape=2x3x2;ends=0*2");
  CHECK(numbered.plan().groups("ends").group(0).to_string() == "0-1,6-7");
  CHECK(numbered.to_string() == "colossalai:kind=mesh,shape=2x3x2 ; ends=0*2");
  CHECK_THROWS_AS((void)MeshSpec::parse("a=2,b=2;c=0*1"), rankmesh::SpecError);
}

TEST_CASE("a million ranks are arithmetic") {
  const auto plan =
      MeshSpec::parse("megatron:world_size=1048576,tp=8,pp=16,cp=2,ep=64,etp=1,num_dist_opt=4")
          .plan();
  CHECK(plan.groups("intra_dp_cp").group_count() == 8 * 16 * 4);
  for (const auto& family : plan.families()) CHECK(family.group(0).table() == nullptr);
  const auto p2p = MeshSpec::parse("deepspeed:kind=grid,pp=64,dp=1024,mp=16").plan();
  CHECK(p2p.groups("p2p").group(1048575).to_string() == "1048575,16383");
  CHECK(p2p.memberships(16383).size() == 6);
  const auto tables =
      MeshSpec::parse("deepspeed:kind=groups,world_size=49152,mp=8,ep=4096,pp=4").plan();
  CHECK(tables.groups("expert").find(49151) == tables.groups("expert").find_all(49151).front());
}
