// SPDX-License-Identifier: BSD-3-Clause
// A data-parallel pipeline with the 1F1B schedule. The result is compared with one process.
//
//   mpirun -n 8 pipeline_1f1b "pp=4,dp=2"
//
// Twelve layers y = tanh(x W) are divided over the stages of `pp`, twelve microbatches over `dp`.
// Each stage first runs as many forward passes as there are later stages (warm-up). Then it
// alternates forward and backward passes (steady state), and at the end it runs the remaining
// backward passes (cool-down). It holds the activations of at most pp microbatches; if all forward
// passes came first, it would hold those of all microbatches. The same code on a mesh of one rank
// computes the reference.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <vector>

#include "rankmesh/exchange/stage_exchange.hpp"
#include "rankmesh/rankmesh.hpp"

namespace {

constexpr int layers = 12, microbatches = 12, rows = 4, width = 6, steps = 4;
constexpr double learning_rate = 0.05;

using Values = std::vector<double>;  // of a matrix, row-major

// Irregular numbers between -0.7 and 0.7, the same on every rank.
Values numbers(int which, int n) {
  Values values;
  for (int i = 0; i < n; ++i) values.push_back(0.7 * std::sin(1.0 + which * 919 + i * 131));
  return values;
}

struct Layer {
  Values w, dw = Values(width * width);
  std::deque<std::pair<Values, Values>>
      saved{};  // x and y of the microbatches that still need a backward pass

  Values forward(const Values& x) {
    Values y(rows * width);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < width; ++c) {
        double sum = 0;
        for (int k = 0; k < width; ++k) sum += x[at(r, k)] * w[at(k, c)];
        y[at(r, c)] = std::tanh(sum);
      }
    saved.emplace_back(x, y);
    return y;
  }

  Values backward(const Values& dy) {
    const auto& [x, y] = saved.front();
    Values dx(rows * width);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < width; ++c) {
        const double dz = dy[at(r, c)] * (1 - y[at(r, c)] * y[at(r, c)]);
        for (int k = 0; k < width; ++k) {
          dw[at(k, c)] += x[at(r, k)] * dz;
          dx[at(r, k)] += dz * w[at(k, c)];
        }
      }
    saved.pop_front();
    return dx;
  }

  static std::size_t at(int r, int c) { return static_cast<std::size_t>(r * width + c); }
};

struct Stage {
  int first_microbatch;
  std::vector<Layer> layers{};
  double loss = 0;
  std::size_t most_saved = 0;

  Values forward(Values x) {
    for (Layer& layer : layers) x = layer.forward(x);
    most_saved = std::max(most_saved, layers.front().saved.size());
    return x;
  }
  Values backward(Values dy) {
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) dy = layer->backward(dy);
    return dy;
  }
  [[nodiscard]] Values input(int microbatch) const {
    return numbers(100 + first_microbatch + microbatch, rows * width);
  }
  // Returns the gradient of the mean squared error over all microbatches; for the last stage.
  Values loss_gradient(const Values& y, int microbatch) {
    Values dy = numbers(200 + first_microbatch + microbatch, rows * width);  // the targets
    constexpr double n = microbatches * rows * width;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double error = y[i] - dy[i];
      loss += error * error / n;
      dy[i] = 2 * error / n;
    }
    return dy;
  }
};

// Runs all forward and backward passes of one step. At the ends of the pipeline, moves that
// would leave it do nothing: the first stage keeps its input, the last stage keeps the gradient
// of the loss.
void one_f_one_b(rankmesh::GroupCoordinator& pp, Stage& stage, int count) {
  rankmesh::exchange::StageExchange neighbours{pp};
  const int following = static_cast<int>(pp.size() - 1 - pp.rank_in_group().value());
  const int warm_up = std::min(following, count);
  Values dy(rows * width);

  for (int m = 0; m < warm_up; ++m) {
    Values x = stage.input(m);
    neighbours.recv_forward(x);
    neighbours.send_forward(stage.forward(x));
  }

  Values x = stage.input(warm_up % count);
  if (warm_up < count) neighbours.recv_forward(x);
  for (int m = warm_up; m < count; ++m) {
    const Values y = stage.forward(x);
    if (pp.is_last()) dy = stage.loss_gradient(y, m);
    neighbours.send_forward_recv_backward(y, dy);
    const Values dx = stage.backward(dy);
    if (m + 1 == count) {
      neighbours.send_backward(dx);
    } else {
      x = stage.input(m + 1);
      neighbours.send_backward_recv_forward(dx, x);
    }
  }

  for (int m = 0; m < warm_up; ++m) {
    neighbours.recv_backward(dy);
    neighbours.send_backward(stage.backward(dy));
  }
}

