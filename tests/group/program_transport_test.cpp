// SPDX-License-Identifier: BSD-3-Clause
// Transports that a program adds: a small one over MPI, which notes what it gets.
#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/mpi/error.hpp"
#include "rankmesh/rankmesh.hpp"
#include "rankmesh/record/find.hpp"
#include "rankmesh/record/read.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;

namespace {

struct Log {
  int opened = 0, run = 0, started = 0, given_up = 0, destroyed = 0;
  std::function<void()> throws = [] {};  // in run(), or in start(), or in test()
  bool throws_late = false;              // in test()
  bool returns_null = false;             // from start()
};

class Started final : public Pending {
 public:
  Started(MPI_Request request, std::shared_ptr<Log> log)
      : request_{request}, log_{std::move(log)} {}
  bool test() override {
    int done = 0;
    mpi::check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0 && log_->throws_late) log_->throws();
    return done != 0;
  }

 private:
  MPI_Request request_;
  std::shared_ptr<Log> log_;
};

// Sums of int32 on a communicator of its own.
class Sums final : public Transport {
 public:
  Sums(MPI_Comm comm, std::shared_ptr<Log> log, bool has_async)
      : log_{std::move(log)}, has_async_{has_async} {
    mpi::check(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
    ++log_->opened;
  }
  ~Sums() override {
    ++log_->destroyed;
    // After a failure, MPI may still be using the communicator for an operation that never ends.
    if (!is_broken_ && mpi::is_active()) MPI_Comm_free(&comm_);
  }
  [[nodiscard]] bool supports(const Call& call) const override {
    return call.operation == Operation::all_reduce && call.reduction == ReduceOp::sum &&
           call.out.type == DataType::int32;
  }
  void run(const Call& call, Waiter&) override {
    ++log_->run;
    log_->throws();
    mpi::check(MPI_Allreduce(in_of(call), call.out.data, static_cast<int>(call.out.count), MPI_INT,
                             MPI_SUM, comm_),
               "MPI_Allreduce");
  }
  [[nodiscard]] bool has_async_forms() const override { return has_async_; }
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override {
    if (!has_async_) return Transport::start(call);
    ++log_->started;
    if (log_->returns_null) return nullptr;
    if (!log_->throws_late) log_->throws();
    MPI_Request request = MPI_REQUEST_NULL;
    mpi::check(MPI_Iallreduce(in_of(call), call.out.data, static_cast<int>(call.out.count), MPI_INT,
                              MPI_SUM, comm_, &request),
               "MPI_Iallreduce");
    return std::make_unique<Started>(request, log_);
  }
  void give_up(const Error&) override {
    ++log_->given_up;
    is_broken_ = true;
  }

 private:
  static const void* in_of(const Call& call) {
    return call.in.data == call.out.data ? MPI_IN_PLACE : call.in.data;
  }
  std::shared_ptr<Log> log_;
  bool has_async_;
  bool is_broken_ = false;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

MeshOptions with_sums(const std::shared_ptr<Log>& log, bool has_async = false) {
  MeshOptions options;
  options.routes = "*.all_reduce=sums";
  options.transports["sums"] = [=](const TransportGroup& group) {
    CHECK(group.ranks.at(group.self.value()) == Rank{rank()});
    CHECK(group.comm.size() == group.ranks.size());
    return std::make_unique<Sums>(group.comm.native(), log, has_async);
  };
  return options;
}

// The same, with a change of what the factory returns on the last rank.
MeshOptions with_changed(const std::shared_ptr<Log>& log,
                         const std::function<void(std::unique_ptr<Transport>&)>& change) {
  MeshOptions options = with_sums(log);
  options.transports["sums"] = [=, sums = options.transports["sums"]](const TransportGroup& group) {
    auto transport = sums(group);
    if (rank() == last()) change(transport);
    return transport;
  };
  return options;
}

int summed(GroupCoordinator& group) {
  std::vector<std::int32_t> values{1, 2};
  group.all_reduce(values);
  CHECK(values[1] == 2 * values[0]);
  return values[0];
}

}  // namespace

TEST_CASE("a transport of the program carries what it supports, in every kind of group") {
  const auto log = std::make_shared<Log>();
  MeshOptions options = with_sums(log);
  options.names["tp"].duplicates = {"side"};
  {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    CHECK(log->opened == (size() == 1 ? 0 : 2));
    CHECK(summed(mesh["tp"]) == size());
    CHECK(summed(mesh.duplicate("tp", "side")) == size());
    const auto group = mesh.new_group(mesh["tp"].ranks().to_vector());
    CHECK(summed(*group) == size());
    CHECK(log->run == (size() == 1 ? 0 : 3));
    std::vector<float> floats{1.0F};  // which it does not support
    mesh["tp"].all_reduce(floats);
    CHECK(floats[0] == static_cast<float>(size()));
    CHECK(log->run == (size() == 1 ? 0 : 3));
    mesh.close();
  }
  CHECK(log->destroyed == log->opened);
  CHECK(log->given_up == 0);
}

TEST_CASE("adopted groups have no transports of the program, and explain() says so") {
  NEEDS_RANKS(2);
  const auto log = std::make_shared<Log>();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", with_sums(log)};
  const auto group = mesh.adopt(MPI_COMM_WORLD, "program");
  CHECK_CONTAINS(
      group->explain(Operation::all_reduce, 8, MemoryKind::host, DataType::int32).to_string(),
      "skipped '*.all_reduce=sums' (MeshOptions::routes): it was adopted");
  CHECK(summed(*group) == size());
  CHECK(log->run == 0);
  mesh.close();
}

TEST_CASE("asynchronous forms use the transport only if it has them") {
  for (const bool has_async : {false, true}) {
    CAPTURE(has_async);
    const auto log = std::make_shared<Log>();
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", with_sums(log, has_async)};
    std::vector<std::int32_t> a{1}, b{2}, c{3};
    Work first = mesh["tp"].all_reduce_async(std::span{a});
    Work second = mesh["tp"].all_reduce_async(std::span{b});
    mesh["tp"].all_reduce(c);
    second.wait();
    first.wait();
    CHECK(a[0] == size());
    CHECK(b[0] == 2 * size());
    CHECK(c[0] == 3 * size());
    if (size() > 1) {
      CHECK(log->run == 1);
      CHECK(log->started == (has_async ? 2 : 0));
      const auto explanation =
          mesh["tp"].explain(Operation::all_reduce, 4, MemoryKind::host, DataType::int32);
      CHECK(explanation.transport == "sums");
      CHECK(explanation.async_form.empty() == has_async);
    }
    mesh.close();
  }
}

TEST_CASE("members may mix the two forms of a call") {
  for (const bool has_async : {false, true}) {
    CAPTURE(has_async);
    MeshOptions options = with_sums(std::make_shared<Log>(), has_async);
    options.routes += "; *.*:host=mpi";  // shared memory would refuse the mixture
    options.check = true;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    for (int i = 0; i < 20; ++i) {
      std::vector<std::int32_t> values{1};
      if ((rank() + i) % 2 == 0)
        mesh["tp"].all_reduce(values);
      else
        mesh["tp"].all_reduce_async(std::span{values}).wait();
      CHECK(values[0] == size());
    }
    mesh.close();
  }
}

// On this "device", memory is host memory and work ends at once.
TEST_CASE("a transport of the program may carry device memory, without CUDA") {
  NEEDS_RANKS(2);
  for (const bool has_async : {false, true}) {
    CAPTURE(has_async);
    const auto log = std::make_shared<Log>();
    MeshOptions options = with_sums(log, has_async);
    options.routes = "*.all_reduce:device=sums";
    options.devices = DeviceUse::off;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    std::vector<std::int32_t> values{1};
    const DeviceSpan<std::int32_t> on_device{values.data(), values.size()};
    mesh["tp"].all_reduce(on_device);
    CHECK(values[0] == size());
    CHECK(log->run == 1);
    const auto carrier = [&](MemoryKind kind) {
      return mesh["tp"].explain(Operation::all_reduce, 4, kind, DataType::int32).transport;
    };
    CHECK(carrier(MemoryKind::host) != "sums");
    CHECK(carrier(MemoryKind::device) == "sums");
    CHECK_THROWS_AS(mesh["tp"].broadcast(on_device, 0), NoDeviceError);
    if (has_async) {
      Work work = mesh["tp"].all_reduce_async(on_device);
      work.wait();  // only orders the stream of the program after the operation
      while (!work.test()) continue;
      CHECK(values[0] == size() * size());
      CHECK(log->started == 1);
    } else {
      CHECK_THROWS_AS(mesh["tp"].all_reduce_async(on_device), NoDeviceError);
    }
    mesh.close();
  }
}

TEST_CASE("the record names the transport of the program") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", with_sums(std::make_shared<Log>(), true)};
  CHECK(summed(mesh["tp"]) == size());
  std::vector<std::int32_t> values{1};
  mesh["tp"].all_reduce_async(std::span{values}).wait();
  mesh["tp"].barrier();
  bool is_found = false;
  for (const record::Source& source : record::sources_of_process(::getpid())) {
    const record::Record of_mesh = record::read(record::copy_observed(source), source.path);
    if (of_mesh.rank != Rank{rank()}) continue;  // the records of other ranks are found, too
    if (of_mesh.transports != std::vector<std::string>{"sums"}) continue;
    is_found = true;
    REQUIRE(of_mesh.calls.size() >= 3);
    const auto carrier = [&](std::size_t i) {
      const record::Call& call = of_mesh.calls[of_mesh.calls.size() - i];
      CHECK(call.state == record::State::ended);
      return record::carrier_name(of_mesh, call.carrier);
    };
    CHECK(carrier(3) == "sums");
    CHECK(carrier(2) == "sums");
    CHECK(carrier(1) != "sums");
  }
  CHECK(is_found);
  mesh.close();
}

