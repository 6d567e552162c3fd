// SPDX-License-Identifier: BSD-3-Clause
// A model of libtorch, trained with tensor and data parallelism. Its losses are compared with those
// of one process.
//
//   mpirun -n 4 torch_model dp=2,tp=2 [WIDTH LAYERS BATCH STEPS]
//   mpirun -n 2 torch_model dp=2 WIDTH LAYERS BATCH STEPS time
//
// The model is a chain of blocks x + down(gelu(up(norm(x)))). `up` is divided by columns and `down`
// by rows over `tp`, so that a block has one all_reduce in the forward pass and one in the backward
// pass. The batch is divided over `dp`; a hook of autograd adds each gradient to a bucket while the
// backward pass goes on. With `time`, no process trains alone, and the time of a step is printed;
// compare.py puts it beside that of DistributedDataParallel (ddp.py).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/sgd.h>

#include <rankmesh/adapt/torch.hpp>
#include <rankmesh/exchange/bucket.hpp>
#include <rankmesh/rankmesh.hpp>

namespace {

using rankmesh::GroupCoordinator;
using torch::Tensor;
using torch::autograd::variable_list;

struct Sizes {
  std::int64_t width = 32, layers = 3, batch = 24, steps = 10;
};

// Autograd does not see what rankmesh writes. These two functions tell it what all_reduce does to
// gradients: a sum over tp in one pass is a copy in the other one.
class CopyToParts : public torch::autograd::Function<CopyToParts> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        std::int64_t tp) {
    context->saved_data["tp"] = tp;
    return x.view_as(x);
  }
  static variable_list backward(torch::autograd::AutogradContext* context,
                                variable_list gradients) {
    Tensor sum = gradients[0].contiguous().clone();
    reinterpret_cast<GroupCoordinator*>(context->saved_data["tp"].toInt())->all_reduce(sum);
    return {sum, {}};
  }
};
class SumOfParts : public torch::autograd::Function<SumOfParts> {
 public:
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& x, std::int64_t tp) {
    Tensor sum = x.contiguous().clone();
    reinterpret_cast<GroupCoordinator*>(tp)->all_reduce(sum);
    return sum;
  }
  static variable_list backward(torch::autograd::AutogradContext*, variable_list gradients) {
    return {gradients[0], {}};
  }
};

// This rank's part of a block.
class Block : public torch::nn::Module {
 public:
  Block(std::int64_t width, GroupCoordinator& tp)
      : tp_{reinterpret_cast<std::int64_t>(&tp)},
        norm_{register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))} {
    // Every rank makes the whole matrices, with the same random numbers, and keeps its part.
    const auto whole = [&](std::int64_t in, std::int64_t out) {
      return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(false))->weight.detach();
    };
    const rankmesh::Slice mine{4 * width, tp};
    const auto part = [&](const Tensor& matrix, std::int64_t axis) {
      return matrix.narrow(axis, mine.begin(), mine.size()).clone();
    };
    up_ = register_parameter("up", part(whole(width, 4 * width), 0));
    down_ = register_parameter("down", part(whole(4 * width, width), 1));
  }
  Tensor forward(const Tensor& x) {
    const Tensor inside = CopyToParts::apply(norm_(x), tp_);
    const Tensor parts = torch::gelu(inside.matmul(up_.t())).matmul(down_.t());
    return x + SumOfParts::apply(parts, tp_);
  }

 private:
  std::int64_t tp_;
  torch::nn::LayerNorm norm_;
  Tensor up_, down_;
};

class Model : public torch::nn::Module {
 public:
  Model(const Sizes& sizes, GroupCoordinator& tp) {
    for (std::int64_t i = 0; i < sizes.layers; ++i)
      blocks_.push_back(
          register_module("block" + std::to_string(i), std::make_shared<Block>(sizes.width, tp)));
  }
  Tensor forward(Tensor x) {
    for (const auto& block : blocks_) x = block->forward(x);
    return x;
  }

 private:
  std::vector<std::shared_ptr<Block>> blocks_;
};

