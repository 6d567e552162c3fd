// SPDX-License-Identifier: BSD-3-Clause
// Collectives through shared memory, and on symmetric memory, against MPI's on an equal group.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <random>
#include <thread>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/reductions.hpp"

using namespace rankmesh;
using rankmesh_test::all_reductions;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

std::string layout() {
  switch (size()) {
    case 4:
      return "dp=2,tp=2 ; all=dp*tp";
    case 8:
      return "dp=2,cp=2,tp=2 ; all=dp*cp*tp, pair=dp*tp";
    case 12:
      return "dp=3,tp=4 ; all=dp*tp";
    case 16:
      return "dp=4,tp=4 ; all=dp*tp";
    default:
      return "dp=1,tp=auto ; all=dp*tp";
  }
}

MeshOptions routed(const char* routes) {
  MeshOptions options;
  options.routes = routes;
  return options;
}

std::vector<std::string> names(const Mesh& mesh) {
  std::vector<std::string> result;
  for (const GroupFamily& family : mesh.plan().families()) result.push_back(family.name());
  return result;
}

// The arguments that all members pass alike.
struct Case {
  Operation operation;
  ReduceOp op;
  std::int64_t count;  // of a block
  std::int64_t root;
  bool in_place;
};

constexpr Operation operations[] = {
    Operation::barrier,    Operation::broadcast,      Operation::all_reduce,
    Operation::all_gather, Operation::reduce_scatter, Operation::all_to_all,
    Operation::reduce,     Operation::gather,         Operation::scatter};

template <class Random>
Case random_case(Random& same, std::int64_t members, bool large) {
  const std::int64_t sizes[] = {0, 1, 2, 13, 64, 1001, large ? 40009 : 7};
  Case c{};
  c.operation = operations[same() % std::size(operations)];
  c.op = all_reductions[same() % std::size(all_reductions)];
  c.count = sizes[same() % std::size(sizes)];
  c.root = static_cast<std::int64_t>(same() % static_cast<unsigned>(members));
  c.in_place = same() % 2 == 0;
  return c;
}

template <class T>
void fill(std::span<T> values, unsigned seed) {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>((seed * 7 + i * 3) % 3 + 1);
}

// Returns the call on the given memory: `a` and `b` hold count x members elements.
template <class Memory>
void carry_out(GroupCoordinator& group, const Case& c, Memory a, Memory b) {
  const auto count = static_cast<std::size_t>(c.count);
  const std::size_t all = count * static_cast<std::size_t>(group.size());
  const auto own = static_cast<std::size_t>(group.rank_in_group().value()) * count;
  switch (c.operation) {
    case Operation::broadcast:
      return group.broadcast(b.subspan(0, count), c.root);
    case Operation::all_reduce:
      if (c.in_place) return group.all_reduce(b.subspan(0, count), c.op);
      return group.all_reduce(a.subspan(0, count), b.subspan(0, count), c.op);
    case Operation::all_gather:
      if (c.in_place) return group.all_gather(b.subspan(own, count), b.subspan(0, all));
      return group.all_gather(a.subspan(0, count), b.subspan(0, all));
    case Operation::reduce_scatter:
      return group.reduce_scatter(a.subspan(0, all), b.subspan(0, count), c.op);
    case Operation::all_to_all:
      if (c.in_place) return group.all_to_all(b.subspan(0, all), b.subspan(0, all));
      return group.all_to_all(a.subspan(0, all), b.subspan(0, all));
    case Operation::reduce:
      if (c.in_place) return group.reduce(b.subspan(0, count), c.root, c.op);
      return group.reduce(a.subspan(0, count), b.subspan(0, count), c.root, c.op);
    case Operation::gather:
      return group.gather(a.subspan(0, count), b.subspan(0, all), c.root);
    case Operation::scatter:
      return group.scatter(a.subspan(0, all), b.subspan(0, count), c.root);
    default:
      return group.barrier();
  }
}

