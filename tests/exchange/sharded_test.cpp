// SPDX-License-Identifier: BSD-3-Clause
// Tensors of which each member owns a part: gathered, reduced, and the memory that they need.
#include "rankmesh/exchange/sharded_buffer.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using exchange::ShardedBuffer;
using rankmesh_test::rank;
using rankmesh_test::size;

// AddressSanitizer ends a process that asks for more memory than there is. The tests themselves are
// compiled without it, so only the linker knows whether it is there.
extern "C" __attribute__((weak)) void __asan_init();

namespace {

const std::vector<std::int64_t> tensor_sizes{5, 3, 0, 40, 1, 7, 2, 2};

// The buckets of `tensor_sizes`: 5+3+0, 40, 1+7, 2+2. Each tensor of 64-bit numbers begins at an
// even element.
constexpr std::int64_t elements_per_bucket = 10;
constexpr std::int64_t bucket_counts[] = {10, 40, 9, 4};

std::int64_t share_of(std::int64_t count, std::int64_t alignment = 2) {
  const std::int64_t even = (count + size() - 1) / size();
  return (even + alignment - 1) / alignment * alignment;
}

std::vector<double> tensor_values(std::int64_t tensor, double seed) {
  std::vector<double> result(
      static_cast<std::size_t>(tensor_sizes[static_cast<std::size_t>(tensor)]));
  std::iota(result.begin(), result.end(), seed + 100.0 * static_cast<double>(tensor));
  return result;
}

std::vector<double> copied(std::span<const double> span) { return {span.begin(), span.end()}; }

}  // namespace

TEST_CASE("gather() returns the whole tensors, in each direction, before and after a change") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  for (const bool keep_whole : {false, true})
    for (const int prefetch : {0, 1, 3}) {
      CAPTURE(keep_whole);
      CAPTURE(prefetch);
      ShardedBuffer<double> weights{
          mesh["dp"],
          tensor_sizes,
          {.bytes = elements_per_bucket * 8, .keep_whole = keep_whole, .prefetch = prefetch}};
      REQUIRE(weights.tensors() == 8);
      REQUIRE(weights.buckets() == 4);
      for (std::int64_t i = 0; i < weights.tensors(); ++i) weights.load(i, tensor_values(i, 0.5));
      for (int step = 0; step < 3; ++step) {
        const auto check = [&](std::int64_t i) {
          CAPTURE(i);
          const std::span whole = weights.gather(i);
          CHECK(copied(whole) == tensor_values(i, 0.5 + step));
          CHECK(reinterpret_cast<std::uintptr_t>(whole.data()) % 16 == 0);
          weights.release(i);
          mesh.progress();
        };
        for (std::int64_t i = 0; i < weights.tensors(); ++i) check(i);
        for (std::int64_t i = weights.tensors() - 1; i >= 0; --i) check(i);
        check(6);  // in any order
        check(0);
        check(4);
        for (std::int64_t b = 0; b < weights.buckets(); ++b) {
          const std::span mine = weights.mine(b);
          CHECK(std::ssize(mine) == share_of(bucket_counts[b]));
          CHECK(reinterpret_cast<std::uintptr_t>(mine.data()) % 16 == 0);
          for (double& value : mine) value += 1;
        }
        weights.changed();
      }
    }
  mesh.close();
}

TEST_CASE("reduce() gives each member its part; local() adds up until then") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  for (const bool keep_whole : {false, true})
    for (const int prefetch : {0, 1, 3}) {
      ShardedBuffer<double> gradients{dp,
                                      tensor_sizes,
                                      {.bytes = elements_per_bucket * 8,
                                       .keep_whole = keep_whole,
                                       .prefetch = prefetch,
                                       .op = ReduceOp::sum}};
      ShardedBuffer<double> expected = gradients.like();
      for (int round = 1; round <= 3; ++round) {
        for (std::int64_t i = gradients.tensors() - 1; i >= 0; --i) {
          const auto own = tensor_values(i, 1);
          for (int batch = 0; batch < 2; ++batch) {
            const std::span gradient = gradients.local(i);
            REQUIRE(gradient.size() == own.size());
            for (std::size_t k = 0; k < own.size(); ++k) gradient[k] += own[k] * (rank() + round);
          }
          gradients.reduce(i);
          mesh.progress();
          auto sum = own;
          for (double& v : sum) v *= 2 * (size() * (size() - 1) / 2 + round * size());
          expected.load(i, sum);
        }
        for (std::int64_t b = 0; b < gradients.buckets(); ++b)
          CHECK(copied(gradients.mine(b)) == copied(expected.mine(b)));
      }
      // All members get the results of all.
      for (std::int64_t i = 0; i < gradients.tensors(); ++i)
        CHECK(copied(gradients.gather(i)) == copied(expected.gather(i)));
      gradients.wait();
    }
  mesh.close();
}

