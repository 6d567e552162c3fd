// How a mesh behaves.
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

/// Whether a mesh opens NCCL communicators.
enum class DeviceUse : std::uint8_t {
  automatic,  ///< where every rank has a device and NCCL; nowhere where none has; an error where
              ///< only some have
  off,        ///< never
  required,   ///< an error where a rank has none
};

/// The same on every rank (log sink and device aside); differences are found before the first
/// collective.
struct MeshOptions {
  /// For every wait that rankmesh makes itself; nothing: default_timeout().
  std::optional<Deadline::Duration> timeout{};
  /// For blocking host operations. Nothing: MPI's blocking functions, which wait for ever and are
  /// about twice as fast at small sizes; a duration: polled, with a TimeoutError that names the
  /// missing ranks.
  std::optional<Deadline::Duration> deadline{};
  /// Receives what rankmesh has to say; empty: what `RANKMESH_LOG` asks for.
  LogSink log{};
  DeviceUse devices = DeviceUse::automatic;
  /// The device that this rank drives, by CUDA's number; nothing: one that is current already, else
  /// the launcher's node-local rank (without a launcher the mesh's) modulo the visible devices. May
  /// differ between ranks.
  std::optional<int> device{};
  /// Allows several ranks on one device.
  bool share_devices = false;
  /// How the communicators of single names are made; replaces what a spec file says of the same
  /// name.
  std::map<std::string, GroupOptions> names{};
  /// Rules that say which transport carries what (RouteTable), or `@PATH` of a file that holds
  /// them. They are asked first, then those of the environment variable RANKMESH_ROUTES, of the
  /// mesh file, the defaults.
  std::string routes{};
  /// Elements handed to MPI in one count; tests make it small.
  std::int64_t largest_count = MpiTransport::default_largest_count;
};

}  // namespace rankmesh
