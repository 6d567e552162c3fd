// SPDX-License-Identifier: BSD-3-Clause
// Rows about NCCL's groups: blocking and non-blocking communicators in one group, and operations
// that depend on each other.
#include "rankmesh/device/stream.hpp"
#include "rankmesh/mesh/nccl_group.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::Mesh;
using rankmesh::NcclGroup;
using rankmesh::device::DeviceBuffer;
using rankmesh::device::Stream;

DeviceBuffer<float> ones(std::size_t count) {
  return DeviceBuffer<float>{std::span<const float>{std::vector<float>(count, 1)}};
}

int mixed(const Arguments&) {
  Mesh mesh = two_names({.blocking = true});
  const Stream stream = Stream::create();
  const DeviceBuffer<float> one = ones(1000);
  const DeviceBuffer<float> other = ones(1000);
  const Outcome outcome = try_call([&] {
    NcclGroup together{mesh};
    mesh["all"].all_reduce(one.span(), stream);
    mesh["tp"].all_reduce(other.span(), stream);
    together.end();
    const auto n = static_cast<float>(size());
    require(one.download(stream)[999] == n && other.download(stream)[999] == n,
            "a sum in a mixed group is wrong");
  });
  say("one group of both: {}", outcome.refused ? outcome.text : "right");
  check_sum(mesh["all"], stream);
  check_sum(mesh["tp"], stream);
  mesh.close();
  summarise("a group of blocking and non-blocking communicators is {}",
            outcome.refused ? "refused" : "right");
  return 0;
}

// NCCL keeps no order inside a group, so the second operation must not need the first one's result.
int dependent(const Arguments&) {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  int refused = 0;
  for (const std::size_t count : {std::size_t{100}, std::size_t{1} << 20}) {
    const DeviceBuffer<float> in = ones(count);
    const DeviceBuffer<float> middle{count};
    const DeviceBuffer<float> out{count};
    check_sum(tp, stream, count);
    const Outcome outcome = try_call([&] {
      NcclGroup together{mesh};
      tp.all_reduce(in.span(), middle.span(), rankmesh::ReduceOp::sum, stream);
      tp.all_reduce(middle.span(), out.span(), rankmesh::ReduceOp::sum, stream);
      together.end();
      const auto n = static_cast<float>(size());
      require(out.download(stream)[count - 1] == n * n,
              "an operation of a group read the output of another before it was written");
    });
    refused += outcome.refused ? 1 : 0;
    say("{} elements: {}", count, outcome.refused ? outcome.text : "right");
    check_sum(tp, stream);
  }
  mesh.close();
  summarise("operations of a group that feed each other are {}",
            refused == 2 ? "refused" : "right");
  return 0;
}

const Register mixed_row{"mixed", mixed};
const Register dependent_row{"dependent", dependent};

}  // namespace
}  // namespace gpu_rows
