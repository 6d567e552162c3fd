// SPDX-License-Identifier: BSD-3-Clause
// Every operation on device memory: reductions against the reference, the others against the same
// operation on host memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"
#include "support/reductions.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using rankmesh_test::all_reductions;
using rankmesh_test::reduced;
using rankmesh_test::size;
using rankmesh_test::small_value;
using test_platform::on_device;

namespace {

template <class T>
std::vector<T> values(Rank rank, std::int64_t n) {
  std::vector<T> result;
  for (std::int64_t i = 0; i < n; ++i)
    result.push_back(static_cast<T>(small_value(rank.value(), i)));
  return result;
}

// NCCL multiplies floats with the rounded 1/size before it adds them; the reference divides the
// sum.
template <class T>
bool is_result(ReduceOp op, const std::vector<T>& result, const std::vector<T>& expected) {
  if (!std::is_floating_point_v<T> || op != ReduceOp::avg) return result == expected;
  return std::ranges::equal(result, expected, [](T a, T b) {
    return std::abs(static_cast<double>(a) - static_cast<double>(b)) <=
           4 * static_cast<double>(std::numeric_limits<T>::epsilon()) * static_cast<double>(b);
  });
}

template <class T>
void test_reductions(GroupCoordinator& group, const device::Stream& stream, std::int64_t n) {
  const auto un = static_cast<std::size_t>(n);
  const RankInGroup root = group.size() - 1;
  for (const ReduceOp op : all_reductions) {
    CAPTURE(to_string(op));
    const auto in = values<T>(group.rank(), n);
    const auto expected_at = [&](std::int64_t i) {
      return reduced<T>(op, group.size(), [&](std::int64_t k) {
        return small_value(group.ranks().at(k).value(), i);
      });
    };
    std::vector<T> expected;
    for (std::int64_t i = 0; i < n; ++i) expected.push_back(expected_at(i));

    const auto source = on_device(in);
    DeviceBuffer<T> out{un};
    group.all_reduce(source.span(), out.span(), op, stream);
    CHECK(is_result(op, out.download(stream), expected));
    const auto in_place = on_device(in);
    group.all_reduce(in_place.span(), op, stream);
    CHECK(is_result(op, in_place.download(stream), expected));

    DeviceBuffer<T> at_root{un};
    group.reduce(source.span(), at_root.span(), root, op, stream);
    if (group.is_last()) CHECK(is_result(op, at_root.download(stream), expected));

    const auto wide = values<T>(group.rank(), n * group.size());
    std::vector<T> block;
    for (std::int64_t i = 0; i < n; ++i)
      block.push_back(expected_at(group.rank_in_group().value() * n + i));
    DeviceBuffer<T> device_block{un};
    const auto device_wide = on_device(wide);
    group.reduce_scatter(device_wide.span(), device_block.span(), op, stream);
    CHECK(is_result(op, device_block.download(stream), block));
    stream.wait(Deadline{Deadline::Duration{30}});
  }
}

template <class T>
void test_movement(GroupCoordinator& group, const device::Stream& stream, std::int64_t n) {
  const std::int64_t size = group.size();
  const auto un = static_cast<std::size_t>(n);
  const auto all = static_cast<std::size_t>(n * size);
  const auto mine = values<T>(group.rank(), n);
  const auto source = on_device(mine);

  auto host = mine;
  group.broadcast(host, size / 2);
  const auto sent = on_device(mine);
  group.broadcast(sent.span(), size / 2, stream);
  CHECK(sent.download(stream) == host);

  std::vector<T> gathered(all);
  group.all_gather(mine, gathered);
  DeviceBuffer<T> out{all};
  group.all_gather(source.span(), out.span(), stream);
  CHECK(out.download(stream) == gathered);
  DeviceBuffer<T> at_root{all};
  group.gather(source.span(), at_root.span(), 0, stream);
  if (group.is_first()) CHECK(at_root.download(stream) == gathered);
  DeviceBuffer<T> part{un};
  group.scatter(out.span(), part.span(), 0, stream);
  CHECK(part.download(stream) == mine);

  const auto wide = values<T>(group.rank(), n * size);
  std::vector<T> exchanged(all);
  group.all_to_all(wide, exchanged);
  const auto device_wide = on_device(wide);
  DeviceBuffer<T> device_exchanged{all};
  group.all_to_all(device_wide.span(), device_exchanged.span(), stream);
  CHECK(device_exchanged.download(stream) == exchanged);

  DeviceBuffer<T> received{un};
  group.send_recv(source.span(), received.span(), next, prev, 0, stream);
  CHECK(received.download(stream) == values<T>(group.prev_rank(), n));
  if (size > 1) {
    if (group.is_first()) group.send(source.span(), next, 0, stream);
    if (group.rank_in_group() == RankInGroup{1}) {
      group.recv(received.span(), prev, 0, stream);
      CHECK(received.download(stream) == values<T>(group.first_rank(), n));
    }
  }
  stream.wait(Deadline{Deadline::Duration{30}});
}

std::vector<std::string> meshes() {
  switch (size()) {
    case 4:
      return {"dp=2,tp=2 ; all=dp*tp"};
    case 8:
      return {"pp=2,dp=2,tp=2 | pp=2,ep=4"};
    case 16:
      return {"pp=2,cp=2,dp=2,ep=1,tp=2"};
    default:
      return {"tp=auto"};
  }
}

}  // namespace

TEST_CASE("every collective x reduction x type on devices equals the host's") {
  for (const std::string& text : meshes()) {
    Mesh mesh{MPI_COMM_WORLD, text, test_platform::options()};
    const device::Stream stream = device::Stream::create();
    for (const GroupFamily& family : mesh.plan().families()) {
      GroupCoordinator& group = mesh[family.name()];
      CAPTURE(text);
      CAPTURE(group.name());
      for (const std::int64_t n : {1, 5}) {
        test_reductions<std::int8_t>(group, stream, n);
        test_reductions<std::uint8_t>(group, stream, n);
        test_reductions<std::int32_t>(group, stream, n);
        test_reductions<std::uint32_t>(group, stream, n);
        test_reductions<std::int64_t>(group, stream, n);
        test_reductions<std::uint64_t>(group, stream, n);
        test_reductions<float>(group, stream, n);
        test_reductions<double>(group, stream, n);
        test_movement<float>(group, stream, n);
        test_movement<std::int16_t>(group, stream, n);
        test_movement<std::uint16_t>(group, stream, n);
        test_movement<std::int64_t>(group, stream, n);
      }
    }
    mesh.close();
  }
}

TEST_CASE("invalid calls throw on devices, too") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  DeviceBuffer<float> two{2};
  DeviceBuffer<float> three{3};
  CHECK_THROWS_AS(tp.all_reduce(two.span(), three.span()), UsageError);
  DeviceBuffer<std::int16_t> narrow{2};
  if (tp.size() > 1) CHECK_THROWS_AS(tp.all_reduce(narrow.span()), UnsupportedError);
  mesh.close();
  CHECK_THROWS_AS(tp.all_reduce(two.span()), ClosedError);
}
