#include "detail/meeting.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/hash.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {
namespace {

using mpi::check;
constexpr int meeting_tag = 32764;
enum class Kind : std::uint64_t { arrived, withdrawn };
using Note = std::array<std::uint64_t, 3>;  // hash, count, kind

// The notes are small and go out eagerly; a member that never takes its note keeps it.
void send_notes(const mpi::CommunicatorView& comm, const std::vector<int>& members,
                std::uint64_t list, std::uint64_t count, Kind kind) {
  for (const int member : members) {
    if (member == comm.rank()) continue;
    auto* note = new Note{list, count, static_cast<std::uint64_t>(kind)};
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(note->data(), 3, MPI_UINT64_T, member, meeting_tag, comm.native(), &request),
          "MPI_Isend");
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0)
      delete note;
    else
      check(MPI_Request_free(&request), "MPI_Request_free");
  }
}

}  // namespace

std::string Meeting::gather(const mpi::CommunicatorView& comm, WaitMonitor& monitor,
                            const std::vector<int>& members, const std::string& name,
                            const Deadline& deadline) {
  const std::uint64_t list = hash_bytes(fmt::format("{}", fmt::join(members, ","))).low;
  const Key key{list,
                uses_[list]};  // counted once it has worked: all members try the same meeting again

  send_notes(comm, members, key.first, key.second, Kind::arrived);

  const auto receive = [&] {
    for (int there = 1; there != 0;) {
      MPI_Status status;
      check(MPI_Iprobe(MPI_ANY_SOURCE, meeting_tag, comm.native(), &there, &status), "MPI_Iprobe");
      if (there == 0) break;
      Note note;
      check(MPI_Recv(note.data(), 3, MPI_UINT64_T, status.MPI_SOURCE, meeting_tag, comm.native(),
                     MPI_STATUS_IGNORE),
            "MPI_Recv");
      auto& arrived = arrived_[{note[0], note[1]}];
      if (note[2] == static_cast<std::uint64_t>(Kind::arrived))
        arrived.insert(status.MPI_SOURCE);
      else
        arrived.erase(status.MPI_SOURCE);
    }
    return arrived_[key].size() + 1 == members.size();
  };
  try {
    monitor.wait(receive,
                 {hash_bytes(fmt::format("meeting {} {}", key.first, key.second)).low,
                  "new_group " + name, members},
                 deadline);
  } catch (const TimeoutError&) {
    send_notes(comm, members, key.first, key.second,
               Kind::withdrawn);  // who comes later must not count on this rank
    throw;
  }
  arrived_.erase(key);
  ++uses_[list];
  return fmt::format("meeting {:x} {}", key.first, key.second);
}

}  // namespace rankmesh::detail
