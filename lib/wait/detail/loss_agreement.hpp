// SPDX-License-Identifier: BSD-3-Clause
// How the survivors of a mesh on several nodes agree on what is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace rankmesh::detail {

/// Agrees with the other members of a mesh on its losses, one decision after the other. It has
/// neither a clock nor a network: its owner gives it the messages of other members, the deaths that
/// are seen, and ticks, and sends the messages that it wants to send. Messages may be lost,
/// delayed, repeated and reordered, and members may die at any moment.
///
/// The decisions are numbered in generations. Each is made by Paxos: whoever misses a decision for
/// long enough leads, and asks a majority of those that went on after the last decision (of two
/// halves, the one with most spare members, and then with the lowest member, counts as the
/// majority). A message of an older generation is answered with its decision, and read no further.
/// See docs/design.md ("Lost ranks").
class LossAgreement {
 public:
  using Members = std::vector<bool>;
  using StepOfMember = std::pair<std::uint32_t, std::int64_t>;
  /// Those that go on after some losses; some of them are spare.
  struct Staying {
    Members all{}, spare{};
  };

  /// In ticks.
  struct Times {
    int settle = 5;  ///< From the first death to the first leader: members die one after another.
    int retry = 5;   ///< For answers to a leader.
    int silence = 100;  ///< After which a leader counts members as lost that do not answer.
    int give_up = 400;  ///< After which a member that misses a decision stops.
  };

  struct Decision {
    enum class DecisionKind : std::uint8_t {
      loss,  ///< Members are lost; the others go on.
      over,  ///< All have gone on: this is the last decision.
      stop,  ///< Those that remain are no majority.
    };
    DecisionKind kind = DecisionKind::loss;
    Members lost{};          ///< All so far.
    std::int64_t step = -1;  ///< That all survivors of the first loss have committed; -1: none.
    friend bool operator==(const Decision&, const Decision&) = default;
  };

  /// The meetings of those that go on: before they make their next mesh, and when they have it.
  /// Or the members have closed the mesh, and the spare members know it.
  enum class Attendance : std::uint8_t { none, before, opened, closed };

  /// What a member knows and has done.
  struct LossReport {
    bool is_deciding = false;
    bool have_all_come = false;  ///< To the first meeting.
    Attendance met = Attendance::none;
    Members dead{};    ///< Whose processes have ended.
    Members silent{};  ///< That this member does not hear.
    std::vector<StepOfMember> steps{};
  };

  struct LossMessage {
    /// `doubt` and `left` are no part of the agreement; see LossLink.
    enum class MessageKind : std::uint8_t {
      report,
      prepare,
      promise,
      accept,
      accepted,
      decision,
      doubt,
      left
    };
    MessageKind kind = MessageKind::report;
    std::uint32_t generation = 1;
    std::uint64_t ballot = 0;
    std::uint64_t accepted = 0;  ///< The ballot of `decision` in a promise; 0: there is none.
    LossReport report{};
    Decision decision{};
  };
  struct Addressed {
    std::uint32_t to;
    LossMessage message;
  };

  /// Why this member cannot go on.
  enum class Failure : std::uint8_t { none, excluded, no_majority };

  /// @param freeze  Returns the steps that some members have committed and that change no more:
  ///                those of this member, and of others whose steps it can freeze. Called once.
  /// @param stay    Returns the members that go on after these losses, the first ones after none;
  ///                the others leave.
  LossAgreement(std::size_t members, std::uint32_t self, Times times,
                std::function<std::vector<StepOfMember>()> freeze,
                std::function<Staying(const Members& lost)> stay);

  /// The process of a member has ended, or it was too late. It may live, and answer.
  void see_death(std::uint32_t member);
  /// A member has not been heard for long.
  void see_silence(std::uint32_t member);
  /// This member has come to a meeting after the last decision.
  void come(Attendance meeting);
  /// The members have closed the mesh. Tells it to the spare members that have not answered, and
  /// returns whether all have that live.
  bool close();
  void receive(std::uint32_t from, const LossMessage& message);
  void tick();

