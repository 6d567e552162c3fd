// SPDX-License-Identifier: BSD-3-Clause
#include "machine/read_machine.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/input.hpp"
#include "detail/parts.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

using detail::Hosts;
using detail::Network;
using detail::Nodes;
using detail::NodeShape;

constexpr std::int64_t most_slots = std::int64_t{1} << 40;

bool contains(std::string_view text, std::string_view mark) { return text.find(mark) != text.npos; }

// Derives the format from the content. Host files have no mark of their own.
MachineFormat format_of(std::string_view text) {
  using enum MachineFormat;
  const std::vector<detail::Line> lines = detail::lines_of(text.substr(0, 1 << 16));
  if (contains(text, "<topology")) return hwloc;
  if (contains(text, "<system")) return nccl;
  for (const detail::Line& line : lines) {
    if (contains(line.text, "\"instances\"") || line.text.starts_with("instances:"))
      return topograph;
    const std::string_view key = line.text.substr(0, line.text.find('='));
    if (detail::equals_ignoring_case(key, "SwitchName") ||
        detail::equals_ignoring_case(key, "BlockName") ||
        detail::equals_ignoring_case(key, "BlockSizes"))
      return slurm_conf;
    if (contains(key, "SLURM_")) return slurm_job;
    if (line.text.starts_with("- topology:")) return slurm_yaml;
    if (contains(line.text, "GPU0") &&
        (contains(line.text, "GPU1") || contains(line.text, "Affinity")))
      return nvidia_smi;
  }
  return hostfile;
}

template <class Part>
using ReadFunction = Part (*)(std::string_view text, std::string_view origin);

// A format with the function that reads it; the other two functions are missing.
struct FormatReader {
  std::string_view name;
  ReadFunction<Hosts> hosts;
  ReadFunction<Network> network;
  ReadFunction<NodeShape> shape;
};

// In the order of MachineFormat, without `automatic`.
constexpr std::array<FormatReader, 8> formats{{
    {"hostfile", detail::read_hostfile, nullptr, nullptr},
    {"slurm-job", detail::read_slurm_job, nullptr, nullptr},
    {"slurm-conf", nullptr, detail::read_slurm_conf, nullptr},
    {"slurm-yaml", nullptr, detail::read_slurm_yaml, nullptr},
    {"topograph", nullptr, detail::read_topograph, nullptr},
    {"nvidia-smi", nullptr, nullptr, detail::read_nvidia_smi},
    {"hwloc", nullptr, nullptr, detail::read_hwloc},
    {"nccl", nullptr, nullptr, detail::read_nccl},
}};

template <class Part>
void store(std::optional<Part>& to, Part part, std::string_view what, std::string_view origin) {
  if (to)
    throw SpecError{fmt::format("{}: this is a second description of {}", origin, what),
                    "describe the hosts, the network and the inside of a node once each"};
  to = std::move(part);
}

}  // namespace

std::optional<MachineFormat> machine_format(std::string_view name) {
  const auto* found = std::ranges::find(formats, name, &FormatReader::name);
  if (found == formats.end()) return std::nullopt;
  return static_cast<MachineFormat>(found - formats.begin() + 1);
}

std::vector<std::string> machine_format_names() {
  std::vector<std::string> names;
  for (const FormatReader& format : formats) names.emplace_back(format.name);
  return names;
}

void MachineReader::read(std::string_view text, std::string_view origin, MachineFormat format) {
  if (text.size() > detail::most_machine_characters)
    throw SpecError{fmt::format("{}: the text has more than {} characters", origin,
                                detail::most_machine_characters),
                    "check that this is the intended file"};
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (format == MachineFormat::automatic) format = format_of(text);
  const FormatReader& description = formats.at(static_cast<std::size_t>(format) - 1);
  if (description.hosts != nullptr)
    store(hosts_, description.hosts(text, origin), "the hosts", origin);
  if (description.network != nullptr) {
    store(network_, description.network(text, origin), "the network", origin);
    network_origin_ = origin;
  }
  if (description.shape != nullptr)
    store(shape_, description.shape(text, origin), "the inside of a node", origin);
}

void MachineReader::read_this_node() {
  read(detail::this_node_xml(), "this node", MachineFormat::hwloc);
}

void MachineReader::set_job(std::span<const std::int32_t> node_of_rank,
                            std::vector<std::string> hosts) {
  if (hosts_)
    throw SpecError{"the hosts are described twice: by a file, and by the running job",
                    "leave out the list of hosts, or add --offline"};
  Nodes nodes;
  nodes.names = std::move(hosts);
  for (const std::int32_t node : node_of_rank) nodes.add(node);
  job_ = std::move(nodes);
}

