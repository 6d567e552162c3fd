// SPDX-License-Identifier: BSD-3-Clause
// Data parallelism and the three stages of ZeRO. All of them train the same network; the losses and
// the memory are compared.
//
//   mpirun -n 4 zero ["dp=4"]
//
// The network has 12 layers y = tanh(x W + b); the optimizer is Adam. The batch has 22 rows, which
// the ranks need not be able to divide evenly. A stage divides more than the stage before it: the
// state of the optimizer (1), the gradients (2), the weights (3). Only `keep_whole` differs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/exchange/bucket.hpp"
#include "rankmesh/exchange/sharded_buffer.hpp"
#include "rankmesh/rankmesh.hpp"

namespace {

using rankmesh::exchange::Bucket;
using rankmesh::exchange::ShardedBuffer;
using Values = std::vector<double>;
using In = std::span<const double>;

constexpr int layers = 12, batch = 22, steps = 8;

int width(int l) { return l % 2 == 0 ? 16 : 13; }  // of the input of layer l
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
// W, row-major, and b.
std::int64_t weights_of(int l) { return (width(l) + 1) * width(l + 1); }

// Irregular numbers between -0.6 and 0.6, the same on every rank.
Values numbers(int which, std::int64_t first, std::int64_t count) {
  Values values;
  for (std::int64_t i = first; i < first + count; ++i)
    values.push_back(0.6 * std::sin(1.0 + which * 919 + static_cast<double>(i) * 131));
  return values;
}

// This rank's rows of the batch, and what the backward pass needs.
struct Pass {
  rankmesh::Slice rows;
  std::vector<Values> outputs{numbers(100, rows.begin() * width(0), rows.size() * width(0))};

  void forward(int l, In w) {
    const int in = width(l), out = width(l + 1);
    const Values& x = outputs.back();
    Values y;
    for (int r = 0; r < rows.size(); ++r)
      for (int c = 0; c < out; ++c) {
        double z = w[at(in * out + c)];
        for (int k = 0; k < in; ++k) z += x[at(r * in + k)] * w[at(k * out + c)];
        y.push_back(std::tanh(z));
      }
    outputs.push_back(std::move(y));
  }
  // Adds to the gradient of the weights, and returns the gradient of the input.
  Values backward(int l, In w, const Values& dy, std::span<double> dw) {
    const int in = width(l), out = width(l + 1);
    const Values &x = outputs[at(l)], &y = outputs[at(l + 1)];
    Values dx(x.size());
    for (int r = 0; r < rows.size(); ++r)
      for (int c = 0; c < out; ++c) {
        const std::size_t i = at(r * out + c);
        const double dz = dy[i] * (1 - y[i] * y[i]);
        dw[at(in * out + c)] += dz;
        for (int k = 0; k < in; ++k) {
          dw[at(k * out + c)] += x[at(r * in + k)] * dz;
          dx[at(r * in + k)] += dz * w[at(k * out + c)];
        }
      }
    return dx;
  }
  // Turns the output into its gradient. Returns this rank's part of the loss of the batch.
  double loss(Values& dy) {
    dy = outputs.back();
    const Values target = numbers(101, rows.begin() * width(layers), std::ssize(dy));
    double sum = 0;
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const double error = dy[i] - target[i];
      sum += error * error / (batch * width(layers));
      dy[i] = 2 * error / (batch * width(layers));
    }
    return sum;
  }
};

void adam(int step, std::span<double> w, In g, std::span<double> m, std::span<double> v) {
  constexpr double rate = 0.01, beta1 = 0.9, beta2 = 0.99;
  for (std::size_t i = 0; i < w.size(); ++i) {
    m[i] = beta1 * m[i] + (1 - beta1) * g[i];
    v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
    const double mean = m[i] / (1 - std::pow(beta1, step)),
                 square = v[i] / (1 - std::pow(beta2, step));
    w[i] -= rate * mean / (std::sqrt(square) + 1e-8);
  }
}

struct Result {
  Values losses, weights;                                  // losses per step; the last weights
  std::int64_t weight_bytes, gradient_bytes, state_bytes;  // of this rank
  [[nodiscard]] std::int64_t bytes() const { return weight_bytes + gradient_bytes + state_bytes; }
};

std::int64_t bytes_of(const std::vector<Values>& all) {
  std::int64_t bytes = 0;
  for (const Values& values : all) bytes += std::ssize(values) * std::int64_t{sizeof(double)};
  return bytes;
}

