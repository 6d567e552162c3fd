// SPDX-License-Identifier: BSD-3-Clause
// Golden records: the groups that a system makes for a configuration, and the mesh string for the
// same configuration.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "rankmesh/layout/mesh_plan.hpp"

namespace golden {

using Json = nlohmann::ordered_json;
using Lists = std::vector<std::vector<std::int64_t>>;

/// Reads the records of data/FILE.json.
std::vector<Json> records(const std::string& file);

/// Returns `system:key=value,...` with the keys of the configuration.
std::string mesh_string(const Json& record);

/// Returns all groups of a family, in order.
Lists lists(const rankmesh::GroupFamily& family);

/// Translates a name of the record: `tp` to `tp`, `tp-pp` to `tp*pp`, `0,2` to `0*2`.
std::string as_product(std::string name);

/// Returns the first difference between the groups of a record and a plan, or an empty text.
std::string difference(const Json& record, const rankmesh::MeshPlan& plan);

}  // namespace golden
