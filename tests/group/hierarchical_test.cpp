// SPDX-License-Identifier: BSD-3-Clause
// Collectives on two levels: shared memory inside the nodes and messages between them. Run on
// emulated hosts (tests/hosts/hierarchical); elsewhere the cases are skipped.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "group/two_levels.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/reductions.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::spans_levels;
using rankmesh_test::two_levels;

namespace {

// Groups of all ranks, of a part of them, and in an order that has nothing to do with the nodes.
MeshSpec many_groups() {
  const int n = size();
  std::string text = "mesh = \"dp=1,tp=auto\"\n[groups]\n";
  const auto add = [&](const char* name, const std::vector<int>& ranks) {
    if (ranks.size() < 2) return;
    text += std::string{name} + " = [[";
    for (const int r : ranks) text += std::to_string(r) + (r == ranks.back() ? "]]\n" : ", ");
  };
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  add("backward", {all.rbegin(), all.rend()});
  add("without_0", {all.begin() + 1, all.end()});
  std::vector<int> mixed = all;
  std::shuffle(mixed.begin(), mixed.end(), std::mt19937{5});
  add("mixed", mixed);
  if (n > 4) add("some", {mixed.begin(), mixed.begin() + n - 2});
  return MeshSpec::parse_toml(text, "test");
}

bool is_hierarchical(const GroupCoordinator& group) {
  return group.explain(Operation::all_reduce, 8).transport == "hierarchical";
}

struct Case {
  Operation operation;
  ReduceOp op;
  std::int64_t count;
  std::int64_t root;
  bool in_place;
};

constexpr Operation operations[] = {
    Operation::barrier,        Operation::broadcast, Operation::all_reduce, Operation::all_gather,
    Operation::reduce_scatter, Operation::reduce,    Operation::gather,     Operation::scatter};

// The value that a member passes at place i of call `call`.
template <class T>
T value(unsigned call, std::int64_t member, std::int64_t i) {
  const auto x = static_cast<std::uint32_t>(
      (call * 2654435761U) ^ static_cast<std::uint32_t>(member * 40503 + i * 2246822519LL));
  const std::uint32_t mixed = (x ^ (x >> 15)) * 2246822519U;
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(mixed >> 8) / static_cast<T>(1 << 20);
  else
    return static_cast<T>(mixed >> 7);
}

// What docs/arithmetic.md promises: the members of each node in group order, then the nodes in the
// order of their first members.
template <class T>
T reduced_by_nodes(const Mesh& mesh, const GroupCoordinator& group, ReduceOp op,
                   const std::function<T(std::int64_t)>& of_member) {
  const ReduceOp inner = op == ReduceOp::avg ? ReduceOp::sum : op;
  std::vector<std::int32_t> nodes;
  std::vector<T> sums;
  for (std::int64_t k = 0; k < group.size(); ++k) {
    const std::int32_t node = mesh.placement().node(group.ranks().at(k));
    const auto at = std::ranges::find(nodes, node) - nodes.begin();
    if (at == std::ssize(nodes)) {
      nodes.push_back(node);
      sums.push_back(of_member(k));
    } else {
      T& sum = sums[static_cast<std::size_t>(at)];
      sum = rankmesh_test::combined(inner, sum, of_member(k));
    }
  }
  T result = sums[0];
  for (std::size_t i = 1; i < sums.size(); ++i)
    result = rankmesh_test::combined(inner, result, sums[i]);
  return op == ReduceOp::avg ? static_cast<T>(result / static_cast<T>(group.size())) : result;
}

// Runs a case, with or without _async, and compares all elements with the reference.
template <class T>
class Run {
 public:
  Run(const Mesh& mesh, GroupCoordinator& group, const Case& c, unsigned call)
      : mesh_{mesh},
        group_{group},
        c_{c},
        call_{call},
        n_{group.size()},
        self_{group.rank_in_group().value()} {
    const bool takes_blocks =
        c.operation == Operation::reduce_scatter || c.operation == Operation::scatter;
    const bool gives_blocks =
        c.operation == Operation::all_gather || c.operation == Operation::gather;
    in_.resize(static_cast<std::size_t>(c.count * (takes_blocks ? n_ : 1)));
    out_.resize(static_cast<std::size_t>(c.count * (gives_blocks ? n_ : 1)));
    for (std::size_t i = 0; i < in_.size(); ++i) in_[i] = input(self_, i);
    const bool takes_output = c.operation == Operation::broadcast || c.in_place;
    if (takes_output && in_.size() == out_.size()) out_ = in_;
    const auto own = static_cast<std::size_t>(self_ * c.count);
    if (c.in_place && gives_blocks)
      std::copy(in_.begin(), in_.end(), out_.begin() + static_cast<std::ptrdiff_t>(own));
    own_block_ = std::span{out_}.subspan(gives_blocks ? own : 0, static_cast<std::size_t>(c.count));
  }
  Run(const Run&) = delete;

