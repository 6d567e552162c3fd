// SPDX-License-Identifier: BSD-3-Clause
// A row about redistributions of device memory: large tensors whose parts have long and short runs,
// and how long they take.
#include "rankmesh/exchange/redistribution.hpp"

#include "rankmesh/device/stream.hpp"
#include "raw_communicator.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::Mesh;
using rankmesh::TensorPlacement;
using rankmesh::device::DeviceBuffer;
using rankmesh::device::Stream;

constexpr std::int64_t tensor_rows = 2048;  // multiples of all that divides them below
constexpr std::int64_t tensor_columns = 4096;

// Where an element of this rank's part lies in the tensor, by the element's own row and column.
using Index = std::function<std::int64_t(std::int64_t row, std::int64_t column)>;

struct Case {
  std::string name;
  std::string from, to;  // N stands for the number of ranks
  std::int64_t source_columns, target_columns;
  Index in_source, in_target;
};

std::string with_ranks(std::string text) {
  for (std::size_t at = text.find('N'); at != std::string::npos; at = text.find('N'))
    text.replace(at, 1, std::to_string(size()));
  return text;
}

// A value that is another one for each of the first 16 million elements.
float value_of(std::int64_t element, int round) {
  return static_cast<float>((element + round) % (1 << 24));
}

std::vector<float> part_of(std::int64_t width, const Index& index, int round) {
  std::vector<float> result(static_cast<std::size_t>(tensor_rows * tensor_columns / size()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    result[i] = value_of(index(place / width, place % width), round);
  }
  return result;
}

std::vector<Case> cases() {
  const std::int64_t n = size();
  const std::int64_t r = rank();
  const auto block_of_rows = [n](std::int64_t block) {
    return [=](std::int64_t row, std::int64_t column) {
      return (block * (tensor_rows / n) + row) * tensor_columns + column;
    };
  };
  const Index in_columns = [=](std::int64_t row, std::int64_t column) {
    return row * tensor_columns + r * (tensor_columns / n) + column;
  };
  const auto cyclic = [=](std::int64_t i, std::int64_t block) {
    return (i / block * n + r) * block + i % block;
  };
  std::string successors;  // of each rank
  for (std::int64_t i = 1; i <= n; ++i) successors += (i > 1 ? "," : "") + std::to_string(i % n);
  const std::string tensor = fmt::format("[{},{}] f32 @ tp=N", tensor_rows, tensor_columns);
  return {
      {"blocks of rows to the next rank", tensor + " : (tp, _)",
       tensor + " on " + successors + " : (tp, _)", tensor_columns, tensor_columns,
       block_of_rows(r), block_of_rows((r + n - 1) % n)},
      {"rows to columns", tensor + " : (tp, _)", tensor + " : (_, tp)", tensor_columns,
       tensor_columns / n, block_of_rows(r), in_columns},
      {"columns to rows", tensor + " : (_, tp)", tensor + " : (tp, _)", tensor_columns / n,
       tensor_columns, in_columns, block_of_rows(r)},
      {"cyclic rows to cyclic columns of 8", tensor + " : (tp:cyclic(4), _)",
       tensor + " : (_, tp:cyclic(8))", tensor_columns, tensor_columns / n,
       [=](std::int64_t row, std::int64_t column) {
         return cyclic(row, 4) * tensor_columns + column;
       },
       [=](std::int64_t row, std::int64_t column) {
         return row * tensor_columns + cyclic(column, 8);
       }},
  };
}

// Returns the seconds of a transfer.
double move(Mesh& mesh, const Case& moved, std::int64_t memory, const Stream& stream) {
  const auto plan = rankmesh::plan_transfer(TensorPlacement::parse(with_ranks(moved.from)),
                                            TensorPlacement::parse(with_ranks(moved.to)));
  rankmesh::exchange::Redistribution transfer{
      mesh["tp"], plan, {.kind = rankmesh::MemoryKind::device, .memory = memory}};
  const auto count = static_cast<std::size_t>(tensor_rows * tensor_columns / size());
  DeviceBuffer<float> in{count};
  DeviceBuffer<float> out{count};
  std::vector<double> times;
  for (int round = 0; round < 3; ++round) {
    in.upload(part_of(moved.source_columns, moved.in_source, round), stream);
    out.upload(std::vector<float>(count, -1), stream);
    stream.wait(rankmesh::Deadline{rankmesh::Deadline::Duration{60}});
    const double time =
        seconds(stream, [&] { transfer.start(in.span(), out.span(), stream).wait(); });
    if (round > 0) times.push_back(time);  // the first one connects the ranks
    require(out.download(stream) == part_of(moved.target_columns, moved.in_target, round),
            moved.name + ": elements of the target are wrong");
  }
  return median(times);
}

int redistribution(const Arguments&) {
  choose_device();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options()};
  const Stream stream = Stream::create();
  const double mib = static_cast<double>(tensor_rows * tensor_columns * 4 / size()) / (1 << 20);
  for (const Case& moved : cases())
    for (const std::int64_t memory : {std::int64_t{64} << 20, std::int64_t{4} << 20}) {
      const double time = move(mesh, moved, memory, stream);
      say("{:<36} {:6.1f} MiB per rank, {:3} MiB for messages: {:8.3f} ms, {:7.2f} GB/s per rank",
          moved.name, mib, memory >> 20, 1e3 * time, mib * (1 << 20) / time / 1e9);
    }
  meet();
  mesh.close();
  summarise("redistributions of device memory are right; see the times below");
  return 0;
}

const Register redistribution_row{"redistribution", redistribution};

}  // namespace
}  // namespace gpu_rows
