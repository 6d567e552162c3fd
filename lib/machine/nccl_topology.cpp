// SPDX-License-Identifier: BSD-3-Clause
// NCCL's topology (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE; NCCL src/graph/xml.cc): <system> holds
// <cpu>, these hold <pci>, and these hold <gpu> and <nic>. RCCL writes <xgmi> for <nvlink>.
#include <algorithm>

#include "detail/device_tree.hpp"
#include "detail/input.hpp"
#include "detail/xml.hpp"

namespace rankmesh::detail {
namespace {

using NcclElements = std::vector<XmlElement>;

// The elements above one, outermost first, and the element itself.
std::vector<std::size_t> nccl_path(const NcclElements& elements, std::size_t element) {
  std::vector<std::size_t> path;
  for (std::size_t e = element; e != XmlElement::no_parent; e = elements[e].parent) {
    if (path.size() > 64) break;
    path.push_back(e);
  }
  std::ranges::reverse(path);
  return path;
}

std::size_t nccl_above(const NcclElements& elements, std::size_t element, std::string_view name) {
  while (element != XmlElement::no_parent && elements[element].name != name)
    element = elements[element].parent;
  return element;
}

DeviceTree::Device nccl_device(const NcclElements& elements, std::size_t element) {
  const std::size_t pci = nccl_above(elements, element, "pci");
  const std::size_t from = pci == XmlElement::no_parent ? element : elements[pci].parent;
  return {.name = {},
          .number = 0,
          .path = nccl_path(elements, from),
          .socket = nccl_above(elements, element, "cpu")};
}

std::string_view nccl_bus(const NcclElements& elements, std::size_t element) {
  const std::size_t pci = nccl_above(elements, element, "pci");
  return pci == XmlElement::no_parent ? std::string_view{} : elements[pci].get("busid");
}

// NCCL writes the hosts of an NVLink domain into one file (MNNVL). Their CPUs tell them apart.
std::string_view nccl_host(const NcclElements& elements, std::size_t element) {
  const std::size_t cpu = nccl_above(elements, element, "cpu");
  return cpu == XmlElement::no_parent ? std::string_view{} : elements[cpu].get("host_hash");
}

// The GPUs that NVLink connects: directly, or through a switch, whose class is 0x0680.
void add_nccl_links(const NcclElements& elements, const std::vector<std::size_t>& gpu_elements,
                    DeviceTree& tree) {
  std::size_t first_on_switch = SIZE_MAX;
  for (std::size_t e = 0; e < elements.size(); ++e) {
    if (elements[e].name != "nvlink" && elements[e].name != "xgmi") continue;
    const auto own = std::ranges::find(gpu_elements, nccl_above(elements, e, "gpu"));
    if (own == gpu_elements.end()) continue;
    const auto gpu = static_cast<std::size_t>(own - gpu_elements.begin());
    if (elements[e].get("tclass").starts_with("0x0680")) {
      if (first_on_switch == SIZE_MAX) first_on_switch = gpu;
      tree.links.emplace_back(first_on_switch, gpu);
      continue;
    }
    const std::string_view target = elements[e].get("target");
    for (std::size_t other = 0; other < gpu_elements.size(); ++other)
      if (!target.empty() && nccl_bus(elements, gpu_elements[other]) == target)
        tree.links.emplace_back(gpu, other);
  }
}

}  // namespace

NodeShape read_nccl(std::string_view text, std::string_view origin) {
  const NcclElements elements = read_xml(text, origin);
  if (elements.front().name != "system")
    refuse(origin, elements.front().line, "a topology of NCCL begins with <system>",
           "set NCCL_TOPO_DUMP_FILE in a run of NCCL to get one");
  DeviceTree tree;
  std::vector<std::size_t> gpu_elements;
  const bool has_gpus =
      std::ranges::any_of(elements, [](const auto& e) { return e.name == "gpu"; });
  const bool has_nets =
      std::ranges::any_of(elements, [](const auto& e) { return e.name == "net"; });
  const auto first = std::ranges::find(elements, "cpu", &XmlElement::name);
  const std::string_view host = first == elements.end() ? "" : first->get("host_hash");
  for (std::size_t e = 0; e < elements.size(); ++e) {
    const XmlElement& element = elements[e];
    if (!host.empty() && nccl_host(elements, e) != host) continue;  // one node is described
    if (element.name == "cpu") tree.sockets.push_back(e);
    // Files that a user writes for NCCL_TOPO_FILE may have the PCI devices alone.
    const bool is_pci = element.name == "pci";
    const std::string_view pci_class = is_pci ? element.get("class") : "";
    if (element.name == "gpu" || (!has_gpus && pci_class.starts_with("0x03"))) {
      DeviceTree::Device gpu = nccl_device(elements, e);
      gpu.number = static_cast<std::int32_t>(
          element.name == "gpu" && !element.get("dev").empty()
              ? number_in(element.get("dev"), "the number of a GPU", 0, 1023, origin, element.line)
              : static_cast<std::int64_t>(tree.gpus.size() % 1024));
      tree.gpus.push_back(std::move(gpu));
      gpu_elements.push_back(e);
      if (tree.gpus.size() > 1024) break;
    }
    if (element.name == "net" || (!has_nets && pci_class.starts_with("0x02"))) {
      DeviceTree::Device nic = nccl_device(elements, e);
      nic.name = is_pci ? element.get("busid") : element.get("name");
      tree.nics.push_back(std::move(nic));
      if (tree.nics.size() > 2048) break;
    }
  }
  if (tree.gpus.empty())
    refuse(origin, 0, "the topology has no GPU", "take the topology of a node that has GPUs");
  if (tree.gpus.size() <= 256) add_nccl_links(elements, gpu_elements, tree);
  return shape_of(std::move(tree), origin);
}

}  // namespace rankmesh::detail
