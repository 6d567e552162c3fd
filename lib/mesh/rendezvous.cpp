// SPDX-License-Identifier: BSD-3-Clause
#include "detail/rendezvous.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/patience.hpp"
#include "group/detail/operations_in_flight.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/mpi/error.hpp"
#include "wait/detail/rank_texts.hpp"
#include "wait/detail/small_messages.hpp"

namespace rankmesh::detail {
namespace {

using mpi::check;
using Clock = std::chrono::steady_clock;
constexpr int note_tag = 32764;

// What a note says about the rendezvous that it names.
enum class NoteMeaning : std::uint64_t {
  arrived,    // The sender waits there. The text is its call.
  complete,   // All members have come. The first member sends it, with the place of the memory.
  withdrawn,  // The sender does not wait there any more, because of a timeout.
  // The members have passed different lists: all of them throw the text.
  finding,
  // The same, from a rank that waits elsewhere. So the receiver tells the members of its list.
  finding_of_other_list,
  // It is over. The receiver waits in another one, where it gets the text.
  ended,
};
struct NoteHeader {
  std::uint64_t list = 0;
  std::uint64_t count = 0;
  NoteMeaning kind = NoteMeaning::arrived;
  std::uint64_t epoch = 0;
  SegmentAnnouncement memory{};
  // MPI may give a later mesh the communicator of this one, with notes that nobody has received.
  std::uint64_t mesh = 0;
};
// Two sizes of notes: one for what every member sends, one for what is rare.
template <std::size_t bytes>
struct RendezvousNote {
  NoteHeader header;
  char text[bytes - sizeof(NoteHeader)] = {};
};
using ShortNote = RendezvousNote<320>;
using LongNote = RendezvousNote<2048>;

// Two members that wait for each other may be about to stop: one of them has given up, and the
// note that says so is on its way. So a conflict has to last before it counts. The lowest rank that
// knows of the conflict is the first to report it, so that all members get one text.
Deadline::Duration patience_of(bool is_lowest) {
  return is_lowest ? patience().conflict_of_lowest : patience().conflict_of_others;
}

template <class AnyNote>
void send_note(const auto& attempt, int to, NoteHeader header, const std::string& text) {
  header.mesh = attempt.mesh;
  AnyNote note{header};
  std::memcpy(note.text, text.data(), std::min(text.size(), sizeof note.text - 1));
  send_and_forget(attempt.comm, to, note_tag, note);
}

constexpr const char* lists_hint =
    "pass the same list on all its members, and create groups that share members in the same order "
    "on all of them";

}  // namespace

// Counts a rendezvous as over. Notes about it that come later are ignored.
void Rendezvous::end(const Key& key) {
  uses_[key.first] = std::max(uses_[key.first], key.second + 1);
  arrived_.erase(key);
  complete_.erase(key);
  findings_.erase(key);
  withdrawn_.erase(key);
  failures_.erase(key);
}

// Without a member that has given up, this rank would wait until its own time limit.
void Rendezvous::throw_if_withdrawn(Attempt& attempt) const {
  const auto found = withdrawn_.find(attempt.key);
  if (found == withdrawn_.end()) return;
  for (const auto& [member, withdrawal] : found->second)
    if (withdrawal.first >= attempt.number) {
      // Members that give up together have one error, which may be on its way.
      if (!attempt.withdrawal_end) attempt.withdrawal_end = Deadline{patience().verdict};
      if (!attempt.withdrawal_end->passed()) return;
      throw PeerError{fmt::format("rank {} gave up {}: {}", attempt.names(Rank{member}),
                                  attempt.call, withdrawal.second),
                      "see the error of the rank that gave up",
                      {attempt.names.in_mesh(Rank{member})}};
    }
}

// Receives all notes that have arrived: a member that has come may have withdrawn.
void Rendezvous::receive_notes(const Attempt& attempt) {
  while (true) {
    int there = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, note_tag, attempt.comm.native(), &there, &status),
          "MPI_Iprobe");
    if (there == 0) return;
    const int from = status.MPI_SOURCE;
    LongNote note;
    check(MPI_Recv(&note, sizeof note, MPI_BYTE, from, note_tag, attempt.comm.native(),
                   MPI_STATUS_IGNORE),
          "MPI_Recv");
    const NoteHeader& header = note.header;
    const Key key{header.list, header.count};
    if (header.mesh != attempt.mesh || key.second < uses_[key.first]) continue;
    switch (header.kind) {
      case NoteMeaning::arrived:
        arrived_[key][from] = {note.text, header.epoch};
        withdrawn_[key].erase(from);
        break;
      case NoteMeaning::complete:
        complete_[key] = header.memory;
        break;
      case NoteMeaning::withdrawn:
        arrived_[key].erase(from);
        withdrawn_[key][from] = {header.epoch, note.text};
        break;
      case NoteMeaning::finding:
      case NoteMeaning::finding_of_other_list:
        // If the sender waits for this rank in another list, this rank gets the text in its own.
        if (key != attempt.key && std::ranges::find(attempt.members, from) != attempt.members.end())
          end(key);
        else
          findings_[key] = {note.text, header.kind == NoteMeaning::finding_of_other_list,
                            header.epoch};
        break;
      case NoteMeaning::ended:
        end(key);
        break;
    }
  }
}

