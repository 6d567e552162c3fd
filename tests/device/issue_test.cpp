// SPDX-License-Identifier: BSD-3-Clause
// Operations on device memory: batches, adopted communicators, types, streams.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/nccl/mode.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

namespace {

// A program's own narrow types: bits, and which type they are.
struct Half {
  std::uint16_t bits;
};
struct BrainHalf {
  std::uint16_t bits;
};
struct Eighth {
  std::uint8_t bits;
};

}  // namespace

template <>
struct rankmesh::DataTypeOf<Half> {
  static constexpr DataType value = DataType::float16;
};
template <>
struct rankmesh::DataTypeOf<BrainHalf> {
  static constexpr DataType value = DataType::bfloat16;
};
template <>
struct rankmesh::DataTypeOf<Eighth> {
  static constexpr DataType value = DataType::float8_e4m3;
};

using namespace rankmesh;
using device::DeviceBuffer;
using device::Stream;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;
using test_platform::on_device;

TEST_CASE(
    "a batch is issued together: sends before receives, over several groups, in one launch each") {
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "dp=2,tp=auto" : "dp=1,tp=auto",
            test_platform::options()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto mine = on_device<std::int32_t>({rank()});
  const auto sum = on_device<std::int32_t>({1});
  DeviceBuffer<std::int32_t> received{1};
  const FakeNcclCounters before = test_platform::nccl();
  NcclGroup together{mesh};
  if (tp.size() > 1) {
    tp.send(mine.span(), next, 0,
            stream);  // all ranks send first: without the batch this would deadlock
    tp.recv(received.span(), prev, 0, stream);
  }
  mesh["dp"].all_reduce(sum.span(), stream);
  std::vector<int> host{1};
  CHECK_THROWS_WITH_AS(tp.all_reduce(host), doctest::Contains("inside an NcclGroup"), UsageError);
  CHECK_THROWS_AS(mesh.close(), UsageError);
  CHECK_THROWS_AS((NcclGroup{mesh}), UsageError);
  together.end();
  together.end();  // does nothing
  if (test_platform::is_double())
    CHECK(test_platform::nccl().launches - before.launches ==
          (tp.size() > 1 ? 1 : 0) + (mesh["dp"].size() > 1 ? 1 : 0));
  if (tp.size() > 1)
    CHECK(received.download(stream) ==
          std::vector{static_cast<std::int32_t>(tp.prev_rank().value())});
  CHECK(sum.download(stream) == std::vector{static_cast<std::int32_t>(mesh["dp"].size())});
  tp.all_reduce(host);
  stream.wait(Deadline{Deadline::Duration{30}});
  mesh.close();
}

TEST_CASE("while a batch is open, calls of other meshes in the thread throw, and work afterwards") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  Mesh other{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  const auto value = on_device<float>({1});
  {
    NcclGroup together{mesh};
    CHECK_THROWS_WITH_AS(other["tp"].all_reduce(value.span()), doctest::Contains("of another mesh"),
                         UsageError);
    CHECK_THROWS_AS((NcclGroup{other}), UsageError);
    CHECK_THROWS_WITH_AS((Mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()}),
                         doctest::Contains("of another mesh"), MismatchError);
    CHECK_THROWS_WITH_AS(other.new_group(other["tp"].ranks().to_vector()),
                         doctest::Contains("of another mesh"), MismatchError);
    together.end();
  }
  other["tp"].all_reduce(value.span());
  CHECK(value.download(StreamRef{}) == std::vector<float>{static_cast<float>(size())});
  other.close();
  mesh.close();
}

TEST_CASE("an exception ends a batch, and the thread leaves NCCL's group") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const auto one = on_device<float>({1});
  try {
    const NcclGroup together{mesh};
    mesh["tp"].all_reduce(one.span());
    throw std::runtime_error{"user code fails"};
  } catch (const std::runtime_error&) {
  }
  CHECK(one.download(StreamRef{}) == std::vector{static_cast<float>(size())});
  mesh["tp"].all_reduce(one.span());
  CHECK(one.download(StreamRef{}) == std::vector{static_cast<float>(size() * size())});
  mesh.close();
}

