// router_cost [OPERATION]: 10,000 calls of a coordinator whose transport does nothing, for callgrind.
//
// What is counted by scripts/router-cost: from the caller's own line to the transport's run().
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/channel.hpp"
#include "rankmesh/mpi/environment.hpp"

using namespace rankmesh;

namespace {

constexpr int repeats = 10'000;

class NullTransport final : public Transport {
 public:
  explicit NullTransport(std::string_view name) : name_{name} {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] bool supports(const Call&) const override { return true; }
  [[gnu::noinline]] void run(const Call&) override { ++served; }
  [[nodiscard]] std::unique_ptr<Pending> start(const Call&) override { return nullptr; }
  int served = 0;

 private:
  std::string_view name_;
};

}  // namespace

// The names that callgrind is told.
extern "C" {
[[gnu::noinline]] void measured_all_reduce(GroupCoordinator& group, std::span<double> values) {
#pragma GCC unroll 10  // what a loop costs is not the call's
  for (int i = 0; i < repeats; ++i) group.all_reduce(values);
}
[[gnu::noinline]] void measured_all_reduce_out_of_place(GroupCoordinator& group, std::span<const double> in,
                                                        std::span<double> out) {
#pragma GCC unroll 10  // what a loop costs is not the call's
  for (int i = 0; i < repeats; ++i) group.all_reduce(in, out);
}
[[gnu::noinline]] void measured_broadcast(GroupCoordinator& group, std::span<double> values) {
#pragma GCC unroll 10  // what a loop costs is not the call's
  for (int i = 0; i < repeats; ++i) group.broadcast(values, RankInGroup{0});
}
[[gnu::noinline]] void measured_all_gather(GroupCoordinator& group, std::span<const double> in,
                                           std::span<double> out) {
#pragma GCC unroll 10  // what a loop costs is not the call's
  for (int i = 0; i < repeats; ++i) group.all_gather(in, out);
}
[[gnu::noinline]] void measured_send_recv(GroupCoordinator& group, std::span<const double> in,
                                          std::span<double> out) {
#pragma GCC unroll 10  // what a loop costs is not the call's
  for (int i = 0; i < repeats; ++i) group.send_recv(in, next, out, prev);
}
[[gnu::noinline]] void measured_reduce(GroupCoordinator& group, std::span<const double> in,
                                       std::span<double> out) {
#pragma GCC unroll 10  // what a loop costs is not the call's
  for (int i = 0; i < repeats; ++i) group.reduce(in, out, RankInGroup{0});
}
[[gnu::noinline]] void measured_barrier(GroupCoordinator& group) {
#pragma GCC unroll 10  // what a loop costs is not the call's
  for (int i = 0; i < repeats; ++i) group.barrier();
}
}

int main(int argc, char** argv) {
  mpi::Environment environment{argc, argv};
  auto services = std::make_shared<detail::MeshServices>();
  // Two transports and a rule by size: the longest way that a call takes without asking a transport.
  services->routes = RouteTable::parse("*.*:host:0-4K=mpi; *.*:host:4K-32K=shm", RouteSource::code, "here");
  services->routes.append(RouteTable::parse("*.*:host=mpi", RouteSource::builtin, "default"));
  auto channel = std::make_shared<detail::Channel>();
  channel->comm = mpi::CommunicatorView{MPI_COMM_SELF};
  channel->ranks = RankSet::of(std::array{Rank{0}, Rank{1}});
  channel->families = {0};
  channel->transports.push_back(std::make_unique<NullTransport>("shm"));
  channel->transports.push_back(std::make_unique<NullTransport>("mpi"));
  GroupCoordinator group{"tp", channel, services};

  std::array<double, 1> in{};
  std::array<double, 2> out{};
  const std::span<double> one{out.data(), 1};
  measured_all_reduce(group, one);
  measured_all_reduce_out_of_place(group, in, one);
  measured_broadcast(group, one);
  measured_all_gather(group, in, out);
  measured_send_recv(group, in, one);
  measured_reduce(group, in, one);
  measured_barrier(group);
  const auto* served = dynamic_cast<const NullTransport*>(channel->transports[1].get());
  return served->served == 7 * repeats ? 0 : 1;
}
