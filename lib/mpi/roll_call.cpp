#include "rankmesh/mpi/roll_call.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/mpi/error.hpp"

namespace rankmesh::mpi {
namespace {

// MPI guarantees tags up to 32767.
constexpr int question_tag = 32765;
constexpr int answer_tag = 32766;
constexpr int verdict_tag = 32767;
constexpr std::size_t max_named = 32;

struct Note {
  std::uint64_t key;
  char activity[56];
};

// A message whose receiver may never take it: the memory stays lent to MPI, on purpose.
void send_and_forget(const CommunicatorView& comm, int to, int tag, const void* data, std::size_t size) {
  auto* copy = new char[size];
  std::memcpy(copy, data, size);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Isend(copy, static_cast<int>(size), MPI_BYTE, to, tag, comm.native(), &request), "MPI_Isend");
  int done = 0;
  check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done != 0)
    delete[] copy;
  else
    check(MPI_Request_free(&request), "MPI_Request_free");
}

Note note_of(const RollCall::Step& step) {
  Note note{step.key, {}};
  std::memcpy(note.activity, step.activity.data(), std::min(step.activity.size(), sizeof note.activity - 1));
  return note;
}

struct Received {
  int from;
  std::string bytes;
};

std::optional<Received> receive(const CommunicatorView& comm, int tag) {
  int there = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm.native(), &there, &status), "MPI_Iprobe");
  if (there == 0) return std::nullopt;
  int size = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
  Received message{status.MPI_SOURCE, std::string(static_cast<std::size_t>(size), '\0')};
  check(MPI_Recv(message.bytes.data(), size, MPI_BYTE, message.from, tag, comm.native(), MPI_STATUS_IGNORE),
        "MPI_Recv");
  return message;
}

Note note_of(const Received& message) {
  Note note{};
  std::memcpy(&note, message.bytes.data(), std::min(message.bytes.size(), sizeof note));
  return note;
}

// The verdict: the key, the number of the missing, the missing, then the message.
std::string verdict_bytes(std::uint64_t key, const std::vector<Rank>& missing, const std::string& message) {
  std::string bytes(sizeof key, '\0');
  std::memcpy(bytes.data(), &key, sizeof key);
  std::vector<std::int64_t> numbers{static_cast<std::int64_t>(missing.size())};
  for (const Rank rank : missing) numbers.push_back(rank.value());
  bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof numbers[0]);
  return bytes + message;
}

constexpr const char* hint =
    "look at what the missing ranks do (a crash, another branch, an earlier error); RANKMESH_TIMEOUT sets "
    "the time";

// Spins briefly, then gives the core away: ranks may outnumber cores, and a wait may take minutes.
class Backoff {
 public:
  void pause() {
    if (++polls_ < 50) return;
    if (polls_ < 2000)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds{100});
  }

 private:
  int polls_ = 0;
};

}  // namespace

RollCall::RollCall(CommunicatorView comm, std::function<std::string(Rank)> describe)
    : comm_{comm}, describe_{std::move(describe)} {}

void RollCall::wait(std::span<MPI_Request> requests, const Step& step, const Deadline& deadline) {
  wait(
      [&] {
        int done = 0;
        check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
        return done != 0;
      },
      step, deadline);
}

void RollCall::wait(const std::function<bool()>& done, const Step& step, const Deadline& deadline) {
  Backoff backoff;
  for (int polls = 1; !done(); ++polls) {
    if (deadline.passed() && !conclude(done, step, deadline)) return;
    if (polls % 64 == 0) serve(step);
    backoff.pause();
  }
}

// Answers what others ask, and takes a verdict on the step that this rank waits for.
void RollCall::serve(const Step& step) {
  while (const auto question = receive(comm_, question_tag)) {
    const Note answer = note_of(step);
    send_and_forget(comm_, question->from, answer_tag, &answer, sizeof answer);
  }
  while (const auto verdict = receive(comm_, verdict_tag)) {
    std::uint64_t key = 0;
    std::int64_t count = 0;
    std::memcpy(&key, verdict->bytes.data(), sizeof key);
    if (key != step.key) continue;  // of a step that this rank has given up itself
    std::memcpy(&count, verdict->bytes.data() + sizeof key, sizeof count);
    std::vector<Rank> missing;
    std::size_t at = sizeof key + sizeof count;
    for (std::int64_t i = 0; i < count; ++i, at += sizeof(std::int64_t)) {
      std::int64_t rank = 0;
      std::memcpy(&rank, verdict->bytes.data() + at, sizeof rank);
      missing.emplace_back(rank);
    }
    throw TimeoutError{verdict->bytes.substr(at), hint, std::move(missing)};
  }
}

// Throws what it found; returns false where the step was done after all while it asked.
bool RollCall::conclude(const std::function<bool()>& done, const Step& step, const Deadline& deadline) {
  serve(step);  // another rank may have concluded already
  const Note question = note_of(step);
  std::vector<int> silent;
  for (const int member : step.members)
    if (member != comm_.rank()) silent.push_back(member);
  for (const int member : silent) send_and_forget(comm_, member, question_tag, &question, sizeof question);

  std::vector<int> present;
  std::vector<std::string> elsewhere;
  const Deadline grace{Deadline::Duration{std::clamp(deadline.seconds(), 0.5, 2.0)}};
  Backoff backoff;
  while (!silent.empty() && !grace.passed()) {
    if (done()) return false;
    serve(step);
    while (const auto message = receive(comm_, answer_tag)) {
      if (std::erase(silent, message->from) == 0) continue;  // a late answer to an earlier question
      const Note answer = note_of(*message);
      if (answer.key == step.key)
        present.push_back(message->from);
      else
        elsewhere.push_back(
            fmt::format("{} ({}) waits in {}", message->from, describe_(message->from), answer.activity));
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
    named.push_back(fmt::format("{} ({})", rank.value(), describe_(rank)));
  }
  std::string message = fmt::format("{} did not end within {} s; ", step.activity, deadline.seconds());
  if (!missing.empty())
    message += fmt::format("missing rank{} {}", missing.size() == 1 ? "" : "s", fmt::join(named, ", "));
  if (!elsewhere.empty())
    message += fmt::format("{}rank {}", missing.empty() ? "" : "; ", fmt::join(elsewhere, "; rank "));
  if (missing.empty() && elsewhere.empty()) message += "all of its ranks wait in it";
  message += fmt::format(" (found by rank {})", comm_.rank());

  const std::string verdict = verdict_bytes(step.key, missing, message);
  for (const int member : present)
    send_and_forget(comm_, member, verdict_tag, verdict.data(), verdict.size());
  throw TimeoutError{message, hint, std::move(missing)};
}

}  // namespace rankmesh::mpi
