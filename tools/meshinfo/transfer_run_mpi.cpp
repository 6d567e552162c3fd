// SPDX-License-Identifier: BSD-3-Clause
#include "transfer_run.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "measure.hpp"
#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/rankmesh.hpp"
#include "terminal.hpp"

namespace rankmesh::meshinfo {
namespace {

using exchange::TensorSource;
using exchange::TensorTarget;

constexpr int transfers = 4;  // the first one allocates memory

// Returns a number from 0 to 7, which every type holds exactly. It depends on the whole index.
int value_of(std::int64_t element, std::size_t tensor) {
  auto x = static_cast<std::uint64_t>(element) + 0x9e3779b97f4a7c15U * (tensor + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return static_cast<int>(x >> 61);
}

// The elements of one tensor on this rank.
class LocalTensor {
 public:
  LocalTensor(const TensorPlacement& place, std::size_t number, Rank self)
      : place_{place},
        number_{number},
        self_{self},
        count_{place.local_count(self)},
        memory_(static_cast<std::size_t>(count_) * size_of(place.type())) {}

  // For partial sums, the ranks with the coordinates 0 have the values, and all other ranks have
  // zeros.
  void fill() {
    if (!has_summands()) return;
    for_each([&](std::int64_t offset, int value) {
      visit(place_.type(), [&]<class T>(std::type_identity<T>) {
        const T stored = of<T>(value);
        std::memcpy(at<T>(offset), &stored, sizeof stored);
      });
    });
  }
  void clear() { std::ranges::fill(memory_, std::byte{0x5a}); }
  [[nodiscard]] std::int64_t wrong() {
    std::int64_t count = 0;
    for_each([&](std::int64_t offset, int value) {
      visit(place_.type(), [&]<class T>(std::type_identity<T>) {
        const T expected = of<T>(value);
        if (std::memcmp(at<T>(offset), &expected, sizeof expected) != 0) ++count;
      });
    });
    return count;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] Buffer buffer() { return {memory_.data(), count_, place_.type()}; }

 private:
  template <class T>
  static T of(int value) {
    if constexpr (std::is_arithmetic_v<T>)
      return static_cast<T>(value);
    else
      return T{static_cast<float>(value)};
  }
  template <class T>
  std::byte* at(std::int64_t offset) {
    return memory_.data() + static_cast<std::size_t>(offset) * sizeof(T);
  }
  [[nodiscard]] bool has_summands() const {
    const auto coordinates = place_.layout().coordinates(self_);
    if (!coordinates) return false;
    return std::ranges::all_of(place_.sums(), [&](const std::string& name) {
      return (*coordinates)[place_.layout().index_of(name)] == Coordinate{0};
    });
  }
  // Calls use(offset, value) for all elements.
  template <class Use>
  void for_each(Use&& use) {
    if (count_ == 0) return;
    const std::size_t axes = place_.shape().size();
    std::vector<std::vector<std::int64_t>> indices(axes);  // of each axis, in the whole tensor
    for (std::size_t axis = 0; axis < axes; ++axis)
      for (const AxisRun& run : place_.runs(self_, axis))
        for (std::int64_t i = 0; i < run.count; ++i) indices[axis].push_back(run.global + i);
    std::vector<std::size_t> at_axis(axes, 0);
    for (std::int64_t offset = 0; offset < count_; ++offset) {
      std::int64_t element = 0;
      for (std::size_t axis = 0; axis < axes; ++axis)
        element = element * place_.shape()[axis] + indices[axis][at_axis[axis]];
      use(offset, value_of(element, number_));
      for (std::size_t axis = axes; axis-- > 0;) {
        if (++at_axis[axis] < indices[axis].size()) break;
        at_axis[axis] = 0;
      }
    }
  }

  const TensorPlacement& place_;
  std::size_t number_;
  Rank self_;
  std::int64_t count_;
  std::vector<std::byte> memory_;
};

}  // namespace

TransferRun run_transfer(const OpenMesh& open, const TransferPlan& plan) {
  Mesh& mesh = *open.mesh;
  Progress progress{mesh.rank() == Rank{0}};
  int round = 0;
  exchange::Redistribution move{
      mesh["world"], plan, {.progress = [&](std::int64_t done, std::int64_t all) {
        progress.show_step(done + round * all, transfers * all,
                           fmt::format("bytes, round {}", round + 1));
      }}};
  std::vector<LocalTensor> sources, targets;
  sources.reserve(plan.tensors().size());
  targets.reserve(plan.tensors().size());
  std::vector<TensorSource> in;
  std::vector<TensorTarget> out;
  for (std::size_t t = 0; t < plan.tensors().size(); ++t) {
    sources.emplace_back(plan.tensors()[t].from, t, mesh.rank());
    sources.back().fill();
    targets.emplace_back(plan.tensors()[t].to, t, mesh.rank());
    in.emplace_back().memory = sources.back().buffer().as_input();
    out.emplace_back().memory = targets.back().buffer();
  }
  TransferRun run;
  for (; round < transfers; ++round) {
    for (LocalTensor& target : targets) target.clear();
    mesh["world"].barrier();
    const auto begin = std::chrono::steady_clock::now();
    move.start(in, out).wait();
    const double own =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double seconds = over_all_ranks(own, MPI_MAX);
    if (round == 0) run.first = seconds;
    run.seconds = round <= 1 ? seconds : std::min(run.seconds, seconds);
    for (LocalTensor& target : targets) {
      run.wrong += target.wrong();
      run.elements += round == 0 ? target.count() : 0;
    }
  }
  run.wrong = over_all_ranks(run.wrong, MPI_SUM);
  run.elements = over_all_ranks(run.elements, MPI_SUM);
  run.read_bytes = over_all_ranks(move.bytes_read_directly(), MPI_SUM);
  progress.finish(fmt::format("{} transfers in {}", transfers, duration_text(progress.seconds())));
  return run;
}

}  // namespace rankmesh::meshinfo