  void run() {
    const std::span<T> in{in_}, out{out_};
    const std::span<T> from = c_.in_place ? own_block_ : in;
    switch (c_.operation) {
      case Operation::broadcast:
        return group_.broadcast(out, c_.root);
      case Operation::all_reduce:
        return c_.in_place ? group_.all_reduce(out, c_.op) : group_.all_reduce(in, out, c_.op);
      case Operation::all_gather:
        return group_.all_gather(from, out);
      case Operation::reduce_scatter:
        return group_.reduce_scatter(in, out, c_.op);
      case Operation::reduce:
        return c_.in_place ? group_.reduce(out, c_.root, c_.op)
                           : group_.reduce(in, out, c_.root, c_.op);
      case Operation::gather:
        return group_.gather(from, out, c_.root);
      case Operation::scatter:
        return group_.scatter(in, out, c_.root);
      default:
        return group_.barrier();
    }
  }
  Work start() {
    const std::span<T> in{in_}, out{out_};
    switch (c_.operation) {
      case Operation::broadcast:
        return group_.broadcast_async(out, c_.root);
      case Operation::all_reduce:
        return group_.all_reduce_async(in, out, c_.op);
      case Operation::all_gather:
        return group_.all_gather_async(in, out);
      case Operation::reduce_scatter:
        return group_.reduce_scatter_async(in, out, c_.op);
      case Operation::reduce:
        return group_.reduce_async(in, out, c_.root, c_.op);
      case Operation::gather:
        return group_.gather_async(in, out, c_.root);
      case Operation::scatter:
        return group_.scatter_async(in, out, c_.root);
      default:
        return group_.barrier_async();
    }
  }
  void check() const {
    CAPTURE(to_string(c_.operation));
    CAPTURE(to_string(c_.op));
    CAPTURE(c_.count);
    CAPTURE(c_.root);
    CAPTURE(c_.in_place);
    CAPTURE(sizeof(T));
    CAPTURE(group_.name());
    const bool is_root = c_.root == self_;
    if (c_.operation == Operation::barrier) return;
    if (!is_root && (c_.operation == Operation::reduce || c_.operation == Operation::gather))
      return;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < out_.size(); ++i)
      if (out_[i] != expected(i)) ++wrong;
    CHECK(wrong == 0);
  }

 private:
  [[nodiscard]] T input(std::int64_t member, std::size_t i) const {
    return value<T>(call_, member, static_cast<std::int64_t>(i));
  }
  [[nodiscard]] T expected(std::size_t i) const {
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(c_.count, 1));
    const auto own = static_cast<std::size_t>(self_) * count;
    switch (c_.operation) {
      case Operation::broadcast:
        return input(c_.root, i);
      case Operation::all_gather:
      case Operation::gather:
        return input(static_cast<std::int64_t>(i / count), i % count);
      case Operation::scatter:
        return input(c_.root, own + i);
      case Operation::reduce_scatter:
        i += own;
        break;
      default:
        break;
    }
    return reduced_by_nodes<T>(mesh_, group_, c_.op,
                               [&](std::int64_t member) { return input(member, i); });
  }

  const Mesh& mesh_;
  GroupCoordinator& group_;
  Case c_;
  unsigned call_;
  std::int64_t n_, self_;
  std::vector<T> in_, out_;
  std::span<T> own_block_;
};

