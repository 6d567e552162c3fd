// SPDX-License-Identifier: BSD-3-Clause
// Tests the parts of a file that a mesh string cannot express: ranks, grids, lists,
// options, routes.
#include <doctest/doctest.h>

#include "place/mesh_file.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "spec/spec_of.hpp"
#include "support/checks.hpp"

using rankmesh::Coverage;
using rankmesh::MeshPlan;
using rankmesh::MeshSpec;

namespace {

std::string groups_of(const MeshPlan& plan, const std::string& name) {
  std::string text;
  const auto& family = plan.groups(name);
  for (std::int64_t g = 0; g < family.group_count(); ++g)
    text += (g > 0 ? ";" : "") + family.group(g).to_string();
  return text;
}

}  // namespace

TEST_CASE("settings of the training program are kept, also those in braces") {
  const std::string groups = "\n[groups]\nends = [\"0,1\"]\n";
  for (const std::string& text :
       {"mesh = \"tp=2\"\nsettings = {zero = 1, sizes = [1, 2]}\n" + groups,
        "mesh = \"tp=2\"\n" + groups + "[settings]\nzero = 1\nsizes = [1, 2]\n",
        std::string{R"({"mesh": "tp=2", "groups": {"ends": ["0,1"]},
                        "settings": {"zero": 1, "sizes": [1, 2]}})"}}) {
    CAPTURE(text);
    const std::string toml = to_toml(spec_of(text));
    CHECK_CONTAINS(toml, "\n[settings]\nsizes = [ 1, 2 ]\nzero = 1\n");
    CHECK(to_toml(spec_of(toml)) == toml);
  }
  CHECK(spec_of("mesh = \"tp=2\"\n").settings() == "");
}

TEST_CASE("a file may list as many ranks as the limit says") {
  const MeshSpec spec = spec_of(R"(
mesh = "dp=1048576"
[groups]
all = ["0-524287", "524288-1048575"]
)");
  CHECK(spec.plan().groups("all").highest() == rankmesh::Rank{1048575});
}

TEST_CASE("the options of a grid stay with it where another grid's name begins alike") {
  const MeshSpec spec = spec_of(R"(
[grids.enc]
mesh = "tp=2"
ranks = "0-1"
[grids.encoder]
mesh = "tp=2"
ranks = "2-3"
[options.encoder.tp]
lazy = true
)");
  CHECK_CONTAINS(to_toml(spec), "[options.encoder.tp]");
  const MeshPlan plan = spec_of(to_toml(spec)).plan();
  CHECK(plan.options(plan.index_of("encoder.tp")).lazy);
  CHECK(!plan.options(plan.index_of("enc.tp")).lazy);
}

TEST_CASE("characters that a file cannot hold are escaped") {
  const MeshSpec spec = spec_of("mesh = \"tp=2\"\nsource = \"a\\u007fb\\u0001\"\n");
  CHECK(spec.provenance().source ==
        "a\x7f"
        "b\x01");
  CHECK_LACKS(to_toml(spec), "\x7f");
  CHECK(spec_of(to_toml(spec)).provenance().source == spec.provenance().source);
}

TEST_CASE("lists of groups: numbers or ranges, partial, overlapping, of different sizes") {
  const auto plan = spec_of(R"(
mesh = "pp=3,tp=2"
[groups]
embd = [[0, 4], [1, 5]]
halves = ["0-2", "3-5"]
uneven = [[0, 1, 2], "5,3"]
neighbours = ["0-1", "1-2"]
)")
                        .plan();
  CHECK(groups_of(plan, "embd") == "0,4;1,5");
  CHECK(plan.groups("embd").coverage(6) == Coverage::partial);
  CHECK(groups_of(plan, "halves") == "0-2;3-5");
  CHECK(plan.groups("halves").coverage(6) == Coverage::partition);
  CHECK(groups_of(plan, "uneven") == "0-2;5,3");
  CHECK(!plan.groups("uneven").is_uniform());
  CHECK(plan.groups("neighbours").coverage(6) == Coverage::overlapping);
  std::vector<std::string> names;
  for (const auto& family : plan.families()) names.push_back(family.name());
  CHECK(names == std::vector<std::string>{"pp", "tp", "embd", "halves", "uneven",
                                          "neighbours"});  // in the order of the file
}

