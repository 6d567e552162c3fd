#include "rankmesh/device/nccl/bootstrap.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "rankmesh/base/hash.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::nccl {
namespace {

// A unique ID on its way; `valid` is 0 where the leader could not make one.
struct Packet {
  ncclUniqueId id{};
  std::int32_t valid = 0;
};

using Request = BootstrapRequest;

mpi::RollCall::Step step_of(const Request& request, std::string_view phase) {
  mpi::RollCall::Step step;
  step.activity = fmt::format("NCCL bootstrap of '{}': {}", request.name, phase);
  step.key = hash_bytes(step.activity + request.ranks.to_string()).low;
  for (const Rank rank : request.ranks) step.members.push_back(static_cast<int>(rank.value()));
  return step;
}

class Bootstrap {
 public:
  Bootstrap(const Library& library, std::span<const Request> requests, mpi::RollCall& roll_call,
            const Deadline& deadline, const Agree& agree)
      : library_{library},
        requests_{requests},
        roll_call_{roll_call},
        deadline_{deadline},
        agree_{agree},
        packets_{std::make_unique<std::vector<Packet>>(requests.size())} {}

  std::vector<std::unique_ptr<Communicator>> run(BootstrapTimes& times) {
    timed(times.unique_ids, [&] { make_ids(); });
    timed(times.broadcasts, [&] { broadcast(); });
    timed(times.barriers, [&] { meet(); });
    check_ids();
    agree_("the NCCL bootstrap's unique IDs", failure_);
    timed(times.inits, [&] { init(); });
    agree_("the first use of the NCCL communicators", failure_);
    return std::move(comms_);
  }

 private:
  template <class Phase>
  static void timed(double& seconds, Phase&& phase) {
    const auto begin = std::chrono::steady_clock::now();
    phase();
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  // A failure does not stop this rank: the others wait for its part in the phases that follow.
  void note(const Request& request, std::string_view phase, const std::string& what) {
    if (failure_.empty())
      failure_ =
          fmt::format("group '{}' ({}), {}: {}", request.name, request.ranks.to_string(40), phase, what);
  }

  void make_ids() {
    const char* fixed = std::getenv("NCCL_COMM_ID");
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i].comm.rank() != requests_[i].leader) continue;
      try {
        if (fixed != nullptr)
          throw UsageError{fmt::format(
              "NCCL_COMM_ID is set ('{}'), which gives all groups the same unique ID: unset it", fixed)};
        library_.check(library_.GetUniqueId(&(*packets_)[i].id), "ncclGetUniqueId");
        (*packets_)[i].valid = 1;
      } catch (const Error& error) {
        note(requests_[i], "unique ID", error.message());
      }
    }
  }

  void broadcast() {
    std::vector<MPI_Request> pending(requests_.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < requests_.size(); ++i)
      mpi::check(MPI_Ibcast(&(*packets_)[i], sizeof(Packet), MPI_BYTE, requests_[i].leader,
                            requests_[i].comm.native(), &pending[i]),
                 "MPI_Ibcast");
    wait(pending, "broadcast of the unique ID");
  }

  void meet() {
    std::vector<MPI_Request> pending(requests_.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < requests_.size(); ++i)
      mpi::check(MPI_Ibarrier(requests_[i].comm.native(), &pending[i]), "MPI_Ibarrier");
    wait(pending, "barrier before init");
  }

  // All are in flight; testing one lets MPI progress the others.
  void wait(std::vector<MPI_Request>& pending, std::string_view phase) {
    try {
      for (std::size_t i = 0; i < pending.size(); ++i)
        roll_call_.wait({&pending[i], 1}, step_of(requests_[i], phase), deadline_);
    } catch (const TimeoutError&) {
      (void)packets_.release();  // NOLINT: lent to MPI until the process ends
      throw;
    }
  }

  void check_ids() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if ((*packets_)[i].valid == 0 && requests_[i].comm.rank() != requests_[i].leader)
        note(requests_[i], "unique ID",
             fmt::format("its leader, rank {}, made none",
                         requests_[i].ranks.at(requests_[i].leader).value()));
      for (std::size_t j = 0; j < i; ++j)
        if ((*packets_)[i].valid != 0 && (*packets_)[j].valid != 0 &&
            std::memcmp(&(*packets_)[i].id, &(*packets_)[j].id, sizeof(ncclUniqueId)) == 0)
          note(requests_[i], "unique ID",
               fmt::format("the same ID as group '{}': is NCCL_COMM_ID set on its leader?",
                           requests_[j].name));
    }
  }

  void init() {
    for (std::size_t i = 0; i < requests_.size() && failure_.empty(); ++i) {
      const Request& request = requests_[i];
      try {
        comms_.push_back(Communicator::begin(library_, {&(*packets_)[i].id, 1}, request.comm.size(),
                                             request.comm.rank(), request.name, request.config));
      } catch (const Error& error) {
        note(request, "init", error.message());
        tell(error.message());
      }
    }
    for (std::size_t i = 0; i < comms_.size() && failure_.empty(); ++i) {
      try {
        roll_call_.wait([&] { return comms_[i]->is_settled(); }, step_of(requests_[i], "init"), deadline_);
      } catch (const Error& error) {
        note(requests_[i], "init", error.message());
        tell(error.message());
      }
    }
  }

  // Members of this rank's groups may poll inits that cannot end any more.
  void tell(const std::string& message) {
    for (const Request& request : requests_) roll_call_.give_up(step_of(request, "init"), message);
  }

  const Library& library_;
  std::span<const Request> requests_;
  mpi::RollCall& roll_call_;
  const Deadline& deadline_;
  const Agree& agree_;
  std::unique_ptr<std::vector<Packet>> packets_;
  std::vector<std::unique_ptr<Communicator>> comms_;
  std::string failure_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> bootstrap(const Library& library,
                                                     std::span<const BootstrapRequest> requests,
                                                     mpi::RollCall& roll_call, const Deadline& deadline,
                                                     const Agree& agree, BootstrapTimes& times) {
  return Bootstrap{library, requests, roll_call, deadline, agree}.run(times);
}

}  // namespace rankmesh::nccl
