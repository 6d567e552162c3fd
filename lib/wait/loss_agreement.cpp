// SPDX-License-Identifier: BSD-3-Clause
#include "detail/loss_agreement.hpp"

#include <algorithm>
#include <limits>

namespace rankmesh::detail {
namespace {

using Members = LossAgreement::Members;
using MessageKind = LossAgreement::LossMessage::MessageKind;

void add(Members& members, const Members& more) {
  for (std::size_t m = 0; m < std::min(members.size(), more.size()); ++m)
    if (more[m]) members[m] = true;
}

// Members that lead at the same time try again after different times.
int spread(std::uint64_t member, int attempt, int most) {
  std::uint64_t mixed = (member + 1) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(attempt);
  mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9U;
  return static_cast<int>((mixed >> 33) % static_cast<std::uint64_t>(most));
}

// Places in the order of leaders after which more patience does not help.
constexpr int most_places = 16;

}  // namespace

LossAgreement::LossAgreement(std::size_t members, std::uint32_t self, Times times,
                             std::function<std::vector<StepOfMember>()> freeze,
                             std::function<Staying(const Members&)> stay)
    : size_{members},
      self_{self},
      times_{times},
      freeze_{std::move(freeze)},
      stay_{std::move(stay)},
      dead_(members),
      silent_(members),
      accused_(members) {
  Staying first = stay_(dead_);
  voters_ = std::move(first.all);
  spares_ = std::move(first.spare);
}

LossAgreement::LossReport LossAgreement::report() const {
  return {.is_deciding = is_deciding_,
          .have_all_come = have_all_come_,
          .met = met_,
          .dead = dead_,
          .silent = silent_,
          .steps = steps_};
}

LossAgreement::LossMessage LossAgreement::message(MessageKind kind) const {
  return {.kind = kind, .generation = generation(), .ballot = promised_, .report = report()};
}

LossAgreement::LossMessage LossAgreement::served(std::uint32_t generation) const {
  return {.kind = MessageKind::decision,
          .generation = generation,
          .decision = decisions_[generation - 1]};
}

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

// Returns how many others lead before this member.
int LossAgreement::place() const {
  int before = 0;
  for (std::size_t m = 0; m < self_; ++m)
    if (voters_[m] && !dead_[m] && !silent_[m]) ++before;
  return std::min(before, most_places);
}

// What a spare member alone does not hear may be its own fault, and the others hear it.
bool LossAgreement::is_doubtful(std::uint32_t from) const {
  return spares_[from] && !spares_[self_] && !is_deciding_ && decisions_.empty();
}

void LossAgreement::send(std::uint32_t to, LossMessage message) {
  if (to == self_)
    local_.push_back(std::move(message));
  else
    outgoing_.push_back({to, std::move(message)});
}

void LossAgreement::send_to_all(const LossMessage& message) {
  for (std::uint32_t m = 0; m < size_; ++m)
    if (voters_[m]) send(m, message);
}

void LossAgreement::finish_local() {
  if (std::exchange(is_in_local_, true)) return;
  while (!local_.empty()) {
    const std::vector<LossMessage> messages = std::exchange(local_, {});
    for (const LossMessage& one : messages) receive(self_, one);
  }
  is_in_local_ = false;
}

void LossAgreement::begin(bool tells_all) {
  if (is_deciding_ || !is_active()) return;
  is_deciding_ = true;
  waiting_ = attempts_ = asked_ = 0;
  if (steps_.empty()) steps_ = freeze_();
  lead_at_ = times_.settle + times_.retry * place();
  if (tells_all) send_to_all(message(MessageKind::report));
}

void LossAgreement::see_death(std::uint32_t member) {
  dead_[member] = true;
  if (concerns_all(member)) begin(true);
  finish_local();
}

void LossAgreement::see_silence(std::uint32_t member) {
  if (!is_active() || !concerns_all(member)) return;
  silent_[member] = true;
  begin(true);
  finish_local();
}

void LossAgreement::come(Attendance meeting) {
  met_ = meeting;
  if (is_active()) send(lowest(), message(MessageKind::report));
  finish_local();
}

bool LossAgreement::close() {
  met_ = Attendance::closed;
  bool have_all_answered = true;
  for (std::uint32_t m = 0; m < size_; ++m) {
    if (!spares_[m] || dead_[m] || reports_[m].met == Attendance::closed) continue;
    send(m, message(MessageKind::report));
    have_all_answered = false;
  }
  return have_all_answered;
}

void LossAgreement::tick() {
  if (!is_active()) return;
  const bool waits =
      is_deciding_ || (met_ != Attendance::none && (met_ == Attendance::opened || !have_all_come_));
  if (waits && ++asked_ % times_.retry == 0) {
    // Another member may know the decision, and a leader may have missed this report.
    send(lowest(), message(MessageKind::report));
    if (is_deciding_)
      send(static_cast<std::uint32_t>(spread(self_, asked_, static_cast<int>(size_))),
           message(MessageKind::report));
  }
  if (is_deciding_) {
    if (++waiting_ > times_.give_up)
      failure_ = Failure::no_majority;
    else if (waiting_ >= lead_at_)
      lead();
    else if (proposal_ && waiting_ - asked_at_ >= times_.retry)
      propose();
  }
  finish_local();
}

std::map<std::uint32_t, std::int64_t> LossAgreement::known_steps() const {
  std::map<std::uint32_t, std::int64_t> known{steps_.begin(), steps_.end()};
  for (const auto& of : reports_) known.insert(of.second.steps.begin(), of.second.steps.end());
  return known;
}

// Others that do not answer are waited for a while.
bool LossAgreement::have_all_promised() const {
  for (std::size_t m = 0; m < size_; ++m)
    if (voters_[m] && !dead_[m] && !accused_[m] && !proposal_->promised[m]) return false;
  return true;
}

// Begins a ballot with a number that no other member uses.
void LossAgreement::lead() {
  if (attempts_ == 0) first_asked_at_ = waiting_;
  lead_at_ = waiting_ + times_.retry * (2 + place()) +
             spread(self_, attempts_, times_.retry * (1 + std::min(attempts_, most_places)));
  ++attempts_;
  asked_at_ = waiting_;
  if (waiting_ - first_asked_at_ > times_.silence && decisions_.empty()) {
    const std::map<std::uint32_t, std::int64_t> known = known_steps();
    for (std::uint32_t m = 0; m < size_; ++m)
      if (m != self_ && !dead_[m] && !known.contains(m)) silent_[m] = true;
  }
  highest_ = (highest_ / size_ + 1) * size_ + self_;
  proposal_ = Proposal{.ballot = highest_, .promised = Members(size_), .accepted = Members(size_)};
  LossMessage prepare = message(MessageKind::prepare);
  prepare.ballot = highest_;
  send_to_all(prepare);
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

void LossAgreement::propose() {
  if (!proposal_ || proposal_->decision || !are_majority(proposal_->promised)) return;
  proposal_->decision = proposal_->earlier != 0 ? proposal_->earlier_decision : judge();
  if (!proposal_->decision) return;
  LossMessage accept = message(MessageKind::accept);
  accept.ballot = proposal_->ballot;
  accept.decision = *proposal_->decision;
  send_to_all(accept);
}

void LossAgreement::decide(Decision decision) {
  decisions_.push_back(decision);
  is_deciding_ = have_all_come_ = false;
  if (met_ != Attendance::closed) met_ = Attendance::none;
  silent_.assign(size_, false);
  accused_.assign(size_, false);
  reports_.clear();
  promised_ = accepted_ = highest_ = 0;
  proposal_.reset();
  if (decision.kind == Decision::DecisionKind::over) return;
  if (decision.lost[self_]) failure_ = Failure::excluded;
  if (decision.kind == Decision::DecisionKind::stop) failure_ = Failure::no_majority;
  Staying staying = stay_(decision.lost);
  voters_ = std::move(staying.all);
  spares_ = std::move(staying.spare);
  for (std::size_t m = 0; m < size_; ++m)
    if (voters_[m] && dead_[m]) begin(true);
}

void LossAgreement::read(std::uint32_t from, const LossReport& report) {
  add(dead_, report.dead);
  add(accused_, report.silent);
  reports_[from] = report;
  if (report.have_all_come) have_all_come_ = true;
  if (report.met == Attendance::closed && spares_[self_]) met_ = Attendance::closed;
  if (!report.is_deciding || is_deciding_) return;
  bool is_founded = !is_doubtful(from);
  for (std::uint32_t m = 0; m < size_; ++m)
    is_founded = is_founded || (dead_[m] && concerns_all(m));
  if (is_founded) begin(false);
}

// The lowest member sees when all have come to a meeting.
void LossAgreement::gather() {
  if (self_ != lowest() || met_ == Attendance::none) return;
  reports_[self_] = report();
  Attendance least = Attendance::opened;
  for (std::uint32_t m = 0; m < size_; ++m)
    if (voters_[m]) least = std::min(least, reports_[m].met);
  if (least >= Attendance::before && !std::exchange(have_all_come_, true))
    send_to_all(message(MessageKind::report));
  if (least == Attendance::opened && !is_deciding_) {
    begin(false);
    lead();
  }
}

void LossAgreement::receive(std::uint32_t from, const LossMessage& message) {
  if (message.generation < generation()) {
    if (message.kind != MessageKind::decision && from != self_)
      send(from, served(message.generation));
    return;
  }
  if (!is_active()) return;
  if (message.generation > generation()) {
    send(from,
         this->message(MessageKind::report));  // the answer is the decision that this member misses
    return;
  }
  if (message.kind == MessageKind::decision)
    decide(message.decision);
  else if (voters_[from])
    answer(from, message);
  finish_local();
}

void LossAgreement::answer(std::uint32_t from, const LossMessage& message) {
  read(from, message.report);
  if (is_doubtful(from)) return;
  highest_ = std::max(highest_, message.ballot);
  const auto postpone = [&] {
    if (from != self_) lead_at_ = std::max(lead_at_, waiting_ + times_.retry * (2 + place()));
  };
  const auto reply = [&](MessageKind kind) {
    LossMessage answer = this->message(kind);
    answer.accepted = accepted_;
    if (kind == MessageKind::promise) answer.decision = accepted_decision_;
    send(from, std::move(answer));
  };
  switch (message.kind) {
    case MessageKind::report:
      if (from != self_ &&
          ((is_deciding_ && !message.report.is_deciding) ||
           (spares_[self_] && !spares_[from] && message.report.met == Attendance::closed) ||
           (have_all_come_ && !message.report.have_all_come && self_ == lowest())))
        reply(MessageKind::report);
      break;
    case MessageKind::prepare:
      if (message.ballot >= promised_) {
        promised_ = message.ballot;
        postpone();
      }
      reply(MessageKind::promise);
      break;
    case MessageKind::accept:
      if (message.ballot >= promised_) {
        promised_ = accepted_ = message.ballot;
        accepted_decision_ = message.decision;
        postpone();
      }
      reply(MessageKind::accepted);
      break;
    case MessageKind::promise:
      if (!proposal_ || message.ballot != proposal_->ballot) break;
      proposal_->promised[from] = true;
      if (message.accepted > proposal_->earlier) {
        proposal_->earlier = message.accepted;
        proposal_->earlier_decision = message.decision;
      }
      if (have_all_promised()) propose();
      break;
    case MessageKind::accepted:
      if (!proposal_ || !proposal_->decision || message.accepted != proposal_->ballot) break;
      proposal_->accepted[from] = true;
      if (!are_majority(proposal_->accepted)) break;
      for (std::uint32_t m = 0; m < size_; ++m)
        if (voters_[m] && m != self_)
          send(m, {.kind = MessageKind::decision,
                   .generation = generation(),
                   .decision = *proposal_->decision});
      return decide(*std::exchange(proposal_->decision, std::nullopt));
    case MessageKind::decision:
    case MessageKind::doubt:
      break;
  }
  gather();
}

}  // namespace rankmesh::detail
