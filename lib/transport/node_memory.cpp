// SPDX-License-Identifier: BSD-3-Clause
#include "detail/node_memory.hpp"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::detail {
namespace {

using mpi::check;

// Yama lets only the parent of a process read its memory, unless the process allows it. Without
// Yama the call fails, and is not needed.
void allow_reads() { (void)::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

std::uint64_t random_bits() {
  std::random_device source;
  return (std::uint64_t{source()} << 32) | source();
}

// A read that fails, in one word, so that a reduction chooses one of all failures.
std::int64_t pack(int code, int reader, std::size_t owner) {
  return std::int64_t{code} << 48 | std::int64_t{reader} << 24 | static_cast<std::int64_t>(owner);
}

}  // namespace

NodeMemory::NodeMemory(const mpi::CommunicatorView& node, const std::vector<Rank>& ranks,
                       SingleCopy choice, WaitMonitor& monitor, const WaitPoint& point,
                       const Deadline& deadline) {
  if (choice == SingleCopy::allow) allow_reads();
  auto own = std::make_unique<Process>();
  *own = {.token = {random_bits(), random_bits()},
          .address = reinterpret_cast<std::uint64_t>(own.get()),
          .id = ::getpid(),
          .is_off = choice == SingleCopy::off ? 1 : 0};
  own_ = std::move(own);

  MpiMemory<std::vector<Process>> all{static_cast<std::size_t>(node.size()) + 1};
  all->back() = *own_;
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&all->back(), sizeof(Process), MPI_BYTE, all->data(), sizeof(Process),
                       MPI_BYTE, node.native(), &request),
        "MPI_Iallgather");
  all.wait(request, monitor, point, deadline);
  all->pop_back();
  processes_ = std::move(*all);
  if (const auto off = std::ranges::find(processes_, 1, &Process::is_off);
      off != processes_.end()) {
    why_not_ = fmt::format("RANKMESH_SINGLE_COPY is off on rank {}",
                           ranks[static_cast<std::size_t>(off - processes_.begin())].value());
    return;
  }

  struct Failures {
    std::int64_t mine = 0, worst = 0;
  };
  MpiMemory<Failures> failures;
  for (std::size_t k = 0; k < processes_.size(); ++k) {
    std::uint64_t token = 0;
    const int code = read(static_cast<std::int32_t>(k), processes_[k].address,
                          reinterpret_cast<std::byte*>(&token), sizeof token);
    if (code != 0) failures->mine = std::max(failures->mine, pack(code, node.rank(), k));
  }
  check(MPI_Iallreduce(&failures->mine, &failures->worst, 1, MPI_INT64_T, MPI_MAX, node.native(),
                       &request),
        "MPI_Iallreduce");
  failures.wait(request, monitor, point, deadline);
  if (const std::int64_t worst = failures->worst; worst != 0)
    why_not_ = fmt::format("rank {} cannot read the memory of rank {}: {}",
                           ranks[static_cast<std::size_t>(worst >> 24 & 0xffffff)].value(),
                           ranks[static_cast<std::size_t>(worst & 0xffffff)].value(),
                           std::strerror(static_cast<int>(worst >> 48)));
}

int NodeMemory::read(std::int32_t member, std::uint64_t address, std::byte* to, std::size_t bytes) {
  const Process& process = processes_[static_cast<std::size_t>(member)];
  std::uint64_t token[2] = {};
  const iovec local[] = {{to, bytes}, {token, sizeof token}};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses of another process
  const iovec remote[] = {{reinterpret_cast<void*>(address), bytes},
                          // NOLINTNEXTLINE(performance-no-int-to-ptr)
                          {reinterpret_cast<void*>(process.address), sizeof token}};
  const ssize_t read = ::process_vm_readv(static_cast<pid_t>(process.id), local, 2, remote, 2, 0);
  if (read < 0) return errno;
  // The system copies the parts in this order, from one process, and stops at an invalid address.
  if (static_cast<std::size_t>(read) != bytes + sizeof token) return EFAULT;
  return std::memcmp(token, process.token, sizeof token) == 0 ? 0 : ESRCH;
}

}  // namespace rankmesh::detail