TEST_CASE("what a transport throws is a TransportError here, and breaks the group") {
  NEEDS_RANKS(2);
  const std::vector<std::pair<const char*, std::function<void()>>> all{
      {"an exception that is not a std::exception", [] { throw 7; }},
      {"std::bad_alloc", [] { throw std::bad_alloc{}; }},
      {"the wire is cut", [] { throw std::runtime_error{"the wire is cut"}; }},
      {"no such peer", [] { throw UsageError("no such peer", ""); }},
      {"nobody came", [] { throw TimeoutError("nobody came", "", {}); }}};
  for (const auto& [text, action] : all)
    for (const char* where : {"run", "start", "test"}) {
      CAPTURE(text);
      CAPTURE(where);
      const bool is_async = where != std::string{"run"};
      const auto log = std::make_shared<Log>();
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", with_sums(log, true)};
      log->throws = action;
      log->throws_late = where == std::string{"test"};
      // MPI may use the memory until the process ends.
      static std::deque<std::vector<std::int32_t>> kept;
      std::vector<std::int32_t>& values = kept.emplace_back(2, 1);
      // The first member that fails throws TransportError, and the others may learn its reason.
      const Error error = thrown_by<Error>([&] {
        if (is_async)
          mesh["tp"].all_reduce_async(values).wait();
        else
          mesh["tp"].all_reduce(values);
      });
      CHECK_CONTAINS(error.message(), std::string{"transport 'sums': "} + text);
      if (!is_async)
        CHECK_CONTAINS(error.message(), "tp.all_reduce(2 x int32, sum, in place), call 1");
      CHECK_CONTAINS(thrown_by<Error>([&] { mesh["tp"].barrier(); }).message(), text);
      mesh.abort();
    }
}