bool Rendezvous::has_all(const Attempt& attempt) const {
  const auto here = arrived_.find(attempt.key);
  return here != arrived_.end() && here->second.size() + 1 == attempt.members.size();
}

bool Rendezvous::is_complete(const Attempt& attempt) const {
  return attempt.is_first() ? has_all(attempt) : complete_.contains(attempt.key);
}

// Returns the members for which this one waits. Other operations of this process that are in flight
// may be what they wait for; then the result is empty.
std::vector<int> Rendezvous::awaited(const Attempt& attempt) const {
  std::vector<int> members;
  if (OperationsInFlight::count_of_process() > 0) return members;
  if (!attempt.is_first()) return {attempt.first()};
  const auto here = arrived_.find(attempt.key);
  for (const int member : attempt.members)
    if (member != attempt.comm.rank() && (here == arrived_.end() || !here->second.contains(member)))
      members.push_back(member);
  return members;
}

// Returns whether the rendezvous cannot go on as it is, with all members or without.
bool Rendezvous::is_over(const Attempt& attempt) {
  return findings_.contains(attempt.key) || is_complete(attempt) ||
         attempt.key.second < uses_[attempt.key.first];
}

// Returns the members that wait for this rank in another rendezvous, with its key. A note is sent
// to members only, so whoever has sent one to this rank waits for it.
std::map<int, Rendezvous::Key> Rendezvous::conflicts(const Attempt& attempt) const {
  std::map<int, Key> found;
  const auto here = arrived_.find(attempt.key);
  for (const auto& [key, arrivals] : arrived_)
    if (key != attempt.key)
      for (const auto& [member, arrival] : arrivals)
        if (std::ranges::find(attempt.members, member) != attempt.members.end() &&
            (here == arrived_.end() || !here->second.contains(member)))
          found.emplace(member, key);
  return found;
}

// Before all members know that this one waits, a conflict may be an appearance.
void Rendezvous::look_for_conflicts(Attempt& attempt) {
  if (!attempt.has_told_all) return;
  const std::map<int, Key> conflicting = conflicts(attempt);
  const auto now = Clock::now();
  const auto before = std::exchange(attempt.last_look, now).value_or(now);
  if (conflicting.empty()) {
    attempt.conflict = {};
    return;
  }
  // While the machine stands still, no note comes, so a pause does not count as long for others
  // than the lowest rank.
  attempt.conflict += std::min<Deadline::Duration>(now - before, patience().conflict_of_lowest);
  int lowest = conflicting.begin()->first;
  if (const auto& here = arrived_[attempt.key]; !here.empty())
    lowest = std::min(lowest, here.begin()->first);
  const bool is_lowest = attempt.comm.rank() < lowest;
  if (attempt.conflict >= patience_of(is_lowest)) conclude(attempt, conflicting);
}

// Returns whether members have made another call with the same list, such as a group of another
// name.
bool Rendezvous::calls_differ(const Attempt& attempt) const {
  const std::string own = attempt.call.substr(0, sizeof ShortNote::text - 1);
  const auto here = arrived_.find(attempt.key);
  return here != arrived_.end() && std::ranges::any_of(here->second, [&](const auto& arrival) {
           return arrival.second.call != own;
         });
}

// Lists the calls of all ranks that are known to wait.
void Rendezvous::conclude(const Attempt& attempt, const std::map<int, Key>& conflicting) {
  std::map<int, ArrivedCall> ranks = arrived_[attempt.key];
  ranks[attempt.comm.rank()] = {attempt.call, epoch_};
  for (const auto& [member, key] : conflicting) ranks[member] = arrived_[key][member];
  std::vector<std::pair<Rank, std::string>> texts;
  Epoch epoch = 0;
  for (const auto& [member, arrival] : ranks) {
    texts.emplace_back(Rank{member}, arrival.call);
    epoch = std::max(epoch, arrival.epoch);
  }
  findings_[attempt.key] = {list_texts(texts, attempt.names), true, epoch + 1};
}