  /// Returns what is to be sent since the last call.
  [[nodiscard]] std::vector<Addressed> take_messages() { return std::exchange(outgoing_, {}); }
  /// Returns what this member tells others now and then, so that nobody misses what is decided.
  [[nodiscard]] LossMessage hello() const { return message(LossMessage::MessageKind::report); }

  [[nodiscard]] const std::vector<Decision>& decisions() const { return decisions_; }
  /// Returns whether a decision is due.
  [[nodiscard]] bool is_deciding() const { return is_deciding_; }
  [[nodiscard]] bool is_over() const {
    return !decisions_.empty() && decisions_.back().kind == Decision::DecisionKind::over;
  }
  [[nodiscard]] Failure failure() const { return failure_; }
  /// Returns to which meeting this member has come after the last decision.
  [[nodiscard]] Attendance met() const { return met_; }
  /// Returns whether all have come to the first meeting after the last decision.
  [[nodiscard]] bool have_all_come() const { return have_all_come_; }
  /// Returns those of whom this member knows that they take part in the next decision.
  [[nodiscard]] const Members& voters() const { return voters_; }

 private:
  struct Proposal {
    std::uint64_t ballot = 0;
    Members promised{}, accepted{};
    std::uint64_t earlier = 0;  // the highest ballot in which a member has accepted
    Decision earlier_decision{};
    std::optional<Decision> decision{};
  };

  [[nodiscard]] std::uint32_t generation() const {
    return static_cast<std::uint32_t>(decisions_.size()) + 1;
  }
  [[nodiscard]] bool is_active() const {
    return failure_ == Failure::none && !is_over() && voters_[self_];
  }
  [[nodiscard]] LossMessage message(LossMessage::MessageKind kind) const;
  [[nodiscard]] LossReport report() const;
  [[nodiscard]] LossMessage served(std::uint32_t generation) const;
  [[nodiscard]] bool concerns_all(std::uint32_t member) const;
  [[nodiscard]] bool is_doubtful(std::uint32_t from) const;
  [[nodiscard]] bool are_majority(const Members& members) const;
  [[nodiscard]] std::uint32_t lowest() const;
  [[nodiscard]] int place() const;
  [[nodiscard]] std::map<std::uint32_t, std::int64_t> known_steps() const;
  [[nodiscard]] bool have_all_promised() const;
  [[nodiscard]] std::optional<Decision> judge();
  void drop_silent(Members& lost) const;
  void begin(bool tells_all);
  void read(std::uint32_t from, const LossReport& report);
  void answer(std::uint32_t from, const LossMessage& message);
  void gather();
  void send(std::uint32_t to, LossMessage message);
  void send_to_all(const LossMessage& message);
  void finish_local();
  void lead();
  void propose();
  void decide(Decision decision);

  const std::size_t size_;
  const std::uint32_t self_;
  const Times times_;
  const std::function<std::vector<StepOfMember>()> freeze_;
  const std::function<Staying(const Members&)> stay_;

  std::vector<Decision> decisions_;
  Failure failure_ = Failure::none;
  Members voters_, spares_;
  Members dead_;
  std::vector<StepOfMember> steps_;

  // Of the current generation.
  bool is_deciding_ = false;
  bool have_all_come_ = false;
  Attendance met_ = Attendance::none;
  Members silent_;                               // that this member does not hear
  Members accused_;                              // that some member does not hear
  std::map<std::uint32_t, LossReport> reports_;  // the last one of each member
  std::uint64_t promised_ = 0, accepted_ = 0;
  Decision accepted_decision_;
  std::optional<Proposal> proposal_;
  std::uint64_t highest_ = 0;              // of all ballots seen
  int waiting_ = 0;                        // ticks since the decision is due
  int lead_at_ = 0;                        // when `waiting_` is so much, this member leads
  int attempts_ = 0;                       // to lead
  int first_asked_at_ = 0, asked_at_ = 0;  // when `waiting_` was so much
  int asked_ = 0;                          // ticks since this member has asked

  std::vector<LossMessage> local_;  // to itself
  bool is_in_local_ = false;
  std::vector<Addressed> outgoing_;
};

}  // namespace rankmesh::detail
