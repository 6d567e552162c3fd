// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/nccl/bootstrap.hpp"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "device/nccl/detail/phases.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::nccl {
namespace {

// A unique ID as it is broadcast; `valid` is 0 if the leader could not create it.
struct Packet {
  ncclUniqueId id{};
  std::int32_t valid = 0;
};

using Request = BootstrapRequest;

WaitPoint point_of(const Request& request, std::string_view phase) {
  return bootstrap_point(request.name, request.identity, request.ranks, phase);
}

// The phases of bootstrap(), see bootstrap.hpp.
//
// A rank that fails in a phase records the failure and continues with the next phase, because the
// other ranks wait for it in the broadcasts and barriers. The agreements report the failure to all
// ranks. One agreement precedes the inits, because NCCL's init waits for its peers without a
// deadline. Another agreement follows the inits, because a communicator with a failed peer would
// block at its first use.
//
// A wait that reaches its deadline ends the bootstrap at once: its error already names the missing
// ranks, and an agreement with them would not end.
class Bootstrap {
 public:
  Bootstrap(const Library& library, std::span<const Request> requests, WaitMonitor& monitor,
            const Participants& participants, std::vector<std::unique_ptr<Communicator>>& comms)
      : library_{library},
        requests_{requests},
        monitor_{monitor},
        participants_{participants},
        comms_{comms},
        deadline_{participants.deadline()} {
    for (const Request& request : requests) {
      first_.push_back(owner_.size());
      for (int k = 0; k < request.ids; ++k) owner_.push_back(&request);
    }
    packets_->resize(owner_.size());
  }

  void run(BootstrapTimes& times) {
    timed(times.unique_ids, [&] { make_ids(); });
    timed(times.broadcasts, [&] { broadcast(); });
    timed(times.barriers, [&] { pass_barriers(); });
    check_ids();
    participants_.agree("the NCCL bootstrap's unique IDs", failure_);
    timed(times.inits, [&] { init(); });
    participants_.agree("the first use of the NCCL communicators", failure_);
  }

 private:
  // Returns the rank in the group that creates the packet's ID. The IDs of a group come from ranks
  // that are spread over it, because NCCL connects each rank to the creator of its ID.
  [[nodiscard]] int leader_of(std::size_t packet) const {
    const Request& request = *owner_[packet];
    const auto k = static_cast<std::int64_t>(
        packet - first_[static_cast<std::size_t>(&request - requests_.data())]);
    const std::int64_t size = request.comm.size();
    return static_cast<int>((request.leader + k * size / request.ids) % size);
  }

  // Records the first failure of this rank.
  void note(const Request& request, std::string_view phase, const std::string& text) {
    if (failure_.empty())
      failure_ = fmt::format("group '{}' ({}), {}: {}", request.name, request.ranks.to_string(40),
                             phase, text);
  }

  void make_ids() {
    // NCCL reads the variable on the leader, and again in the init of a group's first member.
    // Therefore the variable is an error on every rank.
    const char* fixed = std::getenv("NCCL_COMM_ID");
    if (fixed != nullptr && !requests_.empty())
      note(requests_.front(), "unique ID",
           fmt::format(
               "NCCL_COMM_ID is set ('{}'), which gives all groups the same unique ID: unset it",
               fixed));
    for (std::size_t p = 0; p < owner_.size() && fixed == nullptr; ++p) {
      if (owner_[p]->comm.rank() != leader_of(p)) continue;
      try {
        library_.check(library_.GetUniqueId(&(*packets_)[p].id), "ncclGetUniqueId");
        (*packets_)[p].valid = 1;
      } catch (const Error& error) {
        note(*owner_[p], "unique ID", error.message());
      }
    }
  }