TEST_CASE("an NCCL communicator of the program is adopted and used, but not destroyed") {
  NEEDS_RANKS(2);
  Mesh owner{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const long before = test_platform::nccl().communicators;
  {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", test_platform::options()};
    ncclComm* theirs = owner["tp"].native_nccl();
    const auto adopted = mesh.adopt(MPI_COMM_WORLD, "theirs", theirs);
    CHECK(adopted->native_nccl() == theirs);
    CHECK(adopted->bootstrap()->method == "adopted");
    const auto value = on_device<float>({1});
    adopted->all_reduce(value.span());
    CHECK(value.download(StreamRef{}) == std::vector{static_cast<float>(size())});
    // One whose ranks are others is refused.
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank(), &reversed);
    if (2 * rank() + 1 != size())
      CHECK_THROWS_WITH_AS(mesh.adopt(reversed, "reversed", theirs),
                           doctest::Contains("in the NCCL communicator"), UsageError);
    // Without one, device memory is refused with the reason.
    const auto host_only = mesh.adopt(MPI_COMM_WORLD, "host only");
    CHECK_THROWS_WITH_AS(host_only->all_reduce(value.span()), doctest::Contains("adopted without"),
                         NoDeviceError);
    mesh.close();
    MPI_Comm_free(&reversed);
  }
  CHECK(test_platform::nccl().communicators == before);
  const auto value = on_device<float>({1});
  owner["tp"].all_reduce(value.span());  // still alive
  CHECK(value.download(StreamRef{}) == std::vector{static_cast<float>(size())});
  owner.close();
}

TEST_CASE("an adopted NCCL communicator may be destroyed before the mesh that no longer uses it") {
  NEEDS_RANKS(2);
  Mesh owner{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", test_platform::options()};
  const auto adopted = mesh.adopt(MPI_COMM_WORLD, "theirs", owner["tp"].native_nccl());
  owner.close();
  CHECK_NOTHROW(mesh.close());
}

TEST_CASE("a dynamic group that outlives its mesh is closed") {
  std::shared_ptr<GroupCoordinator> group;
  {
    Mesh dropped{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
    group = dropped.new_group(dropped["tp"].ranks().to_vector());
  }
  const auto value = on_device<float>({1});
  CHECK_THROWS_AS(group->all_reduce(value.span()), ClosedError);
  CHECK_THROWS_AS((void)group->stream(), ClosedError);
  CHECK_THROWS_AS((void)group->native_nccl(), ClosedError);
  CHECK_THROWS_AS(group->barrier(), ClosedError);
  wait_for_all();
}

TEST_CASE("reduce_scatter in place leaves the sum in the rank's own block") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  std::vector<float> mine;
  for (int k = 0; k < size(); ++k) mine.push_back(static_cast<float>(10 * k + rank()));
  const auto value = on_device<float>(mine);
  mesh["tp"].reduce_scatter(value.span(), DeviceSpan<float>{value.data() + rank(), 1});
  const auto ranks = static_cast<float>(size());
  CHECK(value.download(StreamRef{}).at(static_cast<std::size_t>(rank())) ==
        10 * ranks * static_cast<float>(rank()) + ranks * (ranks - 1) / 2);
  if (size() > 1)
    CHECK_THROWS_AS(mesh["tp"].reduce_scatter(
                        value.span(), DeviceSpan<float>{value.data() + (rank() + 1) % size(), 1}),
                    UsageError);
  mesh.close();
}

TEST_CASE("operations that NCCL does not have throw before they reach NCCL, and change nothing") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const auto n = static_cast<std::size_t>(size());
  const auto value = on_device<float>(std::vector<float>(n, 1));
  // Grouped sends and receives would overwrite what is still to be sent.
  if (size() > 1)
    CHECK_THROWS_WITH_AS(tp.all_to_all(value.span(), value.span()), doctest::Contains("in place"),
                         UnsupportedError);
  const DeviceSpan<float> none = value.span().subspan(0, 0);
  CHECK_NOTHROW(tp.all_to_all(none, none));  // there is nothing to overwrite
  // Arithmetic on 8-bit floats came with 2.24; moving them is moving bytes.
  if (size() > 1 && nccl::Library::load().version() < 22400) {
    const auto eighth = on_device<Eighth>({Eighth{0x38}});
    CHECK_THROWS_WITH_AS(tp.all_reduce(eighth.span()), doctest::Contains("2.24"), UnsupportedError);
  }
  tp.all_reduce(value.span());
  CHECK(value.download(StreamRef{}) == std::vector<float>(n, static_cast<float>(size())));
  mesh.close();
}

