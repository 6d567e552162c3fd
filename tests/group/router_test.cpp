// SPDX-License-Identifier: BSD-3-Clause
// The router, with transports of the test: which of them are asked, and which one is chosen.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "group/detail/connection.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "support/checks.hpp"
#include "support/iterations.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;

namespace {

class Done final : public Pending {
 public:
  bool test() override { return true; }
  [[nodiscard]] bool is_polled() const override { return false; }
};

// A transport that transfers nothing and records the calls.
class Recorder final : public RoutedTransport {
 public:
  Recorder(std::string name, std::int64_t largest, std::vector<std::string>& log)
      : name_{std::move(name)}, largest_{largest}, log_{log} {}
  [[nodiscard]] record::Carrier carrier() const override { return record::Carrier::mpi; }
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] bool supports(const Call& call) const override {
    return call.out.bytes() <= largest_;
  }
  void run(const Call& call, Waiter&) override {
    log_.push_back(name_ + " " + std::string{to_string(call.operation)});
  }
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override {
    log_.push_back(name_ + " start " + std::string{to_string(call.operation)});
    return std::make_unique<Done>();
  }

 private:
  std::string name_;
  std::int64_t largest_;
  std::vector<std::string>& log_;
};

// Rank 1 of a group of three that never sends anything.
struct Fixture {
  explicit Fixture(std::string_view routes, std::int64_t largest = 1 << 30,
                   std::int32_t nodes = 1) {
    RouteTable rules = RouteTable::parse(routes, RouteSource::code, "test");
    rules.append(
        RouteTable::parse("*.*:host=mpi; *.*:device=nccl", RouteSource::builtin, "default"));
    detail::GroupDescription description;
    description.families = {0};
    description.ranks = RankSet::of(std::array{Rank{0}, Rank{1}, Rank{2}});
    description.nodes = nodes;
    detail::HostTransports host;
    host.list.push_back(std::make_unique<Recorder>("mpi", INT64_MAX, log));
    if (nodes == 1)
      host.list.push_back(std::make_unique<Recorder>("shm", largest, log));
    else
      host.absent["shm"] = "the group spans 2 nodes";
    connection = std::make_shared<detail::Connection>(std::move(description), mpi::Communicator{},
                                                      mpi::CommunicatorView{MPI_COMM_SELF},
                                                      std::move(host), nullptr);
    const auto runtime = std::make_shared<detail::MeshRuntime>(nullptr, std::move(rules), nullptr);
    runtime->rank = Rank{1};
    group = detail::GroupAccess::make("tp", connection, runtime);
  }

  std::string last() const { return log.empty() ? "nothing" : log.back(); }

  std::vector<std::string> log;
  std::shared_ptr<detail::Connection> connection;
  std::unique_ptr<GroupCoordinator> group;
};

}  // namespace

TEST_CASE("sizes choose the rule, to the byte, and explain() agrees") {
  Fixture f{
      "tp.all_reduce:0-64=shm; tp.all_reduce:64-256=mpi; tp.all_gather:0-96=shm; *.*:half=shm"};
  std::vector<float> values(1000);
  for (const std::size_t n : {0, 1, 15, 16, 17, 63, 64, 1000}) {
    CAPTURE(n);
    f.group->all_reduce(std::span{values.data(), n});
    CHECK(f.last() == (n < 16 ? "shm all_reduce" : "mpi all_reduce"));
    const auto bytes = static_cast<std::int64_t>(n * sizeof(float));
    CHECK(f.last().starts_with(f.group->explain(Operation::all_reduce, bytes).transport + " "));
    (void)f.group->all_reduce_async(std::span{values.data(), n});
    CHECK(f.last() == (n < 16 ? "shm start all_reduce" : "mpi start all_reduce"));
  }
  // Bytes are those of the largest buffer: three blocks of 28 bytes are below 96, three of 32 are
  // not.
  f.group->all_gather(std::span{values.data(), 7}, std::span{values.data() + 500, 21});
  CHECK(f.last() == "shm all_gather");
  f.group->all_gather(std::span{values.data(), 8}, std::span{values.data() + 500, 24});
  CHECK(f.last() == "mpi all_gather");
  // Other types can have other rules.
  std::vector<int> whole(4);
  f.group->all_reduce(whole);
  CHECK(f.last() == "shm all_reduce");
}

