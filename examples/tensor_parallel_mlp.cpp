// SPDX-License-Identifier: BSD-3-Clause
// A pipeline of tensor-parallel MLPs with data parallelism. The result is compared with
// one process.
//
//   mpirun -n 16 tensor_parallel_mlp "pp=2,dp=2,tp=4" [host|device|shared]
//
// The model is a chain of blocks y = relu(x W1) W2. W1 is divided by columns and W2 by rows over
// `tp`, so the forward pass and the backward pass of a block each end with one all_reduce. The
// blocks are divided over `pp`, and the batch over `dp`, whose ranks average their gradients. The
// same code on a mesh of one rank computes the reference.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "host_or_device.hpp"

namespace {

constexpr int blocks = 2, batch = 16, width = 8, hidden = 16, steps = 8;
constexpr float learning_rate = 0.3F;

// A matrix of rows x columns, row-major.
struct Matrix {
  int rows = 0, columns = 0;
  std::vector<float> values =
      std::vector<float>(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  float& operator()(int r, int c) { return values[static_cast<std::size_t>(r * columns + c)]; }
  float operator()(int r, int c) const { return values[static_cast<std::size_t>(r * columns + c)]; }
};

Matrix transposed(const Matrix& m) {
  Matrix t{m.columns, m.rows};
  for (int r = 0; r < m.rows; ++r)
    for (int c = 0; c < m.columns; ++c) t(c, r) = m(r, c);
  return t;
}

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix product{a.rows, b.columns};
  for (int r = 0; r < a.rows; ++r)
    for (int k = 0; k < a.columns; ++k)
      for (int c = 0; c < b.columns; ++c) product(r, c) += a(r, k) * b(k, c);
  return product;
}

// Entry (r, c) of matrix `which`: irregular numbers between -0.7 and 0.7, the same on every rank.
float number(int which, int r, int c) {
  return std::sin(static_cast<float>(1 + which * 919 + r * 131 + c * 17 + r * c * 29)) * 0.7F;
}

// The part of matrix `which` that begins at (first_row, first_column).
Matrix part(int which, int first_row, int rows, int first_column, int columns) {
  Matrix m{rows, columns};
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) m(r, c) = number(which, first_row + r, first_column + c);
  return m;
}

// This rank's part of a block: columns of W1, rows of W2.
struct Block {
  Matrix w1, w2, dw1, dw2, x, z;

  Matrix forward(const Matrix& input, rankmesh::GroupCoordinator& tp, const HostOrDevice& memory) {
    x = input;
    z = x * w1;
    Matrix y = relu(z) * w2;
    memory.all_reduce(
        tp,
        y.values);  // each rank has computed the sum over its part of the hidden layer
    return y;
  }

  Matrix backward(const Matrix& dy, rankmesh::GroupCoordinator& tp, const HostOrDevice& memory) {
    dw2 = transposed(relu(z)) * dy;
    Matrix dz = dy * transposed(w2);
    for (std::size_t i = 0; i < dz.values.size(); ++i)
      dz.values[i] *= z.values[i] > 0 ? 1.0F : 0.0F;
    dw1 = transposed(x) * dz;
    Matrix dx = dz * transposed(w1);
    memory.all_reduce(tp, dx.values);
    return dx;
  }

  static Matrix relu(Matrix m) {
    for (float& v : m.values) v = std::max(v, 0.0F);
    return m;
  }
};

struct Result {
  std::vector<float> losses;  // per step, on the last stage
  std::vector<Block> blocks;  // of this rank
};

Result train(rankmesh::Mesh& mesh, const HostOrDevice& memory) {
  auto& pp = mesh["pp"];
  auto& dp = mesh["dp"];
  auto& tp = mesh["tp"];
  const auto place = [](const rankmesh::GroupCoordinator& g) {
    return static_cast<int>(g.rank_in_group().value());
  };
  const auto share = [](int whole, const rankmesh::GroupCoordinator& g) {
    return whole / static_cast<int>(g.size());
  };
  const int rows = share(batch, dp), columns = share(hidden, tp), own = share(blocks, pp);

  Result result;
  for (int b = place(pp) * own; b < (place(pp) + 1) * own; ++b)
    result.blocks.push_back({part(2 * b, 0, width, place(tp) * columns, columns),
                             part(2 * b + 1, place(tp) * columns, columns, 0, width),
                             {},
                             {},
                             {},
                             {}});
  const Matrix input = part(100, place(dp) * rows, rows, 0, width);
  const Matrix target = part(101, place(dp) * rows, rows, 0, width);

  for (int step = 0; step < steps; ++step) {
    Matrix x = input;
    if (!pp.is_first()) memory.recv(pp, x.values, rankmesh::prev);
    for (Block& block : result.blocks) x = block.forward(x, tp, memory);

    Matrix dx{rows, width};
    if (pp.is_last()) {
      std::vector<float> loss{0};
      for (std::size_t i = 0; i < x.values.size(); ++i) {
        const float error = x.values[i] - target.values[i];
        loss[0] += error * error / static_cast<float>(x.values.size());
        dx.values[i] = 2 * error / static_cast<float>(x.values.size());
      }
      memory.all_reduce(dp, loss, rankmesh::ReduceOp::avg);
      result.losses.push_back(loss[0]);
    } else {
      memory.send(pp, x.values, rankmesh::next);
      memory.recv(pp, dx.values, rankmesh::next);
    }
    for (auto block = result.blocks.rbegin(); block != result.blocks.rend(); ++block)
      dx = block->backward(dx, tp, memory);
    if (!pp.is_first()) memory.send(pp, dx.values, rankmesh::prev);

    for (Block& block : result.blocks)
      for (auto [weights, gradient] :
           {std::pair{&block.w1, &block.dw1}, std::pair{&block.w2, &block.dw2}}) {
        memory.all_reduce(dp, gradient->values, rankmesh::ReduceOp::avg);
        for (std::size_t i = 0; i < weights->values.size(); ++i)
          weights->values[i] -= learning_rate * gradient->values[i];
      }
  }
  return result;
}

