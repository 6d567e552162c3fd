// SPDX-License-Identifier: BSD-3-Clause
// Tensors move between places. The results are compared with the definition of a place, element by
// element.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "exchange/placed_tensors.hpp"
#include "machine/read_machine.hpp"
#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/iterations.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh::exchange::Redistribution;
using rankmesh::exchange::RedistributionOptions;
using rankmesh::exchange::TensorSource;
using rankmesh::exchange::TensorTarget;
using rankmesh_test::fill;
using rankmesh_test::Local;
using rankmesh_test::place;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::transfer;

namespace {

// The number of partial sums of each element.
std::int64_t terms(const TensorPlacement& place) {
  std::int64_t result = 1;
  for (const std::string& name : place.sums()) {
    const Layout& layout = place.layout();
    result *= layout.dimensions()[layout.index_of(name)].size;
  }
  return result;
}

void check(const TensorTransfer& moved, Local& local, int round) {
  rankmesh_test::check(moved.to, local, round, static_cast<double>(terms(moved.from)));
}

struct Options {
  std::int64_t memory = 1 << 20;
  const Machine* machine = nullptr;
  std::int64_t source_gap = 0, target_gap = 0;
};

void check_moves(GroupCoordinator& group, const std::vector<TensorTransfer>& tensors,
                 const Options& options = {}) {
  std::int64_t done = 0, all = 0;
  Redistribution move{
      group,
      plan_transfer(tensors, options.machine),
      {.memory = options.memory, .progress = [&](std::int64_t now, std::int64_t whole) {
         done = now;
         all = whole;
       }}};
  std::vector<Local> sources, targets;
  for (const TensorTransfer& tensor : tensors) {
    sources.emplace_back(tensor.from, options.source_gap);
    targets.emplace_back(tensor.to, options.target_gap);
  }
  for (int round = 0; round < 2; ++round) {
    std::vector<TensorSource> in;
    std::vector<TensorTarget> out;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      fill(tensors[t].from, sources[t], round);
      in.push_back(sources[t].source());
      out.push_back(targets[t].target());
    }
    const auto before = sources.empty() ? std::vector<std::byte>{} : sources.front().memory;
    Work work = move.start(in, out);
    work.wait();
    CHECK(work.test());
    if (!sources.empty()) CHECK(sources.front().memory == before);
    CHECK(done == all);
    CHECK(done == move.bytes());
    for (std::size_t t = 0; t < tensors.size(); ++t) check(tensors[t], targets[t], round);
  }
}

// Host memory also moves between places of different types.
const auto pairs = [] {
  auto all = rankmesh_test::pairs_of_one_type;
  all.insert(all.end(), {{"[24,10] f32 @ tp=N : (tp, _)", "[24,10] bf16 @ tp=N : (_, tp)"},
                         {"[24,10] bf16 @ tp=N : (tp, _)", "[24,10] f32 @ tp=N : (_, tp)"},
                         {"[24,10] f64 @ tp=N : (tp, _)", "[24,10] f16 @ tp=N : (_, _)"}});
  return all;
}();

const std::vector<std::pair<std::string, std::string>> sums{
    {"[12,7] f32 @ tp=N : (_, _) sum(tp)", "[12,7] f32 @ tp=N : (_, tp)"},
    {"[12,7] f32 @ tp=N : (_, _) sum(tp)", "[12,7] f32 @ tp=N : (_, _)"},
    {"[12,7] bf16 @ tp=N : (_, _) sum(tp)", "[12,7] bf16 @ tp=N : (tp, _)"},
    {"[12,7] f32 @ tp=N : (_, _) sum(tp)", "[12,7] bf16 @ tp=N : (_, _)"},
    {"[12,7] i64 @ tp=N : (_, _) sum(tp)", "[12,7] i64 @ tp=H : (_, tp)"},
};

}  // namespace

TEST_CASE("tensors move between places") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  for (const auto& [from, to] : pairs) {
    CAPTURE(from);
    CAPTURE(to);
    check_moves(mesh["tp"], {transfer(from, to)});
  }
  mesh.close();
}