// Tells the other ranks that this rendezvous fails, and throws the finding.
void Rendezvous::fail(const Attempt& attempt) {
  const ListMismatch finding = findings_[attempt.key];
  std::map<int, Key> conflicting = conflicts(attempt);
  // These members know the finding, and have begun another attempt.
  std::erase_if(conflicting, [&](const auto& entry) {
    return arrived_[entry.second][entry.first].epoch >= finding.epoch;
  });
  const auto tell = [&](int member, const Key& key, NoteMeaning kind) {
    send_note<LongNote>(attempt, member, {key.first, key.second, kind, finding.epoch},
                        finding.text);
  };
  for (const auto& [member, key] : conflicting)
    tell(member, key, NoteMeaning::finding_of_other_list);
  // A finding of this list has been sent to all its members.
  if (finding.is_of_other_list)
    for (const int member : attempt.members)
      if (member != attempt.comm.rank())
        tell(member, attempt.key,
             conflicting.contains(member) ? NoteMeaning::ended : NoteMeaning::finding);
  for (const auto& [member, key] : conflicting) end(key);
  end(attempt.key);
  epoch_ = std::max(epoch_, finding.epoch);
  throw MismatchError{finding.text, lists_hint, false};
}

Rendezvous::MetMembers Rendezvous::join(ControlPlane& control, const std::vector<int>& members,
                                        const std::string& activity, const std::string& call,
                                        const SegmentAnnouncement& memory) {
  const mpi::CommunicatorView& comm = control.comm();
  const std::string kind = activity.substr(0, activity.find(' '));
  const std::uint64_t list = hash_bytes(fmt::format("{} {}", kind, fmt::join(members, ","))).low;
  const Deadline deadline = control.deadline();
  Attempt attempt{comm, control.names, members, call, control.key_of_mesh, {list, uses_[list]}};
  const auto tell = [&](int member, NoteMeaning what) {
    send_note<ShortNote>(attempt, member, {list, attempt.key.second, what, epoch_, memory}, call);
  };
  const auto tell_others = [&](NoteMeaning what) {
    for (const int member : members)
      if (member != comm.rank()) tell(member, what);
  };
  Clock::time_point begin;
  const auto look = [&] {
    receive_notes(attempt);
    if (is_over(attempt)) return true;
    throw_if_withdrawn(attempt);
    if (!attempt.has_told_all && Clock::now() - begin >= patience().first_note) {
      tell_others(NoteMeaning::arrived);
      attempt.has_told_all = true;
    }
    look_for_conflicts(attempt);
    return is_over(attempt);
  };
  while (true) {
    // The count increases after success and after a mismatch. After a timeout all members use the
    // same key again.
    attempt.key.second = uses_[list];
    attempt.number = failures_[attempt.key] + 1;
    attempt.has_told_all = false;
    begin = Clock::now();
    if (!attempt.is_first()) tell(attempt.first(), NoteMeaning::arrived);
    WaitPoint point =
        WaitPoint::of(members, activity, fmt::format("rendezvous {} {}", list, attempt.key.second));
    point.may_repeat = true;
    point.needed = [&] { return awaited(attempt); };
    try {
      control.monitor.wait(look, point, deadline);
    } catch (const Error& error) {
      ++failures_[attempt.key];
      for (const int member : members)
        if (member != comm.rank())
          send_note<LongNote>(attempt, member,
                              {list, attempt.key.second, NoteMeaning::withdrawn, attempt.number},
                              error.message());
      throw;
    }
    if (findings_.contains(attempt.key)) fail(attempt);
    if (!is_complete(attempt)) continue;
    if (!attempt.is_first() || !calls_differ(attempt)) break;
    conclude(attempt, {});
    fail(attempt);
  }
  if (attempt.is_first()) tell_others(NoteMeaning::complete);
  MetMembers meeting{fmt::format("rendezvous {:x} {}", list, attempt.key.second),
                     attempt.key.second + 1, attempt.is_first() ? memory : complete_[attempt.key]};
  end(attempt.key);
  return meeting;
}

}  // namespace rankmesh::detail
