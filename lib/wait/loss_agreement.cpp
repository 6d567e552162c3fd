// SPDX-License-Identifier: BSD-3-Clause
#include "detail/loss_agreement.hpp"

#include <algorithm>

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

// Returns how many others lead before this member.
int LossAgreement::place() const {
  int before = 0;
  for (std::size_t m = 0; m < self_; ++m)
    if (voters_[m] && !dead_[m] && !silent_[m]) ++before;
  return std::min(before, most_places);
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
    case MessageKind::left:
      break;
  }
  gather();
}

}  // namespace rankmesh::detail