template <class T>
void compare(GroupCoordinator& ours, GroupCoordinator& by_mpi, const Case& c, unsigned seed) {
  CAPTURE(to_string(c.operation));
  CAPTURE(to_string(c.op));
  CAPTURE(c.count);
  CAPTURE(c.in_place);
  CAPTURE(sizeof(T));
  const auto all = static_cast<std::size_t>(c.count * ours.size());
  std::vector<T> a(all), b(all), expected_a(all), expected_b(all);
  fill(std::span{a}, seed);
  fill(std::span{b}, seed + 1);
  expected_a = a;
  expected_b = b;
  carry_out(by_mpi, c, std::span{expected_a}, std::span{expected_b});
  carry_out(ours, c, std::span{a}, std::span{b});
  CHECK(a == expected_a);
  CHECK(b == expected_b);
}

template <class T>
void compare_symmetric(GroupCoordinator& ours, GroupCoordinator& by_mpi, const Case& c,
                       unsigned seed, SymmetricSpan<T> a, SymmetricSpan<T> b) {
  CAPTURE(to_string(c.operation));
  CAPTURE(c.count);
  CAPTURE(c.in_place);
  const auto all = static_cast<std::size_t>(c.count * ours.size());
  fill(std::span<T>{a}, seed);
  fill(std::span<T>{b}, seed + 1);
  std::vector<T> expected_a{a.begin(), a.end()};
  std::vector<T> expected_b{b.begin(), b.end()};
  // Every member uses another part of it.
  const auto offset = static_cast<std::size_t>(rank()) * 3;
  carry_out(by_mpi, c, std::span{expected_a}.subspan(offset, all),
            std::span{expected_b}.subspan(offset, all));
  carry_out(ours, c, a.subspan(offset, all), b.subspan(offset, all));
  CHECK(std::memcmp(a.data(), expected_a.data(), a.size() * sizeof(T)) == 0);
  CHECK(std::memcmp(b.data(), expected_b.data(), b.size() * sizeof(T)) == 0);
}

}  // namespace

TEST_CASE("shared memory has the results of MPI: operations, types, sizes, groups") {
  Mesh shared{MPI_COMM_WORLD, layout(), routed("*.*:host=shm")};
  Mesh plain{MPI_COMM_WORLD, layout(), routed("*.*:host=mpi")};
  std::mt19937 same{7};
  for (const std::string& name : names(shared)) {
    GroupCoordinator& ours = shared[name];
    GroupCoordinator& by_mpi = plain[name];
    CAPTURE(name);
    for (int i = 0; i < (size() > 8 ? 10 : size() > 4 ? 25 : 60); ++i) {
      const Case c = random_case(same, ours.size(), i % 10 == 0);
      const auto seed = static_cast<unsigned>(rank() * 11 + i);
      switch (same() % 10) {
        case 0:
          compare<std::int8_t>(ours, by_mpi, c, seed);
          break;
        case 1:
          compare<std::uint8_t>(ours, by_mpi, c, seed);
          break;
        case 2:
          compare<std::int16_t>(ours, by_mpi, c, seed);
          break;
        case 3:
          compare<std::uint16_t>(ours, by_mpi, c, seed);
          break;
        case 4:
          compare<std::int32_t>(ours, by_mpi, c, seed);
          break;
        case 5:
          compare<std::uint32_t>(ours, by_mpi, c, seed);
          break;
        case 6:
          compare<std::int64_t>(ours, by_mpi, c, seed);
          break;
        case 7:
          compare<std::uint64_t>(ours, by_mpi, c, seed);
          break;
        case 8:
          compare<float>(ours, by_mpi, c, seed);
          break;
        default:
          compare<double>(ours, by_mpi, c, seed);
      }
    }
  }
  plain.close();
  shared.close();
}

