// SPDX-License-Identifier: BSD-3-Clause
// The layout of a record in memory and in a file, version 4. docs/trace.md describes it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rankmesh/base/published_text.hpp"

/// The bytes of a record: a header, a ring of entries, and then the groups and the places of calls
/// as lines of JSON. One process writes these bytes, and other processes may read them at any time,
/// so every word that changes is atomic.
namespace rankmesh::record::format {

inline constexpr char magic[16] = "rankmesh.record";  ///< The first bytes of a record.
inline constexpr std::uint32_t version = 4;           ///< The version of this format.
/// The value of Header::byte_order, in the byte order of the machine that writes the record.
inline constexpr std::uint32_t byte_order = 0x01020304;
inline constexpr std::size_t entry_count = 4096;       ///< A power of two.
inline constexpr std::size_t group_bytes = 256 << 10;  ///< The bytes for the lines.
/// The name of the file behind the memory, as /proc/PID/fd shows it.
inline constexpr char memory_name[] = "rankmesh.record";
inline constexpr char file_ending[] = ".rankmesh";  ///< The end of the names of record files.

/// The kind of an entry that is a mark and not a call.
inline constexpr std::uint64_t mark_kind = 0xff;
inline constexpr std::size_t mark_bytes = 32;  ///< The longest text of a mark, in bytes.
/// The longest name of a transport of the program, and a zero byte.
inline constexpr std::size_t transport_bytes = 24;

/// A call or a mark. Only the state and the times change once `sequence` is written.
struct alignas(64) Entry {
  /// Bits 0-5: record::State; 6-63: the position among all entries, from 1. This word is written
  /// last.
  std::atomic<std::uint64_t> sequence;
  std::atomic<std::uint64_t> kind;  ///< CallDescriptor::kind, or mark_kind.
  /// CallDescriptor::detail. In a mark, this word and the next three hold the text.
  std::atomic<std::uint64_t> detail;
  std::atomic<std::uint64_t> count;  ///< CallDescriptor::count.
  /// This word holds:
  /// - bits 0 to 39: the number of a collective in its group; 0 for messages
  /// - bits 40 to 55: the line of the group, counted from 0
  /// - bits 56 to 59: record::Carrier
  /// - bit 60: whether the call is asynchronous
  /// - bit 61: whether the call is captured in a CUDA graph
  /// - bit 62: whether `begin` is valid
  /// - bit 63: whether the call is a receive that was cancelled
  std::atomic<std::uint64_t> call;
  /// The number of the place in the program that made the call, counted from 1; 0 if it is not
  /// known.
  std::atomic<std::uint64_t> site;
  /// The begin time of the call, in units of the counter. `end` is valid if `begin` is valid and
  /// not greater than `end`. In a mark, `begin` is always set.
  std::atomic<std::uint64_t> begin;
  std::atomic<std::uint64_t> end;  ///< The end of the call.
};
static_assert(sizeof(Entry) == 64);

/// The position of an entry is multiplied by this.
inline constexpr std::uint64_t position_unit = 64;
/// The bits of a sequence that hold the state.
inline constexpr std::uint64_t state_mask = position_unit - 1;
/// The value of Header::next before the first entry: position 0 with the state `issued`.
inline constexpr std::uint64_t first_next = 1;
inline constexpr int group_shift = 40;    ///< The lowest bit of the line of the group.
inline constexpr int carrier_shift = 56;  ///< The lowest bit of the carrier.
/// The bits of the number of a collective.
inline constexpr std::uint64_t number_mask = (std::uint64_t{1} << group_shift) - 1;
inline constexpr std::uint64_t carrier_mask = 15;  ///< The bits of the carrier, shifted.
/// The bit of an asynchronous call.
inline constexpr std::uint64_t async_bit = std::uint64_t{1} << 60;
/// The bit of a call that is captured in a CUDA graph.
inline constexpr std::uint64_t captured_bit = std::uint64_t{1} << 61;
/// The bit that says that `begin` is valid.
inline constexpr std::uint64_t timed_bit = std::uint64_t{1} << 62;
/// The bit of a call that was cancelled.
inline constexpr std::uint64_t cancelled_bit = std::uint64_t{1} << 63;
/// The times of a call are recorded if its position is a multiple of this. Other calls may have
/// times too.
inline constexpr std::uint64_t sampled_every = 64;
/// The group number of a call whose group did not fit into the list.
inline constexpr std::uint64_t unknown_group = 0xffff;

/// A value of the counter, and the monotonic clock of the node at the same moment.
struct ClockPair {
  std::atomic<std::uint64_t> version;     ///< Odd while the other two are written.
  std::atomic<std::uint64_t> counter;     ///< The value of the counter.
  std::atomic<std::int64_t> nanoseconds;  ///< The monotonic clock of the node.
};

/// The beginning of a record.
struct alignas(64) Header {
  // These fields do not change.
  char magic[16];                   ///< format::magic.
  std::uint32_t version;            ///< format::version.
  std::uint32_t byte_order;         ///< format::byte_order.
  std::uint32_t header_bytes;       ///< format::header_bytes.
  std::uint32_t entry_bytes;        ///< The size of an Entry.
  std::uint32_t entry_count;        ///< The number of entries of the ring.
  std::uint32_t group_bytes;        ///< The bytes for the list of groups.
  std::uint64_t mesh_key;           ///< The same on all ranks of the mesh.
  std::int64_t world_size;          ///< The number of ranks of the mesh.
  std::int64_t rank;                ///< The rank in the mesh.
  std::int64_t process_id;          ///< The number of the process.
  std::uint64_t process_start;      ///< The start time in /proc/PID/stat; 0 if it is not known.
  std::uint64_t process_namespace;  ///< The inode of /proc/PID/ns/pid; 0 if it is not known.
  std::int64_t opened_at;           ///< In nanoseconds since 1970.
  std::uint32_t has_all_times;      ///< 1: a time is taken for every call.
  std::uint32_t counter_is_clock;   ///< 1: the counter is the monotonic clock itself.
  char host[128];                   ///< The name of the host.
  char coordinates[256];            ///< The coordinates of the rank as text.
  char mesh[512];                   ///< The description of the mesh.
  /// The random numbers in /proc/sys/kernel/random/boot_id, which identify the machine since it was
  /// started; 0 if they are not known.
  std::uint64_t boot[2];
  /// The names of the transports of the program, for the values of record::Carrier from 5.
  char transports[4][transport_bytes];

