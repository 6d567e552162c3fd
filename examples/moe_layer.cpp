// SPDX-License-Identifier: BSD-3-Clause
// A mixture-of-experts layer, forward and backward. The result is compared with one process.
//
//   mpirun -n 8 moe_layer "dp=4,tp=2 | ep=8"
//
// Every rank of dp x tp holds different tokens (tp divides them, too: sequence parallelism). The
// experts are divided over ep. A router chooses two experts for each token, with weights. The
// result is y = sum of weight x expert(x), where expert e is x -> relu(x A_e) B_e. The same code on
// a mesh of one rank, which has all tokens and all experts, computes the reference.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "rankmesh/exchange/expert_dispatcher.hpp"
#include "rankmesh/rankmesh.hpp"

namespace {

using rankmesh::exchange::ExpertDispatcher;
using rankmesh::exchange::ExpertMap;
using rankmesh::exchange::ExpertRoute;
using Values = std::vector<float>;

constexpr int tokens = 48, width = 8, hidden = 12, experts = 6, top_k = 2;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Irregular numbers between -0.7 and 0.7, the same on every rank.
float number(int which, std::int64_t i) {
  return std::sin(static_cast<float>(1 + which * 919) + static_cast<float>(i) * 1.7F) * 0.7F;
}
Values numbers(int which, std::int64_t first, std::int64_t count) {
  Values values;
  for (std::int64_t i = first; i < first + count; ++i) values.push_back(number(which, i));
  return values;
}

// Adds x M to y, or x M^T if transposed, for one row; M is rows x columns.
void multiply(const float* x, const Values& m, int rows, int columns, bool transposed, float* y) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      y[transposed ? r : c] += x[transposed ? c : r] * m[at(r * columns + c)];
}

// The weights of an expert and their gradients. An empty slot has the number -1.
struct Expert {
  int number;
  Values a, b, da = Values(width * hidden), db = Values(hidden * width);

  explicit Expert(int e)
      : number{e}, a{numbers(2 * e, 0, width * hidden)}, b{numbers(2 * e + 1, 0, hidden * width)} {}

  [[nodiscard]] std::array<float, hidden> before_relu(const float* x) const {
    std::array<float, hidden> z{};
    multiply(x, a, width, hidden, false, z.data());
    return z;
  }
  void forward(const float* x, float* y) const {
    auto z = before_relu(x);
    for (float& v : z) v = std::max(v, 0.0F);
    std::fill_n(y, width, 0.0F);
    multiply(z.data(), b, hidden, width, false, y);
  }
  // Computes the gradient of x from the gradient of the result; adds to da and db.
  void backward(const float* x, const float* dy, float* dx) {
    const auto z = before_relu(x);
    std::array<float, hidden> dz{};
    multiply(dy, b, hidden, width, true, dz.data());
    std::fill_n(dx, width, 0.0F);
    for (int h = 0; h < hidden; ++h) {
      const auto u = at(h);
      for (int c = 0; c < width; ++c) db[at(h * width + c)] += std::max(z[u], 0.0F) * dy[c];
      if (z[u] <= 0) dz[u] = 0;
      for (int r = 0; r < width; ++r) da[at(r * hidden + h)] += x[r] * dz[u];
    }
    multiply(dz.data(), a, width, hidden, true, dx);
  }
};

struct Result {
  std::int64_t first_token = 0;
  Values y, dx;
  std::vector<Expert> weights;  // one per slot of this rank
};

