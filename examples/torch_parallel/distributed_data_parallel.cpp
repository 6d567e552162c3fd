// SPDX-License-Identifier: BSD-3-Clause
#include "distributed_data_parallel.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

struct DistributedDataParallel::State {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::unique_ptr<c10d::Reducer> reducer;
};

DistributedDataParallel::DistributedDataParallel(rankmesh::GroupCoordinator& group,
                                                 const std::vector<torch::Tensor>& parameters)
    : state_{std::make_unique<State>()} {
  // The ranks find each other by a file, whose name has the number of the first rank's process.
  const auto process = group.broadcast(static_cast<std::int64_t>(getpid()), 0);
  const std::string path =
      std::filesystem::temp_directory_path() / ("torch_parallel." + std::to_string(process));
  const auto store = c10::make_intrusive<c10d::FileStore>(path, static_cast<int>(group.size()));
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface("lo"));
  state_->group = c10::make_intrusive<c10d::ProcessGroupGloo>(
      store, group.rank_in_group().to_int(), static_cast<int>(group.size()), options);
  // As in Python: the first bucket has 1 MiB, and the buckets are in the order of the backward
  // pass.
  const std::size_t first_bytes = std::size_t{1} << 20, bytes = std::size_t{25} << 20;
  auto [buckets, limits] =
      c10d::compute_bucket_assignment_by_size(parameters, {first_bytes, bytes});
  std::reverse(buckets.begin(), buckets.end());
  std::reverse(limits.begin(), limits.end());
  state_->reducer = std::make_unique<c10d::Reducer>(
      parameters, buckets, limits, state_->group, std::vector<bool>(parameters.size(), false),
      static_cast<std::int64_t>(bytes), false, true, std::unordered_map<std::size_t, std::string>{},
      static_cast<std::int64_t>(first_bytes));
}
DistributedDataParallel::~DistributedDataParallel() = default;

void DistributedDataParallel::prepare(const torch::Tensor& loss) {
  state_->reducer->prepare_for_backward({loss});
}
