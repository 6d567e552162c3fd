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
  automatic,  ///< If every rank has a device and NCCL. If only some ranks have, the constructor of
              ///< the mesh throws.
  off,        ///< Never.
  required,   ///< Always. If a rank has no device or no NCCL, the constructor of the mesh throws.
};

/// Holds the options of a mesh. All of them must be the same on every rank, except `log` and
/// `device`; the constructor of the mesh throws MismatchError if they differ.
struct MeshOptions {
  /// The time limit of the waits that rankmesh makes itself: opening, closing, dynamic groups,
  /// Work::wait(). If empty, default_timeout().
  std::optional<Deadline::Duration> timeout{};
  /// The time limit of blocking operations on host memory. If empty, they call the blocking
  /// functions of MPI, which wait for ever and are about twice as fast at small sizes. With a
  /// limit, rankmesh polls and throws a TimeoutError that names the missing ranks.
  std::optional<Deadline::Duration> deadline{};
  /// Receives the log messages. If empty, the variable `RANKMESH_LOG` decides.
  LogSink log{};
  DeviceUse devices = DeviceUse::automatic;
  /// The CUDA device of this rank; it may differ between ranks. If empty: the device that is
  /// already current, or else the node-local rank modulo the number of visible devices. The
  /// launcher gives the node-local rank; without a launcher, the mesh does.
  std::optional<int> device{};
  /// Allows several ranks to use the same device.
  bool share_devices = false;
  /// The options of families, by name. They replace the options of the same family in a mesh file.
  std::map<std::string, GroupOptions> names{};
  /// Rules that choose the transport of operations (see RouteTable), or `@PATH` of a file
  /// with rules. They come before the rules of the variable RANKMESH_ROUTES, of the mesh
  /// file, and the defaults.
  std::string routes{};
  /// The largest number of elements that is passed to MPI in one count. Tests
  /// set it to small values.
  std::int64_t largest_count = MpiTransport::default_largest_count;
};

}  // namespace rankmesh
