// SPDX-License-Identifier: BSD-3-Clause
// The same by pdgemr2d of ScaLAPACK. Its matrices are column-major, so it moves the transposed
// matrix, whose rows are our columns.
#include "redistribution.hpp"

extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridmap(int* context, int* map, int ld, int rows, int columns);
void Cpdgemr2d(int m, int n, double* a, int ia, int ja, int* desca, double* b, int ib, int jb,
               int* descb, int context);
}

namespace bench {
namespace {

int context_of(const std::vector<int>& ranks, int rows, int columns) {
  int context = 0;
  Cblacs_get(0, 0, &context);
  std::vector<int> map = ranks;  // column-major
  Cblacs_gridmap(&context, map.data(), rows, rows, columns);
  return context;
}

struct Described {
  int values[9];
  Described(const Side& side, int rank) {
    // Row-major ranks of the grid are column-major ranks of the transposed grid.
    const int context = context_of(side.ranks, side.columns.members, side.rows.members);
    const int ld = side.local_columns(rank);
    const int list[] = {
        1, context, side.columns.length, side.rows.length, side.columns.block, side.rows.block,
        0, 0,       ld > 0 ? ld : 1};
    for (int i = 0; i < 9; ++i) values[i] = list[i];
    if (side.row_of(rank) < 0) values[1] = -1;
  }
};

struct Matrices {
  explicit Matrices(const Job& j) : job{j}, from{j.from, j.rank}, to{j.to, j.rank} {
    std::vector<int> all;
    for (int i = 0; i < job.size; ++i) all.push_back(i);
    everyone = context_of(all, 1, job.size);
  }
  void move() {
    Cpdgemr2d(job.from.columns.length, job.from.rows.length, const_cast<double*>(job.source), 1, 1,
              from.values, job.target, 1, 1, to.values, everyone);
  }
  Job job;
  Described from, to;
  int everyone = 0;
};

const AddWay scalapack_way{"pdgemr2d", [](const Job& job) -> Move {
                             return
                                 [matrices = std::make_shared<Matrices>(job)] { matrices->move(); };
                           }};

}  // namespace
}  // namespace bench
