// SPDX-License-Identifier: BSD-3-Clause
// Solves the assignment problem by shortest augmenting paths (Jonker and Volgenant 1987), for
// classes with several members: each column keeps a list of the rows that it serves.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "detail/assignment_problem.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::int64_t unreached = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t no_class = std::numeric_limits<std::size_t>::max();

// The cost of a pair is minus the bytes that it keeps. The reduced cost of a pair, its cost minus
// the potentials of the row and of the column, is never negative, and it is 0 where there is flow.
class AugmentingPaths {
 public:
  explicit AugmentingPaths(const ClassProblem& problem)
      : problem_{problem},
        rows_{problem.supply.size()},
        columns_{problem.capacity.size()},
        left_{problem.supply},
        free_{problem.capacity},
        row_potential_(rows_),
        column_potential_(columns_, unreached),
        flows_(columns_) {}

  std::vector<ClassFlow> solve() {
    begin();
    for (std::size_t row = 0; row < rows_; ++row)
      while (left_[row] > 0) augment(row, shortest_path(row));
    std::vector<ClassFlow> all;
    for (const auto& of_column : flows_) all.insert(all.end(), of_column.begin(), of_column.end());
    return all;
  }

 private:
  [[nodiscard]] const std::int64_t* held(std::size_t row) const {
    return problem_.held.data() + row * columns_;
  }

  // Chooses potentials. Assigns each row to the column with the smallest reduced cost, as far as
  // this column has members left.
  void begin() {
    for (std::size_t row = 0; row < rows_; ++row)
      for (std::size_t j = 0; j < columns_; ++j)
        column_potential_[j] = std::min(column_potential_[j], -held(row)[j]);
    for (std::size_t row = 0; row < rows_; ++row) {
      std::size_t best = 0;
      const auto reduced = [&](std::size_t j) { return -held(row)[j] - column_potential_[j]; };
      for (std::size_t j = 1; j < columns_; ++j) {
        const bool is_less = reduced(j) < reduced(best);
        if (is_less || (reduced(j) == reduced(best) && free_[best] == 0 && free_[j] > 0)) best = j;
      }
      row_potential_[row] = reduced(best);
      add_flow(row, best, std::min(left_[row], free_[best]));
    }
  }

  void add_flow(std::size_t row, std::size_t column, std::int64_t count) {
    if (count == 0) return;
    left_[row] -= count;
    free_[column] -= count;
    change_flow(row, column, count);
  }

  void change_flow(std::size_t row, std::size_t column, std::int64_t change) {
    auto& list = flows_[column];
    const auto known = std::ranges::find(list, row, &ClassFlow::row);
    if (known == list.end()) return list.push_back({row, column, change});
    known->count += change;
    if (known->count == 0) list.erase(known);
  }

  [[nodiscard]] std::int64_t flow(std::size_t row, std::size_t column) const {
    return std::ranges::find(flows_[column], row, &ClassFlow::row)->count;
  }

  // Dijkstra's algorithm from a row. Returns the nearest column that has members left, and updates
  // the potentials so that the path to it has reduced costs of 0.
  std::size_t shortest_path(std::size_t from) {
    distance_.assign(columns_, unreached);
    reached_from_.assign(columns_, no_class);
    entered_by_.assign(rows_, no_class);
    visited_rows_.clear();
    open_.resize(columns_);
    for (std::size_t j = 0; j < columns_; ++j) open_[j] = j;
    visited_columns_.clear();
    visit(from, 0);
    for (;;) {
      const auto nearest = std::ranges::min_element(open_, {}, [&](std::size_t j) {
        return std::pair{distance_[j], free_[j] == 0};
      });
      const std::size_t column = *nearest;
      *nearest = open_.back();
      open_.pop_back();
      const std::int64_t length = distance_[column];
      if (free_[column] > 0) {
        update_potentials(length);
        return column;
      }
      visited_columns_.push_back(column);
      for (const ClassFlow& served : flows_[column]) {
        if (served.row == from || entered_by_[served.row] != no_class) continue;
        entered_by_[served.row] = column;
        visit(served.row, length);
      }
    }
  }

  // Finds shorter paths to the open columns through a row.
  void visit(std::size_t row, std::int64_t length) {
    visited_rows_.emplace_back(row, length);
    const std::int64_t base = length - row_potential_[row];
    const std::int64_t* const bytes = held(row);
    for (const std::size_t j : open_) {
      const std::int64_t through = base - bytes[j] - column_potential_[j];
      if (through >= distance_[j]) continue;
      distance_[j] = through;
      reached_from_[j] = row;
    }
  }

  void update_potentials(std::int64_t length) {
    for (const auto& [row, at] : visited_rows_) row_potential_[row] += length - at;
    for (const std::size_t j : visited_columns_) column_potential_[j] -= length - distance_[j];
  }

  // Sends as many members as possible along the path to the column.
  void augment(std::size_t from, std::size_t to) {
    std::int64_t count = std::min(left_[from], free_[to]);
    for (std::size_t row = reached_from_[to]; row != from;) {
      const std::size_t column = entered_by_[row];
      count = std::min(count, flow(row, column));
      row = reached_from_[column];
    }
    left_[from] -= count;
    free_[to] -= count;
    for (std::size_t column = to;;) {
      const std::size_t row = reached_from_[column];
      change_flow(row, column, count);
      if (row == from) return;
      column = entered_by_[row];
      change_flow(row, column, -count);
    }
  }

  const ClassProblem& problem_;
  std::size_t rows_, columns_;
  std::vector<std::int64_t> left_, free_;  // the members without a partner
  std::vector<std::int64_t> row_potential_, column_potential_;
  std::vector<std::vector<ClassFlow>> flows_;  // of each column
  // Of the search for a path:
  std::vector<std::int64_t> distance_;     // of the columns
  std::vector<std::size_t> reached_from_;  // the row before each column
  std::vector<std::size_t> entered_by_;    // the column before each row
  std::vector<std::size_t> open_;          // the columns that were not visited
  std::vector<std::size_t> visited_columns_;
  std::vector<std::pair<std::size_t, std::int64_t>> visited_rows_;  // with their distances
};

}  // namespace

std::vector<ClassFlow> solve_exactly(const ClassProblem& problem) {
  return AugmentingPaths{problem}.solve();
}

}  // namespace rankmesh::detail
