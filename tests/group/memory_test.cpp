// SPDX-License-Identifier: BSD-3-Clause
// Operations on types that the program describes with MemoryOf.
#include "rankmesh/base/memory.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/helpers/buffers.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

namespace own_types {

/// A matrix that owns its values, in either order, and whose rows or columns may have gaps.
struct Matrix {
  Matrix(std::int64_t height, std::int64_t width, bool is_by_columns = false, std::int64_t gap = 0)
      : rows{height},
        columns{width},
        by_columns{is_by_columns},
        pitch{(by_columns ? rows : columns) + gap},
        cells(static_cast<std::size_t>(pitch * (by_columns ? columns : rows))) {}
  float& operator()(std::int64_t i, std::int64_t j) {
    return cells[static_cast<std::size_t>(by_columns ? j * pitch + i : i * pitch + j)];
  }
  std::int64_t rows, columns;
  bool by_columns;
  std::int64_t pitch;
  std::vector<float> cells;
};

/// A handle whose copies share their values.
struct Handle {
  std::shared_ptr<std::vector<int>> values;
};

/// Values of a type that only the object knows.
struct Column {
  DataType type;
  void* data;
  std::size_t count;
};

}  // namespace own_types

using own_types::Column;
using own_types::Handle;
using own_types::Matrix;

template <>
struct rankmesh::MemoryOf<Matrix> {
  static float* data(Matrix& matrix) { return matrix.cells.data(); }
  static const float* data(const Matrix& matrix) { return matrix.cells.data(); }
  static ArrayShape shape(const Matrix& m) {
    return {{m.rows, m.columns}, {m.by_columns ? 1 : m.pitch, m.by_columns ? m.pitch : 1}};
  }
  static constexpr const char* copy = "pass matrix.compact()";
};
template <>
struct rankmesh::MemoryOf<Handle> {
  static int* data(const Handle& handle) { return handle.values->data(); }
  static std::size_t shape(const Handle& handle) { return handle.values->size(); }
  static constexpr Ownership ownership = Ownership::shared;
};
template <>
struct rankmesh::MemoryOf<Column> {
  static void* data(const Column& column) { return column.data; }
  static std::size_t shape(const Column& column) { return column.count; }
  static DataType type(const Column& column) { return column.type; }
  static constexpr Ownership ownership = Ownership::viewed;
};

namespace {

// The number of element (i, j) of the whole matrix.
float number(std::int64_t i, std::int64_t j) { return static_cast<float>(100 * i + j); }

std::string message_of(auto&& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.message() + " | " + error.hint();
  }
  return "";
}

}  // namespace

TEST_CASE("what is known of a type follows from its description") {
  static_assert(WritableMemory<Matrix&> && !WritableMemory<const Matrix&>);
  static_assert(std::same_as<ElementOf<const Matrix&>, const float>);
  static_assert(HostMemory<Matrix&> && !DeviceMemory<Matrix&>);
  static_assert(!detail::is_borrowed<Matrix> && detail::is_borrowed<Matrix&>);
  static_assert(detail::is_borrowed<Handle> && detail::is_borrowed<Column>);
  static_assert(std::same_as<ElementOf<Column&>, AnyElement> && !HostMemory<Column&>);
  static_assert(MatchingMemory<Column&, std::vector<float>&>);
  static_assert(!MatchingMemory<Matrix&, std::vector<double>&>);
  static_assert(WritableReducibleMemory<Buffer> && !WritableMemory<ConstBuffer>);
  static_assert(DeviceMemory<DeviceSpan<float>> && !Memory<int> && !Memory<std::string*>);
  // Lists of views are lists of buffers: their bytes are no values.
  static_assert(!Memory<std::vector<DeviceSpan<float>>> && !Memory<std::vector<ConstBuffer>>);
  static_assert(!MovableElement<std::array<DeviceSpan<float>, 2>> && !MovableElement<Buffer>);
  static_assert(BufferList<std::vector<DeviceSpan<float>>> && BufferList<std::array<Buffer, 2>>);
  // A matrix that can be called with two numbers is no function.
  static_assert(!ReductionFunction<Matrix&, float>);
  const std::vector<float> values(4);
  CHECK(buffer_of(values).count == 4);
  CHECK(buffer_of(buffer_of(values)).type == DataType::float32);
}

