// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/lockstep.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/agree.hpp"

namespace rankmesh::exchange {
namespace {

constexpr std::int64_t highest_mode = 255;

std::vector<std::string> entries_of(const LockstepOptions& options) {
  std::vector<std::string> entries{fmt::format("multiple {}", options.multiple),
                                   fmt::format("{} sizes", options.sizes.size())};
  for (std::size_t i = 0; i < options.sizes.size(); ++i)
    entries.push_back(fmt::format("size {} is {}", i, options.sizes[i]));
  return entries;
}

}  // namespace

Lockstep::Lockstep(GroupCoordinator& group, LockstepOptions options)
    : group_{group}, life_{group}, options_{std::move(options)} {
  const auto& sizes = options_.sizes;
  const bool ascends = std::ranges::adjacent_find(sizes, std::greater_equal{}) == sizes.end();
  if (!ascends || (!sizes.empty() && sizes.front() < 1) || options_.multiple < 1)
    throw UsageError{fmt::format("a lockstep cannot have the sizes {} and the multiple {}",
                                 fmt::join(sizes, ", "), options_.multiple),
                     "use ascending sizes of 1 or more, and a multiple of 1 or more"};
  digest_ = hash_of(detail::Arguments{{}, entries_of(options_)}).low;
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

Step Lockstep::agree(const StepProposal& proposal) {
  life_.require("Lockstep");
  const auto n = static_cast<std::size_t>(group_.size());
  const std::int64_t number = number_;
  std::vector<std::int64_t> record(n + 2);
  record[static_cast<std::size_t>(group_.rank_in_group().value())] = proposal.tokens;
  record[n] = proposal.tokens > 0 ? highest_mode - proposal.mode : 0;
  // A rank that proposes its last tokens is done only after this step.
  record[n + 1] = proposal.is_done && proposal.tokens == 0 ? 0 : 1;
  const bool valid = is_valid(proposal);
  std::optional<Hash128> hash;
  if (valid) hash = {.high = digest_, .low = static_cast<std::uint64_t>(number)};
  const auto describe = [&] {
    detail::Arguments arguments{fmt::format("Lockstep over '{}'", group_.name()),
                                entries_of(options_)};
    const std::string step =
        valid ? fmt::format("step {}", number)
              : fmt::format("step {} with an invalid proposal of {} tokens, mode {}{}", number,
                            proposal.tokens, proposal.mode, was_done_ ? ", after it was done" : "");
    arguments.entries.insert(arguments.entries.begin(), step);
    return arguments;
  };
  detail::agree(group_, hash,
                {detail::UserFunction::lockstep, describe,
                 "call agree() once per step on every rank, including idle ranks, with the same "
                 "LockstepOptions; pass 0 tokens or more and a mode from 0 to 255, and keep "
                 "is_done on a rank that was done"},
                record);
  ++number_;
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