Result layer(rankmesh::GroupCoordinator& ep) {
  const std::int64_t own = tokens / ep.size(), first = ep.rank_in_group().value() * own;
  const Values x = numbers(100, first * width, own * width);
  const Values dy = numbers(101, first * width, own * width);  // the gradient of y

  // The router chooses the two experts with the highest scores; softmax gives their weights.
  std::vector<std::int32_t> ids;
  Values weights;
  for (std::int64_t t = 0; t < own; ++t) {
    std::array<std::pair<float, int>, experts> scores;
    for (int e = 0; e < experts; ++e) {
      scores[at(e)] = {0, e};
      for (int i = 0; i < width; ++i)
        scores[at(e)].first += x[at(t * width + i)] * number(102, i * experts + e);
    }
    std::ranges::sort(scores, std::greater{});
    const float second = std::exp(scores[1].first - scores[0].first);
    ids.insert(ids.end(), {scores[0].second, scores[1].second});
    weights.insert(weights.end(), {1 / (1 + second), second / (1 + second)});
  }

  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(experts, ep.size())};
  const ExpertRoute route = dispatcher.route(ids, top_k);
  Result result{first, Values(x.size()), Values(x.size()), {}};
  for (const std::int32_t e : route.experts()) result.weights.emplace_back(e);
  // Calls use(expert, first element of the row) for all rows of this rank except padding.
  const auto for_each_row = [&](auto&& use) {
    for (std::size_t slot = 0; slot < result.weights.size(); ++slot)
      for (std::int64_t i = 0; i < route.counts()[slot]; ++i)
        use(result.weights[slot], at((route.offsets()[slot] + i) * width));
  };

  // Forward: send the rows to the experts and the results back.
  Values rows(at(route.rows() * width)), results(rows.size());
  dispatcher.dispatch(route, x, rows);
  for_each_row([&](Expert& expert, std::size_t i) { expert.forward(&rows[i], &results[i]); });
  dispatcher.combine(route, results, weights, result.y);

  // Backward: the gradient of a choice's result is its weight x the gradient of y. It uses the same
  // route, and so does the gradient of x.
  Values scaled;
  for (std::int64_t choice = 0; choice < own * top_k; ++choice)
    for (std::int64_t i = 0; i < width; ++i)
      scaled.push_back(weights[at(choice)] * dy[at(choice / top_k * width + i)]);
  Values gradients(rows.size()), to_x(rows.size());
  dispatcher.dispatch_choices(route, scaled, gradients);
  for_each_row(
      [&](Expert& expert, std::size_t i) { expert.backward(&rows[i], &gradients[i], &to_x[i]); });
  dispatcher.combine(route, to_x, Values(weights.size(), 1.0F), result.dx);
  return result;
}

// Returns the larger one. NaN counts as infinite, so that it is never taken for agreement.
float worse(float a, float b) {
  return std::isfinite(b) ? std::max(a, b) : std::numeric_limits<float>::infinity();
}

// Returns the largest difference to the part of `whole` that begins at `first`.
float difference(const Values& mine, const Values& whole, std::int64_t first) {
  float most = 0;
  for (std::size_t i = 0; i < mine.size(); ++i)
    most = worse(most, std::abs(mine[i] - whole[at(first) + i]));
  return most;
}

int run(const char* layout) {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, layout};
  auto& ep = mesh["ep"];
  if (tokens % ep.size() != 0)
    throw rankmesh::UsageError{"ep does not divide " + std::to_string(tokens)};
  const Result mine = layer(ep);

  rankmesh::Mesh one{MPI_COMM_SELF, "ep=1"};
  const Result whole = layer(one["ep"]);
  one.close();

  // The differences of the results, of the gradients of tokens, and of the gradients of weights.
  Values worst{difference(mine.y, whole.y, mine.first_token * width),
               difference(mine.dx, whole.dx, mine.first_token * width), 0};
  for (const Expert& expert : mine.weights) {
    if (expert.number < 0) continue;
    const Expert& reference = whole.weights[at(expert.number)];
    worst[2] = worse(worst[2], difference(expert.da, reference.da, 0));
    worst[2] = worse(worst[2], difference(expert.db, reference.db, 0));
  }
  ep.all_reduce(worst, rankmesh::ReduceOp::max);
  const bool agrees = std::ranges::all_of(worst, [](float w) { return w <= 1e-5F; });
  float largest = 0;
  for (const float v : whole.y) largest = std::max(largest, std::abs(v));
  if (mesh.rank() == rankmesh::Rank{0}) {
    std::printf("%d tokens, %d experts, top-%d on %s; results up to %.2f\n", tokens, experts, top_k,
                layout, static_cast<double>(largest));
    std::printf("largest difference: results %.1e, gradients of tokens %.1e, of weights %.1e\n",
                static_cast<double>(worst[0]), static_cast<double>(worst[1]),
                static_cast<double>(worst[2]));
    std::printf("verdict: %s (limit 1e-5)\n",
                agrees ? "agrees with the single process" : "DIFFERS from the single process");
  }
  mesh.close();
  return agrees ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { return run(argc > 1 ? argv[1] : "dp=4,tp=2 | ep=8"); });
}