TEST_CASE("messages move in rounds if they are larger than the memory") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  check_moves(mesh["tp"],
              {transfer("[96,64] f32 @ tp=N : (tp, _)", "[96,64] f32 @ tp=N : (_, tp)")},
              {.memory = 1024});
  check_moves(mesh["tp"],
              {transfer("[96,33] f64 @ tp=N : (_, tp)", "[96,33] bf16 @ tp=N : (_, _)"),
               transfer("[501] u8 @ tp=N : (tp)", "[501] u8 @ tp=N : (tp:cyclic)")},
              {.memory = 1100});
  mesh.close();
}

TEST_CASE("memory may have strides") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  for (const auto& [from, to] : pairs) {
    CAPTURE(from);
    CAPTURE(to);
    check_moves(mesh["tp"], {transfer(from, to)}, {.source_gap = 3});
    check_moves(mesh["tp"], {transfer(from, to)}, {.target_gap = 2});
    check_moves(mesh["tp"], {transfer(from, to)},
                {.memory = 1024, .source_gap = 1, .target_gap = 5});
  }
  mesh.close();
}

TEST_CASE("many tensors move together") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  std::vector<TensorTransfer> tensors;
  for (int copy = 0; copy < 3; ++copy)
    for (const auto& [from, to] : pairs) tensors.push_back(transfer(from, to));
  check_moves(mesh["tp"], tensors);
  check_moves(mesh["tp"], tensors, {.memory = 2048});
  check_moves(mesh["tp"], {});
  mesh.close();
}

TEST_CASE("partial sums are added up") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  for (const auto& [from, to] : sums) {
    CAPTURE(from);
    CAPTURE(to);
    check_moves(mesh["tp"], {transfer(from, to)});
    check_moves(mesh["tp"], {transfer(from, to)}, {.memory = 1024, .target_gap = 2});
  }
  mesh.close();
}

TEST_CASE("tensors move between disjoint and rotated ranks") {
  NEEDS_MULTIPLE_OF(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  check_moves(mesh["tp"],
              {transfer("[20,6] f32 @ tp=H on 0-" + std::to_string(size() / 2 - 1) + " : (tp, _)",
                        "[20,6] f32 @ tp=H on H-L : (_, tp)")});
  check_moves(mesh["tp"],
              {transfer("[20,6] f32 @ tp=N : (tp, _)", "[20,6] f32 @ tp=N on 1-L,0 : (tp, _)")});
  check_moves(mesh["tp"],
              {transfer("[20,6] f32 @ dp=2,tp=H : (_, tp)", "[20,6] bf16 @ pp=H,tp=2 : (pp, tp)")});
  // Blocks on both axes.
  for (const std::int64_t memory : {1 << 20, 1024})
    check_moves(mesh["tp"],
                {transfer("[45,31] f32 @ dp=2,tp=H : (dp:cyclic(4), tp:cyclic(3))",
                          "[45,31] f32 @ dp=2,tp=H : (dp:cyclic(5), tp:cyclic(2))")},
                {.memory = memory});
  mesh.close();
}

TEST_CASE("elements that enter a node once are passed on there") {
  NEEDS_MULTIPLE_OF(4);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 2, .world_size = size()});
  const std::vector<TensorTransfer> tensors{
      transfer("[40,6] f32 @ tp=2 on 0-1 : (tp, _)", "[40,6] bf16 @ tp=N : (_, _)"),
      transfer("[40,6] bf16 @ tp=2 on 0-1 : (tp, _)", "[40,6] f32 @ tp=N : (_, _)"),
      transfer("[40,6] f32 @ tp=N : (_, _) sum(tp)", "[40,6] bf16 @ tp=N : (_, _)"),
      transfer("[40,6] f32 @ tp=N : (tp, _)", "[40,6] f32 @ tp=H,dp=2 : (_, tp)")};
  const TransferPlan plan = plan_transfer(tensors, &machine);
  const TransferOfRank part = plan.of(Rank{rank()});
  std::int64_t forwarded = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t)
    forwarded += std::ranges::count(part[t].sends, TransferStep::forward, &TransferMessage::step);
  mesh["tp"].all_reduce(std::span{&forwarded, 1});
  CHECK(forwarded > 0);
  for (const std::int64_t memory : {1 << 20, 1024})
    check_moves(mesh["tp"], tensors, {.memory = memory, .machine = &machine, .target_gap = 1});
  mesh.close();
}

