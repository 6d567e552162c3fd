// SPDX-License-Identifier: BSD-3-Clause
// router_cost [shared [REPEATS [record]]]: 10,000 calls of a coordinator, for callgrind.
//
// scripts/router-cost counts the instructions from the caller's line to the run() of a transport
// that does nothing. With `shared`, the transport is the one for shared memory, in a group whose
// only member it knows is this process. It waits for nobody, so the instructions are those of a
// whole call without waiting: more than those up to the store of the payload. With `record`, the
// calls are also recorded; the difference is the cost of the record.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "group/detail/connection.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/mpi/environment.hpp"
#include "record/detail/recorder.hpp"
#include "transport/detail/shm_transport.hpp"

using namespace rankmesh;

namespace {

int repeats = 10'000;

class NullTransport final : public RoutedTransport {
 public:
  explicit NullTransport(std::string_view name) : name_{name} {}
  [[nodiscard]] record::Carrier carrier() const override { return record::Carrier::mpi; }
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] bool supports(const Call&) const override { return true; }
  [[gnu::noinline]] void run(const Call&, Waiter&) override { ++served; }
  [[nodiscard]] std::unique_ptr<Pending> start(const Call&) override { return nullptr; }
  int served = 0;

 private:
  std::string_view name_;
};

std::unique_ptr<RoutedTransport> shared_memory_of_one(const detail::Recording& recording) {
  static std::vector<std::byte> memory(shm::Area::size(4096) + shm::line);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  ShmTransport::Place place;
  place.areas = {memory.data() + (shm::line - address % shm::line) % shm::line};
  place.locals = {0};
  place.slot_bytes = 4096;
  place.recording = recording;
  place.members.coordinators = {"tp"};
  return std::make_unique<ShmTransport>(std::move(place), shm::Limits{});
}

}  // namespace

// Ten calls per iteration, so that the loop itself costs little.
template <class Call>
[[gnu::always_inline]] inline void repeat(Call&& call) {
#pragma GCC unroll 10
  for (int i = 0; i < repeats; ++i) call();
}

// The names of the functions that callgrind counts.
#define MEASURED(name, parameters, call)                         \
  extern "C" [[gnu::noinline]] void measured_##name parameters { \
    repeat([&] { group.call; });                                 \
  }
using Values = std::span<double>;
using Input = std::span<const double>;
MEASURED(barrier, (GroupCoordinator & group), barrier())
MEASURED(all_reduce, (GroupCoordinator & group, Values values), all_reduce(values))
MEASURED(broadcast, (GroupCoordinator & group, Values values), broadcast(values, RankInGroup{0}))
MEASURED(send, (GroupCoordinator & group, Values values), send(values, next))
MEASURED(recv, (GroupCoordinator & group, Values values), recv(values, prev))
MEASURED(all_reduce_out_of_place, (GroupCoordinator & group, Input in, Values out),
         all_reduce(in, out))
MEASURED(all_gather, (GroupCoordinator & group, Input in, Values out), all_gather(in, out))
MEASURED(reduce_scatter, (GroupCoordinator & group, Input in, Values out), reduce_scatter(in, out))
MEASURED(all_to_all, (GroupCoordinator & group, Input in, Values out), all_to_all(in, out))
MEASURED(reduce, (GroupCoordinator & group, Input in, Values out), reduce(in, out, RankInGroup{0}))
MEASURED(gather, (GroupCoordinator & group, Input in, Values out), gather(in, out, RankInGroup{0}))
MEASURED(scatter, (GroupCoordinator & group, Input in, Values out),
         scatter(in, out, RankInGroup{0}))
MEASURED(send_recv, (GroupCoordinator & group, Input in, Values out),
         send_recv(in, out, next, prev))

int main(int argc, char** argv) {
  mpi::Environment environment{argc, argv};
  // Two transports and a rule with a size: the longest path of a call for which no transport is
  // asked whether it supports the call.
  RouteTable rules =
      RouteTable::parse("*.*:host:0-4K=mpi; *.*:host:4K-32K=shm", RouteSource::code, "here");
  rules.append(RouteTable::parse("*.*:host=mpi", RouteSource::builtin, "default"));
  const bool is_shared = argc > 1 && std::string_view{argv[1]} == "shared";
  if (argc > 2) repeats = std::atoi(argv[2]);
  detail::Recordings recordings;
  if (argc > 3)
    recordings.host = detail::Recorder::recording_of(
        std::make_shared<detail::Recorder>(detail::Recorder::Facts{}, "", false), "tp", {"tp"},
        RankSet::range(Rank{0}, 2));
  if (is_shared) rules = RouteTable::parse("*.*:host=shm", RouteSource::code, "here");
  detail::GroupDescription description;
  description.families = {0};
  description.ranks = RankSet::of(std::array{Rank{0}, Rank{1}});
  detail::HostTransports host;
  host.list.push_back(is_shared ? shared_memory_of_one(recordings.host)
                                : std::make_unique<NullTransport>("shm"));
  host.list.push_back(std::make_unique<NullTransport>("mpi"));
  const auto connection = std::make_shared<detail::Connection>(
      std::move(description), mpi::Communicator{}, mpi::CommunicatorView{MPI_COMM_SELF},
      std::move(host), nullptr, std::move(recordings));
  const auto owner = detail::GroupAccess::make(
      "tp", connection, std::make_shared<detail::MeshRuntime>(nullptr, std::move(rules), nullptr));
  GroupCoordinator& group = *owner;

  std::array<double, 2> two{};
  std::array<double, 2> others{};
  const Values one{two.data(), 1};
  const Input other{others.data(), 1};
  measured_barrier(group);
  measured_all_reduce(group, one);
  measured_all_reduce_out_of_place(group, other, one);
  measured_all_gather(group, other, two);
  measured_reduce_scatter(group, others, one);
  measured_all_to_all(group, others, two);
  measured_broadcast(group, one);
  measured_reduce(group, other, one);
  measured_gather(group, other, two);
  measured_scatter(group, others, one);
  if (is_shared) return 0;
  measured_send(group, one);
  measured_recv(group, one);
  measured_send_recv(group, other, one);
  const auto* served = dynamic_cast<const NullTransport*>(connection->host().list[1].get());
  return served->served == 13 * repeats ? 0 : 1;
}