// Averages the gradients over dp. Autograd calls the hooks as soon as a gradient is complete.
class AveragedGradients {
 public:
  AveragedGradients(Model& model, rankmesh::Mesh& mesh) : bucket_{mesh["dp"]} {
    for (const Tensor& parameter : model.parameters()) {
      accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameter));
      accumulators_.back()->add_post_hook(std::make_unique<Hook>(parameter, bucket_, mesh));
    }
  }
  void wait() { bucket_.wait(); }

 private:
  class Hook : public torch::autograd::FunctionPostHook {
   public:
    Hook(Tensor parameter, rankmesh::exchange::Bucket& bucket, rankmesh::Mesh& mesh)
        : parameter_{std::move(parameter)}, bucket_{bucket}, mesh_{mesh} {}
    variable_list operator()(const variable_list& outputs, const variable_list&) override {
      bucket_.add(parameter_.mutable_grad());
      mesh_.progress();
      return outputs;
    }

   private:
    Tensor parameter_;
    rankmesh::exchange::Bucket& bucket_;
    rankmesh::Mesh& mesh_;
  };
  rankmesh::exchange::Bucket bucket_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;  // autograd does not keep them
};

struct Result {
  std::vector<double> losses, milliseconds;  // of each step
};

Result train(rankmesh::Mesh& mesh, const Sizes& sizes) {
  GroupCoordinator &dp = mesh["dp"], &tp = mesh["tp"];
  torch::manual_seed(1);
  Model model{sizes, tp};
  if (sizes.batch % dp.size() != 0)
    throw rankmesh::UsageError{"dp does not divide the batch", "make it a multiple of dp"};
  const rankmesh::Slice mine{sizes.batch, dp};
  const auto rows = [&] {
    return torch::randn({sizes.batch, sizes.width}).narrow(0, mine.begin(), mine.size());
  };
  const Tensor input = rows(), target = rows();
  AveragedGradients gradients{model, mesh};
  torch::optim::SGD optimizer{model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)};
  Result result;
  for (std::int64_t step = 0; step < sizes.steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    model.zero_grad(/*set_to_none=*/false);  // a Bucket knows the gradients by their addresses
    const Tensor loss = torch::mse_loss(model.forward(input), target);
    loss.backward();
    gradients.wait();
    optimizer.step();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    result.milliseconds.push_back(time.count());
    result.losses.push_back(dp.all_reduce(loss.item<double>(), rankmesh::ReduceOp::avg));
  }
  return result;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Returns whether the losses agree with those of one process.
bool compare(const Result& mine, const Result& whole, bool prints) {
  double worst = 0;
  for (std::size_t s = 0; s < whole.losses.size(); ++s) {
    const double difference = std::abs(mine.losses[s] - whole.losses[s]) / whole.losses[s];
    worst = difference >= 0 ? std::max(worst, difference) : INFINITY;  // a NaN does not agree
    if (prints)
      std::printf("step %3zu   loss %.7f   one process %.7f\n", s + 1, mine.losses[s],
                  whole.losses[s]);
  }
  const bool agrees = worst < 1e-5;
  if (prints)
    std::printf("largest relative difference %.1e: %s (limit 1e-05)\n", worst,
                agrees ? "agrees with the single process" : "DIFFERS from the single process");
  return agrees;
}

int run(int argc, char** argv) {
  at::set_num_threads(1);  // each rank has a core
  Sizes sizes;
  for (std::int64_t* size : {&sizes.width, &sizes.layers, &sizes.batch, &sizes.steps}) {
    const auto i = 2 + (size - &sizes.width);
    if (i < argc) *size = std::atoll(argv[i]);
  }
  const std::string mesh_text = std::string{argc > 1 ? argv[1] : "dp=auto"};
  const bool has_tp = mesh_text.find("tp=") != std::string::npos;
  rankmesh::Mesh mesh{MPI_COMM_WORLD, has_tp ? mesh_text : mesh_text + ",tp=1"};
  const bool prints = mesh.rank() == rankmesh::Rank{0};
  const Result mine = train(mesh, sizes);
  if (argc > 6) {
    if (prints)
      std::printf("%.3f ms per step, loss %.7f\n", median(mine.milliseconds), mine.losses.back());
    mesh.close();
    return 0;
  }
  rankmesh::Mesh one{MPI_COMM_SELF, "dp=1,tp=1"};
  const bool agrees = compare(mine, train(one, sizes), prints);
  one.close();
  mesh.close();
  return agrees ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] { return run(argc, argv); });
}
