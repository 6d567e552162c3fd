#include "rankmesh/exchange/lockstep.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/hash.hpp"

namespace rankmesh::exchange {
namespace {

constexpr std::int64_t highest_mode = 255;

}  // namespace

Lockstep::Lockstep(GroupCoordinator& group, LockstepOptions options)
    : group_{group}, options_{std::move(options)} {
  const auto& sizes = options_.sizes;
  const bool ascends = std::ranges::adjacent_find(sizes, std::greater_equal{}) == sizes.end();
  if (!ascends || (!sizes.empty() && sizes.front() < 1) || options_.multiple < 1)
    throw UsageError{fmt::format("the sizes of a lockstep are {}, multiples of {}",
                                 fmt::join(sizes, ", "), options_.multiple),
                     "give sizes from 1 up in ascending order, and a multiple from 1 up"};
  const std::string text = fmt::format("{} {}", fmt::join(sizes, ","), options_.multiple);
  digest_ = static_cast<std::int64_t>(hash_bytes(text).low >> 2);
}

std::int64_t Lockstep::padded(std::int64_t tokens) const {
  const auto size = std::ranges::lower_bound(options_.sizes, tokens);
  if (tokens == 0 || size != options_.sizes.end()) return tokens == 0 ? 0 : *size;
  return (tokens + options_.multiple - 1) / options_.multiple * options_.multiple;
}

bool Lockstep::is_possible(const StepProposal& wish) const {
  return wish.tokens >= 0 && wish.mode >= 0 && wish.mode <= highest_mode &&
         !(was_done_ && (wish.tokens > 0 || !wish.is_done));
}

Step Lockstep::agree(const StepProposal& wish) {
  const auto n = static_cast<std::size_t>(group_.size());
  const bool possible = is_possible(wish);
  std::vector<std::int64_t> record(n + 7);
  record[static_cast<std::size_t>(group_.rank_in_group().value())] = wish.tokens;
  record[n] = wish.tokens > 0 ? highest_mode - wish.mode : 0;
  // Who brings the last tokens is not done before the step after them.
  record[n + 1] = wish.is_done && wish.tokens == 0 ? 0 : 1;
  record[n + 2] = number_;
  record[n + 3] = -number_;
  record[n + 4] = digest_;
  record[n + 5] = -digest_;
  record[n + 6] = possible ? 0 : 1;
  group_.all_reduce(record, ReduceOp::max);
  ++number_;
  if (record[n + 6] != 0)
    throw MismatchError{
        fmt::format(
            "step {} of '{}': a rank asks for what cannot be{}", number_ - 1, group_.name(),
            possible ? "" : fmt::format(" (this one: {} tokens, mode {})", wish.tokens, wish.mode)),
        "tokens are 0 or more, modes 0 .. 255, and who is done stays so", true};
  if (record[n + 2] != -record[n + 3])
    throw MismatchError{
        fmt::format("the ranks of '{}' are in different steps: {} to {} (this one in {})",
                    group_.name(), -record[n + 3], record[n + 2], number_ - 1),
        "call agree() once per step on every rank, idle ones too", true};
  if (record[n + 4] != -record[n + 5])
    throw MismatchError{fmt::format("the ranks of '{}' pad to different sizes", group_.name()),
                        "give the same LockstepOptions on every rank", true};
  was_done_ = wish.is_done;
  Step step;
  step.tokens.assign(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(n));
  step.padded = padded(*std::ranges::max_element(step.tokens));
  step.mode = step.padded == 0 ? 0 : static_cast<std::int32_t>(highest_mode - record[n]);
  step.is_dummy = step.padded > 0 && wish.tokens == 0;
  step.is_last = record[n + 1] == 0;
  return step;
}

}  // namespace rankmesh::exchange
