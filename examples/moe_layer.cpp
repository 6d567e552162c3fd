// SPDX-License-Identifier: BSD-3-Clause
// Training of a mixture-of-experts layer and of its router. The result is compared with one
// process.
//
//   mpirun -n 8 moe_layer "dp=4,tp=2 | ep=8"
//
// Every rank of dp x tp holds different tokens (tp divides them, too: sequence parallelism). The
// experts are divided over ep. A router, which every rank has, chooses two experts for each token,
// with weights. The result is y = sum of weight x expert(x), where expert e is
// x -> relu(x A_e) B_e. The same code on a mesh of one rank, which has all tokens and all experts,
// computes the reference.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "rankmesh/exchange/expert_dispatcher.hpp"
#include "rankmesh/rankmesh.hpp"

namespace {

using rankmesh::exchange::ExpertDispatcher;
using rankmesh::exchange::ExpertMap;
using rankmesh::exchange::ExpertRoute;
using Values = std::vector<float>;

constexpr int tokens = 48, width = 8, hidden = 12, experts = 6, top_k = 2, steps = 20;
constexpr float learning_rate = 1.0F;

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

// The linear map from a token to a score for each expert: width x experts.
struct Router {
  Values w = numbers(102, 0, width* experts), dw = Values(w.size());

  // For each token, writes the two experts with the highest scores; softmax gives their weights.
  void choose(const Values& x, std::vector<std::int32_t>& ids, Values& weights) const {
    ids.clear();
    weights.clear();
    for (std::size_t t = 0; t < x.size() / width; ++t) {
      std::array<float, experts> scores{};
      multiply(&x[t * width], w, width, experts, false, scores.data());
      std::array<int, experts> order{};
      std::iota(order.begin(), order.end(), 0);
      std::ranges::sort(order, std::greater{}, [&](int e) { return scores[at(e)]; });
      const float second = std::exp(scores[at(order[1])] - scores[at(order[0])]);
      ids.insert(ids.end(), {order[0], order[1]});
      weights.insert(weights.end(), {1 / (1 + second), second / (1 + second)});
    }
  }
  // Adds to dw and dx, from the gradients of the weights.
  void backward(const Values& x, const std::vector<std::int32_t>& ids, const Values& weights,
                const Values& dweights, Values& dx) {
    for (std::size_t t = 0; t < x.size() / width; ++t) {
      const std::size_t c = t * top_k;
      const float mean = weights[c] * dweights[c] + weights[c + 1] * dweights[c + 1];
      std::array<float, experts> dscores{};
      for (std::size_t j = c; j < c + top_k; ++j)
        dscores[at(ids[j])] = weights[j] * (dweights[j] - mean);
      multiply(dscores.data(), w, width, experts, true, &dx[t * width]);
      for (int i = 0; i < width; ++i)
        for (int e = 0; e < experts; ++e)
          dw[at(i * experts + e)] += x[t * width + at(i)] * dscores[at(e)];
    }
  }
};

void descend(Values& w, Values& dw) {
  for (std::size_t i = 0; i < w.size(); ++i) w[i] -= learning_rate * std::exchange(dw[i], 0.0F);
}

struct Result {
  std::int64_t first_token = 0;
  Values losses, dx;  // the losses of all steps; the gradient of the tokens in the last step
  std::vector<Expert> experts;  // one per slot of this rank
  Router router;
  std::int64_t changed_choices = 0;  // of all tokens, from the first to the last step
};

Result train(rankmesh::GroupCoordinator& ep) {
  const std::int64_t own = tokens / ep.size(), first = ep.rank_in_group().value() * own;
  const Values x = numbers(100, first * width, own * width);
  const Values target = numbers(101, first * width, own * width);
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(experts, ep.size())};
  Result result{.first_token = first};
  std::vector<std::int32_t> ids, first_ids;
  Values weights;
  for (int step = 0; step < steps; ++step) {
    result.router.choose(x, ids, weights);
    if (step == 0) first_ids = ids;
    const ExpertRoute route = dispatcher.route(ids, top_k);
    if (step == 0)
      for (const std::int32_t e : route.experts()) result.experts.emplace_back(e);
    // Calls use(expert, row, first element of the row) for all rows of this rank except padding.
    const auto for_each_row = [&](auto&& use) {
      for (std::size_t slot = 0; slot < result.experts.size(); ++slot)
        for (std::int64_t i = 0; i < route.counts()[slot]; ++i) {
          const std::size_t row = at(route.offsets()[slot] + i);
          use(result.experts[slot], row, row * width);
        }
    };

    // Forward: send the rows to the experts and the results back.
    Values rows(at(route.rows() * width)), results(rows.size()), y(x.size());
    dispatcher.dispatch(route, x, rows);
    for_each_row(
        [&](Expert& expert, std::size_t, std::size_t i) { expert.forward(&rows[i], &results[i]); });
    dispatcher.combine(route, results, weights, y);

    // The loss is half the square of the error, averaged over the tokens.
    Values dy(y.size());
    float loss = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      dy[i] = (y[i] - target[i]) / tokens;
      loss += 0.5F * (y[i] - target[i]) * (y[i] - target[i]) / tokens;
    }
    result.losses.push_back(ep.all_reduce(loss));

