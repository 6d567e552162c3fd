// SPDX-License-Identifier: BSD-3-Clause
// What a call costs once its communicator is open, how a call ends whose peers do not come, and
// what NCCL's modes of communicators require.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device/test_platform.hpp"
#include "rankmesh/device/nccl/bootstrap.hpp"
#include "rankmesh/device/nccl/mode.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

// The number of calls of the CUDA runtime, where the program can count them (cuda_calls.cpp).
extern "C" __attribute__((weak)) long long count_of_cuda_calls();

using namespace rankmesh;
using device::Stream;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;
using test_platform::inject;
using test_platform::is_double;
using test_platform::on_device;

namespace {

bool has_blocking_calls() { return nccl::blocks_after_creation(nccl::Library::load(), true); }

long long cuda_calls() { return count_of_cuda_calls == nullptr ? 0 : count_of_cuda_calls(); }

float sum_on(GroupCoordinator& group) {
  const auto value = on_device(std::vector<float>{1});
  group.all_reduce(value.span());
  return value.download(StreamRef{}).front();
}

// Counts what `calls` calls cost.
struct Cost {
  FakeNcclCounters before = test_platform::nccl();
  long long cuda_before = cuda_calls();
  [[nodiscard]] long long entries() const { return test_platform::nccl().entries - before.entries; }
  [[nodiscard]] long long polls() const { return test_platform::nccl().polls - before.polls; }
  [[nodiscard]] long long helpers() const { return test_platform::nccl().helpers - before.helpers; }
  [[nodiscard]] long long cuda() const { return cuda_calls() - cuda_before; }
};

constexpr int many = 96;

// A communicator of this process alone, which is not part of any mesh.
std::unique_ptr<nccl::Communicator> alone(const std::string& name) {
  const nccl::Library& library = nccl::Library::load();
  ncclUniqueId id{};
  library.check(library.GetUniqueId(&id), "ncclGetUniqueId");
  auto comm = nccl::Communicator::begin(library, std::span{&id, 1}, 1, 0, name, {});
  comm->wait_until_ready(Deadline{Deadline::Duration{30}});
  return comm;
}

}  // namespace

TEST_CASE("a call is one call of NCCL, without a poll and without a thread") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(is_double() && has_blocking_calls(), "counts what the double counts, since 2.23");
  MeshOptions options = test_platform::options();
  options.check = false;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  const nccl::Library& library = nccl::Library::load();
  const auto enqueue =
      reinterpret_cast<decltype(&fake_cuda_enqueue)>(dlsym(RTLD_DEFAULT, "fake_cuda_enqueue"));
  ncclComm_t comm = tp.native_nccl();
  const Stream stream = Stream::create();
  const auto n = static_cast<std::size_t>(size());
  const device::DeviceBuffer<float> one{1};
  const device::DeviceBuffer<float> all{n};
  const std::map<std::string, std::function<void()>> calls{
      {"all_reduce", [&] { tp.all_reduce(one.span(), stream); }},
      {"broadcast", [&] { tp.broadcast(one.span(), RankInGroup{0}, stream); }},
      {"reduce", [&] { tp.reduce(one.span(), RankInGroup{0}, ReduceOp::sum, stream); }},
      {"all_gather", [&] { tp.all_gather(one.span(), all.span(), stream); }},
      {"reduce_scatter",
       [&] { tp.reduce_scatter(all.span(), one.span(), ReduceOp::sum, stream); }}};
  for (const auto& [name, call] : calls) {
    CAPTURE(name);
    // Creates the events of as many calls in flight as there will ever be.
    std::atomic<bool> may_run = false;
    REQUIRE(enqueue(stream.native(), [&] { may_run.wait(false); }) == cudaSuccess);
    for (int i = 0; i < many; ++i) call();
    may_run = true;
    may_run.notify_one();
    stream.wait(Deadline{Deadline::Duration{30}});
    mesh.progress();
    const Cost cost;
    for (int i = 0; i < many; ++i) call();
    CHECK(cost.entries() == many);
    CHECK(cost.polls() == 0);
    CHECK(cost.helpers() == 0);
    if (count_of_cuda_calls != nullptr) {
      const long long own = cost.cuda();
      const Cost raw;  // the double of NCCL calls CUDA too
      for (int i = 0; i < many; ++i)
        REQUIRE(library.AllReduce(one.data(), one.data(), 1, ncclFloat32, ncclSum, comm,
                                  stream.native()) == ncclSuccess);
      // Whether the stream is captured, and an event for the record; every eighth call looks.
      CHECK(own - raw.cuda() >= 2 * many);
      CHECK(own - raw.cuda() <= 2 * many + many / 2);
    }
    stream.wait(Deadline{Deadline::Duration{30}});
  }
  mesh.close();
}

TEST_CASE("a call that does not block costs a thread and polls, so it is a choice") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(is_double() && has_blocking_calls() && !nccl::forced_blocking(),
              "counts what the double counts, since 2.23");
  MeshOptions options = test_platform::options();
  options.check = false;
  options.names["tp"].blocking = false;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  const Cost cost;
  for (int i = 0; i < many; ++i) CHECK(sum_on(mesh["tp"]) == static_cast<float>(size()));
  CHECK(cost.helpers() == many);
  CHECK(cost.polls() >= many);
  mesh.close();
}