TEST_CASE("symmetric memory: any part of it, used by groups that are listed and by others") {
  Mesh shared{MPI_COMM_WORLD, layout()};
  Mesh plain{MPI_COMM_WORLD, layout(), routed("*.*:host=mpi")};
  const auto count = static_cast<std::size_t>(3 * size() + 20011 * 1 + 1001 * size());
  const auto a = shared.allocate_symmetric<float>(count, {"tp", "all"});
  const auto b = shared.allocate_symmetric<float>(count, {"tp", "all"});
  const auto c16 = shared.allocate_symmetric<std::int16_t>(count, {"all"});
  const auto d16 = shared.allocate_symmetric<std::int16_t>(count, {"all"});
  CHECK(a.size() == count);
  CHECK(a[0] == 0.0F);
  CHECK(b.data() != a.data());
  const std::span<float> ordinary = a;
  CHECK(ordinary.size() == count);
  CHECK_THROWS_AS((void)a.subspan(count, 1), UsageError);
  std::mt19937 same{8};
  for (const std::string& name : names(shared)) {
    CAPTURE(name);
    for (int i = 0; i < (size() > 8 ? 8 : size() > 4 ? 20 : 40); ++i) {
      Case c = random_case(same, shared[name].size(), false);
      if (i % 8 == 0 &&
          (c.operation == Operation::all_reduce || c.operation == Operation::broadcast))
        c.count = 20011;
      if (c.count * shared[name].size() > static_cast<std::int64_t>(count) - 3 * size())
        c.count = 1;
      const auto seed = static_cast<unsigned>(rank() * 11 + i);
      if (i % 3 == 0 && (c.operation != Operation::all_reduce || c.op != ReduceOp::prod))
        compare_symmetric(shared[name], plain[name], c, seed, c16, d16);
      else
        compare_symmetric(shared[name], plain[name], c, seed, a, b);
    }
  }
  plain.close();
  shared.close();
}

TEST_CASE("a family and its duplicates do not meet in one part of shared memory") {
  MeshOptions options = routed("*.*:host=shm");
  options.names["tp"].duplicates = {"side", "third"};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  const std::int64_t sum = static_cast<std::int64_t>(size()) * (size() - 1) / 2;
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    std::vector<std::int64_t> ones{1}, ranks{rank()}, twos{2};
    mesh["tp"].all_reduce(ones);
    mesh.duplicate("tp", "side").all_reduce(ranks);
    mesh.duplicate("tp", "third").all_reduce(twos);
    CHECK(ones[0] == size());
    CHECK(ranks[0] == sum);
    CHECK(twos[0] == 2 * size());
  }
  mesh.close();
}

TEST_CASE("the root may change symmetric memory once its broadcast returns, others are slow") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed("*.*:host=shm")};
  const auto values = mesh.allocate_symmetric<std::int32_t>(5000, {"tp"});
  for (int round = 1; round <= 3; ++round) {
    if (rank() == 0)
      std::ranges::fill(values, round);
    else
      std::this_thread::sleep_for(std::chrono::milliseconds{30});
    mesh["tp"].broadcast(values, 0);
    if (rank() == 0) std::ranges::fill(values, -round);
    if (rank() != 0) CHECK(std::ranges::count(values, round) == 5000);
  }
  mesh.close();
}

TEST_CASE("all_to_all in place in symmetric memory") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed("*.*:host=shm")};
  constexpr std::int32_t block = 5000;
  const auto values =
      mesh.allocate_symmetric<std::int32_t>(static_cast<std::size_t>(block * size()), {"tp"});
  for (int round = 0; round < 3; ++round) {
    for (std::int32_t i = 0; i < block * size(); ++i)
      values[static_cast<std::size_t>(i)] = 1000 * rank() + i / block;
    mesh["tp"].barrier();
    mesh["tp"].all_to_all(values, values);
    std::int64_t wrong = 0;
    for (std::int32_t i = 0; i < block * size(); ++i)
      wrong += values[static_cast<std::size_t>(i)] == 1000 * (i / block) + rank() ? 0 : 1;
    CHECK(wrong == 0);
  }
  mesh.close();
}

