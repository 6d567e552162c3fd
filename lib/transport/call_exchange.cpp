// SPDX-License-Identifier: BSD-3-Clause
#include "detail/call_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "detail/block_counts.hpp"
#include "detail/call_descriptor.hpp"
#include "mpi/detail/returned_errors.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "transport/shm/meeting.hpp"
#include "wait/detail/send_and_forget.hpp"

namespace rankmesh::detail {
namespace {

using mpi::check;

// How often exchanges are polled between two looks for members that have closed the group.
constexpr int polls_per_look = 64;
// How long close() waits for the messages of members that have closed the group before.
constexpr Deadline::Duration patience{0.3};

}  // namespace

class CallExchange::Comparison {
 public:
  // What a member sends of its call.
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

// A member that makes no further calls sends it to the others.
struct CallExchange::Note {
  std::uint64_t mark = 0;
  std::uint64_t closed_after = 0;  // 1 + the number of calls
  std::uint64_t attempt = 0;       // the number of the attempt to close the group
  std::uint64_t is_finding = 0;    // 1 if `why` is the text of a MismatchError
  char why[1000] = {};
};

CallExchange::CallExchange(mpi::CommunicatorView comm, GroupMembers members)
    : comm_{comm},
      members_{std::move(members)},
      departures_(static_cast<std::size_t>(comm.size())) {}

CallExchange::~CallExchange() {
  // MPI may still use the memory of an exchange that is not complete.
  for (std::shared_ptr<Comparison>& comparison : queue_)
    if (comparison->request != MPI_REQUEST_NULL) leak(comparison);
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

// Ends the first call if a member has closed the group before it.
void CallExchange::look_for_departed() {
  receive_notes();
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
  calls[static_cast<std::size_t>(comm_.rank())] = fmt::format(
      "{}, call {}", to_string(own, members_.name_of(own.family()), counts), first.number);
  std::string text = list_calls(members_.ranks, members_.names, calls);
  if (has_failed) throw PeerError{std::move(text), peer_hint};
  // The members that have closed the group wait for this one, and throw the same error.
  tell_all(note_of(0, text, true));
  throw MismatchError{std::move(text), mismatch_hint, false};
}

CallExchange::Note CallExchange::note_of(std::uint64_t closed_after, std::string_view why,
                                         bool is_finding) const {
  Note note;
  note.mark = members_.key.mark();
  note.attempt = failed_attempts_ + 1;
  note.closed_after = closed_after;
  note.is_finding = is_finding ? 1 : 0;
  std::memcpy(note.why, why.data(), std::min(why.size(), sizeof note.why - 1));
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
    std::string why{note.why, ::strnlen(note.why, sizeof note.why)};
    if (note.is_finding == 0)
      departures_[static_cast<std::size_t>(status.MPI_SOURCE)] = {note.closed_after,
                                                                  std::move(why)};
    else if (failure_ == nullptr)
      failure_ = std::make_exception_ptr(MismatchError{std::move(why), mismatch_hint, false});
  }
}

void CallExchange::leave(std::string_view why) {
  tell_all(note_of(calls_ + 1, why, false));
  departures_[static_cast<std::size_t>(comm_.rank())] = {calls_ + 1, {}};
}

void CallExchange::stay() {
  ++failed_attempts_;
  std::ranges::fill(departures_, Departure{});
}

void CallExchange::throw_if_ended() {
  if (has_thrown_) return;
  receive_notes();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void CallExchange::compare_at_close() {
  throw_if_ended();
  if (has_thrown_) return;
  // A member that has adopted the communicator alone gets no notes.
  const bool is_complete = poll_until(
      [&] {
        receive_notes();
        if (failure_ != nullptr) std::rethrow_exception(failure_);
        return std::ranges::all_of(departures_,
                                   [](const Departure& d) { return d.closed_after != 0; });
      },
      Deadline{patience});
  const auto is_same = [&](const Departure& d) { return d.closed_after == calls_ + 1; };
  if (!is_complete || std::ranges::all_of(departures_, is_same)) return;
  std::vector<std::string> calls;
  for (const Departure& departure : departures_) calls.push_back(departure_text(departure));
  throw MismatchError{list_calls(members_.ranks, members_.names, calls), mismatch_hint, false};
}

}  // namespace rankmesh::detail
