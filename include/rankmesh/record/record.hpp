// SPDX-License-Identifier: BSD-3-Clause
// The contents of a rank's record: its last calls, marks and waits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/call_descriptor.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/rank_set.hpp"

/// Records: each rank keeps its last calls in memory that other processes can read
/// (docs/trace.md). The functions of this namespace read records and find out what is wrong with a
/// job. They need neither MPI nor a response from the job.
namespace rankmesh::record {

/// A time in nanoseconds on the monotonic clock of node 0 of the mesh.
using Time = std::int64_t;

/// How far a call has progressed.
enum class State : std::uint8_t {
  issued = 1,  ///< The rank has made the call; it may wait for other members.
  inside = 2,  ///< The rank is inside a function of MPI or NCCL, or the device has not finished.
  ended = 3,   ///< The call is complete.
  failed = 4,  ///< The call has thrown an error.
};

/// What carries a call. Values of `first_of_program` and above stand for transports of
/// the program, whose names are in Record::transports.
enum class Carrier : std::uint8_t {
  local = 0,
  shared_memory = 1,
  mpi = 2,
  nccl = 3,
  hierarchical = 4,
  first_of_program = 5
};
/// How many transports of the program a record can name.
inline constexpr std::size_t most_program_transports = 4;
/// Returns the carrier that stands for a transport of the program.
constexpr Carrier program_carrier(std::size_t index) {
  return static_cast<Carrier>(static_cast<std::size_t>(Carrier::first_of_program) + index);
}

/// A group of the rank, which its calls refer to.
struct Group {
  std::uint64_t identity = 0;      ///< The same on all members, and unique in the mesh.
  std::vector<std::string> names;  ///< The names of its coordinators; see CallDescriptor::family().
  std::int64_t size = 0;           ///< The number of members.
  /// The members in group order, as ranks of the mesh. Empty if the list was too long to record.
  RankSet ranks;
};

/// An instruction of the program that calls a function.
struct CodeAddress {
  std::size_t file = 0;      ///< Index in Record::files.
  std::uint64_t offset = 0;  ///< The address in the file, as `addr2line` takes it.
};
/// A place in the program that has called rankmesh: the functions that have called each other
/// there, the innermost first. It may begin with functions of the headers of rankmesh.
using CallSite = std::vector<CodeAddress>;

/// A call of the rank.
struct Call {
  std::uint64_t sequence = 0;   ///< The position among all calls and marks of the rank, from 1.
  State state = State::issued;  ///< How far the call has progressed.
  Carrier carrier = Carrier::local;  ///< What carries the call.
  bool is_async = false;             ///< The call returned before it was complete.
  bool is_captured = false;   ///< The call became part of a CUDA graph; its end is not recorded.
  bool is_cancelled = false;  ///< A receive that the program or close() has cancelled.
  std::size_t group = 0;      ///< Index in Record::groups.
  std::uint64_t number = 0;   ///< Which collective of its group this is, from 1; 0 for messages.
  CallDescriptor descriptor;  ///< The operation and its arguments.
  std::size_t site = 0;       ///< Index in Record::call_sites plus 1; 0 if it is not known.
  /// When the rank made the call, or noticed that it had to wait. Empty if no time was recorded.
  std::optional<Time> begin;
  std::optional<Time> end;  ///< Empty if no time was recorded, or the call has not ended.

