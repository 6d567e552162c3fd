// SPDX-License-Identifier: BSD-3-Clause
// Misuse of communicators, coordinators and meshes that the compiler must find; see
// ../must_not_compile.
#include <span>
#include <utility>
#include <vector>

#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;

struct NoElement {
  float x, y;
};

void use(GroupCoordinator& tp) {
  std::vector<float> floats(4);
  [[maybe_unused]] std::vector<double> doubles(4);
  [[maybe_unused]] std::vector<NoElement> structs(4);
  [[maybe_unused]] std::vector<bool> bools(4);
  const std::vector<float> constant(4);
  DeviceSpan<float> device{nullptr, 4};

// case: a world rank where a rank in group is wanted: a rank of the world
#if BROKEN
  tp.broadcast(floats, Rank{0});
#else
  tp.broadcast(floats, RankInGroup{0});
#endif

// case: a world rank as a peer: a rank of the world
#if BROKEN
  tp.send(floats, Rank{0});
#else
  tp.send(floats, RankInGroup{0});
#endif

// case: input and output of different element types: the same element type
#if BROKEN
  tp.all_gather(floats, doubles);
#else
  tp.all_gather(floats, floats);
#endif

// case: writing into constant memory: the values are const
#if BROKEN
  tp.all_reduce(std::span<const float>{constant});
#else
  tp.all_reduce(std::span<float>{floats});
#endif

// case: receiving into constant memory, while sending from it is right: the values are const
#if BROKEN
  tp.recv(constant, prev);
#else
  tp.send(constant, next);
#endif

// case: packed bits: packs its values
#if BROKEN
  tp.all_reduce(bools);
#else
  tp.all_reduce(floats);
#endif

// case: a sum of structs: cannot combine this type
#if BROKEN
  tp.all_reduce(structs);
#else
  tp.all_reduce(doubles);
#endif

// case: host memory in, device memory out: both be host memory
#if BROKEN
  tp.all_gather(floats, device);
#else
  tp.all_gather(device, device);
#endif

// case: a function of the program's reduces host memory only: functions combine host memory
#if BROKEN
  tp.all_reduce(device, [](float a, float b) { return a + b; });
#else
  tp.all_reduce(floats, [](float a, float b) { return a + b; });
#endif
}

// case: a communicator has one owner: deleted
mpi::Communicator copy(mpi::Communicator& a) {
#if BROKEN
  return mpi::Communicator{a};
#else
  return mpi::Communicator{std::move(a)};
#endif
}

// case: a communicator is not assigned either: deleted
void assign(mpi::Communicator& a, mpi::Communicator& b) {
#if BROKEN
  b = a;
#else
  b = std::move(a);
#endif
}

// case: a coordinator stays in its mesh: deleted
void take(Mesh& mesh) {
#if BROKEN
  auto tp = mesh["tp"];
#else
  auto& tp = mesh["tp"];
#endif
  tp.barrier();
}

// case: a mesh has one owner: deleted
Mesh copy(Mesh& mesh) {
#if BROKEN
  return Mesh{mesh};
#else
  return Mesh{std::move(mesh)};
#endif
}

// case: a mesh is indexed by names, so 0 is no null pointer: deleted
void index(Mesh& mesh) {
#if BROKEN
  mesh[0].barrier();
#else
  mesh["tp"].barrier();
#endif
}