TEST_CASE("arrays are reduced, sent and moved like containers") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  for (const bool by_columns : {false, true}) {
    Matrix matrix{2, 3, by_columns}, result{2, 3, by_columns};
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j) matrix(i, j) = number(i, j) + static_cast<float>(rank());
    const float ranks = static_cast<float>(size() * (size() - 1) / 2);
    dp.all_reduce(std::as_const(matrix), result);
    CHECK(result(1, 2) == static_cast<float>(size()) * number(1, 2) + ranks);
    dp.all_reduce(matrix, [](float a, float b) { return a > b ? a : b; });
    CHECK(matrix(1, 2) == number(1, 2) + static_cast<float>(size() - 1));
    dp.broadcast(matrix, 0);
    dp.send_recv(matrix, result, next, prev);
    CHECK(result(1, 0) == matrix(1, 0));
    const std::vector<float> all = dp.all_gather(matrix);
    CHECK(all.size() == static_cast<std::size_t>(6 * size()));
    // A matrix that is moved into the call comes back.
    auto work = dp.all_reduce_async(std::move(matrix));
    CHECK(work.take()(0, 1) > 0);
  }
  mesh.close();
}

TEST_CASE("blocks of arrays lie along the slowest axis, or along an Axis of either order") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  const std::int64_t me = rank(), n = size();
  for (const bool by_columns : {false, true})
    for (const std::int64_t axis : {0, 1}) {
      Matrix block{2, 3, by_columns};
      Matrix whole{axis == 0 ? 2 * n : 2, axis == 1 ? 3 * n : 3, by_columns};
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 3; ++j)
          block(i, j) = number(axis == 0 ? 2 * me + i : i, axis == 1 ? 3 * me + j : j);
      const bool is_slowest = axis == (by_columns ? 1 : 0);
      if (is_slowest) {
        dp.all_gather(block, whole);
        CHECK(whole(whole.rows - 1, whole.columns - 1) ==
              number(whole.rows - 1, whole.columns - 1));
        std::ranges::fill(whole.cells, 0.0F);
      } else if (n > 1) {
        CHECK_THROWS_AS(dp.all_gather(block, whole), UsageError);
      }
      dp.all_gather(block, whole, Axis{{2, 3}, axis});
      for (int i = 0; i < whole.rows; ++i)
        for (int j = 0; j < whole.columns; ++j) CHECK(whole(i, j) == number(i, j));
      Matrix mine{2, 3, by_columns};
      dp.reduce_scatter(whole, mine, Axis{{2, 3}, axis});
      CHECK(mine(1, 2) == static_cast<float>(n) * block(1, 2));
    }
  // A part may have the length 1 along the slowest axis.
  Matrix rows{n, 3}, row{1, 3};
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < 3; ++j) rows(i, j) = number(i, j);
  dp.reduce_scatter(rows, row);
  CHECK(row(0, 2) == static_cast<float>(n) * number(me, 2));
  mesh.close();
}