struct Result {
  Values losses;  // per step, on the last stage
  std::vector<Layer> layers;
  std::size_t most_saved;
};

Result train(rankmesh::Mesh& mesh) {
  auto& pp = mesh["pp"];
  auto& dp = mesh["dp"];
  const int own = layers / static_cast<int>(pp.size()),
            count = microbatches / static_cast<int>(dp.size());
  Stage stage{.first_microbatch = count * static_cast<int>(dp.rank_in_group().value())};
  for (int i = 0; i < own; ++i)
    stage.layers.push_back(
        {numbers(own * static_cast<int>(pp.rank_in_group().value()) + i, width * width)});
  Result result;
  for (int step = 0; step < steps; ++step) {
    stage.loss = 0;
    one_f_one_b(pp, stage, count);
    for (Layer& layer : stage.layers) {
      dp.all_reduce(layer.dw);
      for (std::size_t i = 0; i < layer.w.size(); ++i) layer.w[i] -= learning_rate * layer.dw[i];
      std::ranges::fill(layer.dw, 0);
    }
    Values loss{stage.loss};
    dp.all_reduce(loss);
    result.losses.push_back(loss[0]);
  }
  result.layers = stage.layers;
  result.most_saved = stage.most_saved;
  return result;
}

int run(const char* layout) {
  rankmesh::MeshOptions options;
  options.devices = rankmesh::DeviceUse::off;
  rankmesh::Mesh mesh{MPI_COMM_WORLD, layout, options};
  if (layers % mesh["pp"].size() != 0 || microbatches % mesh["dp"].size() != 0)
    throw rankmesh::UsageError{"pp must divide 12 layers, and dp 12 microbatches",
                               "use sizes of 1, 2, 3, 4, 6 or 12"};
  const Result mine = train(mesh);
  rankmesh::Mesh one{MPI_COMM_SELF, "pp=1,dp=1", options};
  const Result whole = train(one);
  one.close();

  auto& pp = mesh["pp"];
  Values worst{0};
  const std::size_t first =
      static_cast<std::size_t>(pp.rank_in_group().value()) * mine.layers.size();
  for (std::size_t l = 0; l < mine.layers.size(); ++l)
    for (std::size_t i = 0; i < mine.layers[l].w.size(); ++i) {
      const double difference = std::abs(mine.layers[l].w[i] - whole.layers[first + l].w[i]);
      worst[0] = std::isfinite(difference) ? std::max(worst[0], difference) : 1e300;
    }
  Values losses = mine.losses;
  pp.broadcast(losses, pp.size() - 1);
  for (std::size_t s = 0; s < losses.size(); ++s)
    worst[0] = std::max(worst[0], std::abs(losses[s] - whole.losses[s]));
  for (const char* name : {"dp", "pp"}) mesh[name].all_reduce(worst, rankmesh::ReduceOp::max);
  const bool agrees = worst[0] < 1e-12;
  if (mesh.rank() == rankmesh::Rank{0}) {
    std::printf("%d layers, %d microbatches, %d steps on %s\n", layers, microbatches, steps,
                layout);
    for (std::size_t s = 0; s < losses.size(); ++s)
      std::printf("  step %zu   loss %.12f   one process %.12f\n", s, losses[s], whole.losses[s]);
    std::printf("the first stage held the activations of at most %zu microbatches\n",
                mine.most_saved);
    std::printf("largest difference %.1e: %s (limit 1e-12)\n", worst[0],
                agrees ? "agrees with the single process" : "DIFFERS from the single process");
  }
  mesh.close();
  return agrees ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { return run(argc > 1 ? argv[1] : "pp=4,dp=2"); });
}
