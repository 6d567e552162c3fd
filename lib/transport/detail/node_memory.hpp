// SPDX-License-Identifier: BSD-3-Clause
// The memory of the processes of one node.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/base/settings.hpp"
#include "transport/shm/direct.hpp"

struct iovec;

namespace rankmesh::detail {

/// Reads the memory of the other ranks of a node with process_vm_readv. Whether the system allows
/// this depends on the users of the processes, on PR_SET_DUMPABLE, on the Yama module, on filters
/// of system calls and on namespaces. Therefore every rank tries it when the mesh is opened. The
/// ranks tell each other the results through memory that they share.
class NodeMemory final : public shm::MemoryReader {
 public:
  /// What a rank tells the others. It begins as zeros.
  struct alignas(shm::line) Process {
    enum ReadState : std::uint32_t { unknown, announced, settled };
    std::uint64_t token[2];
    std::uint64_t address;  ///< of a copy of the token, in that process
    std::int64_t id;
    std::uint32_t is_off;  ///< 1 with SingleCopy::off
    /// The read of another process that has failed: the error code of the system, and the local
    /// rank of the process. Valid in the state `settled`.
    std::int32_t code;
    std::int32_t owner;
    std::atomic<std::uint32_t> state;
  };
  [[nodiscard]] static constexpr std::size_t size(std::size_t ranks) {
    return ranks * sizeof(Process);
  }

  /// Announces this process. Local.
  /// @param table  size() bytes that the ranks of the node share. They must exist until advance()
  ///               has returned true.
  /// @param ranks  the ranks of the node in the mesh, in ascending order.
  /// @param self   the local rank of this process.
  /// @param choice  With `allow`, calls prctl(PR_SET_PTRACER) so that the other ranks may read the
  ///                memory of this process, as every process of the same user then may. With `off`
  ///                on any rank, no rank reads.
  NodeMemory(std::byte* table, std::vector<Rank> ranks, std::int32_t self, SingleCopy choice);
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// Reads the token of every rank once all have announced themselves. Returns true once all ranks
  /// have done so. Never blocks.
  [[nodiscard]] bool advance();

  /// Returns why the ranks do not read each other's memory; empty if they do. The same on all ranks
  /// of the node, after advance() has returned true.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  /// See MemoryReader. Every read ends with the token of the process. Therefore the memory of a
  /// process that has got the process id of an ended process is never used.
  [[nodiscard]] int read(std::int32_t member, std::uint64_t address, std::byte* to,
                         std::size_t bytes) override;
  /// The most pieces of gather(), on either side.
  static constexpr std::size_t most_pieces = 1023;
  /// Copies pieces of another process's memory into pieces of this process's memory, which have as
  /// many bytes in all. Adds an entry to each list while it copies. Returns what read() returns.
  [[nodiscard]] int gather(std::int32_t member, std::vector<iovec>& to, std::vector<iovec>& from);
  /// Returns the local rank of a rank of the mesh if it is on this node.
  [[nodiscard]] std::optional<std::int32_t> local_rank(Rank rank) const;

 private:
  /// What read() needs of a process.
  struct KnownProcess {
    std::uint64_t token[2];
    std::uint64_t address;
    std::int64_t id;
  };
  [[nodiscard]] static int copy(const KnownProcess& process, std::span<iovec> to,
                                std::span<iovec> from);
  [[nodiscard]] bool are_all(Process::ReadState state) const;
  void try_reads();
  void settle();

  std::span<Process> table_;
  std::vector<Rank> ranks_;
  std::size_t self_;
  std::uint64_t token_[2];  // at the address that this process announces
  std::vector<KnownProcess> known_;
  std::string why_not_;
};

/// Throws the error of a rank that cannot read the memory of another one.
/// @param code  The error code of the system.
[[noreturn]] void throw_unreadable(const std::string& reader, const std::string& owner, int code);

}  // namespace rankmesh::detail
