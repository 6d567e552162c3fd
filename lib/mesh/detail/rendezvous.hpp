// SPDX-License-Identifier: BSD-3-Clause
// Makes the members of a dynamic group wait for each other before they create it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/detail/segment_file.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Waits until all members of a dynamic group are ready to create it. MPI_Comm_create_group blocks
/// for ever if a member is missing, so the members exchange notes first. Each member tells the
/// first one that it has come, and when all have come, the first one tells them. A member that
/// waits for longer tells all others that it has come, so that they find out why it waits. A note
/// has the hash of the rank list and the number of earlier rendezvous of this list, which
/// distinguish it from the notes of other groups and of other attempts. It also has the call in
/// words, and says where the memory of the group is.
///
/// Two members have passed different lists if each of them waits for the other one in a different
/// rendezvous: a member leaves a rendezvous for MPI_Comm_create_group, which waits for all members,
/// so the other one can reach neither. The members that notice this tell the others. All of them
/// throw, and count these rendezvous as over, so that later attempts are new ones.
///
/// A member that gives up tells all others why. Members that are in the same attempt, or in an
/// earlier one, throw this; a later attempt of theirs waits again.
///
/// Detection is best effort: a rank that stops between the rendezvous and the creation of the
/// communicator still blocks its peers.
class Rendezvous {
 public:
  /// What the members know when they have met. The same on all of them.
  struct MetMembers {
    std::string identity;        ///< Unique in the mesh.
    std::uint64_t number = 1;    ///< Among the groups of this list.
    SegmentAnnouncement memory;  ///< What the first member has passed.
  };
  /// Waits for the other members. Collective over `members` (ranks of the mesh); blocks. The first
  /// member gets a note of 320 bytes from every other one, and sends one back. After 20 ms, a
  /// member also sends one to every other member.
  /// @param activity  The name of the activity in messages about late members. Its first word is
  ///                  the same on all members.
  /// @param call      The call in the words of the program.
  /// @param memory    Where the first member has created the memory of the group.
  /// @throws TimeoutError if some members did not take part; the error names them.
  /// @throws MismatchError if members wait for each other with different lists; the error lists
  /// their calls.
  MetMembers join(ControlPlane& control, const std::vector<int>& members,
                  const std::string& activity, const std::string& call,
                  const SegmentAnnouncement& memory);

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // hash of the list, count
  // Orders mismatches and attempts: an attempt that a rank begins after it has learned of a
  // mismatch has at least the epoch of that mismatch.
  using Epoch = std::uint64_t;
  struct ArrivedCall {
    std::string call;
    Epoch epoch = 0;
  };
  struct ListMismatch {
    std::string text;
    bool is_of_other_list = false;
    Epoch epoch = 0;
  };
  // A rendezvous in which this rank takes part.
  struct Attempt {
    const mpi::CommunicatorView& comm;
    const RankNames& names;
    const std::vector<int>& members;
    const std::string& call;
    std::uint64_t mesh;  ///< ControlPlane::key_of_mesh.
    Key key;
    std::uint64_t number = 1;  ///< Of the attempts with this key.
    bool has_told_all = false;
    // Members wait for each other: for so long, and the last look at it.
    Deadline::Duration conflict{};
    std::optional<std::chrono::steady_clock::time_point> last_look{};
    std::optional<Deadline> withdrawal_end{};

    [[nodiscard]] int first() const { return members.front(); }
    [[nodiscard]] bool is_first() const { return first() == comm.rank(); }
  };

  void receive_notes(const Attempt& attempt);
  void throw_if_withdrawn(Attempt& attempt) const;
  [[nodiscard]] bool has_all(const Attempt& attempt) const;
  [[nodiscard]] bool is_complete(const Attempt& attempt) const;
  [[nodiscard]] std::vector<int> awaited(const Attempt& attempt) const;
  [[nodiscard]] bool is_over(const Attempt& attempt);
  [[nodiscard]] std::map<int, Key> conflicts(const Attempt& attempt) const;
  [[nodiscard]] bool calls_differ(const Attempt& attempt) const;
  void look_for_conflicts(Attempt& attempt);
  void conclude(const Attempt& attempt, const std::map<int, Key>& conflicting);
  [[noreturn]] void fail(const Attempt& attempt);
  void end(const Key& key);

  std::map<std::uint64_t, std::uint64_t> uses_;
  std::map<Key, std::map<int, ArrivedCall>> arrived_;  // the members that wait
  std::map<Key, SegmentAnnouncement> complete_;        // what the first member has told
  std::map<Key, ListMismatch> findings_;
  // The members that have given up: the number of their attempt, and why.
  std::map<Key, std::map<int, std::pair<std::uint64_t, std::string>>> withdrawn_;
  std::map<Key, std::uint64_t> failures_;  // attempts of this rank that have failed
  Epoch epoch_ = 0;
};

}  // namespace rankmesh::detail
