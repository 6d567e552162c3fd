// SPDX-License-Identifier: BSD-3-Clause
// A model of libtorch with tensor and data parallelism over rankmesh. Its losses are compared with
// one process, and its time per step with torch's DistributedDataParallel over Gloo.
//
//   mpirun -n 4 torch_parallel ["dp=2,tp=2"] [steps of each kind whose time is measured]
//
// The model is a chain of blocks x + W2 gelu(W1 x). Over `tp`, W1 is divided by rows and W2 by
// columns, so the forward pass and the backward pass of a block each have one all_reduce. The batch
// is divided over `dp`, whose ranks average their gradients in a Bucket.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "distributed_data_parallel.hpp"
#include "rankmesh/adapt/torch.hpp"
#include "rankmesh/exchange/bucket.hpp"
#include "rankmesh/rankmesh.hpp"

namespace {

using rankmesh::GroupCoordinator;
using torch::Tensor;

constexpr int blocks = 4, width = 128, hidden = 512, batch = 64, steps = 10;
constexpr double learning_rate = 0.05;

// The input of a layer whose rows are divided over a group: the members' gradients are summed.
struct ToAll : torch::autograd::Function<ToAll> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        std::int64_t group) {
    context->saved_data["group"] = group;
    return x.view_as(x);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& gradients) {
    const Tensor sum = gradients[0].contiguous().clone();
    group_of(context).all_reduce(sum);
    return {sum, Tensor{}};
  }
  static GroupCoordinator& group_of(torch::autograd::AutogradContext* context) {
    return *reinterpret_cast<GroupCoordinator*>(context->saved_data["group"].toInt());
  }
};

// The output of a layer whose columns are divided over a group: the members' parts are summed.
struct FromAll : torch::autograd::Function<FromAll> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& x, std::int64_t group) {
    const Tensor sum = x.contiguous().clone();
    reinterpret_cast<GroupCoordinator*>(group)->all_reduce(sum);
    return sum;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               const torch::autograd::tensor_list& gradients) {
    return {gradients[0], Tensor{}};
  }
};

// This rank's part of a model. Without a group, the whole model.
class Model {
 public:
  explicit Model(GroupCoordinator* tp = nullptr) : tp_{tp} {
    // Every rank draws the numbers of the whole model, and keeps its part.
    auto generator = torch::make_generator<torch::CPUGeneratorImpl>(7);
    const auto part = [&](std::int64_t rows, std::int64_t columns, std::int64_t axis) {
      Tensor weight =
          torch::randn({rows, columns}, generator) / std::sqrt(static_cast<double>(columns));
      if (tp_ != nullptr) {
        const rankmesh::Slice mine{weight.size(axis), *tp_};
        weight = weight.narrow(axis, mine.begin(), mine.size()).clone();
      }
      parameters_.push_back(weight.contiguous().requires_grad_());
    };
    for (int b = 0; b < blocks; ++b) {
      part(hidden, width, 0);
      part(width, hidden, 1);
    }
  }
  Tensor loss(Tensor x, const Tensor& wanted) const {
    const auto group = reinterpret_cast<std::int64_t>(tp_);
    for (std::size_t b = 0; b < blocks; ++b) {
      Tensor y = tp_ != nullptr ? ToAll::apply(x, group) : x;
      y = torch::matmul(torch::gelu(torch::matmul(y, parameters_[2 * b].t())),
                        parameters_[2 * b + 1].t());
      x = x + (tp_ != nullptr ? FromAll::apply(y, group) : y);
    }
    return torch::mse_loss(x, wanted);
  }
  void descend() {
    const torch::NoGradGuard guard;
    for (Tensor& parameter : parameters_) {
      parameter.sub_(parameter.grad(), learning_rate);
      parameter.mutable_grad().zero_();
    }
  }
  [[nodiscard]] std::vector<Tensor>& parameters() { return parameters_; }

 private:
  GroupCoordinator* tp_;
  std::vector<Tensor> parameters_;
};

