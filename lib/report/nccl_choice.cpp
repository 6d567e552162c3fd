// SPDX-License-Identifier: BSD-3-Clause
#include "report/nccl_choice.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rankmesh::report {
namespace {

// Returns the text behind `marker`; nothing if the line does not contain it.
std::optional<std::string_view> behind(std::string_view line, std::string_view marker) {
  const auto at = line.find(marker);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + marker.size());
}

// Cuts the text before the first of these characters.
std::string_view until(std::string_view text, std::string_view ends) {
  return text.substr(0, text.find_first_of(ends));
}

// "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB ..." names devices, "[0]eth0:10.0.0.1<0>"
// interfaces.
std::vector<std::string> devices_of(std::string_view text, bool are_interfaces) {
  std::vector<std::string> result;
  text = until(text, ";");
  for (auto at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1)) {
    const std::string_view entry = text.substr(at + 1);
    const auto name = behind(entry, "]");
    if (!name || entry.empty() || std::isdigit(static_cast<unsigned char>(entry.front())) == 0)
      continue;
    result.emplace_back(until(*name, are_interfaces ? ": " : " "));
  }
  return result;
}

// "NET/IB/0/GDRDMA/Shared" is "NET/IB/GDRDMA", "SHM/direct/direct" is "SHM".
std::string connection_of(std::string_view via) {
  via = until(via, " ");
  if (via.starts_with("SHM")) return "SHM";
  const auto slash = via.find('/');
  if (slash == std::string_view::npos) return std::string{via};
  const auto second = via.find('/', slash + 1);
  const bool is_direct = via.find("GDRDMA") != std::string_view::npos;
  return std::string{via.substr(0, second)} + (is_direct ? "/GDRDMA" : "");
}

// "MNNVL 1 cliqueId ..." and "... localRank 0 MNNVL 1"; other lines have a word behind MNNVL.
std::optional<bool> mnnvl_of(std::string_view line) {
  const auto value = behind(line, "MNNVL ");
  if (!value || value->empty() || (value->front() != '0' && value->front() != '1'))
    return std::nullopt;
  return value->front() == '1';
}

void read_line(std::string_view line, NcclChoice& choice,
               std::vector<std::pair<std::string, std::vector<std::string>>>& networks) {
  if (const auto name = behind(line, "Using network ")) choice.network = until(*name, " ");
  for (const std::string_view marker : {"Bootstrap: Using ", "Bootstrap : Using "})
    if (const auto name = behind(line, marker)) choice.bootstrap = until(*name, ": ");
  if (const auto net = behind(line, "NET/"); net && net->find(" : Using ") != net->npos)
    networks.emplace_back(until(*net, " "),
                          devices_of(*behind(*net, " : Using "), net->starts_with("Socket")));
  if (line.find("Channel ") != line.npos || line.find("CollNet ") != line.npos)
    if (const auto via = behind(line, " via ")) choice.connections.insert(connection_of(*via));
  if (const auto is = behind(line, "NVLS multicast support is "))
    choice.has_nvls = is->starts_with("available");
  if (const auto has = mnnvl_of(line)) choice.has_mnnvl = choice.has_mnnvl.value_or(false) || *has;
}

// Interfaces that other nodes cannot reach. NCCL uses them only if it finds no other interface, or
// if the variable names them.
bool is_local_interface(std::string_view name) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"lo", "docker", "virbr", "veth", "br-"},
      [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

NcclChoice read_nccl_log(std::string_view log) {
  NcclChoice choice;
  std::vector<std::pair<std::string, std::vector<std::string>>> networks;
  while (!log.empty()) {
    const std::string_view line = until(log, "\n");
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    if (const auto text = behind(line, "NCCL INFO ")) read_line(*text, choice, networks);
  }
  for (const auto& [name, devices] : networks)
    if (name == choice.network) choice.over = devices;
  return choice;
}

std::string to_string(const NcclChoice& choice) {
  std::string text = fmt::format("network {}", choice.network.empty() ? "unknown" : choice.network);
  if (!choice.over.empty()) text += fmt::format(" over {}", fmt::join(choice.over, ", "));
  if (!choice.bootstrap.empty()) text += fmt::format(", bootstrap over {}", choice.bootstrap);
  if (!choice.connections.empty())
    text += fmt::format("; connections {}", fmt::join(choice.connections, ", "));
  if (choice.has_nvls) text += *choice.has_nvls ? "; NVLink SHARP" : "; no NVLink SHARP";
  if (choice.has_mnnvl && *choice.has_mnnvl) text += "; NVLink between nodes";
  return text;
}

std::vector<std::string> nccl_advice(const std::vector<NcclChoice>& choices, std::int64_t nodes) {
  const auto any = [&](auto&& has) { return std::ranges::any_of(choices, has); };
  const auto connects = [](const NcclChoice& choice, std::string_view kind) {
    return std::ranges::any_of(choice.connections,
                               [&](const std::string& c) { return c.starts_with(kind); });
  };
  std::vector<std::string> advice;
  if (nodes > 1 && any([](const NcclChoice& c) { return c.network == "Socket"; }))
    advice.emplace_back(
        "NCCL sends over TCP between nodes: if the nodes have RDMA devices, check ibv_devices, the "
        "plugin of the network (NCCL_NET_PLUGIN), NCCL_NET, NCCL_IB_DISABLE and NCCL_IB_HCA");
  if (nodes > 1 && any([](const NcclChoice& c) { return is_local_interface(c.bootstrap); }))
    advice.emplace_back(
        "NCCL's first connections use an interface that other nodes cannot reach: set "
        "NCCL_SOCKET_IFNAME to the interface that connects the nodes");
  if (any([&](const NcclChoice& c) {
        return connects(c, "NET/") && c.network != "Socket" &&
               std::ranges::none_of(c.connections, [](const std::string& kind) {
                 return kind.starts_with("NET/") && kind.ends_with("/GDRDMA");
               });
      }))
    advice.emplace_back(
        "RDMA goes through host memory, because NCCL does not use GPUDirect RDMA: load "
        "nvidia_peermem or use the open kernel modules (DMA-BUF), and check NCCL_NET_GDR_LEVEL, "
        "NCCL_DMABUF_ENABLE and the distance of device and network card (nvidia-smi topo -m)");
  if (any([&](const NcclChoice& c) { return connects(c, "SHM") && !connects(c, "P2P"); }))
    advice.emplace_back(
        "ranks of a node exchange data through shared memory of the host: check with nvidia-smi "
        "topo -p2p r whether the devices can address each other, and NCCL_P2P_DISABLE, "
        "NCCL_P2P_LEVEL, and the access control services (ACS) of the PCI switches");
  return advice;
}

}  // namespace rankmesh::report
