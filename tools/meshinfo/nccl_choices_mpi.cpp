// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include "nccl_log.hpp"
#include "rankmesh/rankmesh.hpp"
#include "report/nccl_choice.hpp"

namespace rankmesh::meshinfo {
namespace {

using report::NcclChoice;

// Keeps the lines of a log from which the choice is read, each kind of connection once.
std::string lines_of(const NcclChoice& choice) {
  std::string text;
  const auto add = [&](const std::string& line) { text += "NCCL INFO " + line + "\n"; };
  if (!choice.network.empty()) add("Using network " + choice.network);
  if (!choice.bootstrap.empty()) add("Bootstrap: Using " + choice.bootstrap + ":");
  for (const std::string& kind : choice.connections) add("Channel via " + kind);
  if (choice.has_nvls)
    add(std::string{"NVLS multicast support is "} + (*choice.has_nvls ? "" : "not ") + "available");
  if (choice.has_mnnvl) add(*choice.has_mnnvl ? "MNNVL 1" : "MNNVL 0");
  std::string devices;
  for (const std::string& device : choice.over) devices += " [0]" + device;
  if (!devices.empty()) add("NET/" + choice.network + " : Using" + devices);
  return text;
}

}  // namespace

void gather_nccl_choices(OpenMesh& open, const NcclLog& log) {
  if (open.mesh == nullptr || !open.mesh->device()) return;
  std::vector<NcclChoice> choices;
  bool is_known = false;
  for (const std::string& text : gather_texts(lines_of(report::read_nccl_log(log.text())))) {
    choices.push_back(report::read_nccl_log(text));
    is_known = is_known || !(choices.back() == NcclChoice{});
  }
  if (is_known) open.facts->nccl = std::move(choices);
}

}  // namespace rankmesh::meshinfo