TEST_CASE(
    "symmetric memory of a mesh is ordinary memory to another that numbers ranks differently") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank(), &reversed);
  Mesh other{reversed, "tp=auto", routed("*.*:host=shm")};
  constexpr std::int32_t block = 2000;
  const auto out =
      mesh.allocate_symmetric<std::int32_t>(static_cast<std::size_t>(block * size()), {"tp"});
  const auto self = static_cast<std::int32_t>(other.rank().value());
  other["tp"].all_gather(std::vector<std::int32_t>(block, self + 1), out);
  std::int64_t wrong = 0;
  for (std::int32_t i = 0; i < block * size(); ++i)
    wrong += out[static_cast<std::size_t>(i)] == i / block + 1 ? 0 : 1;
  CHECK(wrong == 0);
  other.close();
  mesh.close();
  MPI_Comm_free(&reversed);
}

TEST_CASE("invalid uses of symmetric memory throw") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  CHECK_THROWS_AS((void)mesh.allocate_symmetric<float>(4, {"dp"}), UnknownName);
  if (size() > 1) {
    CHECK_THROWS_WITH_AS((void)mesh.allocate_symmetric<float>(rank() == 0 ? 4 : 5, {"tp"}),
                         doctest::Contains("bytes of symmetric memory"), MismatchError);
  }
  CHECK_THROWS_AS((void)mesh.allocate_symmetric<double>(std::size_t{1} << 60, {"tp"}), UsageError);
  auto span = mesh.allocate_symmetric<float>(4, {"tp"});
  (void)mesh.allocate_symmetric<float>(0, {});
  mesh["tp"].all_reduce(span);
  Mesh other{MPI_COMM_WORLD, "tp=auto"};
  std::ranges::fill(span, 1.0F);
  other["tp"].all_reduce(span);  // for another mesh it is ordinary memory
  CHECK(span[3] == static_cast<float>(size()));
  mesh.close();
  CHECK_THROWS_WITH_AS(other["tp"].all_reduce(span),
                       doctest::Contains("symmetric memory of a closed mesh"), ClosedError);
  CHECK_THROWS_AS((void)mesh.allocate_symmetric<float>(4, {"tp"}), ClosedError);
  other.close();
}

// All ranks issue the same operations in the same order, but wait for them in different ways and
// orders. Some groups use shared memory, some MPI, and for some the size decides. Blocking
// operations and messages between members come in between.
TEST_CASE("asynchronous operations over shared memory and MPI at once, completed in any order") {
  MeshOptions options =
      routed("tp.*:host=shm; all.all_reduce:host:0-200=shm; all.barrier:host=shm; all.*:host=mpi");
  Mesh mesh{MPI_COMM_WORLD, layout(), options};
  const auto all_names = names(mesh);
  std::mt19937 same{21};
  std::mt19937 own{static_cast<unsigned>(300 + rank())};
  struct Item {
    Work work;
    std::vector<std::int64_t> in, out, expected;
  };
  std::deque<Item> flying;
  const auto value = [](std::int64_t r, int i, std::int64_t k) {
    return (r * 131 + i * 17 + k) % 1009;
  };
  const auto finish = [&](std::size_t i) {
    Item& item = flying[i];
    switch (own() % 3) {
      case 0:
        item.work.wait();
        break;
      case 1:
        item.work.wait(Deadline::Duration{60});
        break;
      default:
        while (!item.work.test()) mesh.progress();
    }
    CHECK(item.out == item.expected);
    flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(i));
  };
  const int count = size() > 8 ? 150 : size() > 4 ? 400 : 2000;
  for (int i = 0; i < count; ++i) {
    auto& group = mesh[all_names[same() % all_names.size()]];
    const auto n = static_cast<std::int64_t>(same() % 60);
    Item& item = flying.emplace_back();
    for (std::int64_t k = 0; k < n; ++k) item.in.push_back(value(rank(), i, k));
    switch (same() % 6) {
      case 0:
      case 1:
        item.out.resize(item.in.size());
        item.expected.assign(item.in.size(), 0);
        for (const Rank member : group.ranks())
          for (std::int64_t k = 0; k < n; ++k)
            item.expected[static_cast<std::size_t>(k)] += value(member.value(), i, k);
        if (same() % 4 == 0) {
          group.all_reduce(item.in, item.out);  // a blocking operation in between
        } else {
          item.work = group.all_reduce_async(item.in, item.out);
        }
        break;
      case 2:
        item.work = group.barrier_async();
        break;
      case 3: {
        const Rank root = group.ranks().at(group.size() - 1);
        item.out = item.in;
        for (std::int64_t k = 0; k < n; ++k) item.expected.push_back(value(root.value(), i, k));
        item.work = group.broadcast_async(item.out, group.size() - 1);
        break;
      }
      case 4:
        item.out.resize(item.in.size());
        for (std::int64_t k = 0; k < n; ++k)
          item.expected.push_back(value(group.prev_rank().value(), i, k));
        if (same() % 2 == 0)
          group.send_recv(item.in, next, item.out, prev, i % 100);
        else
          item.work = group.send_recv_async(item.in, next, item.out, prev, i % 100);
        break;
      default:
        item.out.resize(item.in.size() * static_cast<std::size_t>(group.size()));
        for (const Rank member : group.ranks())
          for (std::int64_t k = 0; k < n; ++k) item.expected.push_back(value(member.value(), i, k));
        item.work = group.all_gather_async(item.in, item.out);
    }
    if (own() % 5 == 0) mesh.progress();
    while (flying.size() > 8) finish(own() % flying.size());
  }
  while (!flying.empty()) finish(own() % flying.size());
  mesh.close();
}

