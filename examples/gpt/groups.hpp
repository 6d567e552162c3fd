// SPDX-License-Identifier: BSD-3-Clause
// The groups of a rank: one per dimension of the mesh, and those that hold the same parameters.
#pragma once

#include <string>

// The tests put another library in the place of rankmesh.
#ifdef GPT_LIBRARY
#include GPT_LIBRARY
#else
#include "library.hpp"
#endif

/// Returns the layout with the dimensions that it leaves out, which have the size 1, and with the
/// products of dimensions over which parameters are replicated.
inline std::string complete(const std::string& layout) {
  const std::string dimensions = layout.substr(0, layout.find(';'));
  std::string whole = layout;
  for (const std::string name : {"pp", "dp", "cp", "ep", "tp"})
    if (("," + dimensions).find("," + name + "=") == std::string::npos)
      whole = name + "=1" + (whole.empty() ? "" : ",") + whole;
  return whole + (layout.find(';') == std::string::npos ? ";" : ",") +
         "data=dp*cp*ep,data_tp=dp*cp*ep*tp,expert_data=dp*cp*tp,embd=ends(pp)";
}

/// Returns the layout with the number in the place of `auto` that the mesh has found.
inline std::string with_sizes(std::string layout, Mesh& mesh) {
  const std::size_t at = layout.find("=auto");
  if (at == std::string::npos) return layout;
  const std::size_t begin = layout.find_last_of(", ;", at) + 1;  // 0 if there is none
  const std::string name = layout.substr(begin, at - begin);
  return layout.replace(at + 1, 4, std::to_string(mesh[name].size()));
}

/// The groups of this rank.
struct Groups {
  explicit Groups(Mesh& opened)
      : mesh{opened},
        pp{mesh["pp"]},
        dp{mesh["dp"]},
        cp{mesh["cp"]},
        ep{mesh["ep"]},
        tp{mesh["tp"]},
        data{mesh["data"]},
        data_tp{mesh["data_tp"]},
        expert_data{mesh["expert_data"]},
        world{mesh["world"]},
        embd{pp.is_first() || pp.is_last() ? &mesh["embd"] : nullptr} {}

  Mesh& mesh;
  // The dimensions.
  Group& pp;  ///< Divides the layers.
  Group& dp;  ///< Divides the sequences of the batch.
  Group& cp;  ///< Divides the tokens of each sequence.
  Group& ep;  ///< Divides the experts, and like dp the sequences.
  Group& tp;  ///< Divides the heads, the columns of the MLP, and the vocabulary.
  // The ranks that hold the same parameters, and compute different tokens.
  Group& data;         ///< of parameters that tp divides
  Group& data_tp;      ///< of parameters that all members of tp have, too
  Group& expert_data;  ///< of the experts
  Group& world;
  Group* embd;  ///< The first and the last stage, which share the embedding; null between them.
};
