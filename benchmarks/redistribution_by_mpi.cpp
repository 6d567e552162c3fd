// SPDX-License-Identifier: BSD-3-Clause
// What a program writes by hand: packed blocks and MPI_Alltoallv, or datatypes and MPI_Alltoallw.
#include <algorithm>
#include <cstring>
#include <utility>

#include "redistribution.hpp"

namespace bench {
namespace {

// Neighbouring indices that two members have in common along one axis.
struct Run {
  int source, target, length;
};

std::vector<Run> common_runs(const Division& from, int holder, const Division& to, int receiver) {
  std::vector<Run> runs;
  for (int i = 0; i < from.length;) {
    const int end =
        std::min({(i / from.block + 1) * from.block, (i / to.block + 1) * to.block, from.length});
    if (from.owner(i) == holder && to.owner(i) == receiver) {
      const Run run{from.local(i), to.local(i), end - i};
      if (!runs.empty() && runs.back().source + runs.back().length == run.source &&
          runs.back().target + runs.back().length == run.target)
        runs.back().length += run.length;
      else
        runs.push_back(run);
    }
    i = end;
  }
  return runs;
}

// What two ranks have in common: the product of the runs.
struct Box {
  std::vector<Run> rows, columns;
  [[nodiscard]] int elements() const {
    int height = 0, width = 0;
    for (const Run& run : rows) height += run.length;
    for (const Run& run : columns) width += run.length;
    return height * width;
  }
};

Box common(const Job& job, int holder, int receiver) {
  const int r = job.from.row_of(holder), c = job.from.column_of(holder);
  const int to_r = job.to.row_of(receiver), to_c = job.to.column_of(receiver);
  if (r < 0 || to_r < 0) return {};
  return {common_runs(job.from.rows, r, job.to.rows, to_r),
          common_runs(job.from.columns, c, job.to.columns, to_c)};
}

// Calls use(offset, length) for the runs of a box in a local array.
template <class Use>
void for_each_run(const Box& box, int Run::*offset, int columns, Use&& use) {
  for (const Run& rows : box.rows)
    for (int i = 0; i < rows.length; ++i)
      for (const Run& run : box.columns)
        use(static_cast<std::size_t>(rows.*offset + i) * static_cast<std::size_t>(columns) +
                static_cast<std::size_t>(run.*offset),
            static_cast<std::size_t>(run.length));
}

struct Packed {
  Job job;
  std::vector<Box> sent, received;
  std::vector<int> send_counts, send_places, receive_counts, receive_places;
  std::vector<double> send_buffer, receive_buffer;

  explicit Packed(const Job& j) : job{j} {
    int out = 0, in = 0;
    for (int peer = 0; peer < job.size; ++peer) {
      sent.push_back(common(job, job.rank, peer));
      received.push_back(common(job, peer, job.rank));
      send_counts.push_back(sent.back().elements());
      receive_counts.push_back(received.back().elements());
      send_places.push_back(std::exchange(out, out + send_counts.back()));
      receive_places.push_back(std::exchange(in, in + receive_counts.back()));
    }
    send_buffer.resize(static_cast<std::size_t>(out));
    receive_buffer.resize(static_cast<std::size_t>(in));
  }
  void move() {
    double* to = send_buffer.data();
    for (const Box& box : sent)
      for_each_run(box, &Run::source, job.from.local_columns(job.rank),
                   [&](std::size_t at, std::size_t n) {
                     std::memcpy(to, job.source + at, n * sizeof(double));
                     to += n;
                   });
    MPI_Alltoallv(send_buffer.data(), send_counts.data(), send_places.data(), MPI_DOUBLE,
                  receive_buffer.data(), receive_counts.data(), receive_places.data(), MPI_DOUBLE,
                  job.comm);
    const double* from = receive_buffer.data();
    for (const Box& box : received)
      for_each_run(box, &Run::target, job.to.local_columns(job.rank),
                   [&](std::size_t at, std::size_t n) {
                     std::memcpy(job.target + at, from, n * sizeof(double));
                     from += n;
                   });
  }
};

MPI_Datatype type_of(const Box& box, int Run::*offset, int rows, int columns) {
  if (box.elements() == 0) return MPI_DOUBLE;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (box.rows.size() == 1 && box.columns.size() == 1) {
    const int sizes[] = {rows, columns};
    const int parts[] = {box.rows[0].length, box.columns[0].length};
    const int starts[] = {box.rows[0].*offset, box.columns[0].*offset};
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  } else {
    std::vector<int> lengths, places;
    for (const Run& run : box.columns) {
      lengths.push_back(run.length);
      places.push_back(run.*offset);
    }
    MPI_Datatype in_row = MPI_DATATYPE_NULL, row = MPI_DATATYPE_NULL;
    MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), MPI_DOUBLE,
                     &in_row);
    MPI_Type_create_resized(in_row, 0, columns * MPI_Aint{sizeof(double)}, &row);
    lengths.clear();
    places.clear();
    for (const Run& run : box.rows) {
      lengths.push_back(run.length);
      places.push_back(run.*offset);
    }
    MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), row, &type);
  }
  MPI_Type_commit(&type);
  return type;
}

struct Typed {
  Job job;
  std::vector<int> send_counts, receive_counts, places;
  std::vector<MPI_Datatype> send_types, receive_types;

  explicit Typed(const Job& j) : job{j}, places(static_cast<std::size_t>(j.size)) {
    for (int peer = 0; peer < job.size; ++peer) {
      const Box sent = common(job, job.rank, peer), received = common(job, peer, job.rank);
      send_counts.push_back(sent.elements() > 0 ? 1 : 0);
      receive_counts.push_back(received.elements() > 0 ? 1 : 0);
      send_types.push_back(type_of(sent, &Run::source, job.from.local_rows(job.rank),
                                   job.from.local_columns(job.rank)));
      receive_types.push_back(type_of(received, &Run::target, job.to.local_rows(job.rank),
                                      job.to.local_columns(job.rank)));
    }
  }
  void move() {
    MPI_Alltoallw(job.source, send_counts.data(), places.data(), send_types.data(), job.target,
                  receive_counts.data(), places.data(), receive_types.data(), job.comm);
  }
};

}  // namespace

Move hand_packed(const Job& job) {
  return [packed = std::make_shared<Packed>(job)] { packed->move(); };
}
Move by_datatypes(const Job& job) {
  return [typed = std::make_shared<Typed>(job)] { typed->move(); };
}

std::vector<Way>& other_ways() {
  static std::vector<Way> ways;
  return ways;
}

}  // namespace bench
