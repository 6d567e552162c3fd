// SPDX-License-Identifier: BSD-3-Clause
// Rules of doctor about devices, NCCL's network variables, and the place of groups on nodes.
#include <strings.h>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/doctor.hpp"
#include "detail/parts.hpp"
#include "rankmesh/base/detail/parse.hpp"
#include "rankmesh/layout/placement.hpp"

namespace rankmesh::report::detail {
namespace {

const DeviceFacts* device_of(const RankFacts& facts) {
  const auto index = static_cast<std::size_t>(facts.device);
  return facts.device < 0 || index >= facts.devices.size() ? nullptr : &facts.devices[index];
}

bool has_device(const RankFacts& facts) { return device_of(facts) != nullptr; }

// The values of the ranks' devices, and "" for ranks without a device. Empty if all devices are
// equal.
std::vector<Variant> differing_devices(
    const Examination& job, const std::function<std::string(const DeviceFacts&)>& value) {
  auto all = variants(job, [&](const RankFacts& facts) {
    return has_device(facts) ? value(*device_of(facts)) : std::string{};
  });
  const auto real = std::ranges::count_if(all, [](const Variant& v) { return !v.value.empty(); });
  if (real < 2) all.clear();
  return all;
}

// Ranks that share memory may still see the same UUID of devices of different machines, so the
// node is part of the key.
std::vector<Found> find_shared_devices(const Examination& job) {
  std::map<std::pair<std::int32_t, std::string>, Members> users;
  for (const RankFacts& facts : job.ranks)
    if (has_device(facts)) users[{facts.node, device_of(facts)->uuid}].push_back(&facts);
  return of_each(users, [](const auto& entry) -> std::vector<Found> {
    const Members& ranks = entry.second;
    if (ranks.size() < 2) return {};
    const DeviceFacts& device = *device_of(*ranks.front());
    return of_members(
        ranks, fmt::format("{} use one device ({} {} of host {})", ranks_text(ranks_of(ranks)),
                           device.name, device.bus_id, ranks.front()->host));
  });
}

std::vector<Found> find_missing_devices(const Examination& job) {
  const auto without = members_with(job, [](const RankFacts& facts) { return !has_device(facts); });
  if (without.size() == job.ranks.size()) return {};
  return of_members(without, [](const Members& members) {
    const std::string& why = members.front()->why_no_devices;
    return fmt::format("no device on {}, although other ranks have one: {}",
                       ranks_text(ranks_of(members)), why.empty() ? "no device is visible" : why);
  });
}

std::vector<Found> find_device_kinds(const Examination& job) {
  const auto kinds = differing_devices(job, [](const DeviceFacts& device) {
    return fmt::format("{}, {}", device.name, size_text(device.memory));
  });
  return differing(kinds, "the devices differ:");
}

std::vector<Found> find_device_ecc(const Examination& job) {
  const auto modes = differing_devices(
      job, [](const DeviceFacts& device) { return std::string{device.has_ecc ? "on" : "off"}; });
  return differing(modes, "error correction (ECC) differs:");
}

std::vector<Found> find_visible_devices(const Examination& job) {
  const auto states = variants(job, [](const RankFacts& facts) {
    return std::string{facts.variables.contains("CUDA_VISIBLE_DEVICES") ? "set" : "not set"};
  });
  return differing(states, "CUDA_VISIBLE_DEVICES:");
}

std::vector<Found> find_device_driver(const Examination& job) {
  const auto hidden = members_with(
      job, [](const RankFacts& facts) { return facts.has_device_nodes && facts.devices.empty(); });
  return of_members(hidden, [](const Members& members) {
    const std::string& why = members.front()->why_no_devices;
    return fmt::format("/dev/nvidia* exists, but no device can be used: {}",
                       why.empty() ? "the reason is not known" : why);
  });
}

bool is_same_word(const std::string& a, const char* b) { return strcasecmp(a.c_str(), b) == 0; }

// Whether a list chooses one of the names. As in NCCL, items are prefixes, or whole names after
// '='; '^' at the beginning means all other names. A ':' begins a port.
bool chooses_any(std::string_view list, const std::vector<std::string>& names) {
  const bool is_exclusion = list.starts_with('^');
  if (is_exclusion) list.remove_prefix(1);
  const bool is_exact = list.starts_with('=');
  if (is_exact) list.remove_prefix(1);
  const auto is_listed = [&](const std::string& name) {
    return std::ranges::any_of(rankmesh::detail::split(list, ','), [&](std::string_view part) {
      const std::string_view word = part.substr(0, part.find(':'));
      return !part.empty() && (is_exact ? name == word : name.starts_with(word));
    });
  };
  return std::ranges::any_of(
      names, [&](const std::string& name) { return is_listed(name) != is_exclusion; });
}

// The same ranks for each text.
std::vector<Found> by_text(const std::map<std::string, RankList>& texts) {
  return of_each(texts, [](const auto& entry) -> std::vector<Found> {
    return {{entry.second, entry.first}};
  });
}

// The ranks on which the variable chooses nothing; one finding per host and value.
std::vector<Found> chooses_nothing(const Examination& job, const std::string& name,
                                   std::vector<std::string> RankFacts::*names, const char* noun) {
  std::map<std::string, RankList> wrong;
  for (const RankFacts& facts : job.ranks) {
    const auto value = variable(facts, name);
    const std::vector<std::string>& there = facts.*names;
    if (!value || chooses_any(*value, there)) continue;
    wrong[fmt::format("{}={} chooses no {} of host {}, which has {}", name, *value, noun,
                      facts.host,
                      there.empty() ? "none" : fmt::format("{}", fmt::join(there, ", ")))]
        .push_back(facts.rank);
  }
  return by_text(wrong);
}

std::vector<Found> find_nccl_interface(const Examination& job) {
  return chooses_nothing(job, "NCCL_SOCKET_IFNAME", &RankFacts::interfaces,
                         "network interface that is up");
}

std::vector<Found> find_nccl_hca(const Examination& job) {
  return chooses_nothing(job, "NCCL_IB_HCA", &RankFacts::rdma_devices, "RDMA device");
}

std::vector<Found> find_nccl_network(const Examination& job) {
  std::map<std::string, RankList> wrong;
  for (const RankFacts& facts : job.ranks) {
    const auto value = variable(facts, "NCCL_NET");
    if (!value || is_same_word(*value, "Socket") || facts.has_net_plugin) continue;
    const bool is_ib = is_same_word(*value, "IB");
    if (is_ib && !facts.rdma_devices.empty()) continue;
    wrong[is_ib ? fmt::format("NCCL_NET=IB, but host {} has no RDMA device", facts.host)
                : fmt::format("NCCL_NET={} is neither IB nor Socket, and no plugin of NCCL is "
                              "found on host {}",
                              *value, facts.host)]
        .push_back(facts.rank);
  }
  return by_text(wrong);
}

std::vector<Found> find_rdma_disabled(const Examination& job) {
  if (by_node(job).size() < 2) return {};
  const auto disabled = members_with(job, [](const RankFacts& facts) {
    const auto value = variable(facts, "NCCL_IB_DISABLE");
    const auto net = variable(facts, "NCCL_NET");
    return !facts.rdma_devices.empty() &&
           ((value && *value != "0") || (net && is_same_word(*net, "Socket")));
  });
  return of_members(disabled,
                    "NCCL_IB_DISABLE or NCCL_NET=Socket keeps NCCL from using the RDMA devices");
}

// Only the dimension that varies fastest is meant to stay inside a node.
std::vector<Found> find_spanning_groups(const Examination& job) {
  if (job.plan == nullptr || job.plan->world_size() != std::ssize(job.ranks)) return {};
  const Layout::Dimension* dimension = fastest(job.plan->views().front());
  if (dimension == nullptr) return {};
  const auto family = std::ranges::find(job.plan->families(), dimension->name, &GroupFamily::name);
  if (family == job.plan->families().end()) return {};
  std::vector<std::int32_t> nodes;
  for (const RankFacts& facts : job.ranks) nodes.push_back(facts.node);
  const Placement placement{nodes};
  std::size_t least = job.ranks.size();
  for (const auto& [node, members] : by_node(job)) least = std::min(least, members.size());
  RankList ranks;
  std::int64_t spanning = 0, size = 0;
  for (std::int64_t g = 0; g < family->group_count(); ++g) {
    const RankSet group = family->group(g);
    size = std::max(size, group.size());
    if (placement.nodes_of(group) < 2) continue;
    ++spanning;
    group.for_each([&](Rank rank) { ranks.push_back(rank.value()); });
  }
  if (spanning == 0 || size > static_cast<std::int64_t>(least)) return {};
  std::ranges::sort(ranks);
  return {{std::move(ranks),
           fmt::format("{} of {} groups of '{}' span nodes, although {} ranks fit on each node",
                       spanning, family->group_count(), family->name(), size),
           fmt::format("{}", size)}};
}

using enum Severity;

constexpr Rule rules_of_devices[] = {
    {"shared-device", error,
     "NCCL refuses two ranks on one device, and a mesh with devices does not open",
     "give each rank its own device: srun --gpus-per-task=1, mpirun with one rank per device, or "
     "CUDA_VISIBLE_DEVICES for each rank; for a test, set MeshOptions::share_devices",
     find_shared_devices},
    {"missing-devices", error,
     "the ranks cannot agree on device memory, and the mesh does not open",
     "check CUDA_VISIBLE_DEVICES and nvidia-smi on these hosts, and that the job asks for devices "
     "on all nodes (srun --gpus-per-node)",
     find_missing_devices},
    {"device-kinds", warning,
     "the fastest device waits for the slowest, and the smallest memory limits all",
     "ask the batch system for one kind of device (srun --gres=gpu:KIND:N), or give the ranks "
     "different amounts of work",
     find_device_kinds},
    {"device-ecc", warning,
     "without ECC, a flipped bit changes results without any message; with ECC, some devices have "
     "less memory",
     "nvidia-smi -e 1 on the hosts where it is off, then reset the device", find_device_ecc},
    {"visible-devices", warning,
     "a rank that sees all devices chooses by its local rank, and may choose the device of another "
     "rank",
     "set CUDA_VISIBLE_DEVICES on all ranks, or on none", find_visible_devices},
    {"device-driver", note, "the program runs without devices, or not at all",
     "run nvidia-smi on the host; in a container, start it with --gpus all, so that it gets "
     "libcuda.so.1 of the host",
     find_device_driver},
    {"nccl-interface", error,
     "NCCL finds no address for its first connections, and refuses to start",
     "unset NCCL_SOCKET_IFNAME, or set it to a prefix that exists on all nodes (ip -br link)",
     find_nccl_interface},
    {"nccl-network", error, "NCCL refuses to start if it does not find the network it must use",
     "unset NCCL_NET, or install the plugin (libnccl-net.so) and add its folder to LD_LIBRARY_PATH "
     "on all nodes",
     find_nccl_network},
    {"nccl-hca", error, "NCCL then sends over TCP, many times slower, without a message",
     "unset NCCL_IB_HCA, or set it to names that ibv_devices prints on this host", find_nccl_hca},
    {"rdma-disabled", note, "NCCL then sends over TCP between nodes",
     "unset the variable unless RDMA does not work here", find_rdma_disabled},
    {"spanning-groups", warning,
     "the fastest dimension usually communicates most, and between nodes each call is many times "
     "slower than inside a node",
     "start consecutive ranks on each node (mpirun --map-by slot, srun -m block), and a multiple "
     "of "
     "{} ranks per node",
     find_spanning_groups},
};

}  // namespace

std::span<const Rule> device_rules() { return rules_of_devices; }

}  // namespace rankmesh::report::detail
