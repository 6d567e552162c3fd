// SPDX-License-Identifier: BSD-3-Clause
#include "detail/exchange_guard.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/detail/patience.hpp"
#include "detail/block_counts.hpp"
#include "detail/call_descriptor.hpp"
#include "mpi/detail/returned_errors.hpp"
#include "mpi/detail/unfinished.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::detail {
namespace {

using mpi::check;

// How often exchanges are polled between two checks for members that have closed the group.
constexpr int polls_per_look = 64;

}  // namespace

// A call that is compared.
struct ExchangeGuard::ComparedCall {
  // What a member sends about its call.
  struct Announced {
    CallDescriptor call{};
    std::int64_t is_async = 0;
  };
  // What is missing until the call is compared: its turn, the calls of the others, their counts.
  enum class Missing : std::uint8_t { turn, calls, counts, nothing };

  Missing missing = Missing::turn;
  std::uint64_t number = 0;
  Announced own;
  std::vector<Announced> all;       // one per member
  std::vector<CallWord> own_words;  // see block_counts.hpp
  std::vector<CallWord> all_words;
  MPI_Request request = MPI_REQUEST_NULL;
  Carry carry;
  const bool* waits_for = nullptr;  // it does not begin before this is true

  [[nodiscard]] bool any_is_async() const {
    return std::ranges::any_of(all, [](const Announced& a) { return a.is_async != 0; });
  }
};

class ExchangeGuard::PendingComparison final : public Pending {
 public:
  PendingComparison(ExchangeGuard& guard, std::shared_ptr<ComparedCall> exchange)
      : guard_{guard}, exchange_{std::move(exchange)} {}
  bool test() override {
    guard_.advance();
    if (exchange_->missing == ComparedCall::Missing::nothing) return true;
    if (guard_.failure_ == nullptr) return false;
    guard_.has_thrown_ = true;
    std::rethrow_exception(guard_.failure_);
  }

 private:
  ExchangeGuard& guard_;
  std::shared_ptr<ComparedCall> exchange_;
};

ExchangeGuard::ExchangeGuard(const mpi::CommunicatorView& comm, GroupMembers members)
    : NoteGuard{comm, std::move(members)},
      departures_(static_cast<std::size_t>(comm.size())),
      reports_(departures_.size()) {}

ExchangeGuard::~ExchangeGuard() {
  // MPI may still use the memory of an exchange that is not complete.
  for (std::shared_ptr<ComparedCall>& exchange : queue_) {
    if (exchange->request == MPI_REQUEST_NULL) continue;
    const CallDescriptor& call = exchange->own.call;
    mpi::record_abandoned("the comparison of " + members_.text_of(call, exchange->number));
    leak(exchange);
  }
}

bool ExchangeGuard::meet(const Call& call, bool is_async, Waiter& waiter) {
  const std::shared_ptr<ComparedCall> exchange = begin(call, is_async, {});
  waiter.finish(call, calls(), std::make_unique<PendingComparison>(*this, exchange));
  return exchange->any_is_async();
}

std::unique_ptr<Pending> ExchangeGuard::start_comparison(const Call& call, Carry carry) {
  return std::make_unique<PendingComparison>(*this, begin(call, true, std::move(carry)));
}

std::unique_ptr<Pending> ExchangeGuard::start_end(const Call& call, const bool& has_run) {
  --calls();  // it is a part of the last call
  return std::make_unique<PendingComparison>(*this, begin(call, true, {}, &has_run));
}

// Adds a call. Local; the call may be destroyed afterwards.
std::shared_ptr<ExchangeGuard::ComparedCall> ExchangeGuard::begin(const Call& call, bool is_async,
                                                                  Carry carry,
                                                                  const bool* waits_for) {
  mpi::require_not_finalised();
  auto added = std::make_shared<ComparedCall>();
  added->number = ++calls();
  added->own = {describe_completely(call), is_async ? 1 : 0};
  added->carry = std::move(carry);
  added->waits_for = waits_for;
  if (call.has_blocks()) {
    const std::int64_t words = call_words(call, comm_.size());
    for (std::int64_t i = 0; i < words; ++i) added->own_words.push_back(call_word(call, i));
  }
  queue_.push_back(added);
  advance();
  return added;
}

// Continues the exchanges as far as the other members allow. Never waits and never throws.
void ExchangeGuard::advance() {
  try {
    while (!queue_.empty() && failure_ == nullptr && step(*queue_.front())) {
      const std::shared_ptr<ComparedCall> compared = queue_.front();
      queue_.pop_front();
      if (compared->carry) compared->carry();
      compared->carry = nullptr;
      compared->missing = ComparedCall::Missing::nothing;
    }
    if (!queue_.empty() && failure_ == nullptr && ++polls_ % polls_per_look == 0)
      look_for_departed();
  } catch (const Error&) {
    failure_ = std::current_exception();
  }
}

