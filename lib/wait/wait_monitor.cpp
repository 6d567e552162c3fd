#include "rankmesh/wait/wait_monitor.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/backoff.hpp"

namespace rankmesh {
namespace {

using mpi::check;
using mpi::CommunicatorView;

// MPI guarantees tags up to 32767.
constexpr int question_tag = 32765;
constexpr int answer_tag = 32766;
constexpr int verdict_tag = 32767;
constexpr std::size_t max_named = 32;

constexpr std::uint64_t mark = 0x72616e6b6d657368;  // "rankmesh"

// A question, or its answer.
struct Note {
  std::uint64_t mark_ = mark;
  std::uint64_t key = 0;
  std::uint64_t number = 0;
  char activity[64] = {};
};

// How a step ended, for those who still wait in it.
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

// A message whose receiver may never take it: the memory stays lent to MPI, on purpose.
void send_and_forget(const CommunicatorView& comm, int to, int tag, const void* data,
                     std::size_t size) {
  auto* copy = new char[size];
  std::memcpy(copy, data, size);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Isend(copy, static_cast<int>(size), MPI_BYTE, to, tag, comm.native(), &request),
        "MPI_Isend");
  int done = 0;
  check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done != 0)
    delete[] copy;
  else
    check(MPI_Request_free(&request), "MPI_Request_free");
}

template <class Message>
void send_and_forget(const CommunicatorView& comm, int to, int tag, const Message& message) {
  send_and_forget(comm, to, tag, &message, sizeof message);
}

Note note_of(const WaitPoint& step, std::uint64_t number) {
  Note note;
  note.key = step.key;
  note.number = number;
  copy_text(note.activity, step.activity);
  return note;
}

template <class Message>
struct Received {
  int from;
  Message message;
};

// Takes a message only if its size is ours: on a communicator of the user's another one may wait
// there.
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

constexpr const char* hint =
    "look at what the missing ranks do (a crash, another branch, an earlier error); "
    "RANKMESH_TIMEOUT sets "
    "the time";

// Ranks may outnumber cores, and a wait may take minutes.
constexpr Backoff::Options pauses{
    .spins = 49, .yields = 1950, .sleep = std::chrono::microseconds{100}};

}  // namespace

WaitMonitor::WaitMonitor(CommunicatorView comm, Audience audience, RankNames names)
    : comm_{comm}, audience_{audience}, names_{std::move(names)} {}

void WaitMonitor::wait(std::span<MPI_Request> requests, const WaitPoint& step,
                       const Deadline& deadline) {
  wait(
      [&] {
        int done = 0;
        check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                          MPI_STATUSES_IGNORE),
              "MPI_Testall");
        return done != 0;
      },
      step, deadline);
}

void WaitMonitor::wait(const std::function<bool()>& done, const WaitPoint& step,
                       const Deadline& deadline) {
  Backoff backoff{pauses};
  // What comes in on a communicator of the user's may be the user's: there we listen only once
  // something is wrong.
  const Deadline silence{
      Deadline::Duration{audience_ == Audience::own ? 0.0 : std::min(5.0, deadline.seconds() / 2)}};
  for (int polls = 1; !done(); ++polls) {
    if (deadline.passed() && !conclude(done, step, deadline)) return;
    if (polls % 64 == 0 && silence.passed()) serve(step);
    backoff.pause();
  }
}

// Answers what others ask, and takes a verdict on the step that this rank waits for.
void WaitMonitor::serve(const WaitPoint& step) {
  while (const auto question = receive<Note>(comm_, question_tag))
    send_and_forget(comm_, question->from, answer_tag, note_of(step, question->message.number));
  while (const auto received = receive<Verdict>(comm_, verdict_tag)) {
    const Verdict& verdict = received->message;
    if (verdict.key != step.key) continue;  // of a step that this rank has given up itself
    throw TimeoutError{
        verdict.message, hint, {verdict.missing, verdict.missing + verdict.missing_count}};
  }
}

// Throws what it found; returns false where the step was done after all while it asked.
bool WaitMonitor::conclude(const std::function<bool()>& done, const WaitPoint& step,
                           const Deadline& deadline) {
  serve(step);  // another rank may have concluded already
  const std::uint64_t number = ++questions_;
  const Note question = note_of(step, number);
  std::vector<int> silent;
  for (const int member : step.members)
    if (member != comm_.rank()) silent.push_back(member);
  for (const int member : silent) send_and_forget(comm_, member, question_tag, question);

  std::vector<int> present;
  std::vector<std::string> elsewhere;
  const Deadline grace{Deadline::Duration{std::clamp(deadline.seconds(), 0.5, 2.0)}};
  Backoff backoff{pauses};
  while (!silent.empty() && !grace.passed()) {
    if (done()) return false;
    serve(step);
    while (const auto received = receive<Note>(comm_, answer_tag)) {
      const Note& answer = received->message;
      if (answer.number != number || std::erase(silent, received->from) == 0)
        continue;  // to an earlier question
      if (answer.key == step.key)
        present.push_back(received->from);
      else
        elsewhere.push_back(
            fmt::format("{} waits in {}", names_(Rank{received->from}), answer.activity));
    }
    backoff.pause();
  }

  std::vector<Rank> missing{silent.begin(), silent.end()};
  std::vector<std::string> named;
  for (const Rank rank : missing) {
    if (named.size() == max_named) {
      named.push_back(fmt::format("and {} more", missing.size() - max_named));
      break;
    }
    named.push_back(names_(rank));
  }
  std::string message =
      fmt::format("{} did not end within {} s; ", step.activity, deadline.seconds());
  if (!missing.empty())
    message +=
        fmt::format("missing rank{} {}", missing.size() == 1 ? "" : "s", fmt::join(named, ", "));
  if (!elsewhere.empty())
    message +=
        fmt::format("{}rank {}", missing.empty() ? "" : "; ", fmt::join(elsewhere, "; rank "));
  if (missing.empty() && elsewhere.empty()) message += "all of its ranks wait in it";
  message += fmt::format(" (found by rank {})", comm_.rank());

  const Verdict verdict = verdict_of(step.key, missing, message);
  for (const int member : present) send_and_forget(comm_, member, verdict_tag, verdict);
  throw TimeoutError{message, hint, std::move(missing)};
}

void WaitMonitor::give_up(const WaitPoint& step, const std::string& message) {
  const Verdict verdict =
      verdict_of(step.key, {}, fmt::format("rank {} gave up: {}", comm_.rank(), message));
  for (const int member : step.members)
    if (member != comm_.rank()) send_and_forget(comm_, member, verdict_tag, verdict);
}

}  // namespace rankmesh