// Returns the larger one. NaN counts as infinite, so that it is never taken for agreement.
float worse(float a, float b) {
  return std::isfinite(b) ? std::max(a, b) : std::numeric_limits<float>::infinity();
}

// Returns the largest difference of a part to its place in the whole matrix, relative to the
// largest entry of the whole.
float difference(const Matrix& mine, const Matrix& whole, int first_row, int first_column) {
  float most = 0, scale = 0;
  for (const float v : whole.values) scale = std::max(scale, std::abs(v));
  for (int r = 0; r < mine.rows; ++r)
    for (int c = 0; c < mine.columns; ++c)
      most = worse(most, std::abs(mine(r, c) - whole(first_row + r, first_column + c)));
  return most / scale;
}

int run(const char* layout, const char* where) {
  rankmesh::MeshOptions options = options_for(where);
  const bool on_devices = options.devices == rankmesh::DeviceUse::required;
  rankmesh::Mesh mesh{MPI_COMM_WORLD, layout, options};
  for (const auto& [name, whole] :
       {std::pair{"pp", blocks}, std::pair{"dp", batch}, std::pair{"tp", hidden}})
    if (whole % mesh.plan().groups(name).group_size() != 0)
      throw rankmesh::UsageError{std::string{name} + " does not divide " + std::to_string(whole)};
  const Result mine = train(mesh, HostOrDevice{on_devices});

  options.devices = rankmesh::DeviceUse::off;
  rankmesh::Mesh one{MPI_COMM_SELF, "pp=1,dp=1,tp=1", options};
  const Result whole = train(one, HostOrDevice{false});
  one.close();

  const auto stage = static_cast<std::size_t>(mesh.coordinate("pp").value());
  const int first = static_cast<int>(mesh.coordinate("tp").value()) *
                    (hidden / static_cast<int>(mesh["tp"].size()));
  std::vector<float> worst{0, 0};  // the differences of the losses and of the weights
  for (std::size_t i = 0; i < mine.losses.size(); ++i)
    worst[0] = worse(worst[0], std::abs(mine.losses[i] - whole.losses[i]) / whole.losses[i]);
  for (std::size_t b = 0; b < mine.blocks.size(); ++b) {
    const Block& reference = whole.blocks[stage * mine.blocks.size() + b];
    worst[1] = worse(worst[1], difference(mine.blocks[b].w1, reference.w1, 0, first));
    worst[1] = worse(worst[1], difference(mine.blocks[b].w2, reference.w2, first, 0));
  }
  // One reduction along each dimension gives every rank the maximum.
  for (const char* name : {"tp", "dp", "pp"}) mesh[name].all_reduce(worst, rankmesh::ReduceOp::max);

  const bool agrees = worst[0] <= 1e-5F && worst[1] <= 1e-5F;
  std::vector<float> losses = mine.losses;
  losses.resize(steps);
  mesh["pp"].broadcast(losses, mesh["pp"].size() - 1);
  if (mesh.rank() == rankmesh::Rank{0}) {
    std::printf("%d blocks, batch %d, %d steps on %s (%lld ranks, %s memory)\n", blocks, batch,
                steps, layout, static_cast<long long>(mesh.size()), on_devices ? "device" : "host");
    std::printf("  step   loss         one process\n");
    for (int s = 0; s < steps; ++s)
      std::printf("  %4d   %.8f   %.8f\n", s,
                  static_cast<double>(losses[static_cast<std::size_t>(s)]),
                  static_cast<double>(whole.losses[static_cast<std::size_t>(s)]));
    std::printf("largest relative difference: losses %.1e, weights %.1e\n",
                static_cast<double>(worst[0]), static_cast<double>(worst[1]));
    std::printf("verdict: %s (limit 1e-5)\n",
                agrees ? "agrees with the single process" : "DIFFERS from the single process");
  }
  mesh.close();
  return agrees ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] {
    return run(argc > 1 ? argv[1] : "pp=2,dp=2,tp=4", argc > 2 ? argv[2] : "host");
  });
}