// Continues one exchange, and returns whether the calls are compared.
bool ExchangeGuard::step(ComparedCall& c) {
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
  using Missing = ComparedCall::Missing;
  if (c.missing == Missing::turn) {
    if (c.waits_for != nullptr && !*c.waits_for) return false;
    c.all.resize(members);
    gather(&c.own, sizeof c.own, c.all.data());
    c.missing = Missing::calls;
  }
  if (c.missing == Missing::calls) {
    if (!has_ended()) return false;
    compare(c);
    if (c.own_words.empty()) return true;
    c.all_words.resize(c.own_words.size() * members);
    gather(c.own_words.data(), c.own_words.size() * sizeof(CallWord), c.all_words.data());
    c.missing = Missing::counts;
  }
  if (!has_ended()) return false;
  compare_counts(c);
  return true;
}

void ExchangeGuard::compare(const ComparedCall& c) const {
  for (const ComparedCall::Announced& other : c.all)
    if (!other.call.matches(c.own.call)) refuse_exchange(c);
}

void ExchangeGuard::compare_counts(const ComparedCall& c) const {
  const auto words = std::ssize(c.own_words);
  const CallDescriptor& call = c.own.call;
  if (!all_block_counts_agree(call.operation(), static_cast<std::int64_t>(call.root()),
                              comm_.rank(), comm_.size(), 0, words,
                              [&](std::int64_t member, std::int64_t i) {
                                return c.all_words[static_cast<std::size_t>(member * words + i)];
                              }))
    refuse_exchange(c);
}

void ExchangeGuard::refuse_exchange(const ComparedCall& c) const {
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
    calls.push_back(members_.text_of(call, c.number, of_blocks));
  }
  throw different_calls(members_.list(calls, &counts));
}

// Ends the first call if a member has closed the group before this call.
void ExchangeGuard::look_for_departed() {
  receive_notes();
  if (failure_ != nullptr) return;
  const ComparedCall& first = *queue_.front();
  std::vector<std::string> calls(departures_.size());
  bool has_failed = false;
  bool is_missed = false;
  for (std::size_t k = 0; k < departures_.size(); ++k) {
    const Departure& departure = departures_[k];
    if (departure.closed_after == 0 || departure.closed_after > first.number) continue;
    is_missed = true;
    has_failed = has_failed || !departure.why.empty();
    calls[k] = members_.text_of_departure(departure.closed_after - 1, departure.why);
  }
  if (!is_missed) return;
  const CallDescriptor& own = first.own.call;
  const std::string counts =
      own.has(CallDescriptor::blocks) ? fmt::format("own block of {}", own.count) : std::string{};
  std::string own_call = members_.text_of(own, first.number, counts);
  if (!has_failed) return end_departed_call(std::move(calls), std::move(own_call));
  calls[static_cast<std::size_t>(comm_.rank())] = std::move(own_call);
  throw PeerError{members_.list(calls), peer_hint};
}

// The members that are in the call report this to each other. When the calls of all these members
// are known, the first of them creates the error and sends it to all members. Members that have
// closed the group throw it too.
void ExchangeGuard::end_departed_call(std::vector<std::string> calls, std::string own_call) {
  const auto self = static_cast<std::size_t>(comm_.rank());
  if (!reports_end_) {
    tell_all(NoteKind::report, own_call);
    reports_[self] = std::move(own_call);
    reports_end_ = Deadline{2 * patience().reports};
  }
  bool is_complete = true;
  bool is_first = true;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    if (!calls[k].empty()) continue;
    calls[k] = reports_[k];
    is_first = is_first && (k >= self || calls[k].empty());
    is_complete = is_complete && !calls[k].empty();
  }
  if (!is_complete && reports_end_->left() > patience().reports) return;
  // If the first member does not create the error, something else has failed there.
  if (!is_first && !reports_end_->passed()) return;
  const MismatchError error = different_calls(members_.list(calls));
  tell_all(NoteKind::finding, error.message());
  throw error;
}

void ExchangeGuard::take(int from, const GuardNote& note, std::string text) {
  const auto member = static_cast<std::size_t>(from);
  if (note.kind == NoteKind::departure)
    departures_[member] = {note.closed_after, std::move(text)};
  else
    reports_[member] = std::move(text);
}

void ExchangeGuard::leave(std::string_view why) {
  tell_all(NoteKind::departure, why, calls() + 1);
  departures_[static_cast<std::size_t>(comm_.rank())] = {calls() + 1, {}};
}

bool ExchangeGuard::have_all_left() {
  throw_if_ended();
  if (has_thrown_) receive_notes();
  return std::ranges::all_of(departures_, [](const Departure& d) { return d.closed_after != 0; });
}

void ExchangeGuard::stay() {
  NoteGuard::stay();
  std::ranges::fill(departures_, Departure{});
  std::ranges::fill(reports_, std::string{});
  reports_end_.reset();
}

void ExchangeGuard::compare_at_close() {
  throw_if_ended();
  if (has_thrown_) return;
  // If no other member has adopted the communicator, this member gets no notes.
  const bool is_complete =
      poll_until([&] { return have_all_left(); }, Deadline{patience().reports});
  const auto is_same = [&](const Departure& d) { return d.closed_after == calls() + 1; };
  if (!is_complete || std::ranges::all_of(departures_, is_same)) return;
  std::vector<std::string> texts;
  for (const Departure& departure : departures_)
    texts.push_back(members_.text_of_departure(departure.closed_after - 1, departure.why));
  throw different_calls(members_.list(texts));
}

}  // namespace rankmesh::detail
