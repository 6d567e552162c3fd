// SPDX-License-Identifier: BSD-3-Clause
// Elements of which each rank has a part, and which the ranks keep for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/exchange/kept_tensors.hpp"
#include "rankmesh/rankmesh.hpp"

namespace rankmesh_test {

/// The ranks of dp divide the elements. Each has the number of its place and of a state.
class Shards {
 public:
  /// @param on_device  Whether the elements are in device memory when they are kept and restored.
  explicit Shards(rankmesh::Mesh& mesh, bool on_device = false)
      : on_device_{on_device},
        group_{mesh["dp"]},
        place_{rankmesh::TensorPlacement::parse(
            fmt::format("[{}] f64 @ dp={} : (dp)", count, group_.size()))},
        self_{group_.rank_in_group().value()},
        own_(static_cast<std::size_t>(place_.local_count(self_))) {}

  void fill(std::int64_t state) {
    for (std::size_t i = 0; i < own_.size(); ++i) own_[i] = value(i, state);
  }
  void add(std::int64_t difference) {
    for (double& element : own_) element += static_cast<double>(count * difference);
  }
  [[nodiscard]] bool hold(std::int64_t state) const {
    for (std::size_t i = 0; i < own_.size(); ++i)
      if (own_[i] != value(i, state)) return false;
    return true;
  }
  void keep(rankmesh::exchange::KeptTensors& kept, std::int64_t step) {
    if (on_device_)
      kept.keep(group_, step, {{"shards", place_, copy_on_device().span()}});
    else
      kept.keep(group_, step, {{"shards", place_, own_}});
  }
  /// Returns what is missing; nothing if all elements of this group are restored.
  [[nodiscard]] std::string restore(rankmesh::exchange::KeptTensors& kept, std::int64_t step) {
    try {
      if (!on_device_) {
        kept.restore(group_, step, {{"shards", place_, own_}});
      } else {
        const Elements on_device{own_.size()};
        kept.restore(group_, step, {{"shards", place_, on_device.span()}});
        own_ = on_device.download({});
      }
    } catch (const rankmesh::LostElements& lost) {
      return lost.message();
    }
    return {};
  }

 private:
  using Elements = rankmesh::device::DeviceBuffer<double>;
  [[nodiscard]] Elements copy_on_device() const { return Elements{std::span<const double>{own_}}; }

  static constexpr std::int64_t count = 40'000;
  [[nodiscard]] double value(std::size_t i, std::int64_t state) const {
    return static_cast<double>(count * state + place_.runs(self_, 0).front().global) +
           static_cast<double>(i);
  }

  bool on_device_;
  rankmesh::GroupCoordinator& group_;
  rankmesh::TensorPlacement place_;
  rankmesh::Rank self_;
  std::vector<double> own_;
};

}  // namespace rankmesh_test
