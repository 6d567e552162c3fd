// SPDX-License-Identifier: BSD-3-Clause
// Counts the calls of MPI that communicate while a mesh is opened and closed, through MPI's
// profiling interface, and compares them with the formula of docs/performance.md.
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/rankmesh.hpp"

namespace {

std::map<std::string, long> calls;

void count(const char* name) { ++calls[name]; }

}  // namespace

// The library's calls come through here. NOLINTBEGIN
#define COUNTED(name, parameters, arguments) \
  extern "C" int MPI_##name parameters {     \
    count(#name);                            \
    return PMPI_##name arguments;            \
  }
COUNTED(Iallreduce,
        (const void* in, void* out, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request* r),
        (in, out, n, t, o, c, r))
COUNTED(Igather,
        (const void* in, int n, MPI_Datatype t, void* out, int m, MPI_Datatype u, int root,
         MPI_Comm c, MPI_Request* r),
        (in, n, t, out, m, u, root, c, r))
COUNTED(Iallgather,
        (const void* in, int n, MPI_Datatype t, void* out, int m, MPI_Datatype u, MPI_Comm c,
         MPI_Request* r),
        (in, n, t, out, m, u, c, r))
COUNTED(Allreduce, (const void* in, void* out, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
        (in, out, n, t, o, c))
COUNTED(Allgather,
        (const void* in, int n, MPI_Datatype t, void* out, int m, MPI_Datatype u, MPI_Comm c),
        (in, n, t, out, m, u, c))
COUNTED(Ibarrier, (MPI_Comm c, MPI_Request* r), (c, r))
COUNTED(Barrier, (MPI_Comm c), (c))
COUNTED(Bcast, (void* b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c))
COUNTED(Ibcast, (void* b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request* r),
        (b, n, t, root, c, r))
COUNTED(Send, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c),
        (b, n, t, to, tag, c))
COUNTED(Isend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* r),
        (b, n, t, to, tag, c, r))
COUNTED(Comm_create, (MPI_Comm c, MPI_Group g, MPI_Comm* r), (c, g, r))
COUNTED(Comm_create_group, (MPI_Comm c, MPI_Group g, int tag, MPI_Comm* r), (c, g, tag, r))
COUNTED(Comm_split, (MPI_Comm c, int colour, int key, MPI_Comm* r), (c, colour, key, r))
COUNTED(Comm_split_type, (MPI_Comm c, int type, int key, MPI_Info i, MPI_Comm* r),
        (c, type, key, i, r))
COUNTED(Comm_dup, (MPI_Comm c, MPI_Comm* r), (c, r))
COUNTED(Comm_free, (MPI_Comm * c), (c))
// NOLINTEND

namespace {

// Prints the difference on the rank that has one.
bool is_as_expected(const char* what, const std::map<std::string, long>& expected) {
  if (calls == expected) return true;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string text = "rank " + std::to_string(rank) + ", " + what + ": found";
  for (const auto& [name, n] : calls) text += " " + name + " " + std::to_string(n);
  text += "; expected";
  for (const auto& [name, n] : expected) text += " " + name + " " + std::to_string(n);
  std::fprintf(stderr, "%s\n", text.c_str());
  return false;
}

// Makes calls that shared memory does not carry. None of them may create anything.
void use(rankmesh::GroupCoordinator& group) {
  std::vector<double> large(100000), received(large.size());
  group.send_recv(large, received, rankmesh::next, rankmesh::prev);
  group.all_reduce(large, [](double a, double b) { return a + b; });
  const auto members = static_cast<std::size_t>(group.size());
  const std::vector<std::size_t> counts(members, large.size() / members);
  group.all_gather_v(std::span{large}.first(counts[0]), received, counts);
  group.broadcast_async(large, 0).wait();
}

// Every communicator that a mesh creates is freed when it is closed.
bool frees_all_if_it_survives() {
  calls.clear();
  rankmesh::Mesh mesh{MPI_COMM_WORLD,
                      "dp=auto",
                      {.devices = rankmesh::DeviceUse::off, .survive = rankmesh::Survival{}}};
  mesh.close();
  const long created = calls["Comm_create"] + calls["Comm_create_group"];
  const long freed = calls["Comm_free"];
  if (created != freed)
    std::fprintf(stderr, "a mesh that survives: %ld communicators were created, %ld freed\n",
                 created, freed);
  return created == freed;
}

bool check(const std::string& mesh_text, long nodes) {
  rankmesh::MeshOptions options;
  options.devices = rankmesh::DeviceUse::off;
  options.check = false;  // it sends messages when groups are closed
  calls.clear();
  rankmesh::Mesh mesh{MPI_COMM_WORLD, mesh_text, options};
  // The agreement; the facts of all ranks; the communicator of the mesh; in each node, where its
  // memory is; the groups of this rank.
  const rankmesh::Placement& placement = mesh.placement();
  const long groups = std::ssize(mesh.plan().communicators(mesh.rank()));
  const int node = placement.node(mesh.rank());
  long on_node = 0;
  for (int r = 0; r < placement.world_size(); ++r) on_node += placement.node(r) == node ? 1 : 0;
  const bool is_first = placement.local_rank(mesh.rank()) == 0;
  std::map<std::string, long> expected{
      {"Iallreduce", nodes > 1 ? 2 : 1}, {"Igather", 1}, {"Ibcast", 1}, {"Comm_create", 1}};
  // The first rank of a node also tells it the difference of the clocks, which takes 16 messages in
  // each direction between that rank and rank 0.
  if (on_node > 1 && is_first) expected["Isend"] = (nodes > 1 ? 2 : 1) * (on_node - 1);
  if (nodes > 1 && is_first) expected["Isend"] += mesh.rank().value() == 0 ? 16 * (nodes - 1) : 16;
  if (groups > 0) expected["Comm_create_group"] = groups;
  bool is_right = is_as_expected(("open " + mesh_text).c_str(), expected);
  for (const rankmesh::GroupFamily& family : mesh.plan().families())
    if (mesh[family.name()].size() > 1) use(mesh[family.name()]);
  for (const rankmesh::GroupFamily& family : mesh.plan().families())
    (void)mesh[family.name()].native_mpi();
  for (const char* name : {"Comm_create", "Comm_create_group", "Comm_split", "Comm_dup"})
    if (calls[name] != (expected.contains(name) ? expected[name] : 0)) is_right = false;
  calls.clear();
  mesh.close();
  expected = {{"Comm_free", groups + 1}};
  // Ranks on one node meet in its memory. Otherwise the second one adds up the messages, which only
  // meshes with messages need.
  if (nodes > 1) expected["Iallreduce"] = 2;
  is_right = is_as_expected(("close " + mesh_text).c_str(), expected) && is_right;
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  const rankmesh::mpi::Environment environment{argc, argv};
  const long nodes = argc > 1 ? std::stol(argv[1]) : 1;
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  bool is_right = check("dp=1,tp=" + std::to_string(size), nodes);
  is_right = check("dp=auto,tp=1", nodes) && is_right;
  if (size % 16 == 0)
    is_right = check("pp=2,dp=2,cp=2,ep=2,tp=" + std::to_string(size / 16), nodes) && is_right;
  is_right = frees_all_if_it_survives() && is_right;
  int wrong = is_right ? 0 : 1;
  PMPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return wrong == 0 ? 0 : 1;
}