TEST_CASE("a sum of 16-bit floats is rounded once") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  // 1 + 2^-8 + 2^-8 + ...: each term alone would be lost in bfloat16.
  const TensorTransfer sum = transfer("[8] bf16 @ tp=N : (_) sum(tp)", "[8] bf16 @ tp=N : (_)");
  Redistribution move{mesh["tp"], plan_transfer(sum.from, sum.to)};
  const std::vector<BFloat16> in(8, BFloat16{rank() == 0 ? 1.0F : 0.00390625F});
  std::vector<BFloat16> out(8);
  move.start(in, out).wait();
  const BFloat16 expected{1.0F + 0.00390625F * static_cast<float>(size() - 1)};
  for (const BFloat16 value : out) CHECK(value == expected);
  mesh.close();
}

TEST_CASE("several transfers and other operations run at the same time") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const TensorTransfer first =
      transfer("[64,48] f32 @ tp=N : (tp, _)", "[64,48] f32 @ tp=N : (_, tp)");
  const TensorTransfer second =
      transfer("[64,48] f32 @ tp=N : (_, tp)", "[64,48] f32 @ tp=N : (tp, _)");
  const RedistributionOptions options{.memory = 1024};
  Redistribution a{mesh["tp"], plan_transfer(first.from, first.to), options};
  Redistribution b{mesh["tp"], plan_transfer(second.from, second.to), options};
  Local a_in{first.from, 0}, a_out{first.to, 0}, b_in{second.from, 0}, b_out{second.to, 0};
  fill(first.from, a_in, 1);
  fill(second.from, b_in, 2);
  // Members start them in different orders, and wait in different orders.
  const bool is_even = rank() % 2 == 0;
  Work works[2];
  for (int i = 0; i < 2; ++i) {
    const bool is_a = is_even == (i == 0);
    works[i] =
        is_a ? a.start(a_in.source(), a_out.target()) : b.start(b_in.source(), b_out.target());
  }
  // Messages in other calls wait for each other while the transfers are under way.
  std::vector<int> mine(3000, rank()), theirs(3000);
  mesh["tp"].send_recv(mine, theirs, next, prev);
  CHECK(theirs.front() == (rank() + size() - 1) % size());
  mesh["tp"].all_reduce(mine);
  for (Work& work : works) work.wait();
  check(first, a_out, 1);
  check(second, b_out, 2);
  mesh.close();
}

TEST_CASE("redistributions have tags of their own, however many were made before") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const TensorTransfer first =
      transfer("[16,24] f32 @ tp=N : (tp, _)", "[16,24] f32 @ tp=N : (_, tp)");
  const TensorTransfer second =
      transfer("[16,24] f32 @ tp=N : (_, tp)", "[16,24] f32 @ tp=N : (tp, _)");
  const TransferPlan plan = plan_transfer(first.from, first.to);
  const RedistributionOptions options{.memory = 1024};
  std::vector<Redistribution> all;
  for (int i = 0; i < 1024; ++i) all.emplace_back(tp, plan, options);
  CHECK_THROWS_WITH_AS((Redistribution{tp, plan, options}), doctest::Contains("no tags for more"),
                       UsageError);
  // Members may have destroyed different ones. Number 4 is gone on all of them.
  const bool is_even = rank() % 2 == 0;
  all.erase(all.begin() + (is_even ? 0 : 2));
  all.erase(all.begin() + 3);
  Redistribution another{tp, plan_transfer(second.from, second.to), options};
  Redistribution& one = all[is_even ? 0 : 1];  // number 1
  Local in{first.from}, out{first.to}, other_in{second.from}, other_out{second.to};
  fill(first.from, in, 1);
  fill(second.from, other_in, 2);
  Work works[2];
  for (int i = 0; i < 2; ++i)
    works[i] = is_even == (i == 0) ? one.start(in.source(), out.target())
                                   : another.start(other_in.source(), other_out.target());
  for (Work& work : works) work.wait();
  check(first, out, 1);
  check(second, other_out, 2);
  mesh.close();
}

TEST_CASE("a rank without memory for a redistribution is named on the others") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(!rankmesh_test::is_sanitized(), "AddressSanitizer ends a program without memory");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  // Only the first rank forms sums, in float32.
  const TensorTransfer huge = transfer("[70368744177664] bf16 @ tp=N : (_) sum(tp)",
                                       "[70368744177664] bf16 @ tp=1 on 0 : (_)");
  const auto text = thrown_by<Error>([&] {
                      const Redistribution move{mesh["tp"], plan_transfer(huge.from, huge.to)};
                    }).message();
  CHECK_CONTAINS(text, "there is too little memory on this rank");
  if (rank() > 0) CHECK_CONTAINS(text, "rank 0 (tp=0): failed: ");
  mesh["tp"].barrier();
  mesh.close();
}

