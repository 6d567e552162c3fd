// SPDX-License-Identifier: BSD-3-Clause
// What the members of an agreement on losses conclude from what they know: who counts, who is lost,
// and from which step the others go on. loss_agreement.cpp sends what they know.
#include <algorithm>
#include <limits>

#include "detail/loss_agreement.hpp"

namespace rankmesh::detail {

// Two majorities have a member in common, also if one of them is just a half. All spare members
// together count less than one other, because those that are lost are still counted.
bool LossAgreement::are_majority(const Members& members) const {
  std::size_t all = 1;
  std::size_t weight = members[lowest()] ? 1 : 0;
  for (std::size_t m = 0; m < size_; ++m) {
    if (!voters_[m]) continue;
    const std::size_t own = spares_[m] ? 2 : 2 * size_;
    all += own;
    if (members[m]) weight += own;
  }
  return 2 * weight > all;
}

// The loss of a spare member concerns nobody until another one is lost.
bool LossAgreement::concerns_all(std::uint32_t member) const {
  return voters_[member] && (!spares_[member] || is_deciding_ || !decisions_.empty());
}

std::uint32_t LossAgreement::lowest() const {
  return static_cast<std::uint32_t>(std::ranges::find(voters_, true) - voters_.begin());
}

// What a spare member alone does not hear may be its own fault, and the others hear it.
bool LossAgreement::is_doubtful(std::uint32_t from) const {
  return spares_[from] && !spares_[self_] && !is_deciding_ && decisions_.empty();
}

std::map<std::uint32_t, std::int64_t> LossAgreement::known_steps() const {
  std::map<std::uint32_t, std::int64_t> known{steps_.begin(), steps_.end()};
  for (const auto& of : reports_) known.insert(of.second.steps.begin(), of.second.steps.end());
  return known;
}

// The loss of a member ends all pairs that do not hear each other and that contain it. Members that
// do not answer this leader are dropped first, and then those in most pairs: the smaller part.
void LossAgreement::drop_silent(Members& lost) const {
  std::vector<Members> apart(size_, Members(size_));
  std::vector<std::size_t> pairs(size_);
  for (const auto& [member, report] : reports_) {
    if (lost[member] || !voters_[member]) continue;
    for (std::size_t other = 0; other < report.silent.size(); ++other) {
      if (!report.silent[other] || other == member || lost[other] || !voters_[other] ||
          apart[member][other])
        continue;
      apart[member][other] = apart[other][member] = true;
      ++pairs[member];
      ++pairs[other];
    }
  }
  const auto reasons_to_drop = [&](std::size_t m) {
    return pairs[m] == 0 || proposal_->promised[m] ? pairs[m] : pairs[m] + size_;
  };
  for (;;) {
    std::size_t most = 0;
    for (std::size_t m = 1; m < size_; ++m)
      if (reasons_to_drop(m) >= reasons_to_drop(most)) most = m;
    if (pairs[most] == 0) return;
    lost[most] = true;
    pairs[most] = 0;
    for (std::size_t other = 0; other < size_; ++other)
      if (apart[most][other] && !lost[other]) --pairs[other];
  }
}

// Returns what follows from the reports; nothing if some are missing.
std::optional<LossAgreement::Decision> LossAgreement::judge() {
  Decision decision;
  decision.lost = dead_;
  reports_[self_] = report();
  if (!decisions_.empty()) {
    decision.step = decisions_.front().step;
    for (std::size_t m = 0; m < size_; ++m)
      if (!voters_[m]) decision.lost[m] = true;
  }
  drop_silent(decision.lost);
  Members left = voters_;
  bool is_new = false;
  bool have_all_opened = true;
  for (std::uint32_t m = 0; m < size_; ++m) {
    if (!voters_[m]) continue;
    const auto known = reports_.find(m);
    if (known == reports_.end() || known->second.met != Attendance::opened) have_all_opened = false;
    if (!decision.lost[m]) continue;
    left[m] = false;
    if (!spares_[m] || !decisions_.empty()) is_new = true;  // else the reason is not known here yet
  }
  if (!is_new) {
    if (!have_all_opened) return std::nullopt;
    decision.kind = Decision::DecisionKind::over;
    return decision;
  }
  if (!are_majority(left)) {
    decision.kind = Decision::DecisionKind::stop;
    return decision;
  }
  if (!decisions_.empty()) return decision;
  const std::map<std::uint32_t, std::int64_t> steps = known_steps();
  decision.step = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t m = 0; m < size_; ++m) {
    if (!left[m] || spares_[m]) continue;
    const auto known = steps.find(m);
    if (known == steps.end()) return std::nullopt;
    decision.step = std::min(decision.step, known->second);
  }
  return decision;
}

}  // namespace rankmesh::detail
