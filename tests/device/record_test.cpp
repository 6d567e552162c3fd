// SPDX-License-Identifier: BSD-3-Clause
// The record of calls on device memory.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/rankmesh.hpp"
#include "rankmesh/record/find.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using device::Stream;
using rankmesh_test::rank;
using rankmesh_test::wait_for_all;
using test_platform::on_device;

namespace {

// Returns the calls on device memory that this rank has recorded in its newest mesh. Meshes that
// other cases did not close have records, too.
std::vector<record::Call> device_calls() {
  const auto sources = record::sources_of_process(getpid());
  auto records = record::read_all(sources).records;
  std::erase_if(records, [](const record::Record& found) { return found.process_id != getpid(); });
  if (records.empty()) return {};
  auto calls = std::ranges::max_element(records, {}, &record::Record::opened_at)->calls;
  std::erase_if(calls, [](const record::Call& call) {
    return !call.descriptor.has(CallDescriptor::on_device);
  });
  return calls;
}

}  // namespace

TEST_CASE("calls on device memory are recorded, and end when the device has finished") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1, 2, 3});
  tp.all_reduce(value.span(), stream);
  tp.all_reduce(value.span(), stream);
  stream.wait(Deadline{Deadline::Duration{30}});
  mesh.progress();
  const auto calls = device_calls();
  REQUIRE(calls.size() == 2);
  for (const record::Call& call : calls) {
    CHECK(call.carrier == record::Carrier::nccl);
    CHECK(call.state == record::State::ended);
    CHECK(call.descriptor.operation() == Operation::all_reduce);
    CHECK(call.descriptor.count == 3);
    CHECK(!call.is_async);
    REQUIRE(call.begin);
    REQUIRE(call.end);
    CHECK(*call.end >= *call.begin);
  }
  CHECK(calls[0].number == 1);
  CHECK(calls[1].number == 2);
  wait_for_all();
  mesh.close();
}

TEST_CASE("calls of a batch and asynchronous calls on device memory are recorded") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  const auto other = on_device<float>({1, 1});
  {
    NcclGroup batch{mesh};
    tp.all_reduce(value.span(), stream);
    tp.all_reduce(other.span(), stream);
    batch.end();
  }
  stream.wait(Deadline{Deadline::Duration{30}});
  Work work = tp.all_reduce_async(value.span(), ReduceOp::sum, stream);
  work.wait();  // the stream waits, not the host
  stream.wait(Deadline{Deadline::Duration{30}});
  mesh.progress();
  const auto calls = device_calls();
  REQUIRE(calls.size() == 3);
  CHECK(std::ranges::all_of(calls, [](const auto& call) {
    return call.state == record::State::ended && call.carrier == record::Carrier::nccl;
  }));
  CHECK(calls[2].is_async);
  wait_for_all();
  mesh.close();
}

TEST_CASE("a device call that is refused is recorded as failed, and the next one as usual") {
  NEEDS_RANKS(2);
  MeshOptions options = test_platform::short_timeout();
  options.check = false;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto values = on_device<float>(std::vector<float>(static_cast<std::size_t>(tp.size()), 1));
  CHECK_THROWS_AS(tp.all_to_all(values.span(), values.span(), stream), UnsupportedError);
  {
    NcclGroup batch{mesh};
    tp.all_reduce(values.span(), stream);
    CHECK_THROWS_AS(tp.all_reduce(values.span(), stream), UsageError);  // it shares memory
    batch.end();
  }
  stream.wait(Deadline{Deadline::Duration{30}});
  mesh.progress();
  const auto calls = device_calls();
  REQUIRE(calls.size() == 2);  // a call that a batch refuses is not recorded
  CHECK(calls[0].state == record::State::failed);
  CHECK(calls[0].descriptor.operation() == Operation::all_to_all);
  CHECK(calls[1].state == record::State::ended);
  CHECK(calls[1].descriptor.operation() == Operation::all_reduce);
  wait_for_all();
  mesh.close();
}

TEST_CASE("a captured call is marked, because its end cannot be known") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  tp.all_reduce(value.span(), stream);  // once before, as every program does
  stream.wait(Deadline{Deadline::Duration{30}});
  cudaGraph_t graph = test_platform::captured(stream, [&] { tp.all_reduce(value.span(), stream); });
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  const auto calls = device_calls();
  REQUIRE(calls.size() == 2);
  CHECK(!calls[0].is_captured);
  CHECK(calls[1].is_captured);
  wait_for_all();
  mesh.close();
}

TEST_CASE("the messages of a redistribution of device memory are recorded") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  const Stream stream = Stream::create();
  // Each rank sends one element to its successor.
  const auto place = [&](const std::string& ranks) {
    return TensorPlacement::parse("[" + std::to_string(mesh["tp"].size()) + "] f32 @ tp=" +
                                  std::to_string(mesh["tp"].size()) + ranks + " : (tp)");
  };
  const std::string shifted = " on 1-" + std::to_string(mesh["tp"].size() - 1) + ",0";
  exchange::Redistribution move{
      mesh["tp"], plan_transfer(place(""), place(shifted)), {.kind = MemoryKind::device}};
  const auto in = on_device<float>({static_cast<float>(rank())});
  const auto out = on_device<float>({-1});
  move.start(in.span(), out.span(), stream).wait(Deadline::Duration{30});
  mesh.progress();
  const auto calls = device_calls();
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].descriptor.operation() == Operation::send);
  CHECK(calls[1].descriptor.operation() == Operation::recv);
  for (const record::Call& call : calls) {
    CHECK(call.carrier == record::Carrier::nccl);
    CHECK(call.state == record::State::ended);
    CHECK(call.descriptor.count == 4);
  }
  wait_for_all();
  mesh.close();
}