  // These fields change.
  /// The position of the last entry that was begun, times position_unit, plus first_next.
  alignas(64) std::atomic<std::uint64_t> next;
  /// The times of a call on the fast path are recorded if `next` has none of these bits. Only the
  /// writer reads this mask.
  std::uint64_t time_mask;
  /// The address of the object that notes where the program makes its calls, for the writer.
  /// Readers only ask whether it is 0: then Entry::site is not valid.
  std::uint64_t call_sites;
  alignas(64) ClockPair first;  ///< When the record was opened.
  ClockPair last;               ///< A later moment. The frequency of the counter follows from the
                                ///< two pairs.
  /// The time to add to the monotonic clock of this node to get the time of node 0's clock,
  /// in nanoseconds.
  std::atomic<std::int64_t> clock_offset;
  std::atomic<std::int64_t> clock_error;        ///< The greatest possible error of this sum.
  std::atomic<std::int32_t> node;               ///< The number of the node.
  std::atomic<std::uint32_t> presence;          ///< record::Presence.
  std::atomic<std::uint32_t> group_bytes_used;  ///< The bytes of the list of groups.
  /// These two fields are 0 in the record itself. `meshinfo trace --collect` sets them in its
  /// copies: record::Process, and the time of this observation on the monotonic clock of the node.
  std::uint32_t observed_process;
  std::int64_t observed_at;  ///< When the process was observed.
  /// The wait of a rank that waits outside the calls of a group: the ranks of record::Wait as text,
  /// a line feed, and Wait::text. The key is Wait::point, and the time is a time of the node's
  /// clock.
  alignas(64) PublishedTextOf<1000> wait;
  /// Why an exception destroyed the mesh. Nothing follows it, so its size may grow.
  PublishedReason reason;
};
/// The size of the header in bytes, including padding.
inline constexpr std::size_t header_bytes = 4096;
static_assert(sizeof(Header) <= header_bytes);

/// The bytes of a whole record.
inline constexpr std::size_t total_bytes = header_bytes + entry_count * sizeof(Entry) + group_bytes;

}  // namespace rankmesh::record::format
