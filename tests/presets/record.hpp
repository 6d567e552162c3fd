// Golden records: what a system produces for a configuration, and the mesh string that asks for the
// same.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "rankmesh/layout/mesh_plan.hpp"

namespace golden {

using Json = nlohmann::ordered_json;
using Lists = std::vector<std::vector<std::int64_t>>;

/// The records of data/FILE.json.
std::vector<Json> records(const std::string& file);

/// `system:key=value,...` with the keys of the record's configuration.
std::string mesh_string(const Json& record);

/// All groups of a family, in order.
Lists lists(const rankmesh::GroupFamily& family);

/// `tp` of `tp`, `tp*pp` of `tp-pp`, `0*2` of `0,2`.
std::string as_product(std::string name);

/// Families whose name a record may leave out, and the reason why lists differ; empty where all is
/// equal.
std::string difference(const Json& record, const rankmesh::MeshPlan& plan);

}  // namespace golden