TEST_CASE("close() completes a transfer whose Work is gone") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const TensorTransfer moved =
      transfer("[64,48] f32 @ tp=N : (tp, _)", "[64,48] f32 @ tp=N : (_, tp)");
  Local in{moved.from, 0}, out{moved.to, 0};
  fill(moved.from, in, 3);
  {
    Redistribution move{mesh["tp"], plan_transfer(moved.from, moved.to), {.memory = 1024}};
    (void)move.start(in.source(), out.target());
  }
  mesh.close();
  check(moved, out, 3);
}

TEST_CASE("members with different plans are listed") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const bool is_last = rank() == size() - 1;
  const TensorPlacement from = place("[12,8] f32 @ tp=N : (tp, _)");
  const TensorPlacement to =
      place(is_last ? "[12,8] f32 @ tp=N : (_, _)" : "[12,8] f32 @ tp=N : (_, tp)");
  const auto error = thrown_by<MismatchError>([&] {
    const Redistribution move{mesh["tp"], plan_transfer(from, to)};
  });
  CHECK(
      error.message().starts_with(fmt::format("the ranks do not agree: rank {0} (tp={0}): "
                                              "Redistribution over 'tp': tensor 0 from '{1}' to '",
                                              size() - 1, from.to_string())));
  CHECK_CONTAINS(error.message(), "to '" + place("[12,8] f32 @ tp=N : (_, _)").to_string() + "'");
  CHECK_CONTAINS(error.message(), "to '" + place("[12,8] f32 @ tp=N : (_, tp)").to_string() + "'");
  // The memory is compared too.
  CHECK_THROWS_AS(
      (Redistribution{mesh["tp"], plan_transfer(from, from), {.memory = is_last ? 4096 : 2048}}),
      MismatchError);
  mesh["tp"].barrier();
  mesh.close();
}

TEST_CASE("wrong arguments of a redistribution are refused") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const auto more = TensorPlacement::parse(fmt::format("[12] f32 @ tp={} : (tp)", size() + 1));
  CHECK_THROWS_AS((Redistribution{tp, plan_transfer(more, more)}), UsageError);
  const auto floats = place("[12] f32 @ tp=N : (_)"), integers = floats.as(DataType::int32);
  CHECK_THROWS_AS((Redistribution{tp, plan_transfer(floats, integers)}), UsageError);
  CHECK_THROWS_AS((Redistribution{tp, plan_transfer(floats, floats), {.memory = 100}}), UsageError);

  Redistribution move{tp, plan_transfer(floats, floats)};
  std::vector<float> in(12), out(12), shorter(11);
  std::vector<double> doubles(12);
  const auto text = [&](auto&& action) { return thrown_by<UsageError>(action).message(); };
  CHECK_CONTAINS(text([&] { (void)move.start(shorter, out); }),
                 "it has 11 elements, 12 are needed");
  CHECK_CONTAINS(text([&] { (void)move.start(in, doubles); }),
                 "its elements are float64, those of the plan float32");
  CHECK_CONTAINS(text([&] { (void)move.start(in, in); }), "overlap");
  CHECK_CONTAINS(text([&] { (void)move.start({in, {1, 1}}, out); }), "2 strides for 1 axes");
  CHECK_CONTAINS(text([&] { (void)move.start({in, {2}}, out); }), "23 are needed");
  CHECK_CONTAINS(text([&] { (void)move.start({in, {-1}}, out); }), "the stride of axis 0 is -1");
  CHECK_CONTAINS(
      text([&] { (void)move.start(std::vector<TensorSource>{}, std::vector<TensorTarget>{}); }),
      "0 sources and 0 targets for 1 tensors");
  CHECK_THROWS_AS((void)move.start(DeviceSpan<const float>{in.data(), 12}, out), UnsupportedError);
  move.start(in, out).wait();
  mesh.close();
  CHECK_THROWS_AS((void)move.start(in, out), ClosedError);
}
