// Chooses the transport of each host call by a table that is resolved once.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "rankmesh/group/detail/channel.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/transport/transport.hpp"

namespace rankmesh::detail {

/// The bytes by which rules tell calls apart: the largest buffer of a member, as nccl-tests counts. Every
/// member comes to the same number, also those that have no such buffer themselves.
inline std::int64_t routed_bytes(const Call& call, std::int64_t size) {
  switch (call.operation) {
    case Operation::all_reduce:
    case Operation::reduce:
    case Operation::all_to_all:
    case Operation::send:
    case Operation::send_recv:
      return call.in.bytes();
    case Operation::broadcast:
    case Operation::recv:
      return call.out.bytes();
    case Operation::all_gather:
    case Operation::gather:
      return size * call.in.bytes();
    case Operation::reduce_scatter:
    case Operation::scatter:
      return size * call.out.bytes();
    case Operation::barrier:
      return 0;
  }
  return 0;
}

/// One group's view of the mesh's routes. What can be known beforehand (name, size and place of the group,
/// which transports it has) is settled at construction; a call costs one look-up, a comparison per size rule
/// and, where several transports are candidates, a question to each.
///
/// The choice depends only on what all members agree on: operation, bytes, type, the group, the transports it
/// has, and what `Transport::supports` says.
class Router {
 public:
  /// @param name  of the group in the plan; empty where it has none there.
  Router(const RouteTable& routes, const Channel& channel, std::string_view name);

  /// For a call on host memory that was checked.
  [[nodiscard]] Transport& choose(const Call& call) const {
    const Cell& cell = cells_[static_cast<std::size_t>(call.operation)][static_cast<std::size_t>(
        class_of(call.operation == Operation::send ? call.in.type : call.out.type))];
    const Choice* choice = &choices_[cell.without_size];
    if (cell.by_size != cell.without_size && call.in_counts.empty() && call.out_counts.empty()) {
      const std::int64_t bytes = routed_bytes(call, size_);
      choice = &choices_[cell.by_size];
      while (bytes >= choice->end) ++choice;
    }
    return choice->others == 0 ? *choice->first : first_that_supports(*choice, call);
  }

  /// Which transport serves a call, and why. Local. `call` needs counts, types and kinds, no memory.
  /// @param no_device  why the mesh has no device transport.
  [[nodiscard]] RouteExplanation explain(const RouteTable& routes, const Channel& channel, const Call& call,
                                         bool capture, const std::string& no_device) const;

 private:
  // Candidates in one stretch of sizes.
  struct Choice {
    std::int64_t end;
    Transport* first;
    std::uint32_t others = 0;        // how many follow the first
    std::uint32_t begin_others = 0;  // in others_
  };
  struct Cell {
    std::uint32_t by_size = 0;       // the first choice for calls that have a size
    std::uint32_t without_size = 0;  // the choice for those that have none
  };

  [[nodiscard]] Transport& first_that_supports(const Choice& choice, const Call& call) const;
  std::uint32_t add(const RouteTable& routes, const Channel& channel, const RouteQuery& query);

  std::int64_t size_;
  RouteScope scope_;
  std::array<std::array<Cell, type_class_count>, operation_count> cells_{};
  std::vector<Choice> choices_;
  std::vector<Transport*> others_;
};

}  // namespace rankmesh::detail