template <class Random>
Case random_case(Random& same, std::int64_t members, bool is_large) {
  const std::int64_t sizes[] = {0, 1, 2, 13, 257, 1001, 6007, is_large ? 150001 : 64};
  Case c{};
  c.operation = operations[same() % std::size(operations)];
  c.op = rankmesh_test::all_reductions[same() % rankmesh_test::all_reductions.size()];
  c.count = sizes[same() % std::size(sizes)];
  c.root = static_cast<std::int64_t>(same() % static_cast<unsigned>(members));
  c.in_place = same() % 2 == 0;
  return c;
}

template <class T>
void run_one(const Mesh& mesh, GroupCoordinator& group, const Case& c, unsigned call) {
  Run<T> run{mesh, group, c, call};
  run.run();
  run.check();
}

template <class Random>
void run_random(const Mesh& mesh, GroupCoordinator& group, Random& same, int calls) {
  for (int i = 0; i < calls; ++i) {
    const Case c = random_case(same, group.size(), i % 8 == 0);
    const auto call = static_cast<unsigned>(same());
    switch (same() % 6) {
      case 0:
        run_one<std::int8_t>(mesh, group, c, call);
        break;
      case 1:
        run_one<std::uint16_t>(mesh, group, c, call);
        break;
      case 2:
        run_one<std::int32_t>(mesh, group, c, call);
        break;
      case 3:
        run_one<std::uint64_t>(mesh, group, c, call);
        break;
      case 4:
        run_one<float>(mesh, group, c, call);
        break;
      default:
        run_one<double>(mesh, group, c, call);
    }
  }
}

}  // namespace

TEST_CASE("two levels: random calls have the results of the reference, to the bit") {
  Mesh mesh{MPI_COMM_WORLD, many_groups(), two_levels()};
  SKIP_UNLESS(spans_levels(mesh), "needs several nodes, and two ranks on one of them");
  CAPTURE(mesh["tp"].explain(Operation::all_reduce, 8).to_string());
  CHECK(is_hierarchical(mesh["tp"]));
  for (const GroupFamily& family : mesh.plan().families()) {
    std::mt19937 same{11};
    // Some groups may lie inside one node.
    if (!family.find(mesh.rank()) || !is_hierarchical(mesh[family.name()])) continue;
    run_random(mesh, mesh[family.name()], same, 40);
  }
}

TEST_CASE("two levels: calls of several groups are in flight at once, and end in any order") {
  Mesh mesh{MPI_COMM_WORLD, many_groups(), two_levels()};
  SKIP_UNLESS(spans_levels(mesh), "needs several nodes, and two ranks on one of them");
  std::mt19937 same{3};
  std::mt19937 own{static_cast<unsigned>(rank())};
  for (int round = 0; round < 6; ++round) {
    std::deque<Run<float>> runs;
    std::vector<Work> works;
    for (int i = 0; i < 8; ++i) {
      const char* name = same() % 2 == 0 ? "tp" : "backward";
      Case c = random_case(same, size(), i == 0);
      c.in_place = false;
      runs.emplace_back(mesh, mesh[name], c, static_cast<unsigned>(same()));
      works.push_back(runs.back().start());
    }
    if (round % 2 == 0) mesh["mixed"].barrier();  // the others go on meanwhile
    std::vector<std::size_t> order(works.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), own);
    for (const std::size_t i : order) works[i].wait();
    for (const Run<float>& run : runs) run.check();
  }
}

TEST_CASE("two levels: with a deadline and with calls that MPI carries in between") {
  Mesh mesh{MPI_COMM_WORLD, many_groups(), two_levels(30)};
  SKIP_UNLESS(spans_levels(mesh), "needs several nodes, and two ranks on one of them");
  std::mt19937 same{17};
  GroupCoordinator& group = mesh["tp"];
  for (int i = 0; i < 10; ++i) {
    run_random(mesh, group, same, 3);
    std::vector<int> blocks(static_cast<std::size_t>(group.size()), i);
    std::vector<int> got(blocks.size());
    group.all_to_all(blocks, got);
    CHECK(got == blocks);
  }
}
