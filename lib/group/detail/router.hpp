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

/// How a call's bytes are counted: elements of one of its sides, times a factor. All members come to the same
/// number, also those that have no such buffer themselves; it is that of the largest buffer of a member, as
/// nccl-tests counts.
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
inline std::int64_t routed_bytes(const Call& call, std::int64_t size) {
  const RoutedBytes how = routed_bytes(call.operation);
  return (how.of_out ? call.out.bytes() : call.in.bytes()) * (how.of_group ? size : 1);
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
  /// @param rank  this member's; @param is_polled  host calls are polled with a deadline.
  Router(const RouteTable& routes, const Channel& channel, std::string_view name, RankInGroup rank,
         bool is_polled);

  /// For a call on host memory that was checked.
  [[nodiscard]] Transport& choose(const Call& call) const {
    const Row& row = rows_[static_cast<std::size_t>(call.operation)];
    const Choice* choice = row.by_type ? choice_by_type(call) : row.cells[0].by_size;
    if (choice->end != ByteRange::infinite) {
      if (!call.in_counts.empty() || !call.out_counts.empty()) {
        choice = cell_of(row, call).without_size;
      } else {
        const std::int64_t count = row.of_out ? call.out.count : call.in.count;
        const std::int64_t bytes =
            count * row.factor *
            static_cast<std::int64_t>(size_of(row.of_out ? call.out.type : call.in.type));
        while (bytes >= choice->end) ++choice;
      }
    }
    return choice->only != nullptr ? *choice->only : first_that_supports(*choice, call);
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

  /// The choice for the collectives in which all members send and receive alike (all_reduce, all_gather,
  /// reduce_scatter, barrier), where nothing is wrong with the call and no rule tells types apart. Null where
  /// check_call() and choose() must look, and for symmetric memory. `unusual` is 0 where nothing else forbids
  /// it. Every instruction counts here: scripts/router-cost counts them.
  [[nodiscard, gnu::always_inline]] const Choice* choose_plainly(const Call& call,
                                                                 std::uint64_t unusual) const {
    const Plain& plain = plain_[static_cast<std::size_t>(call.operation)];
    const Choice* choice = plain.choices;
    const std::int64_t count = call.in.count * plain.in_factor;
    if (call.in.type != call.out.type || count != call.out.count * plain.out_factor ||
        (static_cast<std::uint64_t>(call.in.kind) | static_cast<std::uint64_t>(call.out.kind) |
         call.in_counts.size() | call.out_counts.size() | static_cast<std::uint64_t>(call.rows ^ 1) |
         reinterpret_cast<std::uintptr_t>(call.user) | reinterpret_cast<std::uintptr_t>(call.in.window) |
         reinterpret_cast<std::uintptr_t>(call.out.window) | unusual | plain.never) != 0 ||
        (plain.types >> static_cast<unsigned>(call.in.type) & 1) == 0)
      return nullptr;
    const auto width = static_cast<std::int64_t>(size_of(call.in.type));
    const auto in = reinterpret_cast<std::uintptr_t>(call.in.data);
    const auto out = reinterpret_cast<std::uintptr_t>(call.out.data);
    const auto in_bytes = static_cast<std::uintptr_t>(call.in.count * width);
    // In place, or apart.
    if (in != out + in_bytes * plain.in_place && in + in_bytes > out &&
        out + static_cast<std::uintptr_t>(call.out.count * width) > in)
      return nullptr;
    const std::int64_t bytes = count * width;
    while (bytes >= choice->end) ++choice;
    return choice;
  }
  /// Whether a call in which members do different things (broadcast, reduce, gather, send, recv, send_recv)
  /// is one on host memory that choose() can answer, once it is known to be right.
  [[nodiscard, gnu::always_inline]] bool takes_as_it_is(const Call& call, std::uint64_t unusual) const {
    return (static_cast<std::uint64_t>(call.in.kind) | static_cast<std::uint64_t>(call.out.kind) |
            reinterpret_cast<std::uintptr_t>(call.in.window) |
            reinterpret_cast<std::uintptr_t>(call.out.window) | unusual | is_polled_) == 0;
  }
  [[nodiscard, gnu::noinline]] Transport& first_that_supports(const Choice& choice, const Call& call) const;

  /// Which transport serves a call, and why. Local. `call` needs counts, types and kinds, no memory.
  /// @param no_device  why the mesh has no device transport.
  [[nodiscard]] RouteExplanation explain(const RouteTable& routes, const Channel& channel, const Call& call,
                                         bool capture, const std::string& no_device) const;

 private:
  struct Cell {
    const Choice* by_size = nullptr;  // the first for calls that have a size
    // For those that have none. Where they are routed as all others, by_size is the same, and has no end.
    const Choice* without_size = nullptr;
  };
  struct Plain {
    const Choice* choices = nullptr;  // by size
    std::uint64_t never = 1;          // 1: choose_plainly() does not serve
    std::int64_t in_factor = 0;       // elements of in and out, times these, are the same
    std::int64_t out_factor = 0;
    std::uintptr_t in_place = 0;  // how many inputs into the output the own block begins
    unsigned types = ~0U;         // a bit for each that is carried as it is
  };
  struct Row {
    std::array<Cell, type_class_count> cells{};
    std::int64_t factor = 1;
    bool of_out = false;
    bool by_type = false;  // whether the cells differ
  };

  static TypeClass type_of(const Call& call) {
    return class_of(call.operation == Operation::send ? call.in.type : call.out.type);
  }
  static const Cell& cell_of(const Row& row, const Call& call) {
    return row.cells[static_cast<std::size_t>(type_of(call))];
  }
  [[nodiscard]] const Choice* choice_by_type(const Call& call) const;
  void make_plain(Operation operation, RankInGroup rank, bool is_polled);
  const Choice* add(const RouteTable& routes, const Channel& channel, const RouteQuery& query);

  std::int64_t size_;
  std::uint64_t is_polled_;  // 1: host calls are polled with a deadline
  RouteScope scope_;
  std::array<Plain, operation_count> plain_{};
  std::array<Row, operation_count> rows_{};
  std::deque<std::vector<Choice>> choices_;  // lists that several cells may share; they stay where they are
  std::vector<Transport*> others_;
};

}  // namespace rankmesh::detail
