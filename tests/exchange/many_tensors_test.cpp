// SPDX-License-Identifier: BSD-3-Clause
// Lists of tensors that share their places move together.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "exchange/placed_tensors.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/iterations.hpp"
#include "support/mpi_world.hpp"
#include "transfer/random_place.hpp"

using namespace rankmesh;
using rankmesh::exchange::Redistribution;
using rankmesh::exchange::TensorSource;
using rankmesh::exchange::TensorTarget;
using rankmesh_test::fill;
using rankmesh_test::Local;
using rankmesh_test::pick;
using rankmesh_test::Random;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::transfer;

namespace {

// Adds an axis that is not divided, so that the contiguous runs are long enough to be read
// directly.
std::string with_long_runs(std::string text) {
  const auto add = [&](std::size_t end, char begin, const std::string& item) {
    text.insert(end, (text[end - 1] == begin ? "" : ",") + item);
  };
  add(text.rfind(')'), '(', "_");
  add(text.find(']'), '[', "600");
  return text;
}

// Returns a pair of places on the ranks of this job.
TensorTransfer random_pair(Random& random, bool has_long_runs) {
  for (;;) {
    rankmesh_test::RandomPlaces places{random};
    std::string from = places.place(false, true), to = places.place(false, false);
    if (has_long_runs) {
      from = with_long_runs(from);
      to = with_long_runs(to);
    }
    TensorTransfer pair{TensorPlacement::parse(from), TensorPlacement::parse(to)};
    if (plan_transfer(pair.from, pair.to).world_size() <= std::max(size(), 2)) return pair;
  }
}

// Moves the tensors from dense memory first, then twice with gaps between the rows of some of them,
// and then from dense memory again.
void check_moves(GroupCoordinator& group, const std::vector<TensorTransfer>& tensors,
                 std::int64_t memory) {
  Redistribution move{group, plan_transfer(tensors), {.memory = memory}};
  for (int round = 0; round < 4; ++round) {
    const bool has_gaps = round == 1 || round == 2;
    std::vector<Local> sources, targets;
    std::vector<TensorSource> in;
    std::vector<TensorTarget> out;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      fill(tensors[t].from, sources.emplace_back(tensors[t].from, has_gaps && t % 2 == 0 ? 3 : 0),
           round);
      targets.emplace_back(tensors[t].to, has_gaps && t % 3 == 0 ? 2 : 0);
      in.push_back(sources.back().source());
      out.push_back(targets.back().target());
    }
    move.start(in, out).wait();
    for (std::size_t t = 0; t < tensors.size(); ++t)
      rankmesh_test::check(tensors[t].to, targets[t], round);
  }
}

double value_of(std::int64_t tensor, int row, int column, int round) {
  return static_cast<double>(tensor * 100'000 + row * 1'000 + column) + round * 0.5;
}

}  // namespace

TEST_CASE("random lists of tensors arrive as after gathering and slicing") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  Random random{29U + static_cast<unsigned>(size())};
  // Each size of a job begins with another combination of the run lengths and the memory.
  const int first = 3 * size(), rounds = rankmesh_test::iterations(24, size());
  for (int done = first; done < first + rounds; ++done) {
    std::vector<TensorTransfer> pairs, tensors;
    for (std::int64_t kinds = pick(random, 1, 4); kinds > 0; --kinds)
      pairs.push_back(random_pair(random, done % 3 == 0));
    for (std::int64_t count = pick(random, 1, done % 3 == 0 ? 8 : 40); count > 0; --count)
      tensors.push_back(pairs[static_cast<std::size_t>(pick(random, 0, std::ssize(pairs) - 1))]);
    CAPTURE(done);
    CAPTURE(pairs.front().from.to_string());
    CAPTURE(pairs.front().to.to_string());
    if (plan_transfer(tensors).world_size() > size()) continue;  // on a single rank
    const std::int64_t memories[] = {1024, 17'000 * size(), 64 << 20};
    check_moves(mesh["tp"], tensors, memories[done / 3 % 3]);
  }
  mesh.close();
}

TEST_CASE("thousands of tensors are read from several peers in turns") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  constexpr std::int64_t count = 2'500, width = 256;
  // Every tensor goes to the next rank or to the first one, a third of them stays where it is.
  const auto rows = rankmesh_test::place("[N,256] f64 @ tp=N : (tp, _)");
  const std::vector<TensorTransfer> kinds{
      {rows, rankmesh_test::place(size() == 1 ? "[N,256] f64 @ tp=N : (tp, _)"
                                              : "[N,256] f64 @ tp=N on 1-L,0 : (tp, _)")},
      {rows, rankmesh_test::place("[N,256] f64 @ w=1 : (_, _)")},
      {rows, rows}};
  std::vector<TensorTransfer> tensors;
  for (std::int64_t t = 0; t < count; ++t)
    tensors.push_back(kinds[static_cast<std::size_t>(t) % kinds.size()]);
  Redistribution move{mesh["tp"], plan_transfer(tensors)};
  for (int round = 0; round < 2; ++round) {
    std::vector<double> from(count * width), to(static_cast<std::size_t>(count * width * size()));
    std::vector<TensorSource> in;
    std::vector<TensorTarget> out;
    for (std::int64_t t = 0; t < count; ++t) {
      const auto mine = std::span{from}.subspan(static_cast<std::size_t>(t * width), width);
      for (int c = 0; c < width; ++c)
        mine[static_cast<std::size_t>(c)] = value_of(t, rank(), c, round);
      in.emplace_back(mine);
      // The targets lie in the opposite order.
      const auto needed = tensors[static_cast<std::size_t>(t)].to.local_count(Rank{rank()});
      out.emplace_back(
          std::span{to}.subspan(static_cast<std::size_t>((count - 1 - t) * width * size()),
                                static_cast<std::size_t>(needed)));
    }
    move.start(in, out).wait();
    std::int64_t wrong = 0;
    for (std::int64_t t = 0; t < count; ++t) {
      const auto stored =
          std::span{to}.subspan(static_cast<std::size_t>((count - 1 - t) * width * size()));
      const bool is_whole = t % 3 == 1;
      for (int row = 0; row < (is_whole ? rank() == 0 ? size() : 0 : 1); ++row) {
        const int owner = is_whole ? row : t % 3 == 0 ? (rank() + size() - 1) % size() : rank();
        for (int c = 0; c < width; ++c)
          wrong +=
              stored[static_cast<std::size_t>(row * width + c)] != value_of(t, owner, c, round);
      }
    }
    CHECK(wrong == 0);
  }
  mesh.close();
}

TEST_CASE("strides of a tensor without elements on this rank are ignored") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const TensorTransfer moved =
      transfer("[N,512] f64 @ w=1 : (_, _)", "[N,512] f64 @ tp=N : (tp, _)");
  std::vector<double> whole(static_cast<std::size_t>(rank() == 0 ? 512 * size() : 0)), row(512);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<double>(i);
  TensorSource source{whole};
  if (rank() != 0) source.strides = {7};
  Redistribution move{mesh["tp"], plan_transfer(moved.from, moved.to)};
  move.start(source, row).wait();
  for (const std::size_t c : {0U, 511U})
    CHECK(row[c] == static_cast<double>(512U * static_cast<unsigned>(rank()) + c));
  mesh.close();
}