Nodes MachineReader::nodes(const MachineNumbers& numbers) const {
  if (job_) return *job_;
  std::int64_t usual = shape_ ? std::ssize(shape_->gpus) : 0;
  if (numbers.ranks_per_node) usual = *numbers.ranks_per_node;
  usual = std::max<std::int64_t>(usual, 1);
  Nodes nodes;
  const auto add = [&](const std::string& name, std::int64_t slots) {
    if (std::ssize(nodes.node_of_slot) + slots > detail::most_listed_slots)
      throw SpecError{fmt::format("the machine has more than {} slots", detail::most_listed_slots),
                      "use fewer nodes, or numbers alone: --ranks-per-node, --nodes-per-leaf"};
    const auto node = static_cast<std::int32_t>(nodes.names.size());
    nodes.names.push_back(name);
    for (std::int64_t s = 0; s < slots; ++s) nodes.add(node);
  };
  if (hosts_)
    for (const Hosts::Host& host : hosts_->hosts)
      add(host.name, host.slots > 0 ? host.slots : usual);
  else
    for (const Network::Host& host : network_->hosts) add(host.name, usual);
  return nodes;
}

std::vector<SlotDevice> MachineReader::devices() const {
  std::vector<SlotDevice> result;
  if (shape_)
    for (const NodeShape::Gpu& gpu : shape_->gpus) result.push_back({gpu.device, gpu.nic});
  return result;
}

// The NVLink domains and the sockets inside the nodes, if there are several.
void MachineReader::add_inner_levels(const Nodes& nodes, std::vector<MachineLevel>& levels) const {
  if (!shape_) return;
  const auto gpus = std::ssize(shape_->gpus);
  const auto add = [&](std::string name, LevelKind kind, std::int32_t count, auto&& part_of) {
    MachineLevel level{.name = std::move(name), .kind = kind};
    for (std::size_t s = 0; s < nodes.node_of_slot.size(); ++s) {
      const std::int32_t node = nodes.node_of_slot[s];
      level.units.push_back(node * count + part_of(nodes.local_slots[s],
                                                   nodes.sizes[static_cast<std::size_t>(node)]));
    }
    levels.push_back(std::move(level));
  };
  const auto gpu = [&](std::int64_t slot) -> const NodeShape::Gpu& {
    return shape_->gpus[static_cast<std::size_t>(slot % gpus)];
  };
  if (gpus == 0) {  // sockets share the slots of a node evenly
    if (shape_->sockets > 1)
      add("socket", LevelKind::socket, shape_->sockets, [&](std::int64_t slot, std::int64_t slots) {
        return static_cast<std::int32_t>(slot * shape_->sockets / slots);
      });
    return;
  }
  std::int32_t domains = 0;
  for (const NodeShape::Gpu& g : shape_->gpus) domains = std::max(domains, g.domain + 1);
  const bool has_sockets = shape_->has_sockets && shape_->sockets > 1;
  // A socket may have several domains, or a domain several sockets. If both occur at once, there is
  // no tree.
  std::vector<std::int32_t> socket_of(static_cast<std::size_t>(domains), -1);
  bool domains_in_sockets = has_sockets;
  for (const NodeShape::Gpu& g : shape_->gpus) {
    std::int32_t& known = socket_of[static_cast<std::size_t>(g.domain)];
    if (known >= 0 && known != g.socket) domains_in_sockets = false;
    known = g.socket;
  }
  const auto add_sockets = [&] {
    add("socket", LevelKind::socket, shape_->sockets,
        [&](std::int64_t slot, std::int64_t) { return gpu(slot).socket; });
  };
  if (domains_in_sockets) add_sockets();
  if (domains > 1 && domains < gpus)
    add("nvlink", LevelKind::domain, domains,
        [&](std::int64_t slot, std::int64_t) { return gpu(slot).domain; });
  if (has_sockets && domains == 1) add_sockets();
}

namespace {

// Groups of slots of one size, in one level.
MachineLevel even(std::string name, LevelKind kind, std::int64_t size) {
  return {.name = std::move(name), .kind = kind, .size = size};
}

// Returns how many slots the largest unit of a level has.
std::int64_t largest_unit(const MachineLevel& level) {
  if (level.size > 0) return level.size;
  std::map<std::int32_t, std::int64_t> sizes;
  for (const std::int32_t unit : level.units) ++sizes[unit];
  std::int64_t largest = 0;
  for (const auto& [unit, size] : sizes) largest = std::max(largest, size);
  return largest;
}

// Adds NVLink domains of several nodes, above the levels of the network whose units are smaller.
void add_domains(std::int64_t size, std::vector<MachineLevel>& levels) {
  const auto is_below = [&](const MachineLevel& level) {
    return level.kind != LevelKind::network || largest_unit(level) < size;
  };
  levels.insert(std::ranges::find_if(levels, is_below), even("nvlink", LevelKind::domain, size));
}

// Whether the units of `size` slots lie inside the nodes, or the nodes inside the units.
void require_nesting(std::int64_t domain, std::int64_t node) {
  if (domain % node != 0 && node % domain != 0)
    throw SpecError{
        fmt::format("an NVLink domain of {} ranks does not fit nodes of {} ranks", domain, node),
        "one of the two numbers must be a multiple of the other"};
}

}  // namespace

