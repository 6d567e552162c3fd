// Every group of every name asked for, streamed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

/// A family and the text that asked for it (`dp*tp`), which becomes its key.
using NamedFamily = std::pair<std::string, GroupFamily>;

/// Writes the groups in listing order; JSON has the schema `rankmesh.groups/1`.
/// Memory is constant: at most 64 KiB are held back, whatever the size of the mesh.
RANKMESH_API void write_groups(std::int64_t world_size, std::span<const NamedFamily> families,
                               Format format, const Sink& sink);

}  // namespace rankmesh::report
