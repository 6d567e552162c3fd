// SPDX-License-Identifier: BSD-3-Clause
// Plans which rows an expert dispatcher moves where.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/exchange/expert_dispatcher.hpp"

namespace rankmesh::exchange::detail {

/// A function of ExpertDispatcher that the program has called, for messages.
struct DispatcherCall {
  const GroupCoordinator& group;
  std::string_view function;  ///< For example `::dispatch`; empty for the constructor.

  /// Returns for example `ExpertDispatcher::dispatch over 'ep'`.
  [[nodiscard]] std::string name() const;
  /// Throws a UsageError that names the function, the group and the calling rank in it.
  [[noreturn]] void refuse(std::string_view problem, std::string_view hint) const;
};

/// Makes an ExpertRoute in two steps. Between them, the caller exchanges numbers of rows with the
/// other ranks; the planner itself does not communicate.
///
/// Rows are ordered by slot, then by token and choice. It is a counting sort: the order depends
/// only on the ids, so a step can be repeated with the same result.
class RoutePlanner {
 public:
  /// Chooses a slot for every id. Throws UsageError for ids that are not a T x k array of experts.
  RoutePlanner(const DispatcherCall& by, const ExpertMap& map,
               const ExpertDispatcherOptions& options, std::span<const std::int32_t> ids,
               std::int64_t top_k);

  /// Returns how many rows this rank sends to each slot of the map.
  [[nodiscard]] const std::vector<std::int64_t>& rows_to_slot() const { return rows_to_slot_; }

  /// @param to_slot    the number of rows that this rank sends to each slot of the map. With a
  /// capacity, this number is the capacity, and the remaining rows are filled with zeros.
  /// @param from_rank  the number of rows that each rank sends to each slot of this rank.
  ExpertRoute plan(const std::vector<std::int64_t>& to_slot,
                   const std::vector<std::int64_t>& from_rank) &&;

 private:
  void place_rows(const std::vector<std::int64_t>& to_slot,
                  const std::vector<std::int64_t>& from_rank);
  void list_received_rows(const std::vector<std::int64_t>& from_rank);
  void list_choices();

  const ExpertMap& map_;
  std::int64_t alignment_, ranks_, self_, local_slots_;
  std::vector<std::int32_t> slot_of_choice_;  // -1: the choice is not sent
  std::vector<std::int64_t> rows_to_slot_;
  // The first row of each slot among the rows that this rank sends; of each rank and slot among the
  // rows that this rank's experts work on.
  std::vector<std::int64_t> first_sent_, first_row_;
  ExpertRoute route_;
};

}  // namespace rankmesh::exchange::detail