TEST_CASE("start() that throws on one member ends the call on all others, and breaks the group") {
  NEEDS_RANKS(2);
  for (const bool is_batched : {false, true}) {
    CAPTURE(is_batched);
    const auto log = std::make_shared<Log>();
    MeshOptions options = with_sums(log, true);
    options.devices = DeviceUse::off;
    options.timeout = Deadline::Duration{10};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    if (rank() == last()) log->throws = [] { throw std::runtime_error{"the wire is cut"}; };
    // MPI may use the memory until the process ends.
    static std::deque<std::vector<std::int32_t>> kept;
    std::vector<std::int32_t>& values = kept.emplace_back(2, 1);
    const auto sum = [&] {
      std::optional<NcclGroup> together;
      if (is_batched) together.emplace(mesh);
      Work work = mesh["tp"].all_reduce_async(values);
      if (together) together->end();
      work.wait();
    };
    const std::string message = rank() == last() ? thrown_by<TransportError>(sum).message()
                                                 : thrown_by<PeerError>(sum).message();
    CHECK_CONTAINS(message, "transport 'sums': the wire is cut");
    CHECK(log->given_up > 0);
    CHECK_THROWS_AS(mesh["tp"].barrier(), ClosedError);
    mesh.abort();
  }
}

TEST_CASE("a transport whose start() returns null has failed") {
  NEEDS_RANKS(2);
  for (const bool is_on_device : {false, true}) {
    CAPTURE(is_on_device);
    const auto log = std::make_shared<Log>();
    log->returns_null = true;
    MeshOptions options = with_sums(log, true);
    options.routes = "*.all_reduce=sums; *.all_reduce:device=sums";
    options.devices = DeviceUse::off;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    std::vector<std::int32_t> values{1};
    const Error error = thrown_by<Error>([&] {
      if (is_on_device)
        mesh["tp"].all_reduce_async(DeviceSpan<std::int32_t>{values.data(), 1}).wait();
      else
        mesh["tp"].all_reduce_async(values).wait();
    });
    CHECK_CONTAINS(error.message(), "transport 'sums': start() has returned null");
    mesh.abort();
  }
}

