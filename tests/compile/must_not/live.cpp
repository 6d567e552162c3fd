// Misuse of communicators, coordinators and meshes that the compiler must find; see ../must_not_compile.
#include <span>
#include <vector>

#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;

struct NoElement {
  float x, y;
};

void use(GroupCoordinator& tp) {
  std::vector<float> floats(4);
  std::vector<double> doubles(4);
  std::vector<NoElement> structs(4);
  std::vector<bool> bools(4);
  const std::vector<float> constant(4);
  DeviceSpan<float> device{nullptr, 4};
  // Each case uses some of them.
  (void)tp, (void)structs, (void)bools, (void)constant, (void)device, (void)floats, (void)doubles;

#if CASE == 1  // a world rank where a rank in group is wanted
// expect: RankInGroup|Index
#if BROKEN
  tp.broadcast(floats, Rank{0});
#else
  tp.broadcast(floats, RankInGroup{0});
#endif
#endif

#if CASE == 2  // a world rank as a peer
// expect: Peer
#if BROKEN
  tp.send(floats, Rank{0});
#else
  tp.send(floats, RankInGroup{0});
#endif
#endif

#if CASE == 3  // input and output of different element types
// expect: MatchingMemory|same_as
#if BROKEN
  tp.all_gather(floats, doubles);
#else
  tp.all_gather(floats, floats);
#endif
#endif

#if CASE == 4  // writing into constant memory
// expect: WritableMemory|is_const
#if BROKEN
  tp.all_reduce(std::span<const float>{constant});
#else
  tp.all_reduce(std::span<float>{floats});
#endif
#endif

#if CASE == 5  // receiving into constant memory, while sending from it is right
// expect: WritableMemory|is_const
#if BROKEN
  tp.recv(constant, prev);
#else
  tp.send(constant, next);
#endif
#endif

#if CASE == 6  // packed bits
// expect: HostMemory|Memory|contiguous
#if BROKEN
  tp.all_reduce(bools);
#else
  tp.all_reduce(floats);
#endif
#endif

#if CASE == 7  // a struct of which nobody said what type it is
// expect: Element|DataTypeOf
#if BROKEN
  tp.all_reduce(structs);
#else
  tp.all_reduce(doubles);
#endif
#endif

#if CASE == 8  // host memory in, device memory out
// expect: MatchingMemory|is_device_span
#if BROKEN
  tp.all_gather(floats, device);
#else
  tp.all_gather(device, device);
#endif
#endif
}

#if CASE == 9  // a communicator has one owner
// expect: deleted
void take(mpi::Communicator a) {
#if BROKEN
  mpi::Communicator b{a};
#else
  mpi::Communicator b{std::move(a)};
#endif
}
#endif

#if CASE == 10  // a communicator is not assigned either
// expect: deleted
void take(mpi::Communicator a, mpi::Communicator b) {
#if BROKEN
  b = a;
#else
  b = std::move(a);
#endif
}
#endif

#if CASE == 11  // a coordinator stays in its mesh
// expect: deleted
void take(Mesh& mesh) {
#if BROKEN
  auto tp = mesh["tp"];
#else
  auto& tp = mesh["tp"];
#endif
  tp.barrier();
}
#endif

#if CASE == 12  // a mesh has one owner
// expect: deleted
void take(Mesh& mesh) {
#if BROKEN
  Mesh other{mesh};
#else
  Mesh other{std::move(mesh)};
#endif
}
#endif
