// SPDX-License-Identifier: BSD-3-Clause
// A transfer of a list of tensors allocates memory for its messages, but not for each tensor. This
// program counts the allocations.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/rankmesh.hpp"

namespace {
std::uint64_t allocations = 0;
}
// Not inlined, or g++ warns that new and free do not match.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace rankmesh;

int main(int argc, char** argv) {
  const mpi::Environment environment{argc, argv};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  constexpr std::size_t count = 10'000;
  const std::string ranks = std::to_string(mesh.size());
  const auto from = TensorPlacement::parse("[16,16] f32 @ tp=" + ranks + " : (tp, _)");
  const auto to = TensorPlacement::parse("[16,16] f32 @ tp=" + ranks + " : (_, tp)");
  const auto whole = TensorPlacement::parse("[16,16] f32 @ w=1 : (_, _)");
  std::vector<float> source(16 * 16), target(16 * 16 * count);
  std::vector<TensorTransfer> tensors;
  std::vector<exchange::TensorSource> in;
  std::vector<exchange::TensorTarget> out;
  for (std::size_t t = 0; t < count; ++t) {
    tensors.push_back({from, t % 2 == 0 ? to : whole});
    const auto needed = static_cast<std::size_t>(tensors.back().to.local_count(mesh.rank()));
    in.emplace_back(
        std::span{source}.first(static_cast<std::size_t>(from.local_count(mesh.rank()))));
    out.emplace_back(std::span{target}.subspan(16 * 16 * t, needed));
  }
  exchange::Redistribution move{mesh["tp"], plan_transfer(tensors)};
  // A rank that waits long allocates as well, so the least number counts.
  std::uint64_t least = UINT64_MAX;
  for (int transfer = 0; transfer < 6; ++transfer) {
    const std::uint64_t before = allocations;
    move.start(in, out).wait();
    if (transfer > 0) least = std::min(least, allocations - before);
  }
  mesh.close();
  if (least < count / 4) return 0;
  std::fprintf(stderr, "a transfer of %zu tensors has allocated memory %llu times\n", count,
               static_cast<unsigned long long>(least));
  return 1;
}