// Every rank has all weights, all gradients and the whole state of the optimizer.
Result data_parallelism(rankmesh::GroupCoordinator& dp) {
  std::vector<Values> weights, gradients, m, v;
  for (int l = 0; l < layers; ++l) {
    weights.push_back(numbers(l, 0, weights_of(l)));
    for (auto* others : {&gradients, &m, &v}) others->emplace_back(weights.back().size());
  }
  Bucket bucket{dp, {.bytes = 1, .op = rankmesh::ReduceOp::sum}};  // a collective for each layer
  Result result{};
  for (int step = 1; step <= steps; ++step) {
    Pass pass{{batch, dp}};
    for (int l = 0; l < layers; ++l) pass.forward(l, weights[at(l)]);
    Values dy;
    result.losses.push_back(pass.loss(dy));
    for (int l = layers - 1; l >= 0; --l) {
      std::ranges::fill(gradients[at(l)], 0);
      dy = pass.backward(l, weights[at(l)], dy, gradients[at(l)]);
      bucket.add(gradients[at(l)]);
    }
    bucket.wait();
    for (std::size_t l = 0; l < layers; ++l) adam(step, weights[l], gradients[l], m[l], v[l]);
  }
  dp.all_reduce(result.losses);
  for (const Values& w : weights) result.weights.insert(result.weights.end(), w.begin(), w.end());
  result.weight_bytes = bytes_of(weights);
  result.gradient_bytes = bytes_of(gradients);
  result.state_bytes = bytes_of(m) + bytes_of(v);
  return result;
}

Result zero(int stage, rankmesh::GroupCoordinator& dp) {
  std::vector<std::int64_t> sizes;
  for (int l = 0; l < layers; ++l) sizes.push_back(weights_of(l));
  // A bucket has one or two layers.
  ShardedBuffer<double> weights{
      dp, sizes, {.bytes = 450 * sizeof(double), .keep_whole = stage < 3}};
  auto gradients = weights.like({.keep_whole = stage < 2, .op = rankmesh::ReduceOp::sum});
  auto m = weights.like(), v = weights.like();
  for (int l = 0; l < layers; ++l) weights.load(l, numbers(l, 0, weights_of(l)));
  Result result{};
  for (int step = 1; step <= steps; ++step) {
    Pass pass{{batch, dp}};
    for (int l = 0; l < layers; ++l) {
      pass.forward(l, weights.gather(l));  // the next bucket is on its way
      weights.release(l);
    }
    Values dy;
    result.losses.push_back(pass.loss(dy));
    for (int l = layers - 1; l >= 0; --l) {
      dy = pass.backward(l, weights.gather(l), dy, gradients.local(l));
      weights.release(l);
      gradients.reduce(l);  // continues while the next layers are computed
    }
    for (std::int64_t b = weights.buckets() - 1; b >= 0; --b)
      adam(step, weights.mine(b), gradients.mine(b), m.mine(b), v.mine(b));
    weights.changed();
  }
  dp.all_reduce(result.losses);
  result.weight_bytes = weights.bytes();
  result.gradient_bytes = gradients.bytes();
  result.state_bytes = m.bytes() + v.bytes();
  for (int l = 0; l < layers; ++l) {
    const In w = weights.gather(l);
    result.weights.insert(result.weights.end(), w.begin(), w.end());
    weights.release(l);
  }
  return result;
}

// NaN counts as a large difference.
double largest_difference(const Values& a, const Values& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    worst = difference < 1e300 ? std::max(worst, difference) : 1e300;
  }
  return worst;
}

int run(const char* layout) {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, layout};
  auto& dp = mesh["dp"];
  rankmesh::Mesh one{MPI_COMM_SELF, "dp=1"};
  const Result reference = data_parallelism(one["dp"]);
  one.close();

  const bool prints = mesh.rank() == rankmesh::Rank{0};
  if (prints)
    std::printf(
        "%d layers, %d rows on %s, %d steps; bytes of each rank\n%-17s %9s %9s %9s %9s  %s\n",
        layers, batch, layout, steps, "", "weights", "gradients", "optimizer", "together",
        "first and last loss");
  bool agrees = true;
  for (int stage = 0; stage <= 3; ++stage) {
    const Result result = stage == 0 ? data_parallelism(dp) : zero(stage, dp);
    double worst = std::max(largest_difference(result.losses, reference.losses),
                            largest_difference(result.weights, reference.weights));
    dp.all_reduce(worst, rankmesh::ReduceOp::max);
    agrees = agrees && worst < 1e-9;
    if (prints)
      std::printf(
          "%-17s %9lld %9lld %9lld %9lld  %.9f %.9f\n",
          stage == 0 ? "data parallelism" : ("ZeRO-" + std::to_string(stage)).c_str(),
          static_cast<long long>(result.weight_bytes),
          static_cast<long long>(result.gradient_bytes), static_cast<long long>(result.state_bytes),
          static_cast<long long>(result.bytes()), result.losses.front(), result.losses.back());
  }
  if (prints)
    std::printf("losses and weights: %s (limit 1e-9)\n",
                agrees ? "agree with the single process" : "DIFFER from the single process");
  mesh.close();
  return agrees ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { return run(argc > 1 ? argv[1] : "dp=auto"); });
}
