// Chooses the transport of each host call by a table that is resolved once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "connection.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/transport/transport.hpp"

namespace rankmesh::detail {

/// How a call's bytes are counted: elements of one of its sides, times a factor. All members come
/// to the same number, also those that have no such buffer themselves; it is that of the largest
/// buffer of a member, as nccl-tests counts.
struct RoutedBytes {
  bool of_out;
  bool of_group;  // times the size of the group
};
constexpr RoutedBytes routed_bytes(Operation operation) {
  switch (operation) {
    case Operation::barrier:
    case Operation::all_reduce:
    case Operation::reduce:
    case Operation::all_to_all:
    case Operation::send:
    case Operation::send_recv:
      return {false, false};
    case Operation::broadcast:
    case Operation::recv:
      return {true, false};
    case Operation::all_gather:
    case Operation::gather:
      return {false, true};
    case Operation::reduce_scatter:
    case Operation::scatter:
      return {true, true};
  }
  return {false, false};
}
/// @param operation  the call's; a parameter, since the compiler may know it.
[[gnu::always_inline]] inline std::int64_t routed_bytes(Operation operation, const Call& call,
                                                        std::int64_t size) {
  const RoutedBytes how = routed_bytes(operation);
  return (how.of_out ? call.out.bytes() : call.in.bytes()) * (how.of_group ? size : 1);
}

/// Chooses the transport of each host call of one group. What is known beforehand (the group's
/// name, size and place, and its transports) is resolved at construction. A call then costs one
/// look-up, one comparison per rule by size and, where several transports are candidates, one
/// question to each.
///
/// The choice depends only on what all members agree on: operation, bytes, type, the group, its
/// transports, and what Transport::supports() says.
class Router {
 public:
  /// @param family  The name that rules know the group by; empty for dynamic groups.
  Router(const RouteTable& routes, const HostTransports& transports, const GroupDescription& group,
         std::string_view family);

  /// Chooses for a checked call on host memory.
  [[nodiscard]] Transport& choose(const Call& call) const {
    const Row& row = rows_[static_cast<std::size_t>(call.operation)];
    const Cell& cell = cell_of(row, call);
    return choose(call.has_blocks() ? cell.without_size : cell.by_size, call, call.operation);
  }
  /// Chooses for a call without blocks of different sizes. Every instruction counts here:
  /// scripts/router-cost counts them.
  template <Operation operation>
  [[nodiscard, gnu::always_inline]] Transport& choose_fast(const Call& call) const {
    const Row& row = rows_[static_cast<std::size_t>(operation)];
    const Choice* choice = row.cells[0].by_size;
    if (row.by_type) [[unlikely]]
      choice = cell_of(row, call).by_size;
    return choose(choice, call, operation);
  }

  static constexpr std::uint64_t endless = ~std::uint64_t{0};

  // Candidates in one stretch of sizes.
  struct Choice {
    // The first size beyond it; `endless` beyond the last rule by size. Unsigned, since a
    // comparison with all ones needs no register.
    std::uint64_t end;
    Transport* only;  // null where there are others
    Transport* first;
    std::uint32_t others = 0;        // how many follow the first
    std::uint32_t begin_others = 0;  // in others_
    [[nodiscard]] bool routes_like(const Choice& other) const {
      return first == other.first && others == other.others && begin_others == other.begin_others;
    }
    friend bool operator==(const Choice&, const Choice&) = default;
  };

  [[nodiscard, gnu::noinline]] Transport& first_that_supports(const Choice& choice,
                                                              const Call& call) const;

  /// Says which transport serves a call, and why. Local. The call needs counts, types and kinds,
  /// but no memory.
  /// @param device         The group's device transport; null where it has none.
  /// @param why_no_device  The reason, in that case.
  [[nodiscard]] RouteExplanation explain(const RouteTable& routes, const HostTransports& transports,
                                         const DeviceTransport* device, const Call& call,
                                         bool capture, const std::string& why_no_device) const;

 private:
  struct Cell {
    const Choice* by_size = nullptr;       // the first for calls that have a size
    const Choice* without_size = nullptr;  // for those that have none
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
  [[nodiscard, gnu::always_inline]] Transport& choose(const Choice* choice, const Call& call,
                                                      Operation operation) const {
    if (choice->end != endless) {
      const auto bytes = static_cast<std::uint64_t>(routed_bytes(operation, call, size_));
      while (bytes >= choice->end) ++choice;
    }
    return choice->only != nullptr ? *choice->only : first_that_supports(*choice, call);
  }
  const Choice* add(const RouteTable& routes, const HostTransports& transports,
                    const RouteQuery& query);

  std::int64_t size_;
  RouteScope scope_;
  std::array<Row, operation_count> rows_{};
  std::deque<std::vector<Choice>>
      choices_;  // lists that several cells may share; they stay where they are
  std::vector<Transport*> others_;
};

}  // namespace rankmesh::detail