TEST_CASE("arrays with gaps and different orders of axes are refused") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  Matrix gaps{2, 3, false, 1}, rows{2, 3}, columns{2, 3, true};
  CHECK(message_of([&] { dp.all_reduce(gaps); }) ==
        "the array [2,3] with the strides [4,1] is not contiguous | pass matrix.compact()");
  CHECK_THROWS_AS(dp.all_reduce(gaps, [](float a, float b) { return a + b; }), UsageError);
  CHECK(message_of([&] {
          dp.all_reduce(rows, columns);
        }).find("their axes have different orders in memory") != std::string::npos);
  CHECK_THROWS_AS(dp.all_reduce(rows, columns, [](float a, float b) { return a + b; }), UsageError);
  if (size() > 1) {
    Matrix whole{2 * size(), 3, true};
    CHECK(message_of([&] {
            dp.all_gather(columns, whole);
          }).find("blocks follow each other along axis 1, the slowest one, but axis 0") !=
          std::string::npos);
    const std::vector<float> part(static_cast<std::size_t>(3 * Slice{2, dp}.size()));
    CHECK_THROWS_AS(dp.all_gather_v(part, columns, SlicedAxis({2, 3}, 0, dp)), UsageError);
    // The other members have no whole array, but a block in the wrong order.
    const Matrix all{2 * size(), 3};
    Matrix block{2, 3, true};
    if (!dp.is_first())
      CHECK_THROWS_AS(dp.scatter_v(all, block, SlicedAxis({2 * size(), 3}, 0, dp), 0), UsageError);
  }
  // Flat memory has the order of the array.
  std::vector<float> flat(6);
  dp.all_reduce(columns, flat);
  mesh.close();
}

TEST_CASE("members that pass arrays of different orders are named; flat memory has any order") {
  NEEDS_RANKS(2);
  for (const bool has_check : {false, true}) {
    MeshOptions options;
    options.check = has_check;
    if (has_check) options.routes = "*.*:host=mpi";
    Mesh mesh{MPI_COMM_WORLD, "dp=auto", options};
    auto& dp = mesh["dp"];
    const bool is_last = dp.is_last();
    Matrix rows{2, 3}, columns{2, 3, true}, line{1, 3}, column{3, 1, true};
    std::vector<float> flat(6);
    if (is_last)
      dp.broadcast(flat, 0);
    else
      dp.broadcast(columns, 0);
    if (is_last)
      dp.all_reduce(line);
    else
      dp.all_reduce(column);
    const std::string text =
        thrown_by<MismatchError>([&] { dp.all_reduce(is_last ? columns : rows); }).message();
    CHECK_CONTAINS(text, "dp.all_reduce(6 x float32, sum, row-major, in place");
    CHECK_CONTAINS(text, "dp.all_reduce(6 x float32, sum, column-major, in place");
    wait_for_all();
  }
}

TEST_CASE("an asynchronous operation keeps a share of what is shared") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  std::weak_ptr<std::vector<int>> watched;
  Work work;
  std::shared_ptr<std::vector<int>> result;
  {
    Handle handle{std::make_shared<std::vector<int>>(1000, rank())};
    watched = handle.values;
    work = dp.all_reduce_async(handle);
  }
  if (!work.test()) CHECK(!watched.expired());
  work.wait();
  Handle kept{std::make_shared<std::vector<int>>(1000, 1)};
  dp.all_reduce_async(Handle{kept}).wait();
  CHECK(kept.values->back() == size());
  dp.all_reduce(Handle{kept}, ReduceOp::max);
  CHECK(kept.values->back() == size());
  mesh.close();
}

TEST_CASE("element types may be known at run time only") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  std::vector<double> numbers(4, 1.5);
  std::vector<Float16> halves(4, Float16{0.5F});
  dp.all_reduce(Column{DataType::float64, numbers.data(), 4});
  dp.all_reduce(Column{DataType::float16, halves.data(), 4}, ReduceOp::max);
  CHECK(numbers[3] == 1.5 * size());
  CHECK(static_cast<float>(halves[3]) == 0.5F);
  std::vector<double> all(static_cast<std::size_t>(4 * size()));
  const Column column{DataType::float64, numbers.data(), 4};
  dp.all_gather(column, all);
  CHECK(all.back() == numbers[3]);
  dp.all_gather_async(column, buffer_of(all)).wait();
  dp.broadcast(buffer_of(numbers), 0);
  std::vector<float> floats(all.size());
  CHECK(message_of([&] {
          dp.all_gather(column, floats);
        }).find("in holds float64, but out holds float32") != std::string::npos);
  mesh.close();
}