  /// Returns whether the call has ended or failed.
  [[nodiscard]] bool is_over() const { return state == State::ended || state == State::failed; }
};

/// A text that the program has recorded with Mesh::mark().
struct Mark {
  std::uint64_t sequence = 0;  ///< The position among all calls and marks of the rank, from 1.
  Time time = 0;               ///< When the mark was recorded.
  std::string text;            ///< The text of the mark.
};

/// A wait that is not part of a call of a group, for example the wait for other ranks in close().
struct Wait {
  std::string text;  ///< What the rank waits for, in words.
  Time since = 0;    ///< When the wait began.
  /// A number that is the same for all ranks that wait at the same point. 0 means that the rank
  /// does not wait for others to reach this point, but waits until `ranks` have done something,
  /// such as writing to a control queue.
  std::uint64_t point = 0;
  /// The ranks that must all reach the point, or for which the rank waits. Empty if they are
  /// not known.
  RankSet ranks{};
};

/// The end of Wait::text if the rank waits in another mesh of its program.
inline constexpr std::string_view in_another_mesh = " (in another mesh)";

/// What the rank says about its part in the mesh.
enum class Presence : std::uint8_t {
  open,       ///< The mesh is open.
  closed,     ///< The rank has closed the mesh.
  destroyed,  ///< The rank has destroyed the mesh without close().
  failed,     ///< An exception has destroyed the mesh.
};

/// What the system says about the rank's process.
enum class Process : std::uint8_t {
  unknown,   ///< The process is on another node, or belongs to another process namespace.
  running,   ///< It uses a core.
  sleeping,  ///< It waits in the system.
  stopped,   ///< A signal or a debugger has stopped it.
  ended,     ///< It does not exist any more.
};

/// The record of one rank in one mesh.
struct Record {
  std::uint64_t mesh_key = 0;   ///< The same on all ranks of the mesh; differs between meshes.
  std::string mesh;             ///< The description of the mesh, for example `dp=2,tp=4`.
  std::int64_t world_size = 0;  ///< The number of ranks of the mesh.
  Rank rank;                    ///< The rank in the mesh.
  std::string coordinates;      ///< As text, for example `dp=0,tp=1`.
  std::string host;             ///< The name of the host.
  std::int32_t node = 0;        ///< The number of the node.
  std::int64_t process_id = 0;  ///< The number of the process on its host.
  /// With the host and the number, what distinguishes the process from earlier ones and from those
  /// in other containers: its start time, its process namespace and the boot of its machine, as in
  /// format::Header. 0 if they are not known.
  std::array<std::uint64_t, 4> process_origin{};
  Presence presence = Presence::open;  ///< What the rank says about its part in the mesh.
  std::string reason;  ///< The reason, if an exception destroyed the mesh; empty otherwise.
  Process process = Process::unknown;  ///< What the system says about the process.
  std::int64_t opened_at = 0;          ///< When the mesh was opened, in nanoseconds since 1970.
  Time read_at = 0;         ///< When the record was read, or its last time; see record::read().
  bool is_observed = true;  ///< Whether read_at is the time at which the record was read.
  /// How far the clock of the rank's node may differ from that of node 0, in nanoseconds.
  std::int64_t clock_error = 0;
  bool has_all_times = false;  ///< Whether a time was taken for every call.

  std::vector<std::string> transports;  ///< The names of the transports of the program.
  std::vector<Group> groups;            ///< The groups of the rank.
  /// The places from which calls were made. Empty if they are not noted.
  std::vector<CallSite> call_sites;
  std::vector<std::string> files;  ///< The program and its libraries that call_sites lists.
  std::vector<Call> calls;         ///< The last calls, in the order in which they were made.
  std::vector<Mark> marks;         ///< The last marks, in their order.
  std::uint64_t calls_made = 0;    ///< All calls and marks, including those that were overwritten.
  std::optional<Wait> wait;        ///< The wait outside calls of groups, if there is one.
  /// The source line that made the last call, and those that called its function. Empty unless the
  /// program that reads the record has found them.
  std::vector<std::string> last_lines;
};

/// Returns the call as in messages, with its number, for example `tp.barrier(), call 7`.
[[nodiscard]] RANKMESH_API std::string to_string(const Record& record, const Call& call);
/// Returns the name of what carries a call, as routes write it: `shm`, `mpi`, `nccl`, the name of a
/// transport of the program, or `local`.
[[nodiscard]] RANKMESH_API std::string_view carrier_name(const Record& record, Carrier carrier);
/// Returns the rank with its coordinates, for example `5 (dp=0,tp=1)`.
[[nodiscard]] RANKMESH_API std::string name_of(const Record& record);

}  // namespace rankmesh::record