TEST_CASE("a group has one communicator, also with splits and duplicates") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(is_double(), "counts what the double counts");
  const FakeNcclCounters before = test_platform::nccl();
  MeshOptions options = test_platform::options();
  options.names["tp"].split_from = "all";
  options.names["tp"].duplicates = {"side"};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", options};
  CHECK(test_platform::nccl().communicators - before.communicators == 3);
  std::shared_ptr<GroupCoordinator> pair;
  if (rank() < 2) pair = mesh.new_group({{Rank{0}, Rank{1}}});
  CHECK(test_platform::nccl().communicators - before.communicators == (rank() < 2 ? 4 : 3));
  mesh.close();
  CHECK(test_platform::nccl().communicators == before.communicators);
  // The communicators that were replaced have been destroyed, not aborted.
  CHECK(test_platform::nccl().lone_aborts == before.lone_aborts);
}

TEST_CASE("a call whose peers do not come ends at the deadline, and its communicator with it") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(3);
  SKIP_UNLESS(is_double(), "faults are injected into the double");
  for (const bool blocks : {true, false})
    for (const bool is_batch : {false, true}) {
      CAPTURE(blocks);
      CAPTURE(is_batch);
      const FakeNcclCounters before = test_platform::nccl();
      MeshOptions options = test_platform::options();
      options.timeout = Deadline::Duration{1};
      options.check = false;
      options.names["tp"].blocking = blocks;
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
      inject("hang");
      const auto value = on_device(std::vector<float>{1});
      const auto call = [&] {
        if (!is_batch) return mesh["tp"].all_reduce(value.span());
        NcclGroup together{mesh};
        mesh["tp"].all_reduce(value.span());
        together.end();
      };
      CHECK_THROWS_WITH_AS(call(), doctest::Contains("NCCL's call on 'tp' is still in progress"),
                           TimeoutError);
      CHECK_THROWS_WITH_AS(call(), doctest::Contains("broken"), ClosedError);
      inject("");
      CHECK(test_platform::nccl().unsafe_aborts == before.unsafe_aborts);
      wait_for_all();
      mesh.abort();
      CHECK(test_platform::nccl().communicators == before.communicators);
      wait_for_all();
    }
}

TEST_CASE("communicators of both modes may be in one batch, in any order") {
  NEEDS_RANKS(2);
  MeshOptions options = test_platform::options();
  options.names["tp"].blocking = false;
  options.names["all"].blocking = true;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", options};
  const auto first = on_device(std::vector<float>{1});
  const auto second = on_device(std::vector<float>{1});
  const auto third = on_device(std::vector<float>{1});
  float expected = 1;
  for (int turn = 0; turn < 3; ++turn) {
    NcclGroup together{mesh};
    mesh["all"].all_reduce(first.span());
    mesh["tp"].all_reduce(second.span());
    together.end();
    mesh["all"].all_reduce(third.span());
    mesh["tp"].all_reduce(third.span());
    expected *= static_cast<float>(size());
  }
  CHECK(first.download(StreamRef{}) == std::vector{expected});
  CHECK(second.download(StreamRef{}) == std::vector{expected});
  CHECK(third.download(StreamRef{}) == std::vector{expected * expected});
  mesh.close();
}

TEST_CASE("if one of several communicators that share resources is aborted, all are broken") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(3);
  SKIP_UNLESS(is_double(), "faults are injected into the double");
  MeshOptions options = test_platform::options();
  options.timeout = Deadline::Duration{1};
  options.check = false;
  options.names["tp"].split_from = "all";
  options.names["tp"].share_resources = true;
  options.names["tp"].duplicates = {"side"};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", options};
  GroupCoordinator& side = mesh.duplicate("tp", "side");
  CHECK(sum_on(side) == static_cast<float>(size()));
  inject("hang");
  const auto value = on_device(std::vector<float>{1});
  CHECK_THROWS_AS(side.all_reduce(value.span()), TimeoutError);
  inject("");
  if (has_blocking_calls()) {  // the watch has aborted it
    CHECK_THROWS_WITH_AS(mesh["tp"].all_reduce(value.span()),
                         doctest::Contains("share their resources"), nccl::NcclError);
    CHECK_THROWS_WITH_AS(mesh["all"].all_reduce(value.span()),
                         doctest::Contains("share their resources"), nccl::NcclError);
    CHECK_THROWS_WITH_AS(mesh["all"].all_reduce(value.span()), doctest::Contains("broken"),
                         ClosedError);
  }
  wait_for_all();
  mesh.abort();
  wait_for_all();
}