TEST_CASE("a member holds its part, and whole tensors of few buckets or of all") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  std::int64_t mine = 0;
  for (const std::int64_t count : bucket_counts) mine += share_of(count);
  const std::int64_t all = mine * size(), slot = share_of(40) * size();
  const auto bytes = [](std::int64_t elements) { return elements * 8; };
  for (const int prefetch : {0, 1, 2}) {
    CAPTURE(prefetch);
    ShardedBuffer<double> weights{
        dp, tensor_sizes, {.bytes = elements_per_bucket * 8, .prefetch = prefetch}};
    auto gradients = weights.like({.prefetch = prefetch});
    CHECK(weights.bytes() == bytes(mine));
    for (int step = 0; step < 2; ++step) {
      for (std::int64_t i = 0; i < weights.tensors(); ++i) {
        (void)weights.gather(i);
        weights.release(i);
        CHECK(weights.bytes() == bytes(mine + (1 + prefetch) * slot));
      }
      for (std::int64_t i = weights.tensors() - 1; i >= 0; --i) gradients.reduce(i);
      gradients.wait();
      CHECK(gradients.bytes() == bytes(mine + (1 + prefetch) * slot));
      weights.changed();
    }
    // Tensors that are not released need more memory.
    for (std::int64_t i = 0; i < weights.tensors(); ++i) (void)weights.gather(i);
    CHECK(weights.bytes() == bytes(mine + 4 * slot));

    auto kept = weights.like({.keep_whole = true, .prefetch = prefetch});
    auto halves = weights.like<float>({.keep_whole = true, .prefetch = prefetch});
    for (std::int64_t i = weights.tensors() - 1; i >= 0; --i) kept.reduce(i);
    kept.wait();
    kept.changed();
    kept.wait();
    CHECK(kept.bytes() == bytes(all));
    CHECK(halves.bytes() == bytes(all) / 2);
  }
  mesh.close();
}

TEST_CASE("the next bucket is gathered in advance, and the last ones stay until replaced") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  for (const std::int64_t tensors : {2, 3}) {
    ShardedBuffer<float> weights{dp,
                                 std::vector<std::int64_t>(static_cast<std::size_t>(tensors), 4),
                                 {.bytes = 16, .prefetch = 1}};
    const auto use = [&](std::int64_t i) {
      CHECK(weights.gather(i).size() == 4);
      weights.release(i);
    };
    for (std::int64_t i = 0; i + 1 < tensors; ++i) use(i);  // also gathers the last tensor
    // A member may be alone with calls that need no communication; otherwise it would wait here.
    if (rank() == 0) {
      use(tensors - 1);
      use(tensors - 1);
      if (tensors == 2) use(0);
      if (tensors == 2) use(1);
    }
    dp.barrier();
  }
  mesh.close();
}

TEST_CASE("reduce() and changed() do not wait for the other members") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  ShardedBuffer<float> weights{dp, {6, 6}, {.bytes = 24, .keep_whole = true}};
  auto gradients = weights.like({.op = ReduceOp::sum});
  const auto in_turn = [&](auto&& call) {  // the last member begins when the first one has ended
    if (!dp.is_last()) call();
    if (dp.is_first()) dp.send(1, dp.size() - 1);
    if (dp.is_last()) CHECK(dp.recv<int>(0) == 1);
    if (dp.is_last()) call();
  };
  in_turn([&] {
    for (float& value : gradients.local(1)) value = 1;
    gradients.reduce(1);
    gradients.reduce(0);
  });
  in_turn([&] { weights.changed(); });
  for (const float weight : weights.gather(1)) CHECK(weight == 0);
  const Slice padded{share_of(6, 4) * size(), dp};
  for (std::size_t i = 0; i < gradients.mine(1).size(); ++i)
    CHECK(gradients.mine(1)[i] ==
          (padded.begin() + static_cast<std::int64_t>(i) < 6 ? static_cast<float>(size()) : 0.0F));
  mesh.close();
}

