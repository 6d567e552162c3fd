// SPDX-License-Identifier: BSD-3-Clause
// Concatenation and division along every axis of row-major arrays, element by element.
#include <doctest/doctest.h>

#include <numeric>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;

namespace {

using Shape4 = std::vector<std::int64_t>;

std::int64_t volume(const Shape4& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies{});
}

// Calls use(index in the whole array, member, index in its block) for every element. It computes
// the indices from the definition, dimension by dimension.
template <class Use>
void for_each_element(const Shape4& block, std::size_t axis, std::int64_t members, Use&& use) {
  Shape4 whole = block;
  whole[axis] *= members;
  for (std::int64_t i = 0; i < volume(whole); ++i) {
    Shape4 digits(whole.size());
    std::int64_t rest = i;
    for (std::size_t d = whole.size(); d-- > 0; rest /= whole[d]) digits[d] = rest % whole[d];
    const std::int64_t member = digits[axis] / block[axis];
    digits[axis] %= block[axis];
    std::int64_t inside = 0;
    for (std::size_t d = 0; d < block.size(); ++d) inside = inside * block[d] + digits[d];
    use(static_cast<std::size_t>(i), member, static_cast<std::size_t>(inside));
  }
}

template <class T>
T element(std::int64_t member, std::size_t i) {
  return static_cast<T>(static_cast<float>((member * 31 + static_cast<std::int64_t>(i) * 7) % 50));
}

template <class T>
void test_axis(GroupCoordinator& group, const Shape4& shape, std::size_t k) {
  const std::int64_t n = group.size();
  const std::int64_t self = group.rank_in_group().value();
  const auto size = static_cast<std::size_t>(volume(shape));
  CAPTURE(k);
  CAPTURE(size);
  const Axis axis{
      shape, k % 2 == 0 ? static_cast<std::int64_t>(k)
                        : static_cast<std::int64_t>(k) - static_cast<std::int64_t>(shape.size())};
  std::vector<T> block, whole(size * static_cast<std::size_t>(n)), sums(size);
  for (std::size_t i = 0; i < size; ++i) block.push_back(element<T>(self, i));
  for_each_element(shape, k, n, [&](std::size_t i, std::int64_t member, std::size_t inside) {
    whole[i] = element<T>(member, inside);
    if (member == self)
      sums[inside] = static_cast<T>(static_cast<float>(whole[i]) * static_cast<float>(n));
  });

  std::vector<T> out(whole.size());
  group.all_gather(block, out, axis);
  CHECK(out == whole);
  CHECK(group.all_gather_async(block, std::vector<T>(whole.size()), axis).take() == whole);

  const std::int64_t root = n / 2;
  out.assign(self == root ? whole.size() : 0, T{});
  group.gather(block, out, axis, root);
  if (self == root) CHECK(out == whole);
  out.assign(out.size(), T{});
  group.gather_async(std::vector<T>{block}, out, axis, root).wait();
  if (self == root) CHECK(out == whole);

  std::vector<T> part(size);
  group.scatter(self == root ? whole : std::vector<T>{}, part, axis, root);
  CHECK(part == block);
  CHECK(group.scatter_async(whole, std::vector<T>(size), axis, root).take() == block);

  group.reduce_scatter(whole, part, axis);
  CHECK(part == sums);
  CHECK(group.reduce_scatter_async(std::vector<T>{whole}, std::vector<T>(size), axis).take() ==
        sums);
}

}  // namespace

TEST_CASE("gathering and scattering along every axis, blocking and asynchronous") {
  for (const bool polled : {false, true}) {
    MeshOptions options;
    if (polled) options.deadline = Deadline::Duration{60};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    for (const Shape4& shape : {Shape4{5}, Shape4{2, 3}, Shape4{3, 1, 4}, Shape4{2, 3, 2, 2},
                                Shape4{1, 7}, Shape4{0, 3}, Shape4{3, 0, 2}})
      for (std::size_t k = 0; k < shape.size(); ++k) {
        test_axis<std::int32_t>(tp, shape, k);
        test_axis<double>(tp, shape, k);
        test_axis<BFloat16>(tp, shape, k);  // packed and widened
      }
    mesh.close();
  }
}

TEST_CASE("invalid shapes and axes throw UsageError") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  CHECK_THROWS_AS((Axis{{2, 3}, 2}), UsageError);
  CHECK_THROWS_AS((Axis{{2, 3}, -3}), UsageError);
  CHECK_THROWS_AS((Axis{{2, -3}, 0}), UsageError);
  std::vector<int> block(6);
  std::vector<int> whole(static_cast<std::size_t>(6 * tp.size()));
  CHECK_THROWS_WITH_AS(tp.all_gather(block, whole, Axis({2, 4}, 1)),
                       doctest::Contains("along an axis"), UsageError);
  CHECK_THROWS_AS(tp.all_gather(block, block, Axis({2, 3}, 1)), UsageError);
  if (tp.size() > 1)  // a block along another axis is not contiguous, so it cannot be in place
    CHECK_THROWS_AS(tp.all_gather(std::span{whole}.subspan(
                                      static_cast<std::size_t>(6 * tp.rank_in_group().value()), 6),
                                  whole, Axis({2, 3}, 1)),
                    UsageError);
  Call call{.operation = Operation::all_gather,
            .in = calls::input(block),
            .out = buffer_of(whole),
            .rows = 4};
  CHECK_THROWS_WITH_AS(detail::GroupAccess::run(tp, call), doctest::Contains("rows"), UsageError);
  mesh.close();
}
