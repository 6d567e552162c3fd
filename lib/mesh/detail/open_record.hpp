// SPDX-License-Identifier: BSD-3-Clause
// The record of a mesh's calls on this rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "group/detail/connection.hpp"
#include "rankmesh/base/settings.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/placement.hpp"
#include "record/detail/recorder.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Makes the record of this rank as RANKMESH_RECORD says. Local. Returns null if it is off. Also
/// returns null, after a warning, if the system refuses the memory or the file: a job does not fail
/// because it cannot be traced.
/// @param description  The text of the mesh.
/// @param transports   The names of the program's transports.
std::shared_ptr<Recorder> open_record(const ControlPlane& control, const MeshPlan& plan,
                                      const std::string& description, const Settings& settings,
                                      std::vector<std::string> transports);

/// Tells the record how far the clock of this node is from that of rank 0's node. The lowest rank
/// of each node exchanges 16 messages of 8 bytes with rank 0, one node after the other; the
/// shortest round trip counts. Collective over the mesh; blocks. On one node it does nothing.
void relate_clocks(ControlPlane& control);

/// Returns where the calls of a group are recorded. Local.
Recordings recordings_of(const ControlPlane& control, const GroupDescription& group,
                         bool has_devices);

}  // namespace rankmesh::detail