TEST_CASE("a sharded buffer may be destroyed while its operations are in progress") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  for (const bool keep_whole : {false, true}) {
    ShardedBuffer<float> buffer{
        mesh["dp"], {1000, 1000}, {.bytes = 4000, .keep_whole = keep_whole}};
    buffer.reduce(1);
    buffer.reduce(0);
    auto other = buffer.like({.keep_whole = keep_whole});
    (void)other.gather(0);
    other.changed();
  }
  ShardedBuffer<float> none{mesh["dp"], std::vector<std::int64_t>{}};
  CHECK(none.buckets() == 0);
  none.changed();
  ShardedBuffer<float> empty{mesh["dp"], {0, 0}};
  empty.reduce(0);
  empty.reduce(1);
  CHECK(empty.mine(0).empty());
  CHECK(empty.gather(1).empty());
  mesh.close();
}

TEST_CASE("misuse of a sharded buffer throws, and different arguments throw on every rank") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  CHECK_THROWS_WITH_AS((ShardedBuffer<float>{dp, {4, -1}}), doctest::Contains("negative number"),
                       UsageError);
  CHECK_THROWS_WITH_AS((ShardedBuffer<float>{dp, {4}, {.bytes = 0}}),
                       doctest::Contains("a bucket of 0 bytes"), UsageError);
  if (size() > 1) {
    const std::int64_t own = rank() == 1 ? 5 : 4;
    CHECK_THROWS_WITH_AS((ShardedBuffer<float>{dp, {own}}),
                         doctest::Contains("ShardedBuffer over 'dp': tensor 0 of 5 elements"),
                         MismatchError);
  }
  ShardedBuffer<float> buffer{dp, {4, 4, 4}, {.bytes = 32}};
  const std::vector<float> three(3);
  CHECK_THROWS_WITH_AS(buffer.load(0, three), doctest::Contains("tensor 0 has 4 elements"),
                       UsageError);
  CHECK_THROWS_WITH_AS((void)buffer.gather(3), doctest::Contains("there is no tensor 3"),
                       UsageError);
  CHECK_THROWS_WITH_AS((void)buffer.mine(2), doctest::Contains("there is no bucket 2"), UsageError);
  buffer.reduce(1);
  CHECK_THROWS_WITH_AS(buffer.reduce(1), doctest::Contains("tensor 1 has been reduced"),
                       UsageError);
  CHECK_THROWS_WITH_AS((void)buffer.mine(0),
                       doctest::Contains("bucket 0 is not reduced, because tensor 0"), UsageError);
  CHECK_THROWS_WITH_AS((void)buffer.gather(0), doctest::Contains("local() uses its memory"),
                       UsageError);
  CHECK_THROWS_WITH_AS(buffer.changed(), doctest::Contains("while local() uses"), UsageError);
  buffer.reduce(0);
  CHECK(buffer.mine(0).size() == static_cast<std::size_t>(share_of(8, 4)));
  // local() overwrites the part of a member only with keep_whole.
  (void)buffer.local(0);
  CHECK(buffer.mine(0).size() == static_cast<std::size_t>(share_of(8, 4)));
  ShardedBuffer<float> kept = buffer.like({.keep_whole = true});
  (void)kept.local(1);
  CHECK_THROWS_WITH_AS((void)kept.mine(0),
                       doctest::Contains("bucket 0 is not reduced, because tensor 0"), UsageError);
  kept.reduce(0);
  kept.reduce(1);
  CHECK(kept.mine(0).size() == static_cast<std::size_t>(share_of(8, 4)));
  mesh.close();
}

TEST_CASE("members that use buckets in different orders learn it") {
  NEEDS_RANKS(2);
  const bool is_last = rank() == size() - 1;
  const auto check = [&](const std::string& operation, const std::function<void()>& use) {
    const std::string message = rankmesh_test::thrown_by<MismatchError>(use).message();
    CHECK_CONTAINS(message, operation + "(" + std::to_string(share_of(4, 4)));
    CHECK_CONTAINS(message, ", bucket 0");
    CHECK_CONTAINS(message, ", bucket 1");
  };
  for (const char* transport : {"shm", "mpi"})
    for (const bool gathers : {true, false}) {
      CAPTURE(transport);
      MeshOptions options;
      options.check = true;
      options.routes = std::string{"*.*:host="} + transport;
      Mesh mesh{MPI_COMM_WORLD, "dp=auto", options};
      ShardedBuffer<float> layers{mesh["dp"], {4, 4}, {.bytes = 16, .prefetch = 0}};
      check(gathers ? "dp.all_gather" : "dp.reduce_scatter", [&] {
        if (gathers) (void)layers.gather(is_last ? 1 : 0);
        if (!gathers) layers.reduce(is_last ? 1 : 0);
        layers.wait();
      });
    }
}