TEST_CASE("every operation finds its rule; v-forms and messages have no size") {
  Fixture f{"*.*:0-1K=shm; *.recv=shm; *.send=mpi"};
  std::vector<int> a(3), b(9), c(9);
  f.group->barrier();
  CHECK(f.last() == "mpi barrier");  // it carries no bytes
  f.group->broadcast(a, RankInGroup{0});
  CHECK(f.last() == "shm broadcast");
  f.group->reduce(a, std::span{c.data(), 3}, RankInGroup{0});
  CHECK(f.last() == "shm reduce");
  f.group->gather(a, b, RankInGroup{1});
  CHECK(f.last() == "shm gather");
  f.group->scatter(b, a, RankInGroup{1});
  CHECK(f.last() == "shm scatter");
  f.group->reduce_scatter(b, a);
  CHECK(f.last() == "shm reduce_scatter");
  f.group->all_to_all(b, c);
  CHECK(f.last() == "shm all_to_all");
  const std::vector<std::int64_t> counts{3, 3, 3};
  f.group->all_gather_v(a, b, Blocks{counts});
  CHECK(f.last() == "mpi all_gather");
  f.group->send(a, 0);
  CHECK(f.last() == "shm send");  // by the rule for the other end
  f.group->recv(a, 0);
  CHECK(f.last() == "shm recv");
}

TEST_CASE("a rule by type decides about v-forms also where equal blocks of all types go one way") {
  Fixture f{"*.all_gather:0-inf=shm; *.all_gather:half=mpi; *.all_gather=shm"};
  std::vector<float> a(3), b(9);
  std::vector<Float16> c(3), d(9);
  const std::vector<std::int64_t> counts{3, 3, 3};
  f.group->all_gather(a, b);
  CHECK(f.last() == "shm all_gather");
  f.group->all_gather(c, d);
  CHECK(f.last() == "shm all_gather");
  f.group->all_gather_v(a, b, Blocks{counts});
  CHECK(f.last() == "shm all_gather");
  f.group->all_gather_v(c, d, Blocks{counts});
  CHECK(f.last() == "mpi all_gather");
}

TEST_CASE(
    "a call that a transport does not carry uses the next rule, and explain() gives the reason") {
  Fixture f{"tp.*=shm", 64};
  std::vector<double> values(9);
  f.group->all_reduce(std::span{values.data(), 8});
  CHECK(f.last() == "shm all_reduce");
  f.group->all_reduce(std::span{values.data(), 9});
  CHECK(f.last() == "mpi all_reduce");
  const RouteExplanation answer = f.group->explain(Operation::all_reduce, 72);
  CHECK(answer.transport == "mpi");
  CHECK(answer.origin == "default");
  REQUIRE(answer.skipped.size() == 1);
  CHECK(answer.skipped[0].rule == "tp.*=shm");
  CHECK_CONTAINS(answer.skipped[0].why, "does not carry all_reduce");

  Fixture apart{"tp.*=shm", 64, 2};
  apart.group->all_reduce(std::span{values.data(), 1});
  CHECK(apart.last() == "mpi all_reduce");
  CHECK(apart.group->explain(Operation::all_reduce, 8).to_string() ==
        "tp.all_reduce of 8 bytes on the host: mpi, by '*.*:host=mpi' (default)\n"
        "  skipped 'tp.*=shm' (test): the group spans 2 nodes");
}

