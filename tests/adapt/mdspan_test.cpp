// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/adapt/mdspan.hpp"

#include <array>
#include <vector>

#include "arrays.hpp"

using namespace rankmesh;
using rankmesh_test::size;

namespace {

/// Has the functions of a std::mdspan of two axes that rankmesh uses. g++ 12 has no std::mdspan.
template <class T>
class MdspanLookAlike {
 public:
  MdspanLookAlike(T* data, std::array<std::size_t, 2> extents, std::array<std::size_t, 2> strides)
      : data_{data}, extents_{extents}, strides_{strides} {}
  static constexpr std::size_t rank() { return 2; }
  static constexpr bool is_always_strided() { return true; }
  T* const& data_handle() const { return data_; }
  std::size_t extent(std::size_t k) const { return extents_[k]; }
  std::size_t stride(std::size_t k) const { return strides_[k]; }
  T& operator()(std::int64_t i, std::int64_t j) const {
    return data_[static_cast<std::size_t>(i) * strides_[0] +
                 static_cast<std::size_t>(j) * strides_[1]];
  }

 private:
  T* data_;
  std::array<std::size_t, 2> extents_, strides_;
};

}  // namespace

TEST_CASE("an mdspan is memory, and never a value") {
  static_assert(detail::is_borrowed<MdspanLookAlike<float>>);
  static_assert(WritableMemory<MdspanLookAlike<float>>);
  static_assert(!WritableMemory<MdspanLookAlike<const float>>);
  static_assert(!MovableElement<MdspanLookAlike<float>>);
  std::vector<float> memory(12);
  const MdspanLookAlike<float> rows{memory.data(), {3, 4}, {4, 1}};
  const MdspanLookAlike<float> columns{memory.data(), {3, 4}, {1, 3}};
  rankmesh_test::check_sums(rows, rows, 3, 4);
  rankmesh_test::check_sums(columns, columns, 3, 4);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  CHECK_THROWS_AS(mesh["dp"].all_reduce(MdspanLookAlike<float>{memory.data(), {3, 2}, {4, 1}}),
                  UsageError);
  mesh.close();
}

TEST_CASE("a redistribution moves an mdspan with gaps") {
  const auto n = static_cast<std::size_t>(size());
  std::vector<float> from(3 * n), to(2 * n);
  const MdspanLookAlike<float> row{from.data(), {1, n}, {1, 3}};
  const MdspanLookAlike<float> column{to.data(), {n, 1}, {2, 1}};
  rankmesh_test::check_move(row, row, column, column);
}
