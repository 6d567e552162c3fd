// SPDX-License-Identifier: BSD-3-Clause
// Chooses the transport of each host call from a table that is computed once.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "connection.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "resolved_routes.hpp"
#include "transport/detail/routed_transport.hpp"

namespace rankmesh::detail {

/// Returns the size of a call for rules with sizes, in bytes. It is the size of the largest buffer
/// of a member, as in nccl-tests. All members get the same number, even members that do not have
/// this buffer.
/// @param operation  The operation of the call; a parameter, because the compiler may know it.
[[gnu::always_inline]] inline std::int64_t routed_bytes(Operation operation, const Call& call,
                                                        std::int64_t size) {
  return (counts_output(operation) ? call.out.bytes() : call.in.bytes()) *
         (gathers(operation) || scatters(operation) ? size : 1);
}

/// Chooses the transport of each host call of one group. The constructor applies all conditions of
/// the rules that do not depend on the call: the name, size and nodes of the group, and its
/// transports. A call then costs one look-up, one comparison per rule with a size and, if there are
/// several candidates, one call of Transport::supports() for each of them.
///
/// All members must choose the same transport without communication. Therefore the choice depends
/// only on values that are the same on all members: operation, bytes, type, the group, its
/// transports, and the result of Transport::supports().
class Router {
 public:
  /// @param family  The name of the family, for rules; empty for dynamic groups.
  Router(ResolvedRoutes& routes, const HostTransports& transports, const GroupDescription& group,
         std::string_view family);

  /// Returns the transport of a checked call on host memory.
  [[nodiscard]] RoutedTransport& choose(const Call& call) const {
    const Row& row = rows_[static_cast<std::size_t>(call.operation)];
    const Cell& cell = cell_of(row, call);
    return choose(call.has_blocks() ? cell.without_size : cell.by_size, call, call.operation);
  }
  /// Returns the transport of a call with equal blocks. Every instruction counts here:
  /// scripts/router-cost counts them.
  template <Operation operation>
  [[nodiscard, gnu::always_inline]] RoutedTransport& choose_fast(const Call& call) const {
    const Row& row = rows_[static_cast<std::size_t>(operation)];
    const Choice* choice = row.cells[0].by_size;
    if (row.by_type) [[unlikely]]
      choice = cell_of(row, call).by_size;
    return choose(choice, call, operation);
  }

  static constexpr std::uint64_t endless = RoutePattern::endless;

  // The candidates for a range of sizes.
  struct Choice {
    // The end of the range, which is excluded; `endless` for the last range. It is unsigned because
    // a comparison with all ones needs no register.
    std::uint64_t end;
    RoutedTransport* only;  // null if there are several candidates
    RoutedTransport* first;
    std::uint32_t others = 0;        // the number of candidates after the first
    std::uint32_t begin_others = 0;  // in others_
  };

  [[nodiscard, gnu::noinline]] RoutedTransport& first_that_supports(const Choice& choice,
                                                                    const Call& call) const;

  /// Returns the transport that carries a call, and the reasons. Local. The call needs counts,
  /// types and kinds, but no memory.
  /// @param device         The group's device transport; null if it has none.
  /// @param why_no_device  The reason, in that case.
  [[nodiscard]] RouteExplanation explain(const RouteTable& routes, const HostTransports& transports,
                                         const DeviceTransport* device, const Call& call,
                                         bool capture, const std::string& why_no_device) const;

 private:
  struct Cell {
    const Choice* by_size = nullptr;       // the first choice for calls with a size
    const Choice* without_size = nullptr;  // the first choice for calls without
  };
  struct Row {
    std::array<Cell, type_class_count> cells{};
    bool by_type = false;  // whether the cells differ
  };

  static TypeClass type_of(const Call& call) {
    return class_of(call.operation == Operation::send ? call.in.type : call.out.type);
  }
  static const Cell& cell_of(const Row& row, const Call& call) {
    return row.cells[static_cast<std::size_t>(type_of(call))];
  }
  [[nodiscard, gnu::always_inline]] RoutedTransport& choose(const Choice* choice, const Call& call,
                                                            Operation operation) const {
    if (choice->end != endless) {
      const auto bytes = static_cast<std::uint64_t>(routed_bytes(operation, call, size_));
      while (bytes >= choice->end) ++choice;
    }
    return choice->only != nullptr ? *choice->only : first_that_supports(*choice, call);
  }

  std::int64_t size_;
  RouteScope scope_;
  std::array<Row, operation_count> rows_{};
  std::vector<std::vector<Choice>> choices_;  // cells may share a list
  std::vector<RoutedTransport*> others_;
};

}  // namespace rankmesh::detail
