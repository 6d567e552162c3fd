// SPDX-License-Identifier: BSD-3-Clause
// Data-parallel training that reduces gradients during the backward pass. The result is compared
// with one process.
//
//   mpirun -n 4 overlapped_gradients ["dp=4"] [host|device|shared]
//
// The model has eight layers y = tanh(x W); the batch has 24 rows. The backward pass runs from the
// last layer to the first and adds the gradient of each layer to a bucket. A full bucket is reduced
// while the backward pass computes the next layers. The same code on a mesh of one rank computes
// the reference.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "host_or_device.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/exchange/bucket.hpp"
#include "rankmesh/rankmesh.hpp"

namespace {

constexpr int layers = 8, batch = 24, width = 8, steps = 5;
constexpr double learning_rate = 0.1;

using Values = std::vector<double>;  // of a matrix of `width` columns, row-major

Values numbers(int which, int first, int n) {
  Values values;
  for (int i = first; i < first + n; ++i)
    values.push_back(0.6 * std::sin(1.0 + which * 919 + i * 131));
  return values;
}

std::size_t at(int r, int c) { return static_cast<std::size_t>(r * width + c); }

struct Layer {
  Values w, x{}, y{};
  Values dw = Values(width * width);
  rankmesh::device::DeviceBuffer<double> on_device{};  // a copy of dw, if devices reduce it

  const Values& forward(const Values& input) {
    x = input;
    y.assign(x.size(), 0);
    for (int r = 0; r < static_cast<int>(x.size()) / width; ++r)
      for (int c = 0; c < width; ++c) {
        for (int k = 0; k < width; ++k) y[at(r, c)] += x[at(r, k)] * w[at(k, c)];
        y[at(r, c)] = std::tanh(y[at(r, c)]);
      }
    return y;
  }
  Values backward(const Values& dy) {
    Values dx(x.size());
    std::ranges::fill(dw, 0);
    for (int r = 0; r < static_cast<int>(x.size()) / width; ++r)
      for (int c = 0; c < width; ++c) {
        const double dz = dy[at(r, c)] * (1 - y[at(r, c)] * y[at(r, c)]);
        for (int k = 0; k < width; ++k) {
          dw[at(k, c)] += x[at(r, k)] * dz;
          dx[at(r, k)] += dz * w[at(k, c)];
        }
      }
    return dx;
  }
};

struct Result {
  std::vector<Layer> layers;
  std::int64_t early = 0;  // collectives per step that began before the backward pass ended
};

Result train(rankmesh::Mesh& mesh, bool on_devices) {
  auto& dp = mesh["dp"];
  const int rows = batch / static_cast<int>(dp.size());
  const int first = rows * static_cast<int>(dp.rank_in_group().value());
  const rankmesh::StreamRef stream{};
  Result result;
  for (int l = 0; l < layers; ++l) {
    result.layers.push_back({numbers(l, 0, width * width)});
    if (on_devices)
      result.layers.back().on_device = rankmesh::device::DeviceBuffer<double>{width * width};
  }
  // Two layers fill a bucket. Every rank has the same number of rows, so the average over the ranks
  // is the gradient of the batch.
  rankmesh::exchange::Bucket bucket{dp,
                                    {.bytes = 2 * width * width * sizeof(double),
                                     .op = rankmesh::ReduceOp::avg,
                                     .stream = stream}};
  for (int step = 0; step < steps; ++step) {
    Values x = numbers(100, first * width, rows * width);
    for (Layer& layer : result.layers) x = layer.forward(x);
    Values dy = numbers(101, first * width, rows * width);  // the targets
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = 2 * (x[i] - dy[i]) / (rows * width);

    for (auto layer = result.layers.rbegin(); layer != result.layers.rend(); ++layer) {
      result.early = bucket.issued();
      dy = layer->backward(dy);
      if (on_devices) {
        layer->on_device.upload(layer->dw, stream);
        bucket.add(layer->on_device.span());
      } else {
        bucket.add(layer->dw);
      }
      mesh.progress();  // lets operations on host memory proceed
    }
    bucket.wait();
    for (Layer& layer : result.layers) {
      if (on_devices) layer.dw = layer.on_device.download(stream);
      for (std::size_t i = 0; i < layer.w.size(); ++i) layer.w[i] -= learning_rate * layer.dw[i];
    }
  }
  return result;
}

int run(const char* layout, const char* where) {
  rankmesh::MeshOptions options = options_for(where);
  const bool on_devices = options.devices == rankmesh::DeviceUse::required;
  rankmesh::Mesh mesh{MPI_COMM_WORLD, layout, options};
  if (batch % mesh["dp"].size() != 0)
    throw rankmesh::UsageError{"the ranks of dp cannot divide 24 rows evenly",
                               "use 1, 2, 3, 4, 6, 8, 12 or 24 of them"};
  const Result mine = train(mesh, on_devices);
  options.devices = rankmesh::DeviceUse::off;
  rankmesh::Mesh one{MPI_COMM_SELF, "dp=1", options};
  const Result whole = train(one, false);
  one.close();

  Values worst{0};
  for (std::size_t l = 0; l < layers; ++l)
    for (std::size_t i = 0; i < mine.layers[l].w.size(); ++i) {
      const double difference = std::abs(mine.layers[l].w[i] - whole.layers[l].w[i]);
      worst[0] = std::isfinite(difference) ? std::max(worst[0], difference) : 1e300;
    }
  mesh["dp"].all_reduce(worst, rankmesh::ReduceOp::max);
  const bool agrees = worst[0] < 1e-12 && mine.early == layers / 2 - 1;
  if (mesh.rank() == rankmesh::Rank{0}) {
    std::printf(
        "%d layers, %d rows on %s, %d steps: %lld of %d collectives began before the backward "
        "pass ended\n",
        layers, batch, layout, steps, static_cast<long long>(mine.early), layers / 2);
    std::printf("largest difference of a weight %.1e: %s (limit 1e-12)\n", worst[0],
                agrees ? "agrees with the single process" : "DIFFERS from the single process");
  }
  mesh.close();
  return agrees ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(
      argc, argv, [&] { return run(argc > 1 ? argv[1] : "dp=auto", argc > 2 ? argv[2] : "host"); });
}