TEST_CASE("the fast check accepts no call that the full check rejects") {
  Fixture f{"*.*:0-64=shm"};
  std::vector<int> values(64);
  const auto part = [&](std::size_t at, std::size_t n) { return std::span{values.data() + at, n}; };
  const std::size_t sent = f.log.size();
  CHECK_THROWS_AS(f.group->all_reduce(part(0, 4), part(8, 5)), UsageError);
  CHECK_THROWS_AS(f.group->all_reduce(part(0, 4), part(3, 4)), UsageError);
  CHECK_THROWS_AS(f.group->all_reduce(part(3, 4), part(0, 4)), UsageError);
  CHECK_THROWS_AS(f.group->all_gather(part(0, 4), part(8, 11)), UsageError);
  CHECK_THROWS_AS(f.group->all_gather(part(0, 4), part(0, 12)), UsageError);  // rank 0's block
  CHECK_THROWS_AS(f.group->all_gather(part(5, 4), part(0, 12)), UsageError);
  CHECK_THROWS_AS(f.group->reduce_scatter(part(0, 12), part(0, 4)), UsageError);
  CHECK_THROWS_AS(f.group->reduce_scatter(part(0, 12), part(4, 4)), UsageError);
  CHECK_THROWS_AS(f.group->reduce_scatter(part(0, 12), part(12, 3)), UsageError);
  CHECK_THROWS_AS(f.group->broadcast(part(0, 4), RankInGroup{3}), UsageError);
  CHECK_THROWS_AS(f.group->broadcast(part(0, 4), RankInGroup{-1}), UsageError);
  CHECK_THROWS_AS(f.group->reduce(part(0, 4), part(2, 4), RankInGroup{1}), UsageError);
  CHECK_THROWS_AS(f.group->gather(part(0, 4), part(2, 12), RankInGroup{1}), UsageError);
  CHECK_THROWS_AS(f.group->send(part(0, 4), 0, -1), UsageError);
  CHECK_THROWS_AS(f.group->recv(part(0, 4), 3), UsageError);
  CHECK_THROWS_AS(f.group->scatter(part(0, 12), part(0, 4), RankInGroup{1}),
                  UsageError);  // rank 0's block
  CHECK_THROWS_AS(f.group->scatter(part(0, 12), part(12, 3), RankInGroup{1}), UsageError);
  CHECK_THROWS_AS(f.group->scatter(part(0, 12), part(12, 4), RankInGroup{3}), UsageError);
  CHECK_THROWS_AS(f.group->all_to_all(part(0, 12), part(4, 12)), UsageError);
  CHECK_THROWS_AS(f.group->all_to_all(part(0, 12), part(12, 15)), UsageError);
  CHECK_THROWS_AS(f.group->all_to_all(part(0, 4), part(12, 4)), UsageError);  // three members
  CHECK_THROWS_AS(f.group->send_recv(part(0, 4), part(3, 4), next, prev), UsageError);
  CHECK_THROWS_AS(f.group->send_recv(part(0, 4), part(4, 4), 1, 0), UsageError);
  CHECK_THROWS_AS(f.group->send_recv(part(0, 4), part(4, 5), 1, 1), UsageError);
  CHECK_THROWS_AS(f.group->send_recv(part(0, 4), part(4, 4), 0, 0, 16384), UsageError);
  CHECK(f.log.size() == sent);
  // Adjacent buffers do not overlap, and operations in place are allowed.
  f.group->all_reduce(part(0, 4), part(4, 4));
  f.group->all_reduce(part(4, 4), part(0, 4));
  f.group->all_reduce(part(4, 4), part(4, 4));
  f.group->all_gather(part(4, 4), part(0, 12));
  f.group->all_gather(part(12, 4), part(0, 12));
  f.group->reduce_scatter(part(0, 12), part(12, 4));
  f.group->reduce_scatter(part(4, 12), part(0, 4));
  f.group->scatter(part(0, 12), part(4, 4), RankInGroup{1});
  f.group->scatter(part(0, 1), part(0, 4),
                   RankInGroup{0});  // `in` is ignored at members other than the root
  f.group->all_to_all(part(0, 12), part(12, 12));
  f.group->all_to_all(part(0, 12), part(0, 12));
  f.group->send_recv(part(0, 4), part(0, 4), 1, 1);  // with the caller itself, in place
  CHECK(f.log.size() == sent + 12);
}

TEST_CASE("all calls on a broken group throw") {
  Fixture f{"*.*:0-64=shm"};
  std::vector<int> values(64);
  const auto part = [&](std::size_t at, std::size_t n) { return std::span{values.data() + at, n}; };
  const std::size_t sent = f.log.size();
  f.connection->mark_broken(Error{"a test broke it"});
  CHECK_THROWS_WITH_AS(f.group->all_reduce(part(0, 4)), doctest::Contains("a test broke it"),
                       ClosedError);
  CHECK_THROWS_AS(f.group->barrier(), ClosedError);
  CHECK_THROWS_AS(f.group->broadcast(part(0, 4), RankInGroup{0}), ClosedError);
  CHECK_THROWS_AS(f.group->reduce(part(0, 4), part(8, 4), RankInGroup{0}), ClosedError);
  CHECK_THROWS_AS(f.group->gather(part(0, 4), part(4, 12), RankInGroup{0}), ClosedError);
  CHECK_THROWS_AS(f.group->send(part(0, 4), 0), ClosedError);
  CHECK_THROWS_AS(f.group->recv(part(0, 4), 0), ClosedError);
  CHECK_THROWS_AS(f.group->send_recv(part(0, 4), part(4, 4), 0, 0), ClosedError);
  CHECK_THROWS_AS(f.group->scatter(part(0, 12), part(12, 4), RankInGroup{0}), ClosedError);
  CHECK_THROWS_AS(f.group->all_to_all(part(0, 12), part(12, 12)), ClosedError);
  CHECK(f.log.size() == sent);
}

