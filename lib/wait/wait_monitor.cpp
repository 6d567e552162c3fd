// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/wait/wait_monitor.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/send_and_forget.hpp"
#include "mpi/detail/unfinished.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/backoff.hpp"

namespace rankmesh {
namespace {

using detail::send_and_forget;
using mpi::check;
using mpi::CommunicatorView;

// MPI guarantees tags up to 32767.
constexpr int question_tag = 32765;
constexpr int answer_tag = 32766;
constexpr int verdict_tag = 32767;
constexpr std::size_t max_named = 32;

constexpr std::uint64_t mark = 0x72616e6b6d657368;  // "rankmesh"

// How the questions and answers work:
//
// A rank whose deadline has passed sends a question to every other member of its wait point. A
// member that waits somewhere in this class answers with its own wait point: the same key means
// that it is present, another key that it waits for something else. A member that does not answer
// within the grace time is missing: it has crashed, computes, or is blocked outside of this class.
// The rank then sends a verdict with the finding to the members that are present, so that they
// throw the same error and do not have to ask. If the deadlines of several ranks pass at the same
// moment, each of them asks; they may also receive a verdict while they wait for answers.
//
// Nothing else can be assumed of a missing rank, so no message here waits for its receiver.

// A question or an answer.
struct Note {
  std::uint64_t mark_ = mark;
  std::uint64_t key = 0;
  std::uint64_t number = 0;  // of the question; an answer repeats it
  char activity[64] = {};
};

// The finding of a rank that has asked, for the members that still wait at the same point.
struct Verdict {
  std::uint64_t mark_ = mark;
  std::uint64_t key = 0;
  std::int64_t missing_count = 0;
  std::int64_t missing[max_named] = {};
  char message[2048] = {};
};

template <std::size_t size>
void copy_text(char (&to)[size], const std::string& text) {
  std::memcpy(to, text.data(), std::min(text.size(), size - 1));
}

Note note_of(const WaitPoint& point, std::uint64_t number) {
  Note note;
  note.key = point.key;
  note.number = number;
  copy_text(note.activity, point.activity);
  return note;
}

template <class Message>
struct Received {
  int from;
  Message message;
};

// Receives a message only if it has exactly the size of ours. On a communicator that the program
// also uses, another message with the same tag may be its own.
template <class Message>
std::optional<Received<Message>> receive(const CommunicatorView& comm, int tag) {
  int there = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm.native(), &there, &status), "MPI_Iprobe");
  if (there == 0) return std::nullopt;
  int size = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
  if (size != sizeof(Message)) return std::nullopt;
  Received<Message> received{status.MPI_SOURCE, {}};
  check(MPI_Recv(&received.message, size, MPI_BYTE, received.from, tag, comm.native(),
                 MPI_STATUS_IGNORE),
        "MPI_Recv");
  if (received.message.mark_ != mark) return std::nullopt;
  return received;
}

Verdict verdict_of(std::uint64_t key, const std::vector<Rank>& missing,
                   const std::string& message) {
  Verdict verdict;
  verdict.key = key;
  verdict.missing_count = static_cast<std::int64_t>(std::min(missing.size(), max_named));
  for (std::size_t i = 0; i < missing.size() && i < max_named; ++i)
    verdict.missing[i] = missing[i].value();
  copy_text(verdict.message, message);
  return verdict;
}

constexpr const char* timeout_hint =
    "check the missing ranks for a crash, another branch or an earlier error; RANKMESH_TIMEOUT "
    "sets the time limit";

// Ranks may outnumber cores, and a wait may take minutes: yield soon, and sleep later.
constexpr Backoff::Options pauses{
    .spins = 49, .yields = 1950, .sleep = std::chrono::microseconds{100}};

}  // namespace

WaitMonitor::WaitMonitor(CommunicatorView comm, Audience audience, RankNames names)
    : comm_{comm}, audience_{audience}, names_{std::move(names)} {}

void WaitMonitor::wait(std::span<MPI_Request> requests, const WaitPoint& point,
                       const Deadline& deadline) {
  try {
    wait(
        [&] {
          int done = 0;
          check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                            MPI_STATUSES_IGNORE),
                "MPI_Testall");
          return done != 0;
        },
        point, deadline);
  } catch (...) {
    mpi::record_abandoned(point.activity);  // the requests are still active
    throw;
  }
}

