// SPDX-License-Identifier: BSD-3-Clause
#include "detail/call_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "detail/block_counts.hpp"
#include "detail/call_descriptor.hpp"
#include "mpi/detail/returned_errors.hpp"
#include "mpi/detail/unfinished.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "transport/shm/meeting.hpp"
#include "wait/detail/send_and_forget.hpp"

namespace rankmesh::detail {
namespace {

using mpi::check;

// How often exchanges are polled between two checks for members that have closed the group.
constexpr int polls_per_look = 64;
// How long close() waits for the messages of members that have already closed the group. A member
// in a call waits as long for the reports of the other members.
constexpr Deadline::Duration patience{0.3};

}  // namespace

class CallExchange::Comparison {
 public:
  // What a member sends about its call.
  struct Record {
    CallDescriptor call{};
    std::int64_t is_async = 0;
  };
  enum class Phase : std::uint8_t { waits, exchanges_calls, exchanges_counts, is_complete };

  Phase phase = Phase::waits;
  std::uint64_t number = 0;
  Record own;
  std::vector<Record> all;          // one per member
  std::vector<CallWord> own_words;  // see block_counts.hpp
  std::vector<CallWord> all_words;
  MPI_Request request = MPI_REQUEST_NULL;
  std::function<void(bool)> carry;
};

enum class CallExchange::NoteKind : std::uint64_t {
  departure,  // its sender makes no further calls; the text is the reason, or empty
  report,     // its sender is in a call that a departed member has not made; the text is the call
  finding     // the text of the MismatchError
};

// What a member tells the others in addition to its calls.
struct CallExchange::Note {
  std::uint64_t mark = 0;
  NoteKind kind = NoteKind::departure;
  std::uint64_t closed_after = 0;  // 1 + the number of calls
  std::uint64_t attempt = 0;       // the number of the attempt to close the group
  char text[1000] = {};
};

CallExchange::CallExchange(mpi::CommunicatorView comm, GroupMembers members)
    : comm_{comm},
      members_{std::move(members)},
      departures_(static_cast<std::size_t>(comm.size())),
      reports_(departures_.size()) {}

CallExchange::~CallExchange() {
  // MPI may still use the memory of an exchange that is not complete.
  for (std::shared_ptr<Comparison>& comparison : queue_) {
    if (comparison->request == MPI_REQUEST_NULL) continue;
    const CallDescriptor& call = comparison->own.call;
    mpi::record_abandoned(fmt::format("the comparison of {}, call {}",
                                      to_string(call, members_.name_of(call.family())),
                                      comparison->number));
    leak(comparison);
  }
}

std::shared_ptr<CallExchange::Comparison> CallExchange::begin(const Call& call, bool is_async,
                                                              std::function<void(bool)> carry) {
  auto added = std::make_shared<Comparison>();
  added->number = ++calls_;
  added->own = {describe_completely(call), is_async ? 1 : 0};
  added->carry = std::move(carry);
  if (call.has_blocks()) {
    added->own_words.push_back(added->own.is_async);
    const std::int64_t words = call_words(call, comm_.size());
    for (std::int64_t i = 1; i < words; ++i) added->own_words.push_back(block_word(call, i));
  }
  queue_.push_back(added);
  advance();
  return added;
}

void CallExchange::advance() {
  try {
    while (!queue_.empty() && failure_ == nullptr && step(*queue_.front())) {
      const std::shared_ptr<Comparison> compared = queue_.front();
      queue_.pop_front();
      const bool any_is_async = std::ranges::any_of(
          compared->all, [](const Comparison::Record& r) { return r.is_async != 0; });
      if (compared->carry) compared->carry(any_is_async);
      compared->carry = nullptr;
      compared->phase = Comparison::Phase::is_complete;
    }
    if (!queue_.empty() && failure_ == nullptr && ++polls_ % polls_per_look == 0)
      look_for_departed();
  } catch (const Error&) {
    failure_ = std::current_exception();
  }
}

bool CallExchange::is_complete(const Comparison& comparison) {
  return comparison.phase == Comparison::Phase::is_complete;
}

bool CallExchange::test(const Comparison& comparison) {
  advance();
  if (is_complete(comparison)) return true;
  if (failure_ == nullptr) return false;
  has_thrown_ = true;
  std::rethrow_exception(failure_);
}

// Continues one exchange, and returns whether the calls are compared.
bool CallExchange::step(Comparison& c) {
  const auto members = static_cast<std::size_t>(comm_.size());
  const auto gather = [&](const void* from, std::size_t bytes, void* to) {
    const int count = static_cast<int>(bytes);
    check(MPI_Iallgather(from, count, MPI_BYTE, to, count, MPI_BYTE, comm_.native(), &c.request),
          "MPI_Iallgather");
  };
  const auto has_ended = [&] {
    int done = 0;
    const mpi::ReturnedErrors returned{MPI_COMM_WORLD};
    check(MPI_Test(&c.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  };
  using Phase = Comparison::Phase;
  if (c.phase == Phase::waits) {
    c.all.resize(members);
    gather(&c.own, sizeof c.own, c.all.data());
    c.phase = Phase::exchanges_calls;
  }
  if (c.phase == Phase::exchanges_calls) {
    if (!has_ended()) return false;
    compare(c);
    if (c.own_words.empty()) return true;
    c.all_words.resize(c.own_words.size() * members);
    gather(c.own_words.data(), c.own_words.size() * sizeof(CallWord), c.all_words.data());
    c.phase = Phase::exchanges_counts;
  }
  if (!has_ended()) return false;
  compare_counts(c);
  return true;
}

void CallExchange::compare(const Comparison& c) const {
  for (const Comparison::Record& other : c.all)
    if (!other.call.matches(c.own.call)) refuse(c);
}

void CallExchange::compare_counts(const Comparison& c) const {
  const auto words = static_cast<std::int64_t>(c.own_words.size());
  const CallDescriptor& call = c.own.call;
  if (!all_block_counts_agree(call.operation(), static_cast<std::int64_t>(call.root()),
                              comm_.rank(), comm_.size(), 0, words,
                              [&](std::int64_t member, std::int64_t i) {
                                return c.all_words[static_cast<std::size_t>(member * words + i)];
                              }))
    refuse(c);
}

void CallExchange::refuse(const Comparison& c) const {
  std::vector<const std::byte*> words(c.all.size(), nullptr);
  if (!c.all_words.empty())
    for (std::size_t k = 0; k < words.size(); ++k)
      words[k] = reinterpret_cast<const std::byte*>(c.all_words.data() + k * c.own_words.size());
  const BlockCounts counts{c.own.call.operation(), std::move(words)};
  std::vector<std::string> calls;
  for (std::size_t k = 0; k < c.all.size(); ++k) {
    const CallDescriptor& call = c.all[k].call;
    const bool is_v_form = call.has(CallDescriptor::blocks);
    const std::string of_blocks = is_v_form ? counts.text(k, call.count) : std::string{};
    calls.push_back(fmt::format(
        "{}, call {}", to_string(call, members_.name_of(call.family()), of_blocks), c.number));
  }
  throw MismatchError{list_calls(members_.ranks, members_.names, calls, &counts), mismatch_hint,
                      false};
}

std::string CallExchange::departure_text(const Departure& departure) const {
  const std::string& name = members_.coordinators.front();
  if (!departure.why.empty())
    return fmt::format("{}, after {} calls of {}", departure.why, departure.closed_after - 1, name);
  return fmt::format("close of {} after {} calls", name, departure.closed_after - 1);
}

// Ends the first call if a member has closed the group before this call.
void CallExchange::look_for_departed() {
  receive_notes();
  if (failure_ != nullptr) return;
  const Comparison& first = *queue_.front();
  std::vector<std::string> calls(departures_.size());
  bool has_failed = false;
  bool is_missed = false;
  for (std::size_t k = 0; k < departures_.size(); ++k) {
    const Departure& departure = departures_[k];
    if (departure.closed_after == 0 || departure.closed_after > first.number) continue;
    is_missed = true;
    has_failed = has_failed || !departure.why.empty();
    calls[k] = departure_text(departure);
  }
  if (!is_missed) return;
  const CallDescriptor& own = first.own.call;
  const std::string counts =
      own.has(CallDescriptor::blocks) ? fmt::format("own block of {}", own.count) : std::string{};
  std::string own_call = fmt::format(
      "{}, call {}", to_string(own, members_.name_of(own.family()), counts), first.number);
  if (!has_failed) return end_departed_call(std::move(calls), std::move(own_call));
  calls[static_cast<std::size_t>(comm_.rank())] = std::move(own_call);
  throw PeerError{list_calls(members_.ranks, members_.names, calls), peer_hint};
}

// The members that are in the call report this to each other. When the calls of all these members
// are known, the first of them creates the error and sends it to all members. Members that have
// closed the group throw it too.
void CallExchange::end_departed_call(std::vector<std::string> calls, std::string own_call) {
  const auto self = static_cast<std::size_t>(comm_.rank());
  if (!reports_end_) {
    tell_all(note_of(NoteKind::report, own_call));
    reports_[self] = std::move(own_call);
    reports_end_ = Deadline{2 * patience};
  }
  bool is_complete = true;
  bool is_first = true;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    if (!calls[k].empty()) continue;
    calls[k] = reports_[k];
    is_first = is_first && (k >= self || calls[k].empty());
    is_complete = is_complete && !calls[k].empty();
  }
  if (!is_complete && reports_end_->left() > patience) return;
  // If the first member does not create the error, something else has failed there.
  if (!is_first && !reports_end_->passed()) return;
  std::string text = list_calls(members_.ranks, members_.names, calls);
  tell_all(note_of(NoteKind::finding, text));
  throw MismatchError{std::move(text), mismatch_hint, false};
}

CallExchange::Note CallExchange::note_of(NoteKind kind, std::string_view text,
                                         std::uint64_t closed_after) const {
  Note note;
  note.mark = members_.key.mark();
  note.kind = kind;
  note.attempt = failed_attempts_ + 1;
  note.closed_after = closed_after;
  std::memcpy(note.text, text.data(), std::min(text.size(), sizeof note.text - 1));
  return note;
}

void CallExchange::tell_all(const Note& note) const {
  for (int member = 0; member < comm_.size(); ++member)
    if (member != comm_.rank()) send_and_forget(comm_, member, members_.key.closing_tag(), note);
}

void CallExchange::receive_notes() {
  for (;;) {
    int there = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, members_.key.closing_tag(), comm_.native(), &there, &status),
          "MPI_Iprobe");
    if (there == 0) return;
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    if (bytes != sizeof(Note)) return;  // a message of the program
    Note note;
    check(MPI_Recv(&note, sizeof note, MPI_BYTE, status.MPI_SOURCE, members_.key.closing_tag(),
                   comm_.native(), MPI_STATUS_IGNORE),
          "MPI_Recv");
    // The attempts to close a mesh are collective, so an attempt that has failed on one rank has
    // failed on all of them.
    if (note.mark != members_.key.mark() || note.attempt <= failed_attempts_) continue;
    const auto from = static_cast<std::size_t>(status.MPI_SOURCE);
    std::string text{note.text, ::strnlen(note.text, sizeof note.text)};
    if (note.kind == NoteKind::departure)
      departures_[from] = {note.closed_after, std::move(text)};
    else if (note.kind == NoteKind::report)
      reports_[from] = std::move(text);
    else if (failure_ == nullptr)
      failure_ = std::make_exception_ptr(MismatchError{std::move(text), mismatch_hint, false});
  }
}