Machine MachineReader::by_nodes(const Nodes& nodes, const MachineNumbers& numbers) const {
  std::vector<MachineLevel> levels;
  // Each slot is in the unit of its node.
  const auto spread = [&](const std::vector<std::int32_t>& unit_of_node) {
    std::vector<std::int32_t> units;
    for (const std::int32_t node : nodes.node_of_slot)
      units.push_back(unit_of_node[static_cast<std::size_t>(node)]);
    return units;
  };
  if (network_) {
    for (MachineLevel& level : levels_of(*network_, nodes.names, network_origin_)) {
      level.units = spread(level.units);
      levels.push_back(std::move(level));
    }
  } else if (numbers.nodes_per_leaf) {
    std::vector<std::int32_t> leaf_of_node;
    for (std::size_t n = 0; n < nodes.sizes.size(); ++n)
      leaf_of_node.push_back(
          static_cast<std::int32_t>(static_cast<std::int64_t>(n) / *numbers.nodes_per_leaf));
    levels.push_back({.name = "leaf", .kind = LevelKind::network, .units = spread(leaf_of_node)});
  }
  levels.push_back(
      {.name = "node", .kind = LevelKind::node, .units = nodes.node_of_slot, .names = nodes.names});
  add_inner_levels(nodes, levels);
  if (numbers.ranks_per_domain) {
    const std::int64_t domain = *numbers.ranks_per_domain;
    for (const std::int64_t size : nodes.sizes) require_nesting(domain, size);
    const auto at = std::ranges::find(levels, LevelKind::node, &MachineLevel::kind);
    const bool is_inside =
        std::ranges::any_of(nodes.sizes, [&](std::int64_t size) { return domain < size; });
    const std::int64_t domains = (std::ssize(nodes.node_of_slot) + domain - 1) / domain;
    if (is_inside)
      levels.insert(at + 1, even("nvlink", LevelKind::domain, domain));
    else if (domains < std::ssize(nodes.sizes))
      add_domains(domain, levels);
  }
  Machine machine{std::ssize(nodes.node_of_slot), std::move(levels), devices()};
  return numbers.world_size ? machine.first_slots(*numbers.world_size) : machine;
}

Machine MachineReader::by_numbers(const MachineNumbers& numbers) const {
  std::int64_t per_node = shape_ ? std::ssize(shape_->gpus) : 0;
  if (numbers.ranks_per_node) per_node = *numbers.ranks_per_node;
  if (per_node == 0)
    throw SpecError{"the machine is not described",
                    "give --machine FILE, or --ranks-per-node N with --nodes-per-leaf N"};
  const std::int64_t slots = numbers.world_size.value_or(per_node);
  if (shape_ && slots <= detail::most_listed_slots) {
    Nodes nodes;  // whole ones: by_nodes() leaves out the slots that are too many
    const std::int64_t all = (slots + per_node - 1) / per_node * per_node;
    for (std::int64_t s = 0; s < all; ++s) nodes.add(static_cast<std::int32_t>(s / per_node));
    return by_nodes(nodes, numbers);
  }
  std::vector<MachineLevel> levels;
  if (numbers.nodes_per_leaf)
    levels.push_back(even("leaf", LevelKind::network, per_node * *numbers.nodes_per_leaf));
  levels.push_back(even("node", LevelKind::node, per_node));
  if (numbers.ranks_per_domain && *numbers.ranks_per_domain != per_node) {
    require_nesting(*numbers.ranks_per_domain, per_node);
    if (*numbers.ranks_per_domain < per_node)
      levels.push_back(even("nvlink", LevelKind::domain, *numbers.ranks_per_domain));
    else
      add_domains(*numbers.ranks_per_domain, levels);
  }
  return Machine{slots, std::move(levels), devices()};
}

Machine MachineReader::machine(const MachineNumbers& numbers) const {
  const auto require_positive = [](std::string_view name, const std::optional<std::int64_t>& value,
                                   std::int64_t most) {
    if (value && (*value < 1 || *value > most))
      throw SpecError{fmt::format("{} must be a number from 1 to {}, got {}", name, most, *value),
                      "give the numbers of the machine"};
  };
  constexpr std::int64_t most = std::int64_t{1} << 20;
  require_positive("the number of ranks per node", numbers.ranks_per_node, most);
  require_positive("the number of ranks per NVLink domain", numbers.ranks_per_domain, most);
  require_positive("the number of nodes per leaf", numbers.nodes_per_leaf, most);
  require_positive("the world size", numbers.world_size, most_slots);
  if (network_ && numbers.nodes_per_leaf)
    throw SpecError{"the network between the nodes is described twice",
                    "leave out --nodes-per-leaf, or the description of the network"};
  if (!hosts_ && !network_ && !job_) return by_numbers(numbers);
  return by_nodes(nodes(numbers), numbers);
}

}  // namespace rankmesh
