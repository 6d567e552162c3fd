// SPDX-License-Identifier: BSD-3-Clause
// What the loops of prefill and decode have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rankmesh/exchange/lockstep.hpp>
#include <rankmesh/exchange/objects.hpp>
#include <rankmesh/rankmesh.hpp>

#include "model.hpp"

/// What the driver of a replica tells the other ranks of the replica before each step.
template <class T>
struct Plan {
  std::vector<T> arrived;
  bool is_last = false;  ///< Nothing will arrive after this step.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(arrived, is_last);
  }
};

/// One of the two engines, on the ranks of one grid. Each replica (a coordinate of dp) has a
/// driver, member 0 of tp.
struct Engine {
  Engine(rankmesh::Mesh& mesh, const std::string& grid)
      : tp{mesh[grid + ".tp"]},
        dp{mesh[grid + ".dp"]},
        world{mesh["world"]},
        queue{tp, /*writer=*/0},
        lockstep{dp, {.sizes = {1, 2, 4, 8}, .multiple = 8}},
        model{tp, dp} {}

  [[nodiscard]] bool is_driver() const { return tp.is_first(); }
  [[nodiscard]] int replica() const { return dp.rank_in_group().to_int(); }

  /// Gives the driver's plan to all ranks of the replica.
  template <class T>
  void share(Plan<T>& plan) {
    if (is_driver())
      rankmesh::exchange::write_object(queue, plan);
    else
      plan = rankmesh::exchange::read_object<Plan<T>>(queue);
  }
  /// Agrees on the next step with the other replicas, and runs it. Returns the sums of the rows, or
  /// nothing if all replicas have ended.
  std::optional<std::vector<std::int64_t>> step(const std::vector<Row>& rows, bool is_done) {
    const auto agreed = lockstep.agree({.tokens = std::ssize(rows), .is_done = is_done});
    if (agreed.is_last) return std::nullopt;
    if (agreed.padded == 0) return std::vector<std::int64_t>{};
    ++steps;
    if (agreed.is_dummy) ++dummy_steps;
    return model.run(rows, agreed.padded);
  }

  rankmesh::GroupCoordinator& tp;
  rankmesh::GroupCoordinator& dp;
  rankmesh::GroupCoordinator& world;
  rankmesh::exchange::ControlQueue queue;
  rankmesh::exchange::Lockstep lockstep;
  Model model;
  int steps = 0;
  int dummy_steps = 0;
};