TEST_CASE("half types are reduced and moved") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  // 1.0 as a bit pattern, and small whole numbers that both types hold exactly.
  const auto check = [&]<class T>(std::uint16_t one, const std::vector<std::uint16_t>& numbers) {
    const std::vector<T> ones(3, T{one});
    const auto value = on_device<T>(ones);
    tp.all_reduce(value.span());
    for (const T& sum : value.download(StreamRef{}))
      CHECK(sum.bits == numbers.at(static_cast<std::size_t>(size())));
    const auto largest =
        on_device<T>(std::vector<T>{T{numbers.at(static_cast<std::size_t>(rank()))}});
    tp.all_reduce(largest.span(), ReduceOp::max);
    CHECK(largest.download(StreamRef{}).front().bits ==
          numbers.at(static_cast<std::size_t>(size() - 1)));
  };
  if (size() <= 8) {
    check.operator()<Half>(
        0x3c00, {0x0000, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800});
    check.operator()<BrainHalf>(
        0x3f80, {0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0x4100});
  }
  const std::vector<Eighth> eighths(2, Eighth{static_cast<std::uint8_t>(0x38 + rank() % 4)});
  const auto mine = on_device(eighths);
  DeviceBuffer<Eighth> all{2 * static_cast<std::size_t>(size())};
  tp.all_gather(mine.span(), all.span());
  const auto gathered = all.download(StreamRef{});
  for (std::size_t k = 0; k < gathered.size(); ++k)
    CHECK(gathered[k].bits == static_cast<std::uint8_t>(0x38 + (k / 2) % 4));
  mesh.close();
}

TEST_CASE(
    "asynchronous operations run on the group's stream, behind the caller's; the caller's waits, "
    "the host "
    "need not") {
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "dp=2,tp=auto" : "dp=1,tp=auto",
            test_platform::options()};
  const Stream stream = Stream::create();
  auto a = on_device<std::int32_t>({0});
  auto b = on_device<std::int32_t>({0});
  for (int round = 0; round < 20; ++round) {
    a.upload(std::vector<std::int32_t>{rank() + round}, stream);
    b.upload(std::vector<std::int32_t>{1}, stream);
    Work first = mesh["tp"].all_reduce_async(a.span(), stream);
    Work second = mesh["dp"].all_reduce_async(b.span(), stream);
    second.wait();  // the stream waits
    first.wait();
    std::int32_t expected = 0;
    for (const Rank member : mesh["tp"].ranks())
      expected += static_cast<std::int32_t>(member.value()) + round;
    CHECK(a.download(stream) == std::vector{expected});
    CHECK(b.download(stream) == std::vector{static_cast<std::int32_t>(mesh["dp"].size())});
    first.wait(Deadline::Duration{30});  // the host waits
    CHECK(second.test());
  }
  auto owned = mesh["tp"].all_reduce_async(a.span(), stream);  // dropped: close() waits for it
  mesh.close();
}

TEST_CASE("an asynchronous operation waits for the work that the caller's stream still holds") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const Stream stream = Stream::create();
  const auto source = on_device<std::int32_t>({1});
  const auto value = on_device<std::int32_t>({100});
  cudaLaunchHostFunc(
      stream.native(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds{100}); },
      nullptr);
  REQUIRE(cudaMemcpyAsync(value.data(), source.data(), sizeof(std::int32_t),
                          cudaMemcpyDeviceToDevice, stream.native()) == cudaSuccess);
  Work work = mesh["tp"].all_reduce_async(value.span(), stream);
  work.wait();
  CHECK(value.download(stream) == std::vector{static_cast<std::int32_t>(size())});
  mesh.close();
}

