// SPDX-License-Identifier: BSD-3-Clause
// Rows over sizes: the first call of each size on a new mesh, which may have to connect the peers
// again, and operations along an axis whose rows are narrow.
#include "rankmesh/device/stream.hpp"
#include "raw_communicator.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::Mesh;
using rankmesh::device::DeviceBuffer;
using rankmesh::device::Stream;

const rankmesh::Deadline::Duration limit{60};

int connections(const Arguments&) {
  choose_device();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  double worst = 0;
  for (std::size_t bytes = 4; bytes <= (std::size_t{1} << 26); bytes *= 16) {
    const std::size_t count = bytes / sizeof(float);
    const DeviceBuffer<float> zeros{std::span<const float>{std::vector<float>(count, 0)}};
    const auto reduce = [&] { tp.all_reduce(zeros.span(), stream); };
    const double first = seconds(stream, reduce);
    std::vector<double> later;
    for (int i = 0; i < 5; ++i) later.push_back(seconds(stream, reduce));
    say("all_reduce of {:>9} B: first {:8.3f} ms, later {:8.3f} ms", bytes, 1e3 * first,
        1e3 * median(later));
    worst = std::max(worst, first - median(later));
  }
  mesh.close();
  summarise("after the warm-up, the first call of a size takes up to {:.1f} ms longer",
            1e3 * worst);
  return 0;
}

int axes(const Arguments&) {
  choose_device();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options()};
  auto& tp = mesh["tp"];
  const Stream stream = Stream::create();
  const auto n = static_cast<std::size_t>(size());
  for (const std::int64_t columns : {1, 4, 64, 1024}) {
    const std::int64_t rows = (std::int64_t{1} << 20) / columns;
    const auto count = static_cast<std::size_t>(rows * columns);
    std::vector<float> mine(count, static_cast<float>(rank()));
    const DeviceBuffer<float> in{std::span<const float>{mine}};
    const DeviceBuffer<float> out{count * n};
    const auto plain = [&] { tp.all_gather(in.span(), out.span(), stream); };
    const std::vector<std::int64_t> shape{rows, columns};
    const auto along = [&] {
      tp.all_gather(in.span(), out.span(), rankmesh::Axis{shape, 1}, stream);
    };
    plain();
    along();
    stream.wait(rankmesh::Deadline{limit});
    std::vector<double> times[2];
    for (int i = 0; i < 5; ++i) {
      times[0].push_back(seconds(stream, plain));
      times[1].push_back(seconds(stream, along));
    }
    const auto result = out.download(stream);
    for (std::size_t i = 0; i < result.size(); ++i)
      require(result[i] == static_cast<float>(i / static_cast<std::size_t>(columns) % n),
              fmt::format("a gather along axis 1 is wrong at element {}", i));
    say("4 MiB per rank in rows of {:>4} floats: along axis 0 {:8.3f} ms, along axis 1 {:8.3f} ms",
        columns, 1e3 * median(times[0]), 1e3 * median(times[1]));
  }
  mesh.close();
  summarise("gathers along axis 1 are right; see the times below");
  return 0;
}

const Register connections_row{"connections", connections};
const Register axes_row{"axes", axes};

}  // namespace
}  // namespace gpu_rows
