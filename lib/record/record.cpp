// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/record/record.hpp"
#include "base/detail/text.hpp"

#include <fmt/format.h>

#include "record/matching.hpp"

namespace rankmesh::record {

std::string to_string(const Record& record, const Call& call) {
  std::string text = rankmesh::to_string(call.descriptor, family_of(record, call));
  if (call.number != 0 && call.group < record.groups.size())
    text += fmt::format(", call {}", call.number);
  return text;
}

std::string_view carrier_name(const Record& record, Carrier carrier) {
  if (carrier < Carrier::first_of_program)
    return rankmesh::detail::name_in({"local", "shm", "mpi", "nccl", "hierarchical"}, carrier);
  const auto index =
      static_cast<std::size_t>(carrier) - static_cast<std::size_t>(Carrier::first_of_program);
  return index < record.transports.size() ? std::string_view{record.transports[index]} : "unknown";
}

std::string name_of(const Record& record) {
  if (record.coordinates.empty()) return fmt::format("{}", record.rank.value());
  return fmt::format("{} ({})", record.rank.value(), record.coordinates);
}

}  // namespace rankmesh::record
