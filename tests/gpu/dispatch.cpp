// SPDX-License-Identifier: BSD-3-Clause
// Rows about expert dispatch: its steps while a collective waits for another rank, and after an
// error of CUDA that nobody has asked for.
#include <cuda_runtime_api.h>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/exchange/expert_dispatcher.hpp"
#include "raw_communicator.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::DeviceSpan;
using rankmesh::Mesh;
using rankmesh::device::DeviceBuffer;
using rankmesh::device::Stream;
using rankmesh::exchange::ExpertDispatcher;
using rankmesh::exchange::ExpertMap;
using rankmesh::exchange::ExpertRoute;

constexpr std::int64_t step_tokens = 256;
constexpr std::int64_t hidden = 128;
constexpr double patience = 20;  // seconds that the other ranks wait before they end the collective

// Steps in a group of this rank alone, which use the kernels for Value and no other rank.
template <class Value>
class LocalSteps {
 public:
  explicit LocalSteps(ExpertDispatcher& dispatcher)
      : dispatcher_{&dispatcher},
        ids_{std::span<const std::int32_t>{std::vector<std::int32_t>(step_tokens, 3)}},
        tokens_{std::span<const Value>{std::vector<Value>(step_tokens * hidden, Value{1})}},
        rows_{static_cast<std::size_t>(step_tokens * hidden)},
        weights_{std::span<const float>{std::vector<float>(step_tokens, 2)}},
        out_{static_cast<std::size_t>(step_tokens * hidden)} {}

  // One step, which waits for its stream.
  void run(const Stream& stream) {
    const ExpertRoute route =
        dispatcher_->route(DeviceSpan<const std::int32_t>{ids_.data(), ids_.size()}, 1, stream);
    dispatcher_->dispatch(route, tokens_.span(), rows_.span(), stream);
    dispatcher_->combine(route, rows_.span(), weights_.span(), out_.span(), stream);
    stream.wait(rankmesh::Deadline{rankmesh::Deadline::Duration{60}});
  }
  void check(const Stream& stream) const {
    const auto result = out_.download(stream);
    require(static_cast<float>(result.front()) == 2 && static_cast<float>(result.back()) == 2,
            "a step of expert dispatch is wrong");
  }

 private:
  ExpertDispatcher* dispatcher_;
  DeviceBuffer<std::int32_t> ids_;
  DeviceBuffer<Value> tokens_, rows_;
  DeviceBuffer<float> weights_;
  DeviceBuffer<Value> out_;
};

// Returns the seconds until rank 0 has told that it is done, at most `patience`.
double wait_for_rank_0() {
  const double begin = now();
  int done = 0;
  while (done == 0 && now() - begin < patience)
    MPI_Iprobe(0, 0, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
  return now() - begin;
}

// Rank 0 queues a collective that waits for the other ranks, and does a step of expert dispatch
// meanwhile. If the step allocates and frees no memory, and if its kernels were loaded before, it
// ends although the collective has not. The steps before had rows of floats, which are larger, so
// the memory is there; with "new", rows of bfloat16 need another kernel than these steps.
int while_waiting(const Arguments& arguments) {
  const bool is_new = !arguments.empty() && arguments[0] == "new";
  choose_device();
  Mesh mesh{MPI_COMM_WORLD, fmt::format("tp={},alone=1", size()), options()};
  const Stream waiting = Stream::create();
  const Stream stepping = Stream::create();
  const DeviceBuffer<float> sums{std::span<const float>{std::vector<float>(1000, 1)}};
  ExpertDispatcher dispatcher{mesh["alone"], ExpertMap::contiguous(4, 1)};
  LocalSteps<float> steps{dispatcher};
  LocalSteps<rankmesh::BFloat16> narrow{dispatcher};
  for (int i = 0; i < 3; ++i) steps.run(stepping);
  check_sum(mesh["tp"], waiting);
  meet();
  if (rank() == 0) {
    mesh["tp"].all_reduce(sums.span(), waiting);
    const double begin = now();
    if (is_new)
      narrow.run(stepping);
    else
      steps.run(stepping);
    const double seconds = now() - begin;
    for (int other = 1; other < size(); ++other)
      MPI_Send(nullptr, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    say("a step while a collective waited for another rank: {:.3f} s", seconds);
    mesh["tp"].wait(waiting);
    if (is_new)
      narrow.check(stepping);
    else
      steps.check(stepping);
    require(seconds < patience - 1, "the step did not end before the collective");
    summarise("a step {} ended in {:.3f} s while a collective waited",
              is_new ? "with a kernel that had not run before" : "like those before", seconds);
  } else {
    (void)wait_for_rank_0();
    mesh["tp"].all_reduce(sums.span(), waiting);
    mesh["tp"].wait(waiting);
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  meet();
  mesh.close();
  return 0;
}

// An allocation that fails leaves its error with CUDA's runtime, where a later launch finds it.
int earlier_error(const Arguments&) {
  choose_device();
  Mesh mesh{MPI_COMM_WORLD, fmt::format("tp={},alone=1", size()), options()};
  const Stream stream = Stream::create();
  ExpertDispatcher dispatcher{mesh["alone"], ExpertMap::contiguous(4, 1)};
  LocalSteps<float> steps{dispatcher};
  std::string refusal;
  try {
    const DeviceBuffer<float> huge{std::size_t{1} << 50};
  } catch (const rankmesh::Error& error) {
    refusal = error.what();
  }
  say("an allocation of 4 PiB: {}", refusal);
  require(!refusal.empty(), "an allocation of 4 PiB succeeded");
  steps.run(stream);
  steps.check(stream);
  check_sum(mesh["tp"], stream);
  mesh.close();
  summarise("an earlier error of CUDA does not reach a later step");
  return 0;
}

const Register waiting_row{"while_waiting", while_waiting};
const Register earlier_row{"earlier_error", earlier_error};

}  // namespace
}  // namespace gpu_rows
