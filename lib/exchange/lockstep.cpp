// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/lockstep.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/differing_arguments.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange {
namespace {

constexpr std::int64_t highest_mode = 255;

}  // namespace

Lockstep::Lockstep(GroupCoordinator& group, LockstepOptions options)
    : group_{group}, options_{std::move(options)} {
  const auto& sizes = options_.sizes;
  const bool ascends = std::ranges::adjacent_find(sizes, std::greater_equal{}) == sizes.end();
  if (!ascends || (!sizes.empty() && sizes.front() < 1) || options_.multiple < 1)
    throw UsageError{fmt::format("a lockstep cannot have the sizes {} and the multiple {}",
                                 fmt::join(sizes, ", "), options_.multiple),
                     "use ascending sizes of 1 or more, and a multiple of 1 or more"};
  const std::string text = fmt::format("{} {}", fmt::join(sizes, ","), options_.multiple);
  digest_ = static_cast<std::int64_t>(hash_bytes(text).low >> 2);
}

std::int64_t Lockstep::padded(std::int64_t tokens) const {
  const auto size = std::ranges::lower_bound(options_.sizes, tokens);
  if (tokens == 0 || size != options_.sizes.end()) return tokens == 0 ? 0 : *size;
  return (tokens + options_.multiple - 1) / options_.multiple * options_.multiple;
}

bool Lockstep::is_valid(const StepProposal& proposal) const {
  return proposal.tokens >= 0 && proposal.mode >= 0 && proposal.mode <= highest_mode &&
         !(was_done_ && (proposal.tokens > 0 || !proposal.is_done));
}

void Lockstep::throw_different_proposals(const StepProposal& proposal, const char* hint) {
  detail::MemberArguments mine;
  mine.describe = [&](const std::string&) {
    const bool valid = is_valid(proposal);
    return fmt::format("Lockstep over '{}', step {}: {} proposal of {} tokens, mode {}{}",
                       group_.name(), number_ - 1, valid ? "a" : "an invalid", proposal.tokens,
                       proposal.mode, !valid && was_done_ ? ", after it was done" : "");
  };
  throw_difference(group_, mine, hint);
}

void Lockstep::throw_different_options() {
  detail::MemberArguments mine;
  mine.list = options_.sizes;
  mine.describe = [&](const std::string& list) {
    return fmt::format("Lockstep over '{}', step {}: {}, multiple {}", group_.name(), number_ - 1,
                       list.empty() ? "no sizes" : "sizes " + list, options_.multiple);
  };
  throw_difference(group_, mine, "pass the same LockstepOptions on every rank");
}

Step Lockstep::agree(const StepProposal& proposal) {
  const auto n = static_cast<std::size_t>(group_.size());
  const bool valid = is_valid(proposal);
  std::vector<std::int64_t> record(n + 7);
  record[static_cast<std::size_t>(group_.rank_in_group().value())] = proposal.tokens;
  record[n] = proposal.tokens > 0 ? highest_mode - proposal.mode : 0;
  // A rank that proposes its last tokens is done only after this step.
  record[n + 1] = proposal.is_done && proposal.tokens == 0 ? 0 : 1;
  record[n + 2] = number_;
  record[n + 3] = -number_;
  record[n + 4] = digest_;
  record[n + 5] = -digest_;
  record[n + 6] = valid ? 0 : 1;
  run_or_leak([&] { group_.all_reduce(record, ReduceOp::max); }, record);
  ++number_;
  if (record[n + 6] != 0)
    throw_different_proposals(proposal,
                              "pass at least 0 tokens and a mode from 0 to 255, and keep is_done "
                              "on a rank that was done");
  if (record[n + 2] != -record[n + 3])
    throw_different_proposals(proposal,
                              "call agree() once per step on every rank, including idle ranks");
  if (record[n + 4] != -record[n + 5]) throw_different_options();
  was_done_ = proposal.is_done;
  Step step;
  step.tokens.assign(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(n));
  step.padded = padded(*std::ranges::max_element(step.tokens));
  step.mode = step.padded == 0 ? 0 : static_cast<std::int32_t>(highest_mode - record[n]);
  step.is_dummy = step.padded > 0 && proposal.tokens == 0;
  step.is_last = record[n + 1] == 0;
  return step;
}

}  // namespace rankmesh::exchange
