// SPDX-License-Identifier: BSD-3-Clause
// Lets ranks with different amounts of work run the same steps.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/group_life.hpp"

namespace rankmesh::exchange {

/// Holds the proposal of one rank for a step.
struct StepProposal {
  std::int64_t tokens = 0;  ///< The tokens of this rank; 0 if it has no work.
  /// The highest execution mode that this rank can use in the step, from 0 to 255. The step uses
  /// the lowest mode that any rank with tokens proposes. The program defines the modes, for example
  /// 0 for eager execution, 1 for piecewise graphs and 2 for full graphs.
  std::int32_t mode = 0;
  bool is_done = false;  ///< The rank will have no tokens after this step.
};

/// Describes a step that all ranks run together. All fields except `is_dummy` have the same values
/// on all ranks.
struct Step {
  std::vector<std::int64_t> tokens;  ///< The tokens of each rank, in group order, before padding.
  std::int64_t padded = 0;  ///< The tokens per rank with padding. If 0, no rank has tokens.
  std::int32_t mode = 0;    ///< The execution mode of all ranks.
  bool is_dummy = false;    ///< True if only other ranks have tokens; run the step on dummy tokens.
  bool is_last = false;     ///< True if all ranks are done and have no tokens.
};

/// Holds the options of a Lockstep. The options must be the same on every rank.
struct LockstepOptions {
  /// The padded sizes that a step may have, in ascending order. For example, these can be the sizes
  /// of captured graphs. A step uses the smallest size that is large enough. If no size is large
  /// enough, the step is padded to a multiple of `multiple`.
  std::vector<std::int64_t> sizes{};
  std::int64_t multiple = 1;  ///< See `sizes`.
};

/// Lets data-parallel ranks agree on each step (docs/exchange.md). If they share collectives, for
/// example those of expert parallelism, all of them must issue these equally often and with the
/// same sizes, although they have different amounts of work. A rank without tokens runs the step on
/// dummy tokens.
///
/// ```
/// Lockstep lockstep{mesh["dp"], {.sizes = {8, 16, 32}}};
/// while (true) {
///   const auto batch = next_batch(queue);  // of the program
///   const Step step = lockstep.agree({.tokens = std::ssize(batch), .is_done = queue.empty()});
///   if (step.is_last) break;
///   if (step.padded > 0) model.run(step.is_dummy ? dummy : batch, step.padded, step.mode);
/// }
/// ```
///
/// Thread safety: the rules of the group apply.
class RANKMESH_API Lockstep {
 public:
  /// Creates the object. Local. The first call of agree() compares the options of all ranks.
  /// @param group  A group that must outlive this object. Afterwards, agree() throws ClosedError.
  /// @throws UsageError if the sizes are not ascending, or if a size or `multiple` is less than 1.
  explicit Lockstep(GroupCoordinator& group, LockstepOptions options = {});
  /// Agrees on the next step with the other ranks. Collective over the group; blocks. Cost: one
  /// all_reduce of n + 6 words of 8 bytes.
  /// @throws MismatchError on all ranks if they are in different steps or have different options,
  /// or if a proposal is invalid. The error lists the values of all ranks. A proposal is invalid if
  /// `tokens` is negative, if `mode` is out of range, or if a rank that was done has tokens or is
  /// no longer done.
  Step agree(const StepProposal& proposal);

 private:
  [[nodiscard]] std::int64_t padded(std::int64_t tokens) const;
  [[nodiscard]] bool is_valid(const StepProposal& proposal) const;

  GroupCoordinator& group_;
  rankmesh::detail::GroupLife life_;
  LockstepOptions options_;
  std::uint64_t digest_;
  std::int64_t number_ = 0;
  bool was_done_ = false;
};

}  // namespace rankmesh::exchange
