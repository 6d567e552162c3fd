// SPDX-License-Identifier: BSD-3-Clause
// What one rank of a job knows about its process, its node and its devices.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankmesh::report {

/// A library that the process has loaded. The version is empty if the library was not found.
struct LibraryFacts {
  std::string name;     ///< The name of the library.
  std::string version;  ///< The version; empty if the library was not found.
  std::string path;     ///< The path of the library file.
};

/// A device that the process sees.
struct DeviceFacts {
  std::string uuid;         ///< Identifies the device, or the MIG instance, in the whole job.
  std::string name;         ///< The name of the model.
  std::string bus_id;       ///< The address on the PCI bus.
  std::int64_t memory = 0;  ///< In bytes.
  bool has_ecc = false;     ///< Whether error correction is switched on.
};

/// The limits of the process; -1 means unlimited.
struct LimitFacts {
  std::int64_t locked_memory = -1;  ///< In bytes.
  std::int64_t descriptors = -1;    ///< The number of open files.
  std::int64_t address_space = -1;  ///< In bytes.
};

/// The difference between the clock of this node and the clock of rank 0's node, in seconds. It is
/// positive if the clock of this node is ahead.
struct ClockFacts {
  double offset = 0;  ///< In seconds.
  double error = 0;   ///< The true offset differs from `offset` by at most this time.
};

/// A measured connection from this rank to the first rank of another node.
struct LinkFacts {
  std::int64_t to = 0;   ///< The other rank.
  double latency = 0;    ///< The time that a short message takes in one direction, in seconds.
  double bandwidth = 0;  ///< In bytes per second.
};

/// Everything that one rank knows about itself. rankmesh::report::examine() compares the facts of
/// all ranks.
struct RankFacts {
  std::int64_t rank = 0;        ///< The rank in MPI_COMM_WORLD.
  std::int64_t world_size = 1;  ///< The size of MPI_COMM_WORLD; 1 without MPI.
  std::int32_t node = 0;        ///< Ranks with the same number share memory.
  std::int32_t local_rank = 0;  ///< The rank among the ranks of its node.
  std::string host;             ///< The name of the host.
  std::string mpi_library;      ///< The text of MPI_Get_library_version(); empty without MPI.
  std::vector<LibraryFacts> libraries;  ///< The libraries that the process has loaded.
  /// The environment variables that doctor examines. Other variables are not read.
  std::map<std::string, std::string> variables;
  LimitFacts limits;  ///< The limits of the process.
  /// The size and the free bytes of /dev/shm; -1 if it does not exist.
  std::int64_t shared_memory_size = -1, shared_memory_free = -1;  ///< In bytes.
  /// Why the ranks of the node share no memory; empty if they do.
  std::string why_no_shared_memory;
  /// Which variables of rankmesh have values that are not valid; empty if none has.
  std::string wrong_settings;
  int ptrace_scope = 0;    ///< The value in /proc/sys/kernel/yama; 0 if it does not exist.
  std::vector<int> cores;  ///< The cores on which the process may run, in ascending order.
  std::vector<std::string> unresolved_hosts;  ///< Host names that this rank cannot resolve.
  std::vector<std::string> interfaces;        ///< Network interfaces that are up.
  std::vector<std::string> rdma_devices;      ///< The entries of /sys/class/infiniband.
  bool has_net_plugin = false;       ///< Whether the loader finds the plugin that NCCL_NET needs.
  bool has_device_nodes = false;     ///< Whether /dev/nvidia0 or a similar device node exists.
  std::string why_no_devices;        ///< Why the process sees no devices; empty if it sees some.
  std::vector<DeviceFacts> devices;  ///< The devices that the process sees.
  int device = -1;                   ///< The index of the device that this rank would use, or -1.
  std::optional<ClockFacts> clock;   ///< Only set on the first rank of each node.
  std::optional<LinkFacts>
      link;  ///< Only set on the first rank of each node, if there are several nodes.
};

/// Returns the facts as a JSON text, so that they can be sent to another rank.
[[nodiscard]] std::string to_json(const RankFacts& facts);
/// Reads what to_json() has written. Fields that the text lacks keep their defaults, because the
/// text may come from another version of rankmesh.
/// @throws DataError if the text was not written by to_json().
[[nodiscard]] RankFacts rank_facts_from_json(std::string_view text);

/// Returns whether doctor examines an environment variable. Doctor does not read other variables.
[[nodiscard]] bool is_examined_variable(std::string_view name);

}  // namespace rankmesh::report
