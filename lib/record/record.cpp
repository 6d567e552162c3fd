// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/record/record.hpp"

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
  switch (carrier) {
    case Carrier::local:
      return "local";
    case Carrier::shared_memory:
      return "shm";
    case Carrier::mpi:
      return "mpi";
    case Carrier::nccl:
      return "nccl";
    case Carrier::hierarchical:
      return "hierarchical";
    case Carrier::first_of_program:
      break;
  }
  const std::size_t index =
      static_cast<std::size_t>(carrier) - static_cast<std::size_t>(Carrier::first_of_program);
  return index < record.transports.size() ? std::string_view{record.transports[index]} : "unknown";
}

std::string name_of(const Record& record) {
  if (record.coordinates.empty()) return fmt::format("{}", record.rank.value());
  return fmt::format("{} ({})", record.rank.value(), record.coordinates);
}

}  // namespace rankmesh::record
