// SPDX-License-Identifier: BSD-3-Clause
// The options of a mesh.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/log.hpp"
#include "rankmesh/layout/group_options.hpp"
#include "rankmesh/layout/shrink.hpp"
#include "rankmesh/transport/transport_factory.hpp"

namespace rankmesh {

/// Says whether a mesh opens NCCL communicators.
enum class DeviceUse : std::uint8_t {
  /// The mesh opens NCCL communicators if every rank has a device and NCCL. If only some ranks have
  /// both, the constructor of the mesh throws.
  automatic,
  /// The mesh opens no NCCL communicators.
  off,
  /// The mesh opens NCCL communicators. If a rank has no device or no NCCL, the constructor of the
  /// mesh throws.
  required,
};

/// Says how a mesh goes on when ranks are lost.
struct Survival {
  /// The mesh that Mesh::next() opens; see shrink(). With `spare`, the communicator of the program
  /// has more ranks than the mesh, whose description must give all sizes. The ranks after those of
  /// the mesh are spare: they wait in Mesh::next() until they take the places of lost ranks.
  ShrinkPolicy policy = ShrinkPolicy::drop_replica;
  /// The time after which a node of which nothing is heard is lost, and all its ranks with it; at
  /// least 0.2 s, at most 1,000,000 s. A rank that ends on a node that is still heard is lost at
  /// once.
  Deadline::Duration silence{1};
  /// A rank is excluded, which means that it is lost, if another rank has waited for it for so
  /// long, and it has not waited in rankmesh meanwhile: it is stopped, or in the program's own code
  /// or MPI, or slow. At least 0.5 s, and shorter than the time limits of waits, which would end
  /// the waits before. Choose it longer than any rank computes. An excluded rank that comes back
  /// throws an Error at its next call, and must end. If `exclude_after` is empty, no rank is
  /// excluded.
  OptionalDuration exclude_after{};
};

/// How a mesh survives lost ranks, or nothing.
class OptionalSurvival : public std::optional<Survival> {
 public:
  using std::optional<Survival>::optional;
  OptionalSurvival() = default;
  /// Sets how, or that it does not survive.
  OptionalSurvival(std::optional<Survival> survival) : optional{survival} {}
  /// Sets the policy; the rest has its defaults.
  OptionalSurvival(ShrinkPolicy policy) : optional{Survival{.policy = policy}} {}
};

/// Holds the options of a mesh. All options except `log`, `stall` and `device` must be the same on
/// every rank. If they differ, the constructor of the mesh throws MismatchError.
struct MeshOptions {
  /// The time limit for opening and closing the mesh, and for creating and closing dynamic groups.
  /// Without a deadline, also for Work::wait(). If `timeout` is empty, default_timeout() applies.
  OptionalDuration timeout{};
  /// The time limit for waits for operations on host memory: blocking operations, Work::wait() and
  /// wait_any(). If `deadline` is empty, blocking operations call the blocking functions of MPI,
  /// which can wait for ever. If `deadline` is set, rankmesh polls instead, and throws a
  /// TimeoutError that names the missing ranks. For small messages, polling takes about twice as
  /// long as a blocking function. If `deadline` is empty,
  /// the environment variable `RANKMESH_DEADLINE` (in seconds) sets it.
  OptionalDuration deadline{};
  /// The time limit for operations on device memory, from their issue to their end on the device.
  /// If an operation takes longer, a thread of this rank tells the other ranks of the node, and all
  /// of these ranks abort all their NCCL communicators, so that the program's waits for its streams
  /// end. The next call on device memory throws a TimeoutError that names the operation and the
  /// ranks that are missing. The time includes that of the work before the operation on its stream.
  /// Operations in CUDA graphs have no limit. If `device_deadline` is empty, the environment
  /// variable `RANKMESH_DEVICE_DEADLINE` (in seconds) sets it. The default is no limit.
  /// docs/devices.md describes what happens.
  OptionalDuration device_deadline{};
  /// If true, every call is compared before it is carried out, including collectives of groups that
  /// span nodes or were adopted, messages between two members, and calls on device memory. Without
  /// this option, only collectives on host memory of groups inside one node are compared.
  /// docs/faults.md says which mistakes are found, and what the comparison costs. If `check` is
  /// empty, the environment variable `RANKMESH_CHECK` (0 or 1) sets it. If the variable is not set
  /// either, the comparison is off.
  std::optional<bool> check{};
  /// A wait that takes longer than this is reported to the log. The report is repeated, and the
  /// interval doubles each time. If `stall` is empty, the environment variable `RANKMESH_STALL` (in
  /// seconds) sets it. The default is 30 s.
  OptionalDuration stall{};
  /// The function that receives the log messages. If `log` is empty, the environment variable
  /// `RANKMESH_LOG` determines where the messages go. If this variable is not set either, rankmesh
  /// only writes reports of stalls and of ranks that ended abnormally, to stderr.
  LogSink log{};
  /// Says whether the mesh opens NCCL communicators.
  DeviceUse devices = DeviceUse::automatic;
  /// The number of the CUDA device of this rank, which may differ between ranks. If `device` is
  /// empty, the rank uses the first of the following devices that applies:
  /// 1. the device that another mesh of this process uses;
  /// 2. the current device, unless it is device 0, which CUDA makes current by default;
  /// 3. the device whose number is the node-local rank modulo the number of visible devices.
  ///
  /// The node-local rank is the number of this process among the processes of the job on its node.
  /// The launcher sets it in the environment. Without a launcher, the mesh uses the number of this
  /// rank among the ranks of the mesh on the node.
  std::optional<int> device{};
  /// Allows several ranks to use the same device.
  bool share_devices = false;
  /// Assigns the ranks of the mesh to processes: rank r of the mesh is the process with the rank
  /// `reorder[r]` in the communicator of the program. Arrangement::slots has this form, so a
  /// program can use a better arrangement without being launched again. The ranks of the mesh then
  /// differ from the ranks of the communicator; Mesh::rank() returns the rank of this process in
  /// the mesh. If `reorder` is empty, the ranks are the same.
  std::vector<std::int64_t> reorder{};
  /// The options of families, by the name of the family. They replace the options of the same
  /// family in a mesh file.
  std::map<std::string, GroupOptions> names{};
  /// Rules that choose the transport of each operation (see RouteTable). To read the rules from a
  /// file, set `routes` to `@` and the path of the file. Rules are tried in this order: these
  /// rules, the rules in the environment variable RANKMESH_ROUTES, the rules in the mesh file, and
  /// the default rules.
  std::string routes{};
  /// Transports of the program, by their names: lower-case letters, digits and `_`, at most 23
  /// characters. A rule such as `*.*=NAME` makes calls use them. The mesh calls the factories for
  /// all its groups of at least two ranks, except adopted groups; see TransportFactory. At most 4.
  std::map<std::string, TransportFactory> transports{};
  /// If `survive` is set, the mesh survives the loss of ranks: calls throw LostRanks, and
  /// Mesh::next() opens the mesh of the survivors. On several nodes, a majority of the ranks must
  /// remain, or half of them with the lowest rank; other ranks throw an Error. From the opening of
  /// such a mesh on, rankmesh ends this process alone where it would otherwise end the job.
  /// docs/surviving.md says what the launcher must be told. If `survive` is empty, a lost rank ends
  /// the waits for it with a PeerError.
  OptionalSurvival survive{};
  /// The largest count that is passed to an MPI function. Tests set a small value.
  std::int64_t largest_count = std::int64_t{1} << 30;
};

}  // namespace rankmesh
