// SPDX-License-Identifier: BSD-3-Clause
#include "detail/job_facts.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>

#include "base/detail/process_identity.hpp"
#include "base/detail/random_bits.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::detail {
namespace {

// What each rank tells rank 0 about itself.
struct Introduction {
  Hash128 node;
  Agreement::Summary devices;
  std::uint64_t has_sent = 0;  // messages on the communicator of the program
  cpu_set_t cores;             // on which this rank may run: one, or all of the node, or a few
};

// What rank 0 tells all: a heading, and the node of each rank with its number of cores.
struct Heading {
  std::uint64_t key_of_mesh = 0;
  std::int32_t agree_on_devices = 0;
  std::int32_t any_has_sent = 0;
};
struct NodeOfRank {
  std::int32_t number = 0;
  std::int32_t cores = 0;
};

Introduction own_facts() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const auto boot = own_boot();
  std::string node{host.data()};
  node.append(reinterpret_cast<const char*>(boot.data()), sizeof boot);
  Introduction facts{.node = hash_bytes(node), .devices = {}, .has_sent = 0, .cores = {}};
  CPU_ZERO(&facts.cores);
  if (::sched_getaffinity(0, sizeof facts.cores, &facts.cores) != 0)
    for (long i = 0; i < ::sysconf(_SC_NPROCESSORS_ONLN); ++i) CPU_SET(i, &facts.cores);
  return facts;
}

// The number of cores of a node is that of the cores on which at least one of its ranks may run.
std::vector<NodeOfRank> nodes_of(const std::vector<Introduction>& facts) {
  struct Node {
    std::int32_t number = 0;
    cpu_set_t cores;
  };
  std::map<Hash128, Node> nodes;
  std::vector<const Node*> node_of;
  for (const Introduction& one : facts) {
    const auto number = static_cast<std::int32_t>(nodes.size());
    Node& node = nodes.try_emplace(one.node, Node{number, one.cores}).first->second;
    CPU_OR(&node.cores, &node.cores, &one.cores);
    node_of.push_back(&node);
  }
  std::vector<NodeOfRank> result;
  for (const Node* node : node_of) result.push_back({node->number, CPU_COUNT(&node->cores)});
  return result;
}

Heading heading_of(const std::vector<Introduction>& facts) {
  const Agreement::Summary& first = facts.front().devices;
  const auto has_sent = [](const Introduction& one) { return one.has_sent != 0; };
  const auto agrees = [&](const Introduction& one) {
    return one.devices == first && one.devices.has_failed == 0;
  };
  return {.key_of_mesh = random_bits(),
          .agree_on_devices = std::ranges::all_of(facts, agrees) ? 1 : 0,
          .any_has_sent = std::ranges::any_of(facts, has_sent) ? 1 : 0};
}

}  // namespace

void gather_facts(ControlPlane& control, DeviceProbe& devices,
                  const std::vector<std::int64_t>& reorder, const Deadline& first_question) {
  struct Exchange {
    Introduction mine;
    std::vector<Introduction> all;  // on rank 0
    std::vector<std::byte> result;
  };
  MPI_Comm comm = control.comm().native();
  const auto size = static_cast<std::size_t>(control.comm().size());
  const WaitPoint point =
      WaitPoint::of_all(control.comm().size(), "the creation of the control communicator");
  MpiMemory<Exchange> exchange;
  MPI_Request request = MPI_REQUEST_NULL;
  const auto wait = [&] { exchange.wait(request, control.monitor, point, control.deadline()); };
  exchange->mine = own_facts();
  exchange->mine.devices = devices.agreement.summary();
  exchange->mine.has_sent = control.monitor.has_sent() ? 1 : 0;
  const bool is_first = control.comm().rank() == 0;
  if (is_first) exchange->all.resize(size);
  mpi::check(MPI_Igather(&exchange->mine, sizeof(Introduction), MPI_BYTE, exchange->all.data(),
                         sizeof(Introduction), MPI_BYTE, 0, comm, &request),
             "MPI_Igather");
  wait();
  exchange->result.resize(sizeof(Heading) + size * sizeof(NodeOfRank));
  std::byte* const body = exchange->result.data() + sizeof(Heading);
  if (is_first) {
    std::vector<Introduction> all = exchange->all;
    for (std::size_t k = 0; k < reorder.size(); ++k)
      all[k] = exchange->all[static_cast<std::size_t>(reorder[k])];
    Heading heading = heading_of(all);
    // A rank that has waited for long may have sent questions since it introduced itself.
    if (first_question.passed()) heading.any_has_sent = 1;
    std::memcpy(exchange->result.data(), &heading, sizeof heading);
    std::memcpy(body, nodes_of(all).data(), size * sizeof(NodeOfRank));
  }
  mpi::check(MPI_Ibcast(exchange->result.data(), static_cast<int>(exchange->result.size()),
                        MPI_BYTE, 0, comm, &request),
             "MPI_Ibcast");
  wait();
  Heading heading;
  std::memcpy(&heading, exchange->result.data(), sizeof heading);
  std::vector<NodeOfRank> nodes(size);
  std::memcpy(nodes.data(), body, size * sizeof(NodeOfRank));
  if (heading.any_has_sent != 0) control.monitor.receive_leftovers(point, control.deadline());
  std::vector<std::int32_t> numbers;
  std::vector<std::int32_t> cores;
  for (const NodeOfRank& node : nodes) {
    numbers.push_back(node.number);
    cores.push_back(node.cores);
  }
  control.placement = Placement{numbers, cores};
  control.key_of_mesh = heading.key_of_mesh;
  devices.is_agreed = heading.agree_on_devices != 0;
}

}  // namespace rankmesh::detail
