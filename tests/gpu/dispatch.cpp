// SPDX-License-Identifier: BSD-3-Clause
// Rows about expert dispatch: its steps while a collective waits for another rank, and after an
// error of CUDA that nobody has asked for.
#include <cuda_runtime_api.h>

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

// Steps in a group of this rank alone, which uses the kernels and no other rank.
class LocalSteps {
 public:
  explicit LocalSteps(rankmesh::GroupCoordinator& alone)
      : dispatcher_{alone, ExpertMap::contiguous(4, 1)},
        ids_{std::span<const std::int32_t>{std::vector<std::int32_t>(step_tokens, 3)}},
        rows_in_{std::span<const float>{std::vector<float>(step_tokens * hidden, 1)}},
        rows_{static_cast<std::size_t>(step_tokens * hidden)},
        weights_{std::span<const float>{std::vector<float>(step_tokens, 2)}},
        out_{static_cast<std::size_t>(step_tokens * hidden)} {}

  // One step, which waits for its stream.
  void run(const Stream& stream) {
    const ExpertRoute route =
        dispatcher_.route(DeviceSpan<const std::int32_t>{ids_.data(), ids_.size()}, 1, stream);
    dispatcher_.dispatch(route, rows_in_.span(), rows_.span(), stream);
    dispatcher_.combine(route, rows_.span(), weights_.span(), out_.span(), stream);
    stream.wait(rankmesh::Deadline{rankmesh::Deadline::Duration{60}});
  }
  void check(const Stream& stream) const {
    const auto result = out_.download(stream);
    require(result.front() == 2 && result.back() == 2, "a step of expert dispatch is wrong");
  }

 private:
  ExpertDispatcher dispatcher_;
  DeviceBuffer<std::int32_t> ids_;
  DeviceBuffer<float> rows_in_, rows_, weights_, out_;
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
// meanwhile. Without memory that is allocated or freed in the step, and with kernels that were
// loaded before, the step ends although the collective has not.
int while_waiting(const Arguments& arguments) {
  const bool is_first_step = !arguments.empty() && arguments[0] == "first";
  choose_device();
  Mesh mesh{MPI_COMM_WORLD, fmt::format("tp={},alone=1", size()), options()};
  const Stream waiting = Stream::create();
  const Stream stepping = Stream::create();
  const DeviceBuffer<float> sums{std::span<const float>{std::vector<float>(1000, 1)}};
  LocalSteps steps{mesh["alone"]};
  if (!is_first_step)
    for (int i = 0; i < 3; ++i) steps.run(stepping);
  check_sum(mesh["tp"], waiting);
  meet();
  if (rank() == 0) {
    mesh["tp"].all_reduce(sums.span(), waiting);
    const double begin = now();
    steps.run(stepping);
    const double seconds = now() - begin;
    for (int other = 1; other < size(); ++other)
      MPI_Send(nullptr, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    say("a step while a collective waited for another rank: {:.3f} s", seconds);
    mesh["tp"].wait(waiting);
    steps.check(stepping);
    require(seconds < patience - 1, "the step did not end before the collective");
    summarise("the {} step ended in {:.3f} s while a collective waited",
              is_first_step ? "first" : "fourth", seconds);
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
  LocalSteps steps{mesh["alone"]};
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