  void broadcast() {
    std::vector<MPI_Request> pending(owner_.size(), MPI_REQUEST_NULL);
    for (std::size_t p = 0; p < owner_.size(); ++p)
      mpi::check(MPI_Ibcast(&(*packets_)[p], sizeof(Packet), MPI_BYTE, leader_of(p),
                            owner_[p]->comm.native(), &pending[p]),
                 "MPI_Ibcast");
    // All broadcasts are in progress: testing one of them makes progress on all.
    for (std::size_t p = 0; p < owner_.size(); ++p)
      packets_.wait(pending[p], monitor_, point_of(*owner_[p], "broadcast of the unique ID"),
                    deadline_);
  }

  void pass_barriers() {
    std::vector<MPI_Request> pending(requests_.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < requests_.size(); ++i)
      mpi::check(MPI_Ibarrier(requests_[i].comm.native(), &pending[i]), "MPI_Ibarrier");
    for (std::size_t i = 0; i < requests_.size(); ++i)
      monitor_.wait({&pending[i], 1}, point_of(requests_[i], "barrier before init"), deadline_);
  }

  void check_ids() {
    for (std::size_t p = 0; p < owner_.size(); ++p) {
      const Request& request = *owner_[p];
      if ((*packets_)[p].valid == 0 && request.comm.rank() != leader_of(p))
        note(request, "unique ID",
             fmt::format("its leader, rank {}, could not create one",
                         request.ranks.at(leader_of(p)).value()));
      for (std::size_t q = 0; q < p; ++q)
        if ((*packets_)[p].valid != 0 && (*packets_)[q].valid != 0 &&
            std::memcmp(&(*packets_)[p].id, &(*packets_)[q].id, sizeof(ncclUniqueId)) == 0)
          note(request, "unique ID",
               fmt::format("it is the same as that of group '{}'; check whether NCCL_COMM_ID is "
                           "set on its leader",
                           owner_[q]->name));
    }
  }

  // Begins all inits in one NCCL group, which carries them out side by side.
  void begin_inits() {
    const Request* current = requests_.data();
    const auto begin_all = [&] {
      for (std::size_t i = 0; i < requests_.size(); ++i) {
        current = &requests_[i];
        std::vector<ncclUniqueId> ids;
        for (int k = 0; k < current->ids; ++k)
          ids.push_back((*packets_)[first_[i] + static_cast<std::size_t>(k)].id);
        comms_.push_back(Communicator::begin(library_, ids, current->comm.size(),
                                             current->comm.rank(), current->name,
                                             current->options));
      }
    };
    try {
      if (!requests_.empty()) (void)library_.grouped(begin_all);
    } catch (const Error& error) {
      note(*current, "init", error.message());
      end_waits_of_peers(error.message());
    }
  }

  void init() {
    if (failure_.empty()) begin_inits();
    for (std::size_t i = 0; i < comms_.size() && failure_.empty(); ++i) {
      try {
        monitor_.wait([&] { return comms_[i]->is_ready(); }, point_of(requests_[i], "init"),
                      deadline_);
      } catch (const LostRanks&) {
        throw;  // every survivor finds it
      } catch (const Error& error) {
        note(requests_[i], "init", error.message());
        end_waits_of_peers(error.message());
      }
    }
  }

  // The other members of this rank's groups poll inits that cannot complete any more. End
  // their waits.
  void end_waits_of_peers(const std::string& message) {
    for (const Request& request : requests_) monitor_.give_up(point_of(request, "init"), message);
  }

  const Library& library_;
  std::span<const Request> requests_;
  WaitMonitor& monitor_;
  const Participants& participants_;
  std::vector<std::unique_ptr<Communicator>>& comms_;
  const Deadline deadline_;
  std::vector<std::size_t> first_;     // the first packet of each request
  std::vector<const Request*> owner_;  // the request of each packet
  MpiMemory<std::vector<Packet>> packets_;
  std::string failure_;
};

}  // namespace

void bootstrap(const Library& library, std::span<const BootstrapRequest> requests,
               WaitMonitor& monitor, const Participants& participants, BootstrapTimes& times,
               std::vector<std::unique_ptr<Communicator>>& comms) {
  Bootstrap{library, requests, monitor, participants, comms}.run(times);
}

}  // namespace rankmesh::nccl
