// SPDX-License-Identifier: BSD-3-Clause
// Several grids on one world, opened in one call: an encoder and a decoder of different shapes, and
// ranks that are in no grid.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

// Returns the ranks of the encoder, and those of the decoder, which lists its ranks in reverse. The
// remaining ranks are in no grid.
int encoder_ranks() { return size() < 8 ? 2 : 4; }
int decoder_ranks() { return size() == 8 ? 2 : size() == 12 ? 6 : size() - encoder_ranks(); }
bool is_encoder() { return rank() < encoder_ranks(); }
bool is_decoder() { return !is_encoder() && rank() < encoder_ranks() + decoder_ranks(); }

MeshSpec two_grids() {
  std::string backwards;
  for (int r = encoder_ranks() + decoder_ranks(); r-- > encoder_ranks();)
    backwards += fmt::format("{},", r);
  backwards.pop_back();
  return MeshSpec::parse_toml(
      fmt::format(R"(
[grids.encoder]
mesh = "dp=auto,tp=2 ; all=dp*tp"
ranks = "0-{}"
[grids.decoder]
mesh = "pp=2,tp=auto"
ranks = [{}]
[groups]
bridge = [[0, {}], [{}, 1]]
[options.encoder.tp]
duplicates = ["side"]
)",
                  encoder_ranks() - 1, backwards, encoder_ranks(), encoder_ranks() + 1),
      "two_grids.toml");
}

std::int64_t total_over(GroupCoordinator& group, std::int64_t value) {
  std::vector<std::int64_t> values{value};
  group.all_reduce(values);
  return values[0];
}

// Checks that the collectives of a family use exactly the ranks of the plan, in its order.
void check_group(Mesh& mesh, const std::string& name) {
  CAPTURE(name);
  GroupCoordinator& group = mesh[name];
  std::int64_t expected = 0;
  for (const Rank r : group.ranks()) expected += r.value() + 1;
  CHECK(total_over(group, rank() + 1) == expected);
  CHECK(group.ranks().at(group.rank_in_group().value()) == Rank{rank()});
  std::vector<std::int64_t> mine{rank()};
  std::vector<std::int64_t> all(static_cast<std::size_t>(group.size()));
  group.all_gather(mine, all);
  for (std::size_t k = 0; k < all.size(); ++k)
    CHECK(group.ranks().at(static_cast<std::int64_t>(k)) == Rank{all[k]});
}

}  // namespace

TEST_CASE("every grid has a world, and so has the mesh") {
  Mesh mesh{MPI_COMM_WORLD, two_grids()};
  const std::string digest = to_string(mesh.plan().digest());
  CHECK(mesh["world"].size() == size());
  CHECK(mesh["world"].rank_in_group() == rank());
  CHECK(mesh["world"].name() == "world");
  CHECK(total_over(mesh["world"], 1) == size());
  CHECK(&mesh["world"] == &mesh["world"]);
  if (is_encoder()) check_group(mesh, "encoder.world");
  if (is_decoder()) {
    check_group(mesh, "decoder.world");
    CHECK(mesh["decoder.world"].first_rank() == encoder_ranks() + decoder_ranks() - 1);
    CHECK_THROWS_AS((void)mesh["encoder.world"], NotMember);
  }
  CHECK_THROWS_AS((void)mesh["other.world"], UnknownName);
  CHECK(to_string(mesh.plan().digest()) == digest);
  mesh.close(mesh["world"]);
  CHECK(total_over(mesh["world"], 2) == 2 * size());  // it is created again
  mesh.close();
}

TEST_CASE("a mesh says which names give this rank a group") {
  Mesh mesh{MPI_COMM_WORLD, two_grids()};
  for (const char* name : {"world", "encoder.world", "decoder.world", "encoder.tp", "decoder.pp",
                           "bridge", "tp", "other.world", "encoder.", ""}) {
    CAPTURE(name);
    const bool has = mesh.has(name);
    if (name == std::string{"world"}) CHECK(has);
    try {
      mesh[name].barrier();  // creates the worlds
      CHECK(has);
    } catch (const UsageError&) {
      CHECK(!has);
    }
  }
  mesh.close();
  // The groups of `pairs` overlap, so they have no coordinators.
  Mesh ring{
      MPI_COMM_WORLD,
      MeshSpec::parse_toml("mesh = \"tp=auto\"\n[groups]\npairs = [[0, 1], [1, 0]]\n", "m.toml")};
  CHECK(ring.has("tp"));
  CHECK(!ring.has("pairs"));
  ring.close();
}

