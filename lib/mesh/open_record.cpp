// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_record.hpp"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "base/detail/process_identity.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "transport/detail/node_messages.hpp"

namespace rankmesh::detail {
namespace {

constexpr int clock_tag = 1;  // nothing else is sent on the communicator at this time
constexpr int round_trips = 16;
constexpr const char* comparison = "the comparison of the nodes' clocks";

std::string host_name() {
  std::array<char, 128> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "?";
  return name.data();
}

// What to add to the clock of this node to get that of rank 0, and how wrong it may be.
struct ClockDifference {
  std::int64_t offset = 0;
  std::int64_t error = 0;
};

// Messages between two nodes, whose waits end if a rank is lost.
class ClockMessages {
 public:
  ClockMessages(ControlPlane& control, const WaitPoint& point, int peer)
      : control_{control}, point_{point}, peer_{peer} {}

  void send(std::int64_t time) {
    MpiMemory<std::int64_t> memory{time};
    MPI_Request request = MPI_REQUEST_NULL;
    mpi::check(MPI_Isend(memory.get(), 1, MPI_INT64_T, peer_, clock_tag, control_.comm().native(),
                         &request),
               "MPI_Isend");
    wait(memory, request);
  }
  std::int64_t receive() {
    MpiMemory<std::int64_t> memory;
    MPI_Request request = MPI_REQUEST_NULL;
    mpi::check(MPI_Irecv(memory.get(), 1, MPI_INT64_T, peer_, clock_tag, control_.comm().native(),
                         &request),
               "MPI_Irecv");
    wait(memory, request);
    return *memory;
  }

 private:
  void wait(MpiMemory<std::int64_t>& memory, MPI_Request request) {
    memory.wait(request, control_.monitor, point_, control_.deadline());
  }

  ControlPlane& control_;
  const WaitPoint& point_;
  const int peer_;
};

ClockDifference ask_rank_0(ClockMessages messages) {
  ClockDifference best{.error = std::numeric_limits<std::int64_t>::max()};
  for (int i = 0; i < round_trips; ++i) {
    const std::int64_t before = monotonic_nanoseconds();
    messages.send(before);
    const std::int64_t theirs = messages.receive();
    const std::int64_t half = (monotonic_nanoseconds() - before + 1) / 2;
    if (half < best.error) best = {theirs - (before + half), half};
  }
  return best;
}

void answer(ClockMessages messages) {
  for (int i = 0; i < round_trips; ++i) {
    messages.receive();
    messages.send(monotonic_nanoseconds());
  }
}

}  // namespace

std::shared_ptr<Recorder> open_record(const ControlPlane& control, const MeshPlan& plan,
                                      const std::string& description, const Settings& settings,
                                      std::vector<std::string> transports) {
  if (settings.record == "off" || control.is_spare()) return nullptr;
  const Recorder::Facts facts{.mesh_key = control.key_of_mesh,
                              .world_size = plan.world_size(),
                              .rank = control.rank(),
                              .mesh = description,
                              .coordinates = plan.describe(control.rank()),
                              .host = host_name(),
                              .transports = std::move(transports),
                              .process = ProcessIdentity::own(),
                              .boot = own_boot()};
  try {
    return std::make_shared<Recorder>(facts, settings.record, settings.record_times.value_or(false),
                                      settings.record_lines.value_or(false));
  } catch (const Error& error) {
    const std::string text = fmt::format("rank {} keeps no record of its calls: {}",
                                         control.rank().value(), error.message());
    // Who names a folder expects a file there.
    if (settings.record.empty())
      control.log(LogLevel::warning, text);
    else
      control.log()->report(text);
    return nullptr;
  }
}

void relate_clocks(ControlPlane& control) {
  const Placement& placement = control.placement;
  const std::shared_ptr<Recorder>& recorder = control.recorder();
  const std::int32_t own_node = placement.node(control.rank());
  ClockDifference difference;
  if (placement.node_count() > 1) {
    const WaitPoint point = WaitPoint::of_all(control.comm().size(), comparison);
    if (control.rank() == Rank{0})
      for (std::int64_t r = 1; r < placement.world_size(); ++r) {
        if (placement.local_rank(r) == 0) answer({control, point, static_cast<int>(r)});
      }
    else if (placement.local_rank(control.rank()) == 0)
      difference = ask_rank_0({control, point, 0});
    difference = NodeMessages{control}.from_first(difference, comparison);
  }
  if (recorder != nullptr) recorder->set_clock(own_node, difference.offset, difference.error);
}

Recordings recordings_of(const ControlPlane& control, const GroupDescription& group,
                         bool has_devices) {
  const auto add = [&](const std::string& identity) {
    return Recorder::recording_of(control.recorder(), identity, group.names, group.ranks);
  };
  Recordings recordings{.host = add(group.identity)};
  if (has_devices) recordings.device = add(group.identity + "|device");
  return recordings;
}

}  // namespace rankmesh::detail
