// SPDX-License-Identifier: BSD-3-Clause
// A matrix that moves between two layouts, and the ways to move it that the benchmark compares.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bench {

/// How the rows or the columns of a matrix are dealt to the members of one dimension of a grid.
struct Division {
  int length = 0;   ///< of the matrix
  int members = 1;  ///< of the grid
  int block = 0;    ///< indices per block; the blocks are dealt in turn

  [[nodiscard]] int count(int member) const {
    const int all = (length + block - 1) / block;
    int count = (all / members + (member < all % members ? 1 : 0)) * block;
    if (member == (all - 1) % members) count -= all * block - length;
    return count;
  }
  [[nodiscard]] int owner(int index) const { return index / block % members; }
  [[nodiscard]] int local(int index) const {
    return index / (block * members) * block + index % block;
  }
};

/// A row-major matrix of doubles in blocks on a grid of ranks, as in ScaLAPACK.
struct Side {
  Division rows, columns;
  std::vector<int> ranks{};  ///< of the grid, row by row

  [[nodiscard]] int rank(int row, int column) const {
    return ranks[static_cast<std::size_t>(row * columns.members + column)];
  }
  /// Returns the row of the grid (or the column) of a rank; -1 if it has nothing.
  [[nodiscard]] int row_of(int rank) const {
    const int at = place(rank);
    return at < 0 ? -1 : at / columns.members;
  }
  [[nodiscard]] int column_of(int rank) const {
    const int at = place(rank);
    return at < 0 ? -1 : at % columns.members;
  }
  [[nodiscard]] int local_rows(int rank) const {
    return place(rank) < 0 ? 0 : rows.count(row_of(rank));
  }
  [[nodiscard]] int local_columns(int rank) const {
    return place(rank) < 0 ? 0 : columns.count(column_of(rank));
  }
  [[nodiscard]] std::size_t local_size(int rank) const {
    return static_cast<std::size_t>(local_rows(rank)) *
           static_cast<std::size_t>(local_columns(rank));
  }

 private:
  [[nodiscard]] int place(int rank) const {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (ranks[i] == rank) return static_cast<int>(i);
    return -1;
  }
};

struct Job {
  Side from, to;
  const double* source = nullptr;  ///< this rank's part
  double* target = nullptr;
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 1;
};

/// One way to move the matrix. The constructor prepares all that can be kept.
using Move = std::function<void()>;
struct Way {
  std::string name;
  std::function<Move(const Job&)> prepare;
};

/// The ways of other libraries that the build has found; see meson.build.
std::vector<Way>& other_ways();
struct AddWay {
  AddWay(std::string name, std::function<Move(const Job&)> prepare) {
    other_ways().push_back({std::move(name), std::move(prepare)});
  }
};

Move hand_packed(const Job& job);
Move by_datatypes(const Job& job);

}  // namespace bench