TEST_CASE("a forgotten changed() is found") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  for (const bool keep_whole : {false, true}) {
    CAPTURE(keep_whole);
    const std::vector<float> ones(16, 1.0F);
    ShardedBuffer<float> weights{
        mesh["dp"], {16 * size(), 16}, {.bytes = 16, .keep_whole = keep_whole, .prefetch = 0}};
    const std::vector<float> first(static_cast<std::size_t>(16 * size()), 2.0F);
    weights.load(0, first);
    CHECK(weights.gather(0)[15] == 2);
    for (float& weight : weights.mine(0)) weight += 0;  // not changed
    CHECK(weights.gather(0)[15] == 2);
    const std::span mine = weights.mine(0);
    for (float& weight : mine) weight += 1;
    CHECK_THROWS_WITH_AS((void)weights.gather(0),
                         doctest::Contains("mine(0) was changed and changed() was not called"),
                         UsageError);
    weights.changed();
    CHECK(weights.gather(0)[15] == 3);
    (void)weights.mine(0);
    weights.load(0, first);  // on all members, so the whole tensor is right
    CHECK(weights.gather(0)[15] == 2);
    // The values are gathered again if the memory was used for another bucket.
    weights.release(0);
    for (float& weight : weights.mine(0)) weight = 5;
    if (keep_whole) weights.changed();
    (void)weights.gather(1);
    weights.release(1);
    CHECK(weights.gather(0)[15] == 5);
    CHECK(weights.gather(0)[15] == 5);
  }
  mesh.close();
}

TEST_CASE("a sharded buffer without its mesh, and one that was moved, say so") {
  std::optional<Mesh> mesh{std::in_place, MPI_COMM_WORLD, "dp=auto"};
  ShardedBuffer<float> buffer{(*mesh)["dp"], {4, 4}, {.bytes = 16}};
  ShardedBuffer<float> moved = std::move(buffer);
  // NOLINTBEGIN(bugprone-use-after-move): that is the subject
  CHECK_THROWS_WITH_AS((void)buffer.gather(0), doctest::Contains("this ShardedBuffer was moved"),
                       UsageError);
  CHECK_THROWS_AS(buffer.changed(), UsageError);
  CHECK_THROWS_AS((void)buffer.like(), UsageError);
  CHECK(buffer.tensors() + buffer.buckets() + buffer.bytes() == 0);
  // NOLINTEND(bugprone-use-after-move)
  CHECK(moved.gather(1).size() == 4);
  mesh->close();
  CHECK_THROWS_AS((void)moved.like(), ClosedError);
  mesh.reset();
  const std::vector<float> values(4);
  const auto refused = [](const std::function<void()>& call) {
    CHECK_THROWS_WITH_AS(call(), doctest::Contains("ShardedBuffer over 'dp': the group is gone"),
                         ClosedError);
  };
  refused([&] { (void)moved.gather(0); });
  refused([&] { moved.release(0); });
  refused([&] { moved.load(0, values); });
  refused([&] { (void)moved.mine(0); });
  refused([&] { moved.changed(); });
  refused([&] { (void)moved.local(0); });
  refused([&] { moved.reduce(0); });
  refused([&] { moved.wait(); });
  refused([&] { (void)moved.like(); });
  CHECK(moved.buckets() == 2);
  CHECK(moved.bytes() > 0);
}

TEST_CASE("sizes that no memory can hold throw on every rank, and the group stays usable") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  constexpr std::int64_t half = std::int64_t{1} << 62;
  for (const std::vector<std::int64_t>& sizes :
       {std::vector{half}, std::vector{half, half, half}, std::vector{half / 2, half / 2, half},
        std::vector{std::numeric_limits<std::int64_t>::max()}})
    CHECK_THROWS_WITH_AS((ShardedBuffer<float>{dp, sizes}),
                         doctest::Contains("the tensors have 2^63 bytes or more together"),
                         UsageError);
  if (__asan_init == nullptr)
    CHECK_THROWS_WITH_AS((ShardedBuffer<float>{dp, {std::int64_t{1} << 58}}),
                         doctest::Contains("there is too little memory on rank"), UsageError);
  CHECK(dp.all_reduce(1) == size());
  mesh.close();
}