void WaitMonitor::wait(const std::function<bool()>& done, const WaitPoint& point,
                       const Deadline& deadline) {
  Backoff backoff{pauses};
  // On a communicator that the program also uses, a message may be its own. There, nothing is
  // received before the wait has lasted so long that something is probably wrong.
  const Deadline silence{
      Deadline::Duration{audience_ == Audience::own ? 0.0 : std::min(5.0, deadline.seconds() / 2)}};
  for (int polls = 1; !done(); ++polls) {
    if (deadline.passed() && !conclude(done, point, deadline)) return;
    if (polls % 64 == 0 && silence.passed()) serve(point);
    backoff.pause();
  }
}

// Answers the questions of other ranks, and throws if there is a verdict on the point of this rank.
void WaitMonitor::serve(const WaitPoint& point) {
  while (const auto question = receive<Note>(comm_, question_tag))
    send_and_forget(comm_, question->from, answer_tag, note_of(point, question->message.number));
  while (const auto received = receive<Verdict>(comm_, verdict_tag)) {
    const Verdict& verdict = received->message;
    if (verdict.key != point.key) continue;  // this rank no longer waits at that point
    throw TimeoutError{
        verdict.message, timeout_hint, {verdict.missing, verdict.missing + verdict.missing_count}};
  }
}

// Asks the other members and throws the finding. Returns false if the wait ended meanwhile.
bool WaitMonitor::conclude(const std::function<bool()>& done, const WaitPoint& point,
                           const Deadline& deadline) {
  serve(point);  // there may already be a verdict
  const std::uint64_t number = ++questions_;
  const Note question = note_of(point, number);
  std::vector<int> silent;
  for (const int member : point.members)
    if (member != comm_.rank()) silent.push_back(member);
  for (const int member : silent) send_and_forget(comm_, member, question_tag, question);

  std::vector<int> present;
  std::vector<std::string> elsewhere;
  const Deadline grace{Deadline::Duration{std::clamp(deadline.seconds(), 0.5, 2.0)}};
  Backoff backoff{pauses};
  while (!silent.empty() && !grace.passed()) {
    if (done()) return false;
    serve(point);
    while (const auto received = receive<Note>(comm_, answer_tag)) {
      const Note& answer = received->message;
      if (answer.number != number || std::erase(silent, received->from) == 0)
        continue;  // to an earlier question
      if (answer.key == point.key)
        present.push_back(received->from);
      else
        elsewhere.push_back(
            fmt::format("{} waits in {}", names_(Rank{received->from}), answer.activity));
    }
    backoff.pause();
  }

  std::vector<Rank> missing{silent.begin(), silent.end()};
  const std::string message =
      fmt::format("{} did not end within {} s; {} (found by rank {})", point.activity,
                  deadline.seconds(), absence_text(missing, elsewhere), comm_.rank());
  const Verdict verdict = verdict_of(point.key, missing, message);
  for (const int member : present) send_and_forget(comm_, member, verdict_tag, verdict);
  throw TimeoutError{message, timeout_hint, std::move(missing)};
}

// Returns the part of the message that names the ranks that are not at the wait point.
std::string WaitMonitor::absence_text(const std::vector<Rank>& missing,
                                      const std::vector<std::string>& elsewhere) const {
  if (missing.empty() && elsewhere.empty()) return "all of its ranks wait in it";
  std::vector<std::string> named;
  for (const Rank rank : missing) {
    if (named.size() == max_named) {
      named.push_back(fmt::format("and {} more", missing.size() - max_named));
      break;
    }
    named.push_back(names_(rank));
  }
  std::string text;
  if (!missing.empty())
    text = fmt::format("missing rank{} {}", missing.size() == 1 ? "" : "s", fmt::join(named, ", "));
  if (!elsewhere.empty())
    text += fmt::format("{}rank {}", missing.empty() ? "" : "; ", fmt::join(elsewhere, "; rank "));
  return text;
}

void WaitMonitor::give_up(const WaitPoint& point, const std::string& message) {
  const Verdict verdict =
      verdict_of(point.key, {}, fmt::format("rank {} gave up: {}", comm_.rank(), message));
  for (const int member : point.members)
    if (member != comm_.rank()) send_and_forget(comm_, member, verdict_tag, verdict);
}

}  // namespace rankmesh
