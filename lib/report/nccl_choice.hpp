// SPDX-License-Identifier: BSD-3-Clause
// Reads from NCCL's log which network and connections NCCL chose, and gives advice.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rankmesh::report {

/// The network and the connections that NCCL chose on one rank. NCCL has no function that returns
/// them, but it writes them to its log (NCCL_DEBUG=INFO).
struct NcclChoice {
  std::string network;            ///< "IB", "Socket" or the name of a plugin; empty if unknown.
  std::vector<std::string> over;  ///< The devices or interfaces of the network.
  std::string bootstrap;          ///< The interface of NCCL's first connections.
  /// The kinds of connections to other ranks, such as "P2P/CUMEM", "SHM", "NET/IB" and
  /// "NET/IB/GDRDMA" (GPUDirect RDMA).
  std::set<std::string> connections;
  std::optional<bool> has_nvls;   ///< NVLink SHARP: reductions in the NVSwitch.
  std::optional<bool> has_mnnvl;  ///< NVLink between nodes.

  /// Returns whether all fields are equal.
  bool operator==(const NcclChoice&) const = default;
};

/// Reads the log of NCCL (2.18 or later) with the subsystems INIT, BOOTSTRAP, NET, P2P, SHM and
/// NVLS.
NcclChoice read_nccl_log(std::string_view log);

/// Returns the choice as one line of text without a line end.
std::string to_string(const NcclChoice& choice);

/// Returns one sentence for each thing that should be checked, with the variables of NCCL that
/// matter. The function mentions only problems that the choices show, so the result is often empty.
/// @param choices  The choices of all ranks.
/// @param nodes    The number of nodes of the job.
std::vector<std::string> nccl_advice(const std::vector<NcclChoice>& choices, std::int64_t nodes);

}  // namespace rankmesh::report
