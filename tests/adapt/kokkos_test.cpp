// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/adapt/kokkos.hpp"

#include <optional>

#include "arrays.hpp"

using namespace rankmesh;
using rankmesh_test::size;

namespace {

template <class Layout>
using HostView = Kokkos::View<float**, Layout, Kokkos::HostSpace>;

auto at_of_view(const auto& view) {
  return [&](std::int64_t i, std::int64_t j) -> float& {
    return view(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
  };
}

}  // namespace

TEST_CASE("views of Kokkos are reduced and gathered in both layouts") {
  static_assert(DeviceMemory<Kokkos::View<float**, Kokkos::LayoutLeft, Kokkos::DeviceSpace>>);
  static_assert(HostMemory<HostView<Kokkos::LayoutLeft>>);
  static_assert(
      !WritableMemory<Kokkos::View<const float**, Kokkos::LayoutLeft, Kokkos::HostSpace>>);
  const HostView<Kokkos::LayoutLeft> columns{3, 4};
  const HostView<Kokkos::LayoutRight> rows{3, 4};
  rankmesh_test::check_sums(columns, at_of_view(columns), 3, 4);
  rankmesh_test::check_sums(rows, at_of_view(rows), 3, 4);
  const auto make = [](auto layout) {
    return [layout](std::int64_t r, std::int64_t c) {
      static_cast<void>(layout);
      return HostView<decltype(layout)>{static_cast<std::size_t>(r), static_cast<std::size_t>(c)};
    };
  };
  const auto at = [](auto& view, std::int64_t i, std::int64_t j) -> float& {
    return view(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
  };
  rankmesh_test::check_blocks(make(Kokkos::LayoutLeft{}), at);
  rankmesh_test::check_blocks(make(Kokkos::LayoutRight{}), at);
}

TEST_CASE("an asynchronous operation keeps a view of Kokkos") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  std::optional<HostView<Kokkos::LayoutLeft>> view{std::in_place, 100U, 100U};
  const std::weak_ptr<float> memory = view->memory();
  Work work = mesh["dp"].all_reduce_async(*view);
  view.reset();
  if (!work.test()) CHECK(!memory.expired());
  work.wait();
  work = {};
  CHECK(memory.expired());
  mesh.close();
}

TEST_CASE("a redistribution moves subviews of Kokkos") {
  const auto n = static_cast<std::size_t>(size());
  const HostView<Kokkos::LayoutLeft> source{3, n + 1};
  const HostView<Kokkos::LayoutRight> target{n, 2};
  const HostView<Kokkos::LayoutStride> row{source, 1, 1, 1, n}, column{target, 0, 1, n, 1};
  rankmesh_test::check_move(row, at_of_view(row), column, at_of_view(column));
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const HostView<Kokkos::LayoutStride> gaps{source, 0, 0, 2, 2};
  CHECK_THROWS_AS(mesh["dp"].all_reduce(gaps), UsageError);
  mesh.close();
}