TEST_CASE("an order of ranks, and a first rank") {
  const auto permuted = spec_of("mesh = 'dp=2,tp=2'\nrank_order = [3, 1, 0, 2]").plan();
  CHECK(permuted.world_size() == 4);
  CHECK(groups_of(permuted, "tp") == "3,1;0,2");
  CHECK(groups_of(permuted, "dp") == "3,0;1-2");
  CHECK(permuted.groups("tp").coverage(4) == Coverage::partition);
  CHECK(permuted.describe(2) == "dp=1,tp=1");
  CHECK(permuted.digest() != MeshSpec::parse("dp=2,tp=2").plan().digest());
  // The identity permutation changes nothing, not even the digest.
  CHECK(spec_of("mesh = 'dp=2,tp=2'\nrank_order = '0-3'").plan().digest() ==
        MeshSpec::parse("dp=2,tp=2").plan().digest());
  CHECK(groups_of(spec_of("mesh = 'dp=auto,tp=2'\nrank_order = '0-10:2,1-11:2'").plan(), "dp") ==
        "0-8:4,1-9:4;2-10:4,3-11:4");

  const auto shifted = spec_of("mesh = 'dp=2,tp=2'\nrank_offset = 8").plan();
  CHECK(shifted.world_size() == 12);
  CHECK(groups_of(shifted, "tp") == "8-9;10-11");
  CHECK(shifted.describe(3) == "outside the mesh");
  CHECK(spec_of("mesh = 'dp=auto,tp=2'\nrank_offset = 8").plan(16).groups("dp").group_size() == 4);
  CHECK(spec_of("mesh = 'dp=2,tp=2'\nrank_offset = 8").plan(16).world_size() ==
        16);  // ranks after the mesh are in no group
  // The same as the offset of the preset.
  CHECK(
      spec_of("mesh = 'megatron:world_size=16,tp=2,pp=2,ep=2'\nrank_offset = 4").plan().digest() ==
      MeshSpec::parse("megatron:world_size=16,tp=2,pp=2,ep=2,rank_offset=4").plan().digest());
  CHECK(spec_of("mesh = 'megatron:tp=2'\nrank_offset = 4\nworld_size = 20")
            .plan()
            .groups("dp")
            .group_size() == 8);
  CHECK(spec_of("mesh = 'vllm:tp=2'\nrank_offset = 4").plan().world_size() == 6);
}

TEST_CASE("several grids on one world") {
  const MeshSpec spec = spec_of(R"(
world_size = 34
[grids.encoder]
mesh = "dp=2,tp=4"
ranks = "0-7"
[grids.decoder]
mesh = "pp=3,dp=auto,tp=4 ; mp=pp*tp"
ranks = "8-31"
[groups]
cross = [[0, 8], [4, 9]]
[options.encoder.tp]
max_ctas = 4
[options."decoder.dp"]
lazy = true
[options.cross]
priority = -1
)");
  CHECK(spec.world_size() == 34);
  CHECK(!spec.fits_string());
  CHECK_THROWS_WITH_AS((void)spec.to_string(),
                       doctest::Contains("a mesh string cannot express several grids"),
                       rankmesh::UnsupportedError);
  CHECK(spec.describe() ==
        "encoder: dp=2,tp=4 on 0-7, decoder: pp=3,dp=auto,tp=4 ; mp=pp*tp on 8-31, cross by lists");
  const auto plan = spec.plan();
  CHECK(groups_of(plan, "encoder.tp") == "0-3;4-7");
  CHECK(groups_of(plan, "decoder.dp") ==
        "8,12;9,13;10,14;11,15;16,20;17,21;18,22;19,23;24,28;25,29;26,30;27,31");
  CHECK(plan.groups("decoder.mp").group(0).to_string() == "8-11,16-19,24-27");
  CHECK(plan.describe(0) == "encoder.dp=0,encoder.tp=0");
  CHECK(plan.describe(13) == "decoder.pp=0,decoder.dp=1,decoder.tp=1");
  CHECK(plan.describe(33) == "outside the mesh");
  CHECK(plan.memberships(33).empty());
  CHECK(plan.coordinate(13, "decoder.tp").value() == 1);
  CHECK_THROWS_AS((void)plan.coordinate(0, "decoder.tp"), rankmesh::NotMember);
  CHECK(plan.groups_of_product("decoder.dp*decoder.tp").group(0).to_string() == "8-15");
  CHECK(plan.options(plan.index_of("encoder.tp")).max_ctas == 4);
  CHECK(plan.options(plan.index_of("decoder.dp")).lazy);
  CHECK(plan.options(plan.index_of("cross")).priority == -1);
  for (std::size_t f = 0; f < plan.families().size(); ++f) CHECK(plan.needs_creation(f));
}

TEST_CASE("a grid's families keep the turn that their name without the prefix has in a batch") {
  using rankmesh::BatchPlace;
  const auto plan = spec_of(R"(
[grids.encoder]
mesh = "pp=1,dp=2,tp=2 ; dp_tp=dp*tp"
ranks = "0-3"
[grids.dp]
mesh = "pp=2,dp=2,tp=1"
ranks = "4-7"
[groups]
cross = [[0, 4]]
[options.encoder.dp]
priority = -1
)")
                        .plan();
  const auto place = [&](const char* family) { return plan.batch_place(plan.index_of(family)); };
  CHECK(place("encoder.tp") == BatchPlace{0, 0});
  CHECK(place("encoder.pp") == BatchPlace{0, 1});
  CHECK(place("encoder.dp") == BatchPlace{-1, 2});
  CHECK(place("encoder.dp_tp") == BatchPlace{0, 0});
  CHECK(place("dp.tp") == BatchPlace{0, 0});  // the prefix has no turn
  CHECK(place("dp.pp") == BatchPlace{0, 1});
  CHECK(place("dp.dp") == BatchPlace{0, 2});
  CHECK(place("cross") == BatchPlace{0, 0});
}