// The rows of step `step` that belong to a member of a group, or all rows.
std::pair<Tensor, Tensor> rows_of(int step, const GroupCoordinator* dp) {
  auto generator =
      torch::make_generator<torch::CPUGeneratorImpl>(static_cast<std::uint64_t>(100 + step));
  const Tensor x = torch::randn({batch, width}, generator), wanted = torch::sin(x.roll(1, 1));
  const rankmesh::Slice mine =
      dp != nullptr ? rankmesh::Slice{batch, *dp} : rankmesh::Slice::of(batch, 1, 0);
  return {x.narrow(0, mine.begin(), mine.size()), wanted.narrow(0, mine.begin(), mine.size())};
}

// A step of one rank: averages the gradients over dp.
double step_over(Model& model, GroupCoordinator& dp, rankmesh::exchange::Bucket& bucket, int step) {
  const auto [x, wanted] = rows_of(step, &dp);
  const Tensor loss = model.loss(x, wanted);
  loss.backward();
  for (auto parameter = model.parameters().rbegin(); parameter != model.parameters().rend();
       ++parameter)
    bucket.add(parameter->grad());
  bucket.wait();
  model.descend();
  return loss.item<double>();
}

double seconds_of(auto&& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ssize(values) / 2);
  return values[values.size() / 2];
}

// The greatest relative difference from the losses of one process.
double compare(rankmesh::Mesh& mesh) {
  Model whole, mine{&mesh["tp"]};
  auto& dp = mesh["dp"];
  rankmesh::exchange::Bucket bucket{dp};
  double worst = 0;
  for (int step = 0; step < steps; ++step) {
    const double loss = dp.all_reduce(step_over(mine, dp, bucket, step), rankmesh::ReduceOp::avg);
    const auto [x, wanted] = rows_of(step, nullptr);
    const Tensor alone = whole.loss(x, wanted);
    alone.backward();
    whole.descend();
    worst = std::max(worst, std::abs(loss / alone.item<double>() - 1));
    if (mesh.rank() == 0)
      std::printf("step %2d  loss %.6f  in one process %.6f\n", step, loss, alone.item<double>());
  }
  return worst;
}

// Compares the time of a step of data parallelism alone, in turns.
void measure(rankmesh::Mesh& mesh, int pairs) {
  auto& all = mesh["world"];
  Model ours, theirs;
  rankmesh::exchange::Bucket bucket{all};
  DistributedDataParallel ddp{all, theirs.parameters()};
  std::vector<double> our_times, their_times;
  double difference = 0;
  for (int pair = 0; pair < pairs + 2; ++pair) {
    double our_loss = 0, their_loss = 0;
    all.barrier();
    const double our_time = seconds_of([&] { our_loss = step_over(ours, all, bucket, pair); });
    all.barrier();
    const double their_time = seconds_of([&] {
      const auto [x, wanted] = rows_of(pair, &all);
      const Tensor loss = theirs.loss(x, wanted);
      ddp.prepare(loss);
      loss.backward();
      theirs.descend();
      their_loss = loss.item<double>();
    });
    difference = std::max(difference, std::abs(our_loss / their_loss - 1));
    if (pair < 2) continue;  // memory is allocated
    our_times.push_back(all.all_reduce(our_time, rankmesh::ReduceOp::max));
    their_times.push_back(all.all_reduce(their_time, rankmesh::ReduceOp::max));
  }
  if (mesh.rank() == 0)
    std::printf(
        "a step of %d ranks, medians of %d in turns: rankmesh %.2f ms, DistributedDataParallel "
        "over Gloo %.2f ms, "
        "ratio %.2f; losses differ by %.1e\n",
        static_cast<int>(all.size()), pairs, 1e3 * median(our_times), 1e3 * median(their_times),
        median(our_times) / median(their_times), difference);
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] {
    torch::set_num_threads(1);
    rankmesh::Mesh mesh{MPI_COMM_WORLD, argc > 1 ? argv[1] : "dp=auto,tp=2"};
    const double worst = compare(mesh);
    if (mesh.rank() == 0) std::printf("losses differ by %.1e of their value at most\n", worst);
    if (const int pairs = argc > 2 ? std::stoi(argv[2]) : 20; pairs > 0) measure(mesh, pairs);
    mesh.close();
    return worst < 1e-4 ? 0 : 1;
  });
}
