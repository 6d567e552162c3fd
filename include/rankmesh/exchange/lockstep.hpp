// Ranks with different amounts of work take the same steps.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::exchange {

/// What one rank brings to a step.
struct StepProposal {
  std::int64_t tokens = 0;  ///< 0: nothing to do in this step
  /// How far this rank can go with what depends on shapes, 0 .. 255; the group takes the lowest of
  /// those who have tokens. An engine's own: 0 eager, 1 piecewise graphs, 2 full graphs, say.
  std::int32_t mode = 0;
  bool is_done = false;  ///< this rank will have no more tokens
};

/// What all ranks do in a step; the same everywhere, `is_dummy` aside.
struct Step {
  std::vector<std::int64_t> tokens;  ///< of each rank, in group order, before padding
  std::int64_t padded = 0;  ///< tokens that every rank runs with; 0: nobody has any, no step is run
  std::int32_t mode = 0;
  bool is_dummy =
      false;  ///< this rank has no tokens and others have: it runs the step on padding alone
  bool is_last = false;  ///< all ranks are done: there will be no other step
};

/// The same on every rank.
struct LockstepOptions {
  /// Sizes that a step may have, ascending (those of captured graphs, say): it takes the first that
  /// is large enough. Beyond the last, or without any, a multiple of `multiple`.
  std::vector<std::int64_t> sizes{};
  std::int64_t multiple = 1;
};

/// Data-parallel ranks that share collectives (expert parallelism, say) must issue them equally
/// often and with sizes that fit, whatever each has to do. Before each step they agree by one small
/// all_reduce; who has no tokens then runs the step on dummies, so that nobody waits for a
/// collective that another does not issue:
///
///     Lockstep lockstep{mesh["dp"], {.sizes = {8, 16, 32}}};
///     for (Step step; !(step = lockstep.agree({.tokens = batch.size(), .is_done =
///     queue.empty()})).is_last;)
///       if (step.padded > 0) model.run(step.is_dummy ? dummy : batch, step.padded, step.mode);
///
/// The record is one all_reduce (max, host memory) of n + 7 64-bit integers for n ranks:
///
/// | word      | holds                                     | its maximum |
/// |-----------|-------------------------------------------|----------------------------------------|
/// | 0 .. n-1  | own tokens in the own place, else 0       | everybody's tokens | | n         | 255
/// - mode; 0 where there are no tokens   | 255 - lowest mode of those with tokens | | n+1       |
/// 1: this rank is not done                  | whether anybody is not done            | | n+2, n+3
/// | number of the step, and its negative      | whether all are in the same step       | | n+4,
/// n+5  | hash of the options (62 bits), and its negative | whether all options are equal    | |
/// n+6       | 1: this rank's wish is refused            | whether anybody's is                   |
///
/// One thread, that of the mesh.
class RANKMESH_API Lockstep {
 public:
  /// Local; options are compared in the first step. @throws UsageError for sizes that are not
  /// ascending or not positive.
  explicit Lockstep(GroupCoordinator& group, LockstepOptions options = {});
  /// Collective over the group; blocks. Cost: one all_reduce of 8 (n + 7) bytes.
  /// @throws MismatchError, on all ranks, where they are in different steps, have other options, or
  /// one of
  ///         them asks for what cannot be (tokens below 0, a mode out of range, tokens of who was
  ///         done).
  Step agree(const StepProposal& wish);

 private:
  [[nodiscard]] std::int64_t padded(std::int64_t tokens) const;
  [[nodiscard]] bool is_possible(const StepProposal& wish) const;

  GroupCoordinator& group_;
  LockstepOptions options_;
  std::int64_t digest_;
  std::int64_t number_ = 0;
  bool was_done_ = false;
};

}  // namespace rankmesh::exchange