TEST_CASE("dynamic groups, and reductions of 16-bit floats, use MPI") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed("*.*:host=shm")};
  if (size() > 1) {
    CHECK(mesh["tp"].explain(Operation::all_reduce, 8).transport ==
          (mesh.placement().node_count() == 1 ? "shm" : "mpi"));
    CHECK(mesh["tp"]
              .explain(Operation::all_reduce, 8, MemoryKind::host, DataType::bfloat16)
              .transport == "mpi");
    CHECK(mesh["tp"].explain(Operation::send_recv, -1).transport == "mpi");
    CHECK(mesh["tp"].explain(Operation::all_gather, -1).transport ==
          "mpi");  // blocks of different sizes
  }
  std::vector<Rank> everybody;
  for (int r = 0; r < size(); ++r) everybody.emplace_back(r);
  const auto group = mesh.new_group(everybody);
  std::vector<int> one{1};
  group->all_reduce(one);
  CHECK(one[0] == size());
  if (size() > 1) CHECK(group->explain(Operation::all_reduce, 4).transport == "mpi");
  mesh.close();
}

TEST_CASE("blocks along an axis of symmetric memory") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed("*.*:host=shm")};
  auto& tp = mesh["tp"];
  const std::int64_t rows = 64, columns = 32;  // of a block: 8 KiB of float
  const auto block = static_cast<std::size_t>(rows * columns);
  const auto n = static_cast<std::size_t>(size());
  const auto part = mesh.allocate_symmetric<float>(block, {"tp"});
  const auto whole = mesh.allocate_symmetric<float>(block * n, {"tp"});
  const Axis axis{{rows, columns}, 1};
  // Element (row, column) of the whole array.
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return static_cast<float>((row * 7 + column * 3) % 101);
  };
  const auto width = columns * size();
  const auto is_part = [&](std::span<const float> values, float times) {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        if (values[static_cast<std::size_t>(row * columns + column)] !=
            times * at(row, rank() * columns + column))
          return false;
    return true;
  };
  const auto is_whole = [&](std::span<const float> values) {
    for (std::int64_t i = 0; i < rows * width; ++i)
      if (values[static_cast<std::size_t>(i)] != at(i / width, i % width)) return false;
    return true;
  };
  const auto fill_part = [&] {
    for (std::int64_t i = 0; i < rows * columns; ++i)
      part[static_cast<std::size_t>(i)] = at(i / columns, rank() * columns + i % columns);
  };
  const auto fill_whole = [&] {
    for (std::int64_t i = 0; i < rows * width; ++i)
      whole[static_cast<std::size_t>(i)] = at(i / width, i % width);
  };

  fill_part();
  tp.all_gather(part, whole, axis);
  CHECK(is_whole(whole));
  std::ranges::fill(whole, 0.0F);
  tp.all_gather_async(part, whole, axis).wait();
  CHECK(is_whole(whole));
  tp.reduce_scatter(whole, part, axis);
  CHECK(is_part(part, static_cast<float>(size())));

  fill_part();
  std::ranges::fill(whole, 0.0F);
  const std::int64_t root = size() / 2;
  tp.gather(part, whole, root, axis);
  if (rank() == root) CHECK(is_whole(whole));
  fill_whole();
  std::ranges::fill(part, 0.0F);
  tp.scatter(whole, part, root, axis);
  CHECK(is_part(part, 1.0F));
  mesh.close();
}