TEST_CASE("blocks of different sizes on device memory") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const std::int64_t n = tp.size();
  const auto un = static_cast<std::size_t>(n);
  std::vector<std::int64_t> counts;  // member k has k elements: the first has none
  for (std::int64_t k = 0; k < n; ++k) counts.push_back(k);
  std::vector<std::int32_t> whole;
  for (int k = 0; k < size(); ++k) whole.insert(whole.end(), static_cast<std::size_t>(k), k + 1);
  const std::vector<std::int32_t> mine(static_cast<std::size_t>(rank()), rank() + 1);
  const auto in = on_device(mine);
  const auto source = on_device(whole);

  DeviceBuffer<std::int32_t> gathered{whole.size()};
  tp.all_gather_v(in.span(), gathered.span(), counts);
  CHECK(gathered.download(StreamRef{}) == whole);
  DeviceBuffer<std::int32_t> at_root{whole.size()};
  tp.gather_v(in.span(), at_root.span(), counts, n - 1);
  if (tp.is_last()) CHECK(at_root.download(StreamRef{}) == whole);
  DeviceBuffer<std::int32_t> part{mine.size()};
  tp.scatter_v(source.span(), part.span(), counts, 0);
  CHECK(part.download(StreamRef{}) == mine);
  DeviceBuffer<std::int32_t> reduced{mine.size()};
  tp.reduce_scatter_v(source.span(), reduced.span(), counts);
  CHECK(reduced.download(StreamRef{}) ==
        std::vector<std::int32_t>(mine.size(), static_cast<std::int32_t>((rank() + 1) * size())));
  // Every member sends k elements to member k.
  DeviceBuffer<std::int32_t> received{un * mine.size()};
  const std::vector<std::int64_t> own(un, rank());
  tp.all_to_all_v_async(source.span(), received.span(), counts, own).wait();
  CHECK(received.download(StreamRef{}) ==
        std::vector<std::int32_t>(un * mine.size(), static_cast<std::int32_t>(rank() + 1)));
  mesh.close();
}

TEST_CASE("overlapping dynamic groups in a ring: each pair has its own communicator") {
  NEEDS_RANKS(3);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const long before = test_platform::nccl().communicators;
  // Pair p is ranks p and p + 1. Every rank uses its two pairs in the order of their numbers: one
  // global order.
  std::vector<int> mine{rank(), (rank() + size() - 1) % size()};
  std::ranges::sort(mine);
  std::vector<std::vector<Rank>> pairs;
  for (const int p : mine) pairs.push_back({p, (p + 1) % size()});
  const auto groups = mesh.new_groups(pairs);
  for (const auto& group : groups) {
    const auto value = on_device<std::int32_t>({rank()});
    group->all_reduce(value.span());
    const auto expected =
        static_cast<std::int32_t>(group->first_rank().value() + group->last_rank().value());
    CHECK(value.download(StreamRef{}) == std::vector{expected});
  }
  for (const auto& group : groups) mesh.close(*group);
  if (test_platform::is_double()) CHECK(test_platform::nccl().communicators == before);
  mesh.close();
}

TEST_CASE(
    "cudaStreamPerThread is used where NCCL calls block, and refused where NCCL's thread would use "
    "its own") {
  NEEDS_RANKS(2);
  for (const bool blocks : {false, true}) {
    CAPTURE(blocks);
    MeshOptions options = test_platform::options();
    options.names["tp"].blocking = blocks;
    if (blocks && !nccl::blocks_after_creation(nccl::Library::load(), true)) continue;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    const StreamRef own{cudaStreamPerThread};
    const auto value = on_device<float>({1});
    const FakeNcclCounters before = test_platform::nccl();
    if (!blocks) {
      CHECK_THROWS_WITH_AS(tp.all_reduce(value.span(), own),
                           doctest::Contains("cudaStreamPerThread"), UsageError);
      NcclGroup together{mesh};
      CHECK_THROWS_AS(tp.all_reduce(value.span(), own), UsageError);
      together.end();
      CHECK(test_platform::nccl().launches == before.launches);
      // The group's own stream waits for the calling thread's.
      tp.all_reduce_async(value.span(), own).wait();
    } else {
      tp.all_reduce(value.span(), own);
    }
    CHECK(value.download(own) == std::vector{static_cast<float>(size())});
    mesh.close();
  }
}

TEST_CASE("waiting for a stream leaves no error behind that the program would take for its own") {
  const Stream stream = Stream::create();
  static std::atomic<bool> may_end{false};
  cudaLaunchHostFunc(
      stream.native(),
      [](void*) {
        for (int i = 0; i < 20'000 && !may_end; ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds{1});
      },
      nullptr);
  (void)cudaGetLastError();
  setenv("FAKE_CUDA_KEEP_NOT_READY", "1", 1);  // as some versions of CUDA do
  CHECK(!stream.query());
  may_end = true;
  stream.wait(Deadline{Deadline::Duration{30}});
  unsetenv("FAKE_CUDA_KEEP_NOT_READY");
  CHECK(cudaGetLastError() == cudaSuccess);
}
