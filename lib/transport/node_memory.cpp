// SPDX-License-Identifier: BSD-3-Clause
#include "detail/node_memory.hpp"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/detail/private_api.hpp"
#include "base/detail/random_bits.hpp"
#include "rankmesh/transport/shared_segment.hpp"

namespace rankmesh::detail {
namespace {

// Yama lets only the parent of a process read its memory, unless the process allows it. Without
// Yama the call fails, and is not needed.
void allow_reads() { (void)::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

}  // namespace

NodeMemory::NodeMemory(std::byte* table, std::vector<Rank> ranks, std::int32_t self,
                       SingleCopy choice)
    : table_{reinterpret_cast<Process*>(table), ranks.size()},
      ranks_{std::move(ranks)},
      self_{static_cast<std::size_t>(self)},
      token_{random_bits(), random_bits()} {
  if (choice == SingleCopy::allow) allow_reads();
  Process& own = table_[self_];
  std::memcpy(own.token, token_, sizeof token_);
  own.address = reinterpret_cast<std::uint64_t>(token_);
  own.id = ::getpid();
  own.is_off = choice == SingleCopy::off ? 1 : 0;
  // Release: a rank that sees the state also sees the values.
  own.state.store(Process::announced, std::memory_order_release);
}

bool NodeMemory::are_all(Process::ReadState state) const {
  return std::ranges::all_of(table_, [&](const Process& process) {
    return process.state.load(std::memory_order_acquire) >= state;
  });
}

bool NodeMemory::advance() {
  if (known_.empty() && are_all(Process::announced)) try_reads();
  if (!are_all(Process::settled)) return false;
  settle();
  return true;
}

void NodeMemory::try_reads() {
  for (const Process& process : table_)
    known_.push_back({{process.token[0], process.token[1]}, process.address, process.id});
  Process& own = table_[self_];
  const bool is_off = std::ranges::any_of(table_, [](const Process& p) { return p.is_off != 0; });
  for (std::size_t k = 0; !is_off && own.code == 0 && k < known_.size(); ++k) {
    std::uint64_t token = 0;
    own.code = read(static_cast<std::int32_t>(k), known_[k].address,
                    reinterpret_cast<std::byte*>(&token), sizeof token);
    own.owner = static_cast<std::int32_t>(k);
  }
  own.state.store(Process::settled, std::memory_order_release);
}

void NodeMemory::settle() {
  for (std::size_t k = 0; k < table_.size() && why_not_.empty(); ++k)
    if (table_[k].is_off != 0)
      why_not_ = fmt::format("RANKMESH_SINGLE_COPY is off on rank {}", ranks_[k].value());
  for (std::size_t k = 0; k < table_.size() && why_not_.empty(); ++k)
    if (table_[k].code != 0)
      why_not_ = fmt::format("rank {} cannot read the memory of rank {}: {}", ranks_[k].value(),
                             ranks_[static_cast<std::size_t>(table_[k].owner)].value(),
                             std::strerror(table_[k].code));
}

// The parts are copied in this order, from one process, and the system stops at an invalid address.
int NodeMemory::copy(const KnownProcess& process, std::span<iovec> to, std::span<iovec> from) {
  std::uint64_t token[2] = {};
  to.back() = {token, sizeof token};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  from.back() = {reinterpret_cast<void*>(process.address), sizeof token};
  std::size_t bytes = 0;
  for (const iovec& part : to) bytes += part.iov_len;
  const ssize_t read = ::process_vm_readv(static_cast<pid_t>(process.id), to.data(), to.size(),
                                          from.data(), from.size(), 0);
  if (read < 0) return errno;
  if (static_cast<std::size_t>(read) != bytes) return EFAULT;
  return std::memcmp(token, process.token, sizeof token) == 0 ? 0 : ESRCH;
}

RANKMESH_PRIVATE_API int NodeMemory::read(std::int32_t member, std::uint64_t address, std::byte* to,
                                          std::size_t bytes) {
  iovec local[2] = {{to, bytes}};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  iovec remote[2] = {{reinterpret_cast<void*>(address), bytes}};
  return copy(known_[static_cast<std::size_t>(member)], local, remote);
}

RANKMESH_PRIVATE_API int NodeMemory::gather(std::int32_t member, std::vector<iovec>& to,
                                            std::vector<iovec>& from) {
  to.emplace_back();
  from.emplace_back();
  const int code = copy(known_[static_cast<std::size_t>(member)], to, from);
  to.pop_back();
  from.pop_back();
  return code;
}

RANKMESH_PRIVATE_API std::optional<std::int32_t> NodeMemory::local_rank(Rank rank) const {
  const auto found = std::ranges::find(ranks_, rank);
  if (found == ranks_.end()) return std::nullopt;
  return static_cast<std::int32_t>(found - ranks_.begin());
}

RANKMESH_PRIVATE_API void throw_unreadable(const std::string& reader, const std::string& owner,
                                           int code) {
  throw SharedMemoryError{
      fmt::format("rank {} cannot read the memory of rank {}: {}", reader, owner,
                  std::strerror(code)),
      "set RANKMESH_SINGLE_COPY=off, so that the ranks copy through shared memory instead", code};
}

}  // namespace rankmesh::detail