TEST_CASE("a dimension that the program calls world wins") {
  Mesh mesh{MPI_COMM_WORLD, "world=2,tp=auto"};
  CHECK(mesh["world"].size() == 2);
  mesh.close();
  // A dimension of all ranks has the same group, so that nothing is created.
  Mesh flat{MPI_COMM_WORLD, "tp=auto"};
  if (rank() == 0) CHECK(flat["world"].size() == size());
  CHECK(total_over(flat["world"], 1) == size());
  CHECK(flat["world"].native_mpi() == flat["tp"].native_mpi());
  flat.close();
}

TEST_CASE("each rank works in its own grid") {
  Mesh mesh{MPI_COMM_WORLD, two_grids()};
  CHECK(mesh.size() == size());
  if (is_encoder())
    for (const char* name : {"encoder.dp", "encoder.tp", "encoder.all"}) check_group(mesh, name);
  if (is_decoder())
    for (const char* name : {"decoder.pp", "decoder.tp"}) check_group(mesh, name);
  for (const char* name : {"encoder.dp", "encoder.tp", "encoder.all"})
    if (!is_encoder()) CHECK_THROWS_AS((void)mesh[name], NotMember);
  for (const char* name : {"decoder.pp", "decoder.tp"})
    if (!is_decoder()) CHECK_THROWS_AS((void)mesh[name], NotMember);
  CHECK_THROWS_AS((void)mesh["tp"], UnknownName);
  mesh.close();
}

TEST_CASE("lists can join grids, and options apply to families of a grid") {
  Mesh mesh{MPI_COMM_WORLD, two_grids()};
  if (mesh.plan().groups("bridge").find(rank())) check_group(mesh, "bridge");
  if (is_encoder()) {
    CHECK(total_over(mesh.duplicate("encoder.tp", "side"), 1) == 2);
    CHECK(mesh.duplicate("encoder.tp", "side").native_mpi() != mesh["encoder.tp"].native_mpi());
    CHECK(mesh.coordinate("encoder.tp").value() == rank() % 2);
    CHECK_THROWS_AS((void)mesh.coordinate("decoder.tp"), NotMember);
  }
  if (is_decoder()) {  // the ranks are listed in reverse, so the last one is the first
    const int position = encoder_ranks() + decoder_ranks() - 1 - rank();
    CHECK(mesh.coordinate("decoder.pp").value() == position / (decoder_ranks() / 2));
  }
  // Both grids at the same time, and then all ranks.
  if (is_encoder()) mesh["encoder.all"].barrier();
  if (is_decoder()) mesh["decoder.pp"].barrier();
  mesh.close();
}

TEST_CASE("the same mesh on a permuted world, and behind other ranks") {
  std::string backwards;
  for (int r = size(); r-- > 0;) backwards += fmt::format("{}, ", r);
  Mesh turned{
      MPI_COMM_WORLD,
      MeshSpec::parse_toml("mesh = 'dp=auto,tp=2'\nrank_order = [" + backwards + "]", "turned")};
  for (const char* name : {"dp", "tp"}) check_group(turned, name);
  CHECK(turned.coordinate("tp").value() == (size() - 1 - rank()) % 2);
  turned.close();

  Mesh behind{MPI_COMM_WORLD,
              MeshSpec::parse_toml("mesh = 'dp=auto,tp=2'\nrank_offset = 2", "behind")};
  if (rank() >= 2) {
    for (const char* name : {"dp", "tp"}) check_group(behind, name);
    CHECK(behind["dp"].size() == (size() - 2) / 2);
  } else {
    CHECK_THROWS_AS((void)behind["tp"], NotMember);
  }
  behind.close();
}

TEST_CASE("an invalid file throws on every rank") {
  CHECK_THROWS_WITH_AS(
      (Mesh{MPI_COMM_WORLD,
            MeshSpec::parse_toml(
                "[grids.a]\nmesh='tp=2'\nranks='0-1'\n[grids.b]\nmesh='tp=2'\nranks='1-2'",
                "x.toml")}),
      doctest::Contains("x.toml:5: rank 1 is in two grids, 'a' and 'b'"), SpecError);
}