    // Backward, to the weights of the choices: the gradient of a weight is the product of the
    // gradient of y with the result of the expert. The expert has the result, so the gradient of y
    // is sent there, and the product returns.
    Values dy_rows(rows.size()), products(at(route.rows())), dweights(weights.size());
    dispatcher.dispatch(route, dy, dy_rows);
    for_each_row([&](Expert&, std::size_t row, std::size_t i) {
      products[row] = std::inner_product(&results[i], &results[i] + width, &dy_rows[i], 0.0F);
    });
    dispatcher.collect_choices(route, products, dweights);

    // Backward, to the experts and the tokens: the gradient of a choice's result is its weight x
    // the gradient of y.
    Values weight_rows(at(route.rows())), to_x(rows.size());
    dispatcher.dispatch_choices(route, weights, weight_rows);
    for_each_row([&](Expert& expert, std::size_t row, std::size_t i) {
      for (std::size_t c = i; c < i + width; ++c) dy_rows[c] *= weight_rows[row];
      expert.backward(&rows[i], &dy_rows[i], &to_x[i]);
    });
    result.dx.assign(x.size(), 0);
    dispatcher.combine(route, to_x, Values(weights.size(), 1.0F), result.dx);
    result.router.backward(x, ids, weights, dweights, result.dx);

    // An expert has the gradient of all tokens. The gradient of the router is summed.
    ep.all_reduce(result.router.dw);
    descend(result.router.w, result.router.dw);
    for (Expert& expert : result.experts) {
      descend(expert.a, expert.da);
      descend(expert.b, expert.db);
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i)
    result.changed_choices += ids[i] != first_ids[i] ? 1 : 0;
  ep.all_reduce(result.changed_choices);
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
  const Result mine = train(ep);

  rankmesh::Mesh one{MPI_COMM_SELF, "ep=1"};
  const Result whole = train(one["ep"]);
  one.close();

  // The differences of the losses, of the gradients of tokens, and of the weights.
  Values worst{difference(mine.losses, whole.losses, 0),
               difference(mine.dx, whole.dx, mine.first_token * width),
               difference(mine.router.w, whole.router.w, 0), 0};
  for (const Expert& expert : mine.experts) {
    if (expert.number < 0) continue;
    const Expert& reference = whole.experts[at(expert.number)];
    worst[3] = worse(worst[3], difference(expert.a, reference.a, 0));
    worst[3] = worse(worst[3], difference(expert.b, reference.b, 0));
  }
  ep.all_reduce(worst, rankmesh::ReduceOp::max);
  const bool agrees = std::ranges::all_of(worst, [](float w) { return w <= 1e-5F; });
  const bool learns = whole.losses.back() < 0.8F * whole.losses.front();
  if (mesh.rank() == rankmesh::Rank{0}) {
    std::printf(
        "%d tokens, %d experts, top-%d on %s, %d steps: loss %.4f, then %.4f; %lld choices "
        "have changed\n",
        tokens, experts, top_k, layout, steps, static_cast<double>(mine.losses.front()),
        static_cast<double>(mine.losses.back()), static_cast<long long>(mine.changed_choices));
    std::printf(
        "largest difference: losses %.1e, gradients of tokens %.1e, weights of the router "
        "%.1e, of the experts %.1e\n",
        static_cast<double>(worst[0]), static_cast<double>(worst[1]), static_cast<double>(worst[2]),
        static_cast<double>(worst[3]));
    std::printf("verdict: %s (limit 1e-5)\n", !agrees   ? "DIFFERS from the single process"
                                              : !learns ? "the loss does NOT fall"
                                                        : "agrees with the single process");
  }
  mesh.close();
  return agrees && learns ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { return run(argc > 1 ? argv[1] : "dp=4,tp=2 | ep=8"); });
}