TEST_CASE("grids may use any syntax of TOML, and keep the order of the file") {
  const auto names = [](const std::string& text) {
    std::string all;
    const auto plan = spec_of(text).plan();
    for (const auto& family : plan.families()) all += family.name() + " ";
    return all;
  };
  CHECK(names("[grids.b]\nmesh='x=2'\nranks='0-1'\n[grids.a]\nmesh='x=2'\nranks='2-3'") ==
        "b.x a.x ");
  CHECK(names("grids = {b = {mesh='x=2', ranks='0-1'}, a = {mesh='x=2', ranks='2-3'}}") ==
        "b.x a.x ");
  CHECK(names("grids.b.mesh='x=2'\ngrids.a.mesh='x=2'\ngrids.b.ranks='0-1'\ngrids.a.ranks='2-3'") ==
        "b.x a.x ");
}

TEST_CASE("grids take presets, and ranks of any kind") {
  const auto plan = spec_of(R"(
[grids.train]
mesh = "megatron:tp=2,pp=2,cp=2"
ranks = "0-30:2"
[grids.serve]
mesh = "vllm:tp=4"
ranks = [31, 29, 27, 25, 23, 21, 1, 3]
)")
                        .plan();
  CHECK(plan.world_size() == 32);
  CHECK(groups_of(plan, "train.tp").starts_with("0,2;4,6;"));
  CHECK(plan.groups("train.embd").coverage(32) == Coverage::partial);
  CHECK(groups_of(plan, "serve.tp") == "31,29,27,25;23,21,1,3");
  CHECK(plan.groups("train.tp").group(0).table() == nullptr);
}

TEST_CASE("every option of a family") {
  const auto plan = spec_of(R"(
mesh = "dp=4,tp=2 ; all=dp*tp"
[options.dp]
split_from = "all"
share_resources = true
ranks_per_id = 64
lazy = true
priority = -2
min_ctas = 1
max_ctas = 4
cga_cluster_size = 2
traffic_class = 3
cta_policy = 2
nvls_ctas = 4
graph_usage_mode = 1
warm_up_bytes = 4096
timeout = 20
duplicates = ["overlap", "side"]
[options.tp]
blocking = false
)")
                        .plan();
  CHECK(plan.options_text() ==
        "dp(split_from=all,share_resources,ranks_per_id=64,lazy,priority=-2,min_ctas=1,max_ctas=4,"
        "cga_"
        "cluster_size=2,"
        "traffic_class=3,cta_policy=2,nvls_ctas=4,graph_usage_mode=1,warm_up_bytes=4096,timeout=20,"
        "duplicates=overlap+side) tp(blocking=false)");
  // Options and routes are not part of the digest, groups are.
  CHECK(plan.digest() == MeshSpec::parse("dp=4,tp=2 ; all=dp*tp").plan().digest());
  CHECK(spec_of("mesh = 'tp=2'\nroutes = 'tp.*: host = shm'").routes() == "tp.*: host = shm");
  CHECK(spec_of("mesh = 'tp=2'\n[groups]\nx = ['0-1']").plan().digest() !=
        MeshSpec::parse("tp=2").plan().digest());
}

TEST_CASE("set_routes replaces the routes, and the file keeps the rest") {
  MeshSpec spec = spec_of(
      "mesh = \"dp=2,tp=2\"\nroutes = \"*.*=mpi\"\nsource = \"a book\"\n[options.tp]\n"
      "priority = -1\n");
  const std::string rules = "# measured\ntp.all_reduce:host=shm\n";
  spec.set_routes(rules);
  CHECK_CONTAINS(to_toml(spec), "routes = '''\n# measured\ntp.all_reduce:host=shm\n'''\n");
  const MeshSpec again = spec_of(to_toml(spec));
  CHECK(again.routes() == rules);
  CHECK(again.provenance().source == "a book");
  CHECK(to_toml(again) == to_toml(spec));
  CHECK_THROWS_AS(spec.set_routes("tp.all_reduce=nosuch"), rankmesh::SpecError);
  CHECK(spec.routes() == rules);
  // A literal text of TOML cannot contain its own quotes.
  spec.set_routes("# '''\ntp.*:host=mpi\n");
  CHECK(spec_of(to_toml(spec)).routes() == "# '''\ntp.*:host=mpi\n");
}
