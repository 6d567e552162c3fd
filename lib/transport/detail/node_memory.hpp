// SPDX-License-Identifier: BSD-3-Clause
// The memory of the processes of one node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rankmesh/base/settings.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/wait_monitor.hpp"
#include "transport/shm/direct.hpp"

namespace rankmesh::detail {

/// Reads the memory of the other ranks of a node with process_vm_readv. Whether the system allows
/// this depends on the users of the processes, on PR_SET_DUMPABLE, on the Yama module, on filters
/// of system calls and on namespaces. So every rank tries it, when the mesh is opened.
class NodeMemory final : public shm::MemoryReader {
 public:
  /// Reads a token from every rank of the node. Collective over the ranks of a node; blocks.
  ///
  /// Cost: an all-gather of 40 bytes and a reduction of 8 bytes; each rank makes one system call
  /// per rank of the node.
  /// @param choice  With `allow`, calls prctl(PR_SET_PTRACER) so that the other ranks may read the
  ///                memory of this process, as every process of the same user then may. With `off`
  ///                on any rank, no rank reads.
  /// @param ranks  The ranks of the members in the mesh, for why_not().
  /// @throws TimeoutError if the deadline passes. The error names the missing ranks.
  NodeMemory(const mpi::CommunicatorView& node, const std::vector<Rank>& ranks, SingleCopy choice,
             WaitMonitor& monitor, const WaitPoint& point, const Deadline& deadline);

  /// Returns why the ranks do not read each other's memory; empty if they do. The same on all ranks
  /// of the node.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  /// See MemoryReader. Every read ends with the token of the process. So a process that has got the
  /// number of one that has ended is never read.
  [[nodiscard]] int read(std::int32_t member, std::uint64_t address, std::byte* to,
                         std::size_t bytes) override;

 private:
  /// What a rank must know of another one to read its memory.
  struct Process {
    std::uint64_t token[2];
    std::uint64_t address;  // of `own_`, in that process
    std::int64_t id;
    std::int64_t is_off;
  };
  std::unique_ptr<const Process> own_;
  std::vector<Process> processes_;
  std::string why_not_;
};

}  // namespace rankmesh::detail
