// SPDX-License-Identifier: BSD-3-Clause
// The kernels of expert dispatchers against the same work on the host. One process;
// compute-sanitizer runs it too.
#include "exchange/kernels/expert_rows.hpp"

#include <cstring>
#include <random>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/device/stream.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::DataType;
using rankmesh::device::DeviceBuffer;
using rankmesh::device::GatherRows;
using rankmesh::device::WeightedSum;
using Bytes = std::vector<std::byte>;

constexpr std::int64_t source_rows = 37;

template <class T>
DeviceBuffer<T> on_device(const std::vector<T>& values) {
  return DeviceBuffer<T>{std::span<const T>{values}};
}

// Random values of the type: small enough that sums of them do not overflow a float16.
Bytes random_rows(std::mt19937& random, std::int64_t elements, DataType type) {
  std::uniform_real_distribution<float> values{-4, 4};
  Bytes result(static_cast<std::size_t>(elements) * size_of(type));
  rankmesh::visit(type, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < elements; ++i) {
      const T value = static_cast<T>(values(random));
      std::memcpy(result.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
    }
  });
  return result;
}

// Indices of rows of both sources, and of none.
std::vector<std::int64_t> random_index(std::mt19937& random, std::int64_t n, std::int64_t lowest) {
  std::uniform_int_distribution<std::int64_t> rows{lowest, 2 * source_rows - 1};
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < n; ++i) result.push_back(rows(random));
  return result;
}

// Runs the work on the host and on the device, and compares the results.
template <class Work>
void compare(Work work, const Bytes& from, const Bytes& other,
             const std::vector<std::int64_t>& index, const std::vector<float>& weight,
             std::size_t bytes, const std::string& what) {
  const auto weigh = [](Work& w, const float* values) {
    if constexpr (requires { w.weight; }) w.weight = values;
  };
  Bytes expected(bytes, std::byte{0x5a});
  const auto there = on_device(expected);
  work.to = expected.data();
  work.from = from.data();
  work.other = other.data();
  work.index = index.data();
  weigh(work, weight.data());
  run_on_host(work);

  const auto from_there = on_device(from);
  const auto other_there = on_device(other);
  const auto index_there = on_device(index);
  const auto weight_there = on_device(weight);
  work.to = there.data();
  work.from = from_there.data();
  work.other = other_there.data();
  work.index = index_there.data();
  weigh(work, weight_there.data());
  const auto stream = rankmesh::device::Stream::create();
  launch(work, stream);
  require(there.download(stream) == expected, what + " differs from the host's");
}

int gathers(std::mt19937& random) {
  int cases = 0;
  for (const std::int64_t row_bytes : {1, 2, 3, 4, 8, 12, 16, 48, 250, 256, 4096, 7168, 14336}) {
    for (const std::int64_t rows : {0, 1, 7, 300}) {
      for (const std::int64_t share : {1, 3}) {
        const auto size = static_cast<std::size_t>(rows * row_bytes);
        const Bytes from = random_rows(random, source_rows * row_bytes, DataType::uint8);
        const Bytes other = random_rows(random, source_rows * row_bytes, DataType::uint8);
        compare(
            GatherRows{.rows = rows, .split = source_rows, .share = share, .row_bytes = row_bytes},
            from, other, random_index(random, rows, GatherRows::keep), {}, size,
            fmt::format("a gather of {} rows of {} bytes", rows, row_bytes));
        ++cases;
      }
    }
  }
  return cases;
}

int sums(std::mt19937& random) {
  int cases = 0;
  std::uniform_real_distribution<float> weights{-1, 1};
  for (const DataType type :
       {DataType::float32, DataType::float16, DataType::bfloat16, DataType::float64}) {
    for (const std::int64_t elements : {1, 2, 7, 8, 9, 33, 256, 7168}) {
      for (const std::int64_t top_k : {1, 2, 8}) {
        constexpr std::int64_t tokens = 50;
        std::vector<float> weight(static_cast<std::size_t>(tokens * top_k));
        for (float& w : weight) w = weights(random);
        compare(WeightedSum{.tokens = tokens,
                            .top_k = top_k,
                            .split = source_rows,
                            .row_elements = elements,
                            .type = type},
                random_rows(random, source_rows * elements, type),
                random_rows(random, source_rows * elements, type),
                random_index(random, tokens * top_k, -1), weight,
                static_cast<std::size_t>(tokens * elements) * size_of(type),
                fmt::format("a weighted sum of {} {} elements, top {},", elements,
                            rankmesh::to_string(type), top_k));
        ++cases;
      }
    }
  }
  return cases;
}

int kernels(const Arguments&) {
  std::mt19937 random{17};
  const int gathered = gathers(random);
  const int summed = sums(random);
  summarise("{} gathers and {} weighted sums equal the host's, bit by bit", gathered, summed);
  return 0;
}

const Register kernels_row{"kernels", kernels};

}  // namespace
}  // namespace gpu_rows