void CallExchange::leave(std::string_view why) {
  tell_all(note_of(NoteKind::departure, why, calls_ + 1));
  departures_[static_cast<std::size_t>(comm_.rank())] = {calls_ + 1, {}};
}

bool CallExchange::have_all_left() {
  throw_if_ended();
  if (has_thrown_) receive_notes();
  return std::ranges::all_of(departures_, [](const Departure& d) { return d.closed_after != 0; });
}

void CallExchange::stay() {
  ++failed_attempts_;
  std::ranges::fill(departures_, Departure{});
  std::ranges::fill(reports_, std::string{});
}

void CallExchange::throw_if_ended() {
  if (has_thrown_) return;
  receive_notes();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void CallExchange::compare_at_close() {
  throw_if_ended();
  if (has_thrown_) return;
  // If no other member has adopted the communicator, this member gets no notes.
  const bool is_complete = poll_until([&] { return have_all_left(); }, Deadline{patience});
  const auto is_same = [&](const Departure& d) { return d.closed_after == calls_ + 1; };
  if (!is_complete || std::ranges::all_of(departures_, is_same)) return;
  std::vector<std::string> calls;
  for (const Departure& departure : departures_) calls.push_back(departure_text(departure));
  throw MismatchError{list_calls(members_.ranks, members_.names, calls), mismatch_hint, false};
}

}  // namespace rankmesh::detail
