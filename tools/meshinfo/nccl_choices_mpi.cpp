// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "nccl_log.hpp"
#include "rankmesh/rankmesh.hpp"
#include "report/document.hpp"
#include "report/nccl_choice.hpp"

namespace rankmesh::report {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NcclChoice, network, over, bootstrap, connections, has_nvls,
                                   has_mnnvl)
}  // namespace rankmesh::report

namespace rankmesh::meshinfo {

using report::NcclChoice;

void gather_nccl_choices(OpenMesh& open, const NcclLog& log) {
  if (open.mesh == nullptr || !open.mesh->device()) return;
  const nlohmann::json own = report::read_nccl_log(log.text());
  std::vector<NcclChoice> choices;
  for (const std::string& text :
       gather_texts(own.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)))
    choices.push_back(nlohmann::json::parse(text).get<NcclChoice>());
  const bool is_known =
      std::ranges::any_of(choices, [](const NcclChoice& choice) { return choice != NcclChoice{}; });
  if (is_known) open.facts->nccl = std::move(choices);
}

}  // namespace rankmesh::meshinfo
