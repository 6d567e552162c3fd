// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/record/record.hpp"

#include <fmt/format.h>

namespace rankmesh::record {

std::string to_string(const Record& record, const Call& call) {
  const Group& group = record.groups.at(call.group);
  const std::size_t family = call.descriptor.family();
  const std::string name =
      family < group.names.size() ? group.names[family] : std::string{"(unknown group)"};
  std::string text = rankmesh::to_string(call.descriptor, name);
  if (call.number != 0) text += fmt::format(", call {}", call.number);
  return text;
}

std::string name_of(const Record& record) {
  if (record.coordinates.empty()) return fmt::format("{}", record.rank.value());
  return fmt::format("{} ({})", record.rank.value(), record.coordinates);
}

}  // namespace rankmesh::record
