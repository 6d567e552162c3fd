// SPDX-License-Identifier: BSD-3-Clause
// doctor in a job: measures the connections of the nodes, and gathers the facts of all ranks on
// rank 0.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "doctor.hpp"
#include "launcher.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/launcher.hpp"
#include "rankmesh/device/libraries.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/mpi/environment.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/rankmesh.hpp"

namespace rankmesh::meshinfo {
namespace {

using mpi::check;
using report::ClockFacts;
using report::LinkFacts;
using report::RankFacts;

constexpr int tag = 7;
constexpr int most_of_name = 256;

// The wall clock, which log files show.
double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The first ranks of all nodes, and this rank's number among them.
struct NodeLeaders {
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 0;
  int self = 0;
  std::vector<std::string> hosts;   // in the order of the nodes
  std::vector<std::int64_t> ranks;  // of the world

  [[nodiscard]] std::string name(int leader) const {
    const auto at = static_cast<std::size_t>(leader);
    return fmt::format("rank {} (host {})", ranks[at], hosts[at]);
  }
};

void exchange_names(NodeLeaders& leaders, const RankFacts& facts) {
  std::string own = facts.host.substr(0, most_of_name - 1);
  own.resize(most_of_name, '\0');
  const auto size = static_cast<std::size_t>(leaders.size);
  std::string names(size * most_of_name, '\0');
  leaders.ranks.resize(size);
  check(MPI_Allgather(own.data(), most_of_name, MPI_CHAR, names.data(), most_of_name, MPI_CHAR,
                      leaders.comm),
        "MPI_Allgather");
  check(MPI_Allgather(&facts.rank, 1, MPI_INT64_T, leaders.ranks.data(), 1, MPI_INT64_T,
                      leaders.comm),
        "MPI_Allgather");
  for (std::size_t i = 0; i < size; ++i)
    leaders.hosts.emplace_back(names.c_str() + i * most_of_name);
}

void send(const void* data, int bytes, int to, MPI_Comm comm) {
  check(MPI_Send(data, bytes, MPI_BYTE, to, tag, comm), "MPI_Send");
}

void receive(void* data, int bytes, int from, MPI_Comm comm) {
  check(MPI_Recv(data, bytes, MPI_BYTE, from, tag, comm, MPI_STATUS_IGNORE), "MPI_Recv");
}

// The offset of the other clock relative to this clock. The function assumes that the answer was
// sent in the middle of the round trip, so half of the shortest round trip is the error.
ClockFacts ask_clock(int other, MPI_Comm comm) {
  constexpr int trips = 16;
  double shortest = std::numeric_limits<double>::infinity();
  ClockFacts facts;
  for (int i = 0; i < trips; ++i) {
    const double before = seconds();
    const double sent = wall_clock();
    double answer = 0;
    send(&sent, sizeof sent, other, comm);
    receive(&answer, sizeof answer, other, comm);
    const double trip = seconds() - before;
    if (trip >= shortest) continue;
    shortest = trip;
    facts = {answer - (sent + trip / 2), trip / 2};
  }
  return facts;
}

void answer_clock(int other, MPI_Comm comm) {
  constexpr int trips = 16;
  for (int i = 0; i < trips; ++i) {
    double theirs = 0;
    receive(&theirs, sizeof theirs, other, comm);
    const double mine = wall_clock();
    send(&mine, sizeof mine, other, comm);
  }
}

// Rank 0 asks one node after the other; each node then learns its own offset.
void measure_clocks(RankFacts& facts, const NodeLeaders& leaders, StepWatch& watch) {
  if (leaders.self == 0) {
    facts.clock = ClockFacts{};
    for (int i = 1; i < leaders.size; ++i) {
      watch.begin("the measurement of the clock of " + leaders.name(i));
      const ClockFacts clock = ask_clock(i, leaders.comm);
      const double values[] = {clock.offset, clock.error};
      send(values, sizeof values, i, leaders.comm);
    }
  } else {
    watch.begin("the measurement of its clock by " + leaders.name(0));
    double values[2];
    answer_clock(0, leaders.comm);
    receive(values, sizeof values, 0, leaders.comm);
    facts.clock = ClockFacts{values[0], values[1]};
  }
}

// The time of a ping in one direction: the shortest of several pings, so that a busy moment has no
// influence.
double shortest_ping(int other, std::vector<char>& data, int trips, bool asks, MPI_Comm comm) {
  const int bytes = static_cast<int>(data.size());
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < trips; ++i) {
    const double before = seconds();
    if (asks) {
      send(data.data(), bytes, other, comm);
      receive(data.data(), bytes, other, comm);
    } else {
      receive(data.data(), bytes, other, comm);
      send(data.data(), bytes, other, comm);
    }
    shortest = std::min(shortest, (seconds() - before) / 2);
  }
  return shortest;
}

LinkFacts measure_link(int other, bool asks, MPI_Comm comm) {
  std::vector<char> few(8), many(std::size_t{4} << 20);
  const double latency = shortest_ping(other, few, 64, asks, comm);
  const double time = shortest_ping(other, many, 8, asks, comm);
  return {.to = 0, .latency = latency, .bandwidth = static_cast<double>(many.size()) / time};
}

// The nodes form a ring, in which each measures the connection to the next one. A node takes part
// in one measurement at a time: first the measurements that begin at even nodes, then those that
// begin at odd nodes. In a ring of odd length, the last measurement runs separately.
void measure_links(RankFacts& facts, const NodeLeaders& leaders, StepWatch& watch) {
  const int size = leaders.size;
  const int next = (leaders.self + 1) % size;
  const int previous = (leaders.self + size - 1) % size;
  const auto phase_of = [&](int from) { return size % 2 == 1 && from == size - 1 ? 2 : from % 2; };
  for (int phase = 0; phase < 3; ++phase) {
    watch.begin(
        fmt::format("a barrier of the first ranks of all nodes, before phase {} of 3", phase));
    check(MPI_Barrier(leaders.comm), "MPI_Barrier");
    if (phase_of(leaders.self) == phase) {
      watch.begin("the measurement of the connection to " + leaders.name(next));
      facts.link = measure_link(next, true, leaders.comm);
      facts.link->to = leaders.ranks[static_cast<std::size_t>(next)];
    } else if (phase_of(previous) == phase) {
      watch.begin("the measurement of the connection from " + leaders.name(previous));
      measure_link(previous, false, leaders.comm);
    }
  }
}

void resolve(RankFacts& facts, const NodeLeaders& leaders) {
  for (const int other : {0, (leaders.self + 1) % leaders.size}) {
    const std::string& host = leaders.hosts[static_cast<std::size_t>(other)];
    auto& unresolved = facts.unresolved_hosts;
    if (!resolves(host) && std::ranges::find(unresolved, host) == unresolved.end())
      unresolved.push_back(host);
  }
}

// Measures, on the first rank of each node, the clock of the node, and the latency and the
// bandwidth to the first rank of the next node; also resolves the name of that host. Collective
// over the job.
void measure_nodes(RankFacts& facts, StepWatch& watch) {
  watch.begin("the creation of a communicator of the first ranks of all nodes");
  NodeLeaders leaders;
  const int colour = facts.local_rank == 0 ? 0 : MPI_UNDEFINED;
  check(MPI_Comm_split(MPI_COMM_WORLD, colour, static_cast<int>(facts.rank), &leaders.comm),
        "MPI_Comm_split");
  if (leaders.comm != MPI_COMM_NULL) {
    MPI_Comm_size(leaders.comm, &leaders.size);
    MPI_Comm_rank(leaders.comm, &leaders.self);
    if (leaders.size > 1) {
      watch.begin("the exchange of host names between the nodes");
      exchange_names(leaders, facts);
      watch.begin("resolving the names of other hosts (DNS)");
      resolve(facts, leaders);
      measure_clocks(facts, leaders, watch);
      measure_links(facts, leaders, watch);
    }
    MPI_Comm_free(&leaders.comm);
  }
  // Ranks that measure nothing wait here for as long as all measurements of their node take.
  watch.begin("the barrier after the measurements; another rank may name the reason");
  check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

// Asks rankmesh, by opening a mesh. Empty if no mesh can be opened: other rules say why. Collective
// over the job.
std::string why_no_shared_memory() {
  // Doctor leaves no record behind, and this mesh may lack the groups that the rules name.
  ::setenv("RANKMESH_RECORD", "off", 1);
  ::unsetenv("RANKMESH_ROUTES");
  MeshOptions options;
  options.devices = DeviceUse::off;
  options.log = [](LogLevel, std::string_view) {};
  try {
    Mesh mesh{MPI_COMM_WORLD, "rank=auto", options};
    std::string why = mesh.why_no_shared_memory();
    mesh.close();
    return why;
  } catch (const Error&) {
    return {};
  }
}

// Needs the local rank.
void add_libraries_and_devices(RankFacts& facts) {
  for (const LibraryInfo& library : libraries())
    facts.libraries.push_back({library.name, library.version, library.path});
  const VisibleDevices visible = visible_devices();
  facts.why_no_devices = visible.why_none;
  for (const DeviceInfo& device : visible.devices)
    facts.devices.push_back(
        {device.uuid, device.name, device.bus_id, device.memory, device.has_ecc});
  if (!facts.devices.empty())
    facts.device = facts.local_rank % static_cast<int>(facts.devices.size());
}

}  // namespace

GatheredFacts Job::gather(double timeout) {
  GatheredFacts result;
  if (!is_in_job()) {
    result.ranks.push_back(local_facts());
    add_libraries_and_devices(result.ranks.front());
    return result;
  }
  RankFacts facts = local_facts();  // before MPI_Init, which may change the environment
  const auto number = rankmesh::launcher_rank();
  StepWatch watch{
      timeout, fmt::format("{} (host {})", number ? fmt::format("rank {}", *number) : "a process",
                           facts.host)};
  watch.begin("MPI_Init, which waits for the other ranks");
  start();
  result.in_job = true;
  int size = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  facts.rank = rank;
  facts.world_size = size;
  facts.mpi_library = mpi::library_text();
  watch.begin("finding the ranks of each node, a collective of all ranks");
  const Placement placement = nodes_of_job();
  facts.node = placement.node(Rank{rank});
  facts.local_rank = placement.local_rank(Rank{rank});
  add_libraries_and_devices(facts);
  watch.begin("opening a mesh");
  facts.why_no_shared_memory = why_no_shared_memory();
  measure_nodes(facts, watch);
  watch.begin("gathering the facts on rank 0");
  for (const std::string& text : gather_texts(report::to_json(facts)))
    result.ranks.push_back(report::rank_facts_from_json(text));
  return result;
}

}  // namespace rankmesh::meshinfo
