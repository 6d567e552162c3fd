// Chooses the transport of each host call by a table that is resolved once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "rankmesh/group/detail/channel.hpp"
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

/// One group's view of the mesh's routes. What can be known beforehand (name, size and place of the
/// group, which transports it has) is settled at construction; a call costs one look-up, a
/// comparison per size rule and, where several transports are candidates, a question to each.
///
/// The choice depends only on what all members agree on: operation, bytes, type, the group, the
/// transports it has, and what `Transport::supports` says.
class Router {
 public:
  /// @param name  of the group in the plan; empty where it has none there.
  Router(const RouteTable& routes, const Channel& channel, std::string_view name);

  /// For a call on host memory that was checked.
  [[nodiscard]] Transport& choose(const Call& call) const {
    const Row& row = rows_[static_cast<std::size_t>(call.operation)];
    const Cell& cell = cell_of(row, call);
    return choose(call.has_blocks() ? cell.without_size : cell.by_size, call, call.operation);
  }
  /// The same where `operation` is known to the compiler and blocks have one size. Every
  /// instruction counts here: scripts/router-cost counts them.
  template <Operation operation>
  [[nodiscard, gnu::always_inline]] Transport& choose_ordinary(const Call& call) const {
    const Row& row = rows_[static_cast<std::size_t>(operation)];
    const Choice* choice = row.cells[0].by_size;
    if (row.by_type) [[unlikely]]
      choice = cell_of(row, call).by_size;
    return choose(choice, call, operation);
  }

  // Candidates in one stretch of sizes.
  struct Choice {
    std::int64_t end;  // the first size beyond it
    Transport* only;   // null where there are others
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

  /// Which transport serves a call, and why. Local. `call` needs counts, types and kinds, no
  /// memory.
  /// @param no_device  why the mesh has no device transport.
  [[nodiscard]] RouteExplanation explain(const RouteTable& routes, const Channel& channel,
                                         const Call& call, bool capture,
                                         const std::string& no_device) const;

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
    if (choice->end != ByteRange::infinite) {
      const std::int64_t bytes = routed_bytes(operation, call, size_);
      while (bytes >= choice->end) ++choice;
    }
    return choice->only != nullptr ? *choice->only : first_that_supports(*choice, call);
  }
  const Choice* add(const RouteTable& routes, const Channel& channel, const RouteQuery& query);

  std::int64_t size_;
  RouteScope scope_;
  std::array<Row, operation_count> rows_{};
  std::deque<std::vector<Choice>>
      choices_;  // lists that several cells may share; they stay where they are
  std::vector<Transport*> others_;
};

}  // namespace rankmesh::detail