TEST_CASE("a communicator with an error is aborted where it would be destroyed") {
  SKIP_UNLESS(is_double(), "faults are injected into the double");
  const Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};  // makes a device current
  const nccl::Library& library = nccl::Library::load();
  const long communicators = test_platform::nccl().communicators;
  const auto comm = alone("ends");
  const auto value = on_device(std::vector<float>{1});
  inject("async:name=ends,after=0,code=6");
  library.check(library.AllReduce(value.data(), value.data(), 1, ncclFloat32, ncclSum,
                                  comm->native(), nullptr),
                "ncclAllReduce");
  CHECK_THROWS_AS(
      [&] {
        comm->wait_until_ready(Deadline{Deadline::Duration{10}});
        REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
        comm->wait_until_ready(Deadline{Deadline::Duration{10}});
      }(),
      nccl::NcclError);
  inject("");
  CHECK_THROWS_AS(comm->destroy(), nccl::NcclError);
  CHECK(test_platform::nccl().communicators == communicators);
  CHECK(library.GroupEnd() == ncclInvalidUsage);  // the thread is in no group
  wait_for_all();
}

TEST_CASE("an NCCL communicator of either mode is adopted") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", test_platform::options()};
  const nccl::Library& library = nccl::Library::load();
  for (const bool blocks : {true, false}) {
    CAPTURE(blocks);
    ncclUniqueId id{};
    if (rank() == 0) library.check(library.GetUniqueId(&id), "ncclGetUniqueId");
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclConfig_t config{};
    config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocks ? 1 : 0;
    ncclComm_t theirs = nullptr;
    library.check(library.CommInitRankConfig(&theirs, size(), id, rank(), &config),
                  "ncclCommInitRankConfig");
    nccl::Communicator::adopt(library, theirs, "theirs", blocks)
        ->wait_until_ready(Deadline{Deadline::Duration{30}});
    const auto adopted = mesh.adopt(MPI_COMM_WORLD, "theirs", theirs,
                                    blocks ? NcclCalls::block : NcclCalls::return_at_once);
    for (int turn = 0; turn < 3; ++turn) CHECK(sum_on(*adopted) == static_cast<float>(size()));
    const auto first = on_device(std::vector<float>{1});
    const auto second = on_device(std::vector<float>{1});
    NcclGroup together{mesh};
    adopted->all_reduce(first.span());
    mesh["tp"].all_reduce(second.span());
    together.end();
    CHECK(sum_on(*adopted) == static_cast<float>(size()));
    CHECK(second.download(StreamRef{}) == std::vector{static_cast<float>(size())});
    mesh.close(*adopted);
    wait_for_all();
    library.check(library.CommAbort(theirs), "ncclCommAbort");
    wait_for_all();
  }
  mesh.close();
}

TEST_CASE("the mode is found in the answers of NCCL, whatever the program says") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(!nccl::forced_blocking(), "the variable decides");
  MeshOptions options = test_platform::options();
  options.names["tp"].blocking = false;
  Mesh owner{MPI_COMM_WORLD, "tp=auto", options};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const auto adopted = mesh.adopt(MPI_COMM_WORLD, "theirs", owner["tp"].native_nccl());
  for (int turn = 0; turn < 3; ++turn) CHECK(sum_on(*adopted) == static_cast<float>(size()));
  mesh.close();
  owner.close();
}

// comm_blocking starts a job whose ranks have different variables.
TEST_CASE("ranks with different values of NCCL_COMM_BLOCKING say so") {
  SKIP_UNLESS(std::getenv("RANKMESH_TEST_MODES_DIFFER") != nullptr, "runs in comm_blocking");
  const auto open = [] {
    const MeshOptions options = test_platform::short_timeout();
    const Mesh mesh(MPI_COMM_WORLD, "tp=auto", options);
  };
  CHECK_THROWS_WITH_AS(open(), doctest::Contains("NCCL_COMM_BLOCKING"), MismatchError);
}

// Also run with NCCL_COMM_BLOCKING in the environment and in a file, by comm_blocking.
TEST_CASE("NCCL_COMM_BLOCKING overrides the options") {
  NEEDS_RANKS(2);
  for (const bool wanted : {true, false}) {
    MeshOptions options = test_platform::short_timeout();
    options.names["tp"].blocking = wanted;
    options.names["tp"].duplicates = {"side"};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    const bool blocks = nccl::blocks_after_creation(nccl::Library::load(), wanted);
    if (is_double()) {
      FakeNcclConfig config{};
      REQUIRE(test_platform::nccl_hook<decltype(&fake_nccl_config)>("fake_nccl_config")(
                  mesh["tp"].native_nccl(), &config) == 0);
      CHECK(config.blocking == (blocks ? 1 : 0));
    }
    for (int turn = 0; turn < 3; ++turn) CHECK(sum_on(mesh["tp"]) == static_cast<float>(size()));
    const auto first = on_device(std::vector<float>{1});
    const auto second = on_device(std::vector<float>{1});
    NcclGroup together{mesh};
    mesh["tp"].all_reduce(first.span());
    mesh.duplicate("tp", "side").all_reduce(second.span());
    together.end();
    CHECK(first.download(StreamRef{}) == std::vector{static_cast<float>(size())});
    CHECK(second.download(StreamRef{}) == std::vector{static_cast<float>(size())});
    const auto group = mesh.new_group(mesh["tp"].ranks().to_vector());
    CHECK(sum_on(*group) == static_cast<float>(size()));
    mesh.close(*group);
    mesh.close();
  }
}
