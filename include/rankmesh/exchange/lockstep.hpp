// SPDX-License-Identifier: BSD-3-Clause
// Lets ranks with different amounts of work make the same steps.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::exchange {

/// Holds the proposal of one rank for a step.
struct StepProposal {
  std::int64_t tokens = 0;  ///< The rank's tokens; 0 means that it has no work in this step.
  /// The best execution mode that this rank can use, 0 to 255. The step uses the lowest mode of the
  /// ranks that have tokens. The program defines the modes, for example 0 eager, 1 piecewise
  /// graphs, 2 full graphs.
  std::int32_t mode = 0;
  bool is_done = false;  ///< The rank will have no more tokens.
};

/// Describes a step that all ranks make together. All members except `is_dummy` have the same
/// values on all ranks.
struct Step {
  std::vector<std::int64_t> tokens;  ///< Of each rank, in group order, before padding.
  std::int64_t padded = 0;  ///< Tokens per rank with padding; 0: no rank has tokens, skip the step.
  std::int32_t mode = 0;    ///< The execution mode of all ranks.
  bool is_dummy = false;    ///< Only other ranks have tokens: run the step with padding alone.
  bool is_last = false;     ///< All ranks are done: there is no step after this one.
};

/// Holds the options of a Lockstep. They must be the same on every rank.
struct LockstepOptions {
  /// The padded sizes of a step, ascending, for example the sizes of captured graphs. A step uses
  /// the first size that is large enough. If no size is large enough, the step is padded to a
  /// multiple of `multiple`.
  std::vector<std::int64_t> sizes{};
  std::int64_t multiple = 1;  ///< See `sizes`.
};

/// Lets data-parallel ranks agree on each step. Such ranks share collectives, for example the
/// collectives of expert parallelism. All ranks must issue these collectives equally often and with
/// the same sizes, even if they have different amounts of work. Before each step the ranks agree by
/// one small all_reduce. A rank without tokens then runs the step on dummy tokens, so that no other
/// rank waits for the collectives of this rank.
///
/// ```
/// Lockstep lockstep{mesh["dp"], {.sizes = {8, 16, 32}}};
/// while (true) {
///   const Step step = lockstep.agree({.tokens = batch.size(), .is_done = queue.empty()});
///   if (step.is_last) break;
///   if (step.padded > 0) model.run(step.is_dummy ? dummy : batch, step.padded, step.mode);
/// }
/// ```
///
/// The all_reduce (max, host memory) has n + 7 64-bit integers for n ranks:
///
/// | word     | value of a rank                        | maximum over the ranks              |
/// |----------|----------------------------------------|-------------------------------------|
/// | 0 .. n-1 | its tokens at its own place, else 0    | the tokens of each rank             |
/// | n        | 255 - mode; 0 without tokens           | 255 - lowest mode                   |
/// | n+1      | 1: the rank is not done                | 1: a rank is not done               |
/// | n+2, n+3 | number of the step, and its negative   | whether all are in the same step    |
/// | n+4, n+5 | hash of the options, and its negative  | whether all options are equal       |
/// | n+6      | 1: the proposal is invalid             | 1: a proposal is invalid            |
///
/// Thread safety: the rules of the group apply.
class RANKMESH_API Lockstep {
 public:
  /// Creates the object. Local; the first step compares the options of all ranks.
  /// @throws UsageError  The sizes are not ascending or not positive.
  explicit Lockstep(GroupCoordinator& group, LockstepOptions options = {});
  /// Agrees on the next step. Collective over the group; blocks. Cost: one all_reduce of n + 7
  /// words of 8 bytes.
  /// @throws MismatchError  The ranks are in different steps or have different options, or a
  /// proposal is invalid (tokens below 0, a mode out of range, or tokens of a rank that was done).
  /// All ranks throw it.
  Step agree(const StepProposal& proposal);

 private:
  [[nodiscard]] std::int64_t padded(std::int64_t tokens) const;
  [[nodiscard]] bool is_valid(const StepProposal& proposal) const;

  GroupCoordinator& group_;
  LockstepOptions options_;
  std::int64_t digest_;
  std::int64_t number_ = 0;
  bool was_done_ = false;
};

}  // namespace rankmesh::exchange