namespace {

// Returns the call that an action passed to a transport, or "refused".
template <class Action>
std::string outcome(Fixture& f, Action&& action) {
  f.log.clear();
  try {
    action();
  } catch (const UsageError&) {
    CHECK(f.log.empty());
    return "refused";
  }
  CHECK(f.log.size() == 1);
  return f.last();
}

// The function and the `Call` of the same operation, for elements of type T.
template <class T>
void compare(Fixture& f, std::mt19937& random) {
  static std::vector<T> memory(200);
  const auto below = [&](std::uint64_t n) { return static_cast<std::size_t>(random() % n); };
  auto& g = *f.group;
  const std::size_t n = below(4), triple = 3 * n;
  const auto sometimes_more = [&](std::size_t count) {
    return below(5) == 0 ? count + below(3) : count;
  };
  const auto at = [&](std::size_t count) {  // often overlapping
    return std::span<T>{memory.data() + 20 + below(4) * (below(2) == 0 ? n : 7), count};
  };
  const RankInGroup root{static_cast<std::int64_t>(below(6)) - 1};
  const RankInGroup other{static_cast<std::int64_t>(below(5)) - 1};
  const int tag = below(6) == 0 ? (below(2) == 0 ? -1 : 16384) : 5;
  const auto single = at(sometimes_more(n)), also_single = at(sometimes_more(n));
  const auto whole = at(sometimes_more(triple)), also_whole = at(sometimes_more(triple));
  const auto check = [&](const Call& record, auto&& function) {
    CAPTURE(to_string(record.operation));
    CAPTURE(record.in.count);
    CAPTURE(record.out.count);
    CAPTURE(record.in.data - record.out.data);
    CAPTURE(root.value());
    CHECK(outcome(f, function) == outcome(f, [&] { detail::GroupAccess::run(g, record); }));
  };
  const auto call = [&](Operation operation, const auto& in, const auto& out) {
    return Call{.operation = operation, .in = calls::input(in), .out = buffer_of(out)};
  };
  const auto rooted = [&](Operation operation, const auto& in, const auto& out) {
    Call result = call(operation, in, out);
    result.root = root;
    return result;
  };
  check({.operation = Operation::broadcast, .out = buffer_of(single), .root = root},
        [&] { g.broadcast(single, root); });
  check(call(Operation::all_reduce, single, also_single),
        [&] { g.all_reduce(single, also_single); });
  check(rooted(Operation::reduce, single, also_single),
        [&] { g.reduce(single, also_single, root); });
  check(call(Operation::all_gather, single, whole), [&] { g.all_gather(single, whole); });
  check(call(Operation::reduce_scatter, whole, single), [&] { g.reduce_scatter(whole, single); });
  check(rooted(Operation::gather, single, whole), [&] { g.gather(single, whole, root); });
  check(rooted(Operation::scatter, whole, single), [&] { g.scatter(whole, single, root); });
  check(call(Operation::all_to_all, whole, also_whole), [&] { g.all_to_all(whole, also_whole); });
  check(
      {.operation = Operation::send, .tag = tag, .in = calls::input(single), .destination = other},
      [&] { g.send(single, other, tag); });
  check({.operation = Operation::recv, .tag = tag, .out = buffer_of(single), .source = other},
        [&] { g.recv(single, other, tag); });
  check({.operation = Operation::send_recv,
         .tag = tag,
         .in = calls::input(single),
         .out = buffer_of(also_single),
         .destination = root,
         .source = other},
        [&] { g.send_recv(single, also_single, root, other, tag); });
}

}  // namespace

TEST_CASE("random calls: the fast and the checked path reject and route alike, for every type") {
  for (const std::string_view routes :
       {"*.*:0-24=shm", "*.*:float=shm", "*.*:half=shm; *.*:0-8:int=shm",
        "*.*:0-inf=shm; *.*=mpi"}) {
    CAPTURE(routes);
    Fixture f{routes};
    // The ranks do not communicate, so each one tries other calls.
    std::mt19937 random{7U + static_cast<unsigned>(rankmesh_test::rank())};
    const int rounds = rankmesh_test::iterations(120, 1) / rankmesh_test::size();
    for (int round = 0; round < std::max(10, rounds); ++round) {
      compare<int>(f, random);
      compare<double>(f, random);
      compare<std::uint8_t>(f, random);
    }
    // The type decides which rules apply.
    std::vector<int> whole(4);
    std::vector<float> real(4);
    std::vector<BFloat16> half(4);
    const auto served = [&](auto& values) {
      return outcome(f, [&] { f.group->broadcast(values, RankInGroup{0}); });
    };
    const auto by_table = [&](DataType type) {
      const auto bytes = static_cast<std::int64_t>(4 * size_of(type));
      return f.group->explain(Operation::broadcast, bytes, MemoryKind::host, type).transport +
             " broadcast";
    };
    CHECK(served(whole) == by_table(DataType::int32));
    CHECK(served(real) == by_table(DataType::float32));
    CHECK(served(half) == by_table(DataType::bfloat16));
  }
}

TEST_CASE("neighbours, around the ends of the ring") {
  for (const std::int64_t size : {1, 2, 3, 7})
    for (std::int64_t k = 0; k < size; ++k) {
      CHECK(Peer{next}.resolve(RankInGroup{k}, size).value() == (k + 1) % size);
      CHECK(Peer{prev}.resolve(RankInGroup{k}, size).value() == (k + size - 1) % size);
    }
}
