// What coordinators stand on: the services of their mesh, and the communicator that equal groups
// share.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/base/log.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/group/bootstrap_report.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/transport/transport.hpp"
#include "rankmesh/wait/wait_monitor.hpp"

struct ncclComm;

namespace rankmesh::detail {

struct InFlight;

/// Where the operations of a channel stand in a batch: by the priority of its name's options, then
/// tp (and whatever is not named here) before pp before dp. The same on all members.
struct BatchPlace {
  int priority = 0;
  int turn = 0;
  friend auto operator<=>(const BatchPlace&, const BatchPlace&) = default;
};

/// An operation that waits for the end of its batch.
struct Gathered {
  BatchPlace place;
  std::function<void()> issue;
  std::function<void(const std::string& why)> give_up;  ///< it will never be issued
};

/// Shared by all coordinators of one mesh.
struct MeshServices {
  Rank rank{};
  std::int32_t local_rank = 0;
  std::optional<Deadline::Duration>
      deadline;  ///< of blocking host operations; nothing: MPI's blocking functions
  Deadline::Duration timeout{600};                   ///< of rankmesh's own waits
  std::vector<std::shared_ptr<InFlight>> in_flight;  ///< in the order of issue
  std::optional<int> device;                         ///< that this rank drives
  std::string no_device;                             ///< why there is no device transport
  bool in_batch =
      false;  ///< an NcclGroup is open: operations are gathered, blocking host ones refused
  std::vector<Gathered> gathered;
  /// Open and end NCCL's group around what a batch issues; empty where there are no devices.
  std::function<void()> begin_batch;
  std::function<void()> end_batch;
  std::int64_t queues = 0;  ///< control queues so far: their tags
  bool closed = false;
  /// Asynchronous operations under way in shared memory, one more in a batch, and one more where
  /// host operations have a deadline: calls look closer.
  std::uint64_t unusual = 0;
  std::function<void()> advance_shared;  ///< goes on with them; MPI's progress does not
  RouteTable routes;                     ///< of code, environment and file, then the defaults
  LogSink log;
  std::function<std::string(Rank)> describe;
  std::optional<WaitMonitor> monitor;  ///< over the control communicator
  std::atomic_flag busy;
};

/// What device/ knows of a channel, without CUDA's headers.
struct DeviceFacts {
  std::optional<BootstrapReport> bootstrap;
  ncclComm* native = nullptr;         ///< null where there is none
  std::function<StreamRef()> stream;  ///< the group's own, made when first asked for
  /// Waits on the host for what the stream holds; throws where the communicator has failed
  /// meanwhile.
  std::function<void(StreamRef, const Deadline&)> wait;
  /// Puts the call on the group's own stream, behind what the call's stream holds.
  std::function<std::unique_ptr<Pending>(const Call&)> start;
};

/// One communicator and its transports; names with equal groups share it, so it is one ordering
/// domain.
struct Channel {
  std::string identity;  ///< the same on all members, and of no other channel: the first name that
                         ///< it serves, or a meeting
  std::string name;                   ///< of the first coordinator
  std::vector<std::size_t> families;  ///< the plan's names that it serves; empty for dynamic groups
  std::string duplicate_key;          ///< key of a further communicator of the same group
  RankSet ranks;                      ///< of the world
  mpi::Communicator owned;            ///< empty for groups of one and adopted communicators
  Deadline::Duration timeout{600};    ///< of waits for its operations
  RankInGroup leader{};               ///< who makes its NCCL unique ID
  mpi::CommunicatorView comm;         ///< MPI_COMM_SELF for groups of one
  std::int32_t nodes = 1;             ///< that its members are on
  /// For host memory, in no order: routes say which is asked first. Groups of one have `local`
  /// alone, others `mpi` at least. The same on all members.
  std::vector<std::unique_ptr<Transport>> transports;
  Transport* in_place =
      nullptr;  ///< the one of them that uses symmetric memory; null where none does
  std::map<std::string, std::string, std::less<>> absent;  ///< transports that it lacks, and why
  std::unique_ptr<Transport>
      device;  ///< null where there is none; MeshServices::no_device says why
  DeviceFacts device_facts;
  BatchPlace place;
  std::uint64_t collectives = 0;  ///< issued so far, for roll calls
  /// Why it cannot be used any more; empty while it can. The first thing that a call looks at.
  std::string broken;
  /// Lets nothing pass any more; what broke it before stays the reason.
  void retire(const char* why) {
    if (broken.empty()) broken = why;
  }
};

/// Holds the mesh's one place for a caller; a second thread is refused instead of racing.
class CallGuard {
 public:
  explicit CallGuard(MeshServices& services) : services_{services} {
    if (services_.busy.test_and_set(std::memory_order_acquire)) [[unlikely]]
      refuse(services);
  }
  ~CallGuard() { services_.busy.clear(std::memory_order_release); }
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

 private:
  [[noreturn]] static void refuse(const MeshServices& services);
  MeshServices& services_;
};

}  // namespace rankmesh::detail