TEST_CASE("averages of unsigned numbers above half of their range, by each transport") {
  for (const std::string routes : {"*.*:host=shm", "*.*:host=mpi"}) {
    CAPTURE(routes);
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed(routes.c_str())};
    auto& tp = mesh["tp"];
    const auto check = [&]<class T>(T high) {
      CAPTURE(sizeof(T));
      // The sum has the highest bit set and does not wrap around.
      const auto n = static_cast<T>(size());
      const T sum = static_cast<T>(high + n * (n - 1) / 2);
      const auto expected = static_cast<T>(sum / n);
      const T mine = static_cast<T>((rank() == 0 ? high : 0) + static_cast<T>(rank()));
      for (const std::size_t count : {std::size_t{3}, std::size_t{20000}}) {
        const std::vector<T> in(count, mine);
        std::vector<T> out(count);
        tp.all_reduce(in, out, ReduceOp::avg);
        CHECK(out == std::vector<T>(count, expected));
        out = in;
        tp.all_reduce_async(out, ReduceOp::avg).wait();
        CHECK(out == std::vector<T>(count, expected));
        tp.reduce(in, out, 0, ReduceOp::avg);
        if (rank() == 0) CHECK(out == std::vector<T>(count, expected));
      }
      const std::vector<T> blocks(3 * static_cast<std::size_t>(size()), mine);
      std::vector<T> block(3);
      tp.reduce_scatter(blocks, block, ReduceOp::avg);
      CHECK(block == std::vector<T>(3, expected));
    };
    check(std::uint64_t{3} << 62);
    check(std::uint32_t{3} << 30);
    mesh.close();
  }
}

// Whether min and max of a NaN and a number are the NaN differs between MPI libraries.
TEST_CASE("a NaN: sums, products and averages of it are NaN, its neighbours are right") {
  for (const std::string routes : {"*.*:host=shm", "*.*:host=mpi"}) {
    CAPTURE(routes);
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed(routes.c_str())};
    const auto check = [&]<class T>(T nan) {
      for (const ReduceOp op : all_reductions) {
        CAPTURE(to_string(op));
        const bool is_extreme = op == ReduceOp::min || op == ReduceOp::max;
        const bool has_nan = is_extreme || rank() == size() / 2;
        std::vector<T> values{2, has_nan ? nan : T{2}, 2};
        mesh["tp"].all_reduce(values, op);
        CHECK(std::isnan(values[1]));
        T expected = 2;
        if (op == ReduceOp::sum) expected = static_cast<T>(2 * size());
        if (op == ReduceOp::prod) expected = static_cast<T>(std::exp2(size()));
        CHECK(values[0] == expected);
        CHECK(values[2] == expected);
      }
    };
    check(std::numeric_limits<float>::quiet_NaN());
    check(std::numeric_limits<double>::quiet_NaN());
    mesh.close();
  }
}