TEST_CASE("the members meet before the transport gets a call: a mistake does not reach it") {
  NEEDS_RANKS(2);
  const auto log = std::make_shared<Log>();
  MeshOptions options = with_sums(log);
  options.check = true;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  std::vector<std::int32_t> values(rank() == last() ? 2 : 1);
  CHECK_CONTAINS(thrown_by<MismatchError>([&] { mesh["tp"].all_reduce(values); }).message(),
                 "tp.all_reduce(2 x int32, sum, in place");
  CHECK(log->run == 0);
}

TEST_CASE("a factory that throws on one rank is reported on all ranks") {
  NEEDS_RANKS(2);
  const auto log = std::make_shared<Log>();
  const MeshOptions options = with_changed(
      log, [](std::unique_ptr<Transport>&) { throw std::runtime_error{"no such network"}; });
  const auto error = thrown_by<MismatchError>([&] {
    (void)Mesh{MPI_COMM_WORLD, "tp=auto", options};
  });
  CHECK_CONTAINS(error.message(), "rank " + std::to_string(last()) + " failed: ");
  CHECK_CONTAINS(error.message(), "transport 'sums' of tp: no such network");
  CHECK(log->destroyed == log->opened);
}

TEST_CASE("a factory that throws in a dynamic group is reported with the rank in the mesh") {
  NEEDS_RANKS(3);
  const auto log = std::make_shared<Log>();
  MeshOptions options = with_sums(log);
  options.transports["sums"] = [=, sums = options.transports["sums"]](const TransportGroup& group) {
    auto made = sums(group);  // collective
    if (group.ranks.size() == 2 && rank() == last()) throw std::runtime_error{"no such network"};
    return made;
  };
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  if (rank() >= last() - 1) {
    const auto error = thrown_by<MismatchError>([&] {
      (void)mesh.new_group({last() - 1, last()});
    });
    CHECK_CONTAINS(error.message(), "the 2 ranks do not agree");
    CHECK_CONTAINS(error.message(), "\n  rank " + std::to_string(last()) + " failed: ");
  }
  CHECK(summed(mesh["tp"]) == size());
  mesh.close();
}

TEST_CASE("a factory may decline a group, but only on all its members") {
  NEEDS_RANKS(2);
  MeshOptions options = with_sums(std::make_shared<Log>());
  options.transports["sums"] = [](const TransportGroup&) { return nullptr; };
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  CHECK(summed(mesh["tp"]) == size());
  CHECK_CONTAINS(mesh["tp"].explain(Operation::all_reduce, 4).to_string(),
                 "its factory returned null");
  mesh.close();
  options = with_changed(std::make_shared<Log>(),
                         [](std::unique_ptr<Transport>& transport) { transport.reset(); });
  CHECK_CONTAINS(thrown_by<MismatchError>([&] {
                   (void)Mesh{MPI_COMM_WORLD, "tp=auto", options};
                 }).message(),
                 "its factory returned null on some members of the group only");
}

TEST_CASE("names of transports, and rules for names that are not there, are checked") {
  const auto message_of = [](const char* name, const char* routes, bool has_factory = true) {
    MeshOptions options;
    options.routes = routes;
    options.transports[name] =
        has_factory ? [](const TransportGroup&) { return nullptr; } : TransportFactory{};
    return thrown_by<Error>([&] { (void)Mesh{MPI_COMM_WORLD, "tp=auto", options}; }).message();
  };
  CHECK_CONTAINS(message_of("shm", ""), "'shm' is the name of a transport of rankmesh");
  CHECK_CONTAINS(message_of("Gloo", ""), "'Gloo' cannot be the name of a transport");
  CHECK_CONTAINS(message_of("", ""), "cannot be the name of a transport");
  CHECK_CONTAINS(message_of("gloo", "", false), "'gloo' has no factory");
  CHECK_CONTAINS(message_of("gloo", "*.*=glo"), "unknown transport 'glo'");
  CHECK_CONTAINS(message_of("gloo", "*.*:capture=gloo"), "gloo has no rules for CUDA graphs");
}

TEST_CASE("all ranks must add the same transports") {
  NEEDS_RANKS(2);
  MeshOptions options;
  if (rank() == last()) options = with_sums(std::make_shared<Log>());
  options.routes = "";
  CHECK_CONTAINS(thrown_by<MismatchError>([&] {
                   (void)Mesh{MPI_COMM_WORLD, "tp=auto", options};
                 }).message(),
                 "option transports");
}
