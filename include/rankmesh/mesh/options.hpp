// SPDX-License-Identifier: BSD-3-Clause
// The options of a mesh.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/log.hpp"
#include "rankmesh/layout/group_options.hpp"
#include "rankmesh/transport/mpi_transport.hpp"

namespace rankmesh {

/// Says whether a mesh opens NCCL communicators.
enum class DeviceUse : std::uint8_t {
  automatic,  ///< The mesh opens them if every rank has a device and NCCL. If only some ranks have
              ///< both, the constructor of the mesh throws.
  off,        ///< The mesh never opens them.
  required,  ///< The mesh always opens them. If a rank has no device or no NCCL, the constructor of
             ///< the mesh throws.
};

/// Holds the options of a mesh. All of them must be the same on every rank, except `log`, `stall`
/// and `device`; the constructor of the mesh throws MismatchError if they differ.
struct MeshOptions {
  /// The time limit of the waits that rankmesh makes itself: opening, closing, dynamic groups,
  /// Work::wait(). If it is empty, default_timeout() applies.
  std::optional<Deadline::Duration> timeout{};
  /// The time limit of blocking operations on host memory. If it is empty, these operations call
  /// the blocking functions of MPI, which can wait for ever and are about twice as fast as polling
  /// at small sizes. With a limit, rankmesh polls and throws a TimeoutError that names the missing
  /// ranks. If it is empty, the variable `RANKMESH_DEADLINE` (in seconds) sets it.
  std::optional<Deadline::Duration> deadline{};
  /// A wait that takes longer than this is reported to the log, once, and then at doubled
  /// intervals. If it is empty, the variable `RANKMESH_STALL` sets it, or else it is 30 s.
  std::optional<Deadline::Duration> stall{};
  /// Receives the log messages. If it is empty, the variable `RANKMESH_LOG` decides. If that is not
  /// set either, only stalls and ranks that end abnormally are reported, to stderr.
  LogSink log{};
  DeviceUse devices = DeviceUse::automatic;
  /// The CUDA device of this rank; it may differ between ranks. If it is empty, the rank uses the
  /// device that is already current, or else the device whose number is the node-local rank modulo
  /// the number of visible devices. The launcher gives the node-local rank; without a launcher, the
  /// mesh computes this rank.
  std::optional<int> device{};
  /// Allows several ranks to use the same device.
  bool share_devices = false;
  /// The options of families, by name. They replace the options of the same family in a mesh file.
  std::map<std::string, GroupOptions> names{};
  /// Rules that choose the transport of operations (see RouteTable), or `@PATH` of a file with
  /// rules. These rules come before the rules of the variable RANKMESH_ROUTES, the rules of the
  /// mesh file, and the default rules.
  std::string routes{};
  /// The largest number of elements that is passed to MPI in one count. Tests
  /// set it to small values.
  std::int64_t largest_count = MpiTransport::default_largest_count;
};

}  // namespace rankmesh
