// SPDX-License-Identifier: BSD-3-Clause
// The XML of hwloc (lstopo --of xml): GPUs and network interfaces below packages and bridges, and
// the distances that hwloc calls NVLinkBandwidth.
#include <algorithm>
#include <optional>

#include "detail/device_tree.hpp"
#include "detail/input.hpp"
#include "detail/xml.hpp"
#include "rankmesh/base/detail/parse.hpp"

namespace rankmesh::detail {
namespace {

using HwlocElements = std::vector<XmlElement>;

bool is_object(const XmlElement& element, std::string_view type) {
  return element.name == "object" && element.get("type") == type;
}

// The number at the end of a name such as `cuda3`, if the name begins with `front`.
std::optional<std::int32_t> number_behind(std::string_view name, std::string_view front) {
  if (!name.starts_with(front)) return std::nullopt;
  return parse_number<std::uint16_t>(name.substr(front.size()));
}

DeviceTree::Device hwloc_device(const HwlocElements& elements, std::size_t element) {
  DeviceTree::Device device;
  for (std::size_t e = element; e != XmlElement::no_parent; e = elements[e].parent) {
    if (e != element && !is_object(elements[e], "PCIDev")) device.path.push_back(e);
    if (is_object(elements[e], "Package")) device.socket = e;
    if (device.path.size() > 64) break;
  }
  std::ranges::reverse(device.path);
  return device;
}

// The pairs of GPUs between which the matrix NVLinkBandwidth is not 0. A GPU has several OS devices
// (cuda0, nvml0), which share their PCI device.
void add_hwloc_links(const HwlocElements& elements, std::size_t distances,
                     const std::vector<std::size_t>& gpu_pci, DeviceTree& tree,
                     std::string_view origin) {
  std::vector<std::size_t> gpus;  // of each row; SIZE_MAX if it is no GPU
  std::vector<std::int64_t> values;
  for (std::size_t e = distances + 1; e < elements.size(); ++e) {
    if (elements[e].parent != distances) continue;
    for (const std::string_view word : words_of(elements[e].text)) {
      if (elements[e].name == "u64values") {
        values.push_back(number_in(word, "a distance", 0, INT64_MAX, origin, elements[e].line));
        continue;
      }
      if (elements[e].name != "indexes") continue;
      const std::string_view index = word.substr(word.find(':') + 1);
      std::size_t gpu = SIZE_MAX;
      for (std::size_t o = 0; o < elements.size(); ++o)
        if (elements[o].name == "object" && elements[o].get("gp_index") == index)
          for (std::size_t g = 0; g < gpu_pci.size(); ++g)
            if (gpu_pci[g] == o || gpu_pci[g] == elements[o].parent) gpu = g;
      gpus.push_back(gpu);
      if (gpus.size() > 256)
        refuse(origin, elements[e].line, "a matrix has more than 256 rows", "describe one node");
    }
  }
  if (values.size() != gpus.size() * gpus.size()) return;
  for (std::size_t a = 0; a < gpus.size(); ++a)
    for (std::size_t b = 0; b < gpus.size(); ++b)
      if (a != b && gpus[a] != SIZE_MAX && gpus[b] != SIZE_MAX && values[a * gpus.size() + b] > 0)
        tree.links.emplace_back(gpus[a], gpus[b]);
}

}  // namespace

NodeShape read_hwloc(std::string_view text, std::string_view origin) {
  const HwlocElements elements = read_xml(text, origin);
  if (elements.front().name != "topology")
    refuse(origin, elements.front().line, "a topology of hwloc begins with <topology>",
           "write one with `lstopo --of xml`");
  DeviceTree tree;
  std::vector<std::size_t> gpu_pci;
  for (std::size_t e = 0; e < elements.size(); ++e) {
    const XmlElement& element = elements[e];
    if (is_object(element, "Package")) tree.sockets.push_back(e);
    if (!is_object(element, "OSDev")) continue;
    const std::string_view name = element.get("name");
    auto number = number_behind(name, "cuda");
    if (!number) number = number_behind(name, "nvml");
    if (!number) number = number_behind(name, "rsmi");
    if (number && std::ranges::find(gpu_pci, element.parent) == gpu_pci.end()) {
      tree.gpus.push_back(hwloc_device(elements, e));
      tree.gpus.back().number = *number;
      gpu_pci.push_back(element.parent);
    }
    if (element.get("subtype") == "OpenFabrics" || element.get("osdev_type") == "3" ||
        name.starts_with("mlx5_")) {
      tree.nics.push_back(hwloc_device(elements, e));
      tree.nics.back().name = name;
    }
    if (tree.gpus.size() > 256 || tree.nics.size() > 1024) break;
  }
  if (tree.sockets.empty())
    refuse(origin, 0, "the topology has no package", "write it with `lstopo --of xml`");
  if (tree.gpus.size() <= 256)
    for (std::size_t e = 0; e < elements.size(); ++e)
      if (elements[e].get("name") == "NVLinkBandwidth") {
        add_hwloc_links(elements, e, gpu_pci, tree, origin);
        break;  // hwloc writes one matrix
      }
  return shape_of(std::move(tree), origin);
}

}  // namespace rankmesh::detail
