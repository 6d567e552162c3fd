// SPDX-License-Identifier: BSD-3-Clause
// The same by COSTA (https://github.com/eth-cscs/COSTA), which plans in each transform().
#include <costa/grid2grid/transform.hpp>
#include <costa/layout.hpp>

#include "redistribution.hpp"

namespace bench {
namespace {

std::vector<int> splits(const Division& axis) {
  std::vector<int> list;
  for (int i = 0; i < axis.length; i += axis.block) list.push_back(i);
  list.push_back(axis.length);
  return list;
}

costa::grid_layout<double> layout(const Side& side, double* data, int rank) {
  const std::vector<int> rows = splits(side.rows), columns = splits(side.columns);
  const int height = static_cast<int>(rows.size()) - 1,
            width = static_cast<int>(columns.size()) - 1;
  std::vector<int> owners;
  std::vector<costa::block_t> own;
  for (int r = 0; r < height; ++r)
    for (int c = 0; c < width; ++c) {
      const int i = rows[static_cast<std::size_t>(r)], j = columns[static_cast<std::size_t>(c)];
      owners.push_back(side.rank(side.rows.owner(i), side.columns.owner(j)));
      if (owners.back() != rank) continue;
      const int ld = side.local_columns(rank);
      own.push_back(
          {data + static_cast<std::size_t>(side.rows.local(i)) * static_cast<std::size_t>(ld) +
               side.columns.local(j),
           ld, r, c});
    }
  return costa::custom_layout<double>(height, width, rows.data(), columns.data(), owners.data(),
                                      static_cast<int>(own.size()), own.data(), 'R');
}

struct Layouts {
  explicit Layouts(const Job& job)
      : from{layout(job.from, const_cast<double*>(job.source), job.rank)},
        to{layout(job.to, job.target, job.rank)} {}
  costa::grid_layout<double> from, to;
};

const AddWay costa_way{"COSTA", [](const Job& job) -> Move {
                         return [layouts = std::make_shared<Layouts>(job), comm = job.comm] {
                           costa::transform(layouts->from, layouts->to, comm);
                         };
                       }};

}  // namespace
}  // namespace bench
