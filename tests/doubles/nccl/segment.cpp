// SPDX-License-Identifier: BSD-3-Clause
#include "segment.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <ctime>
#include <utility>

#include "common/settings.hpp"

namespace fake {
namespace {

std::atomic<long> mappings{0};

constexpr std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
constexpr std::size_t head_bytes = rounded(sizeof(Head));
constexpr std::size_t slot_bytes = rounded(sizeof(RankSlot));

std::size_t segment_bytes(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  return head_bytes + n * slot_bytes +
         n * n * sizeof(Channel);  // pages that are never touched cost nothing
}

}  // namespace

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value, double seconds) {
  timespec limit{};
  limit.tv_nsec = static_cast<long>(seconds * 1e9);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, &limit, nullptr,
          0);
}

int Segment::create(int ranks) {
  int descriptor = memfd_create("rankmesh-fake-nccl", MFD_CLOEXEC);
  if (broken("nameless")) {
    close(descriptor);
    descriptor = shm_open(("/rankmesh-fake-broken-" + std::to_string(getpid())).c_str(),
                          O_RDWR | O_CREAT, 0600);
  }
  if (descriptor < 0) return -1;
  if (ftruncate(descriptor, static_cast<off_t>(segment_bytes(ranks))) != 0) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

Segment::Segment(int descriptor, int ranks) : bytes_(segment_bytes(ranks)), ranks_(ranks) {
  void* const base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (base == MAP_FAILED) return;
  base_ = static_cast<char*>(base);
  ++mappings;
}

Segment::~Segment() {
  if (base_ == nullptr) return;
  munmap(base_, bytes_);
  --mappings;
}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(ranks_, other.ranks_);
  return *this;
}

long Segment::alive() { return mappings; }

RankSlot& Segment::slot(int rank) const {
  return *reinterpret_cast<RankSlot*>(base_ + head_bytes +
                                      static_cast<std::size_t>(rank) * slot_bytes);
}

Channel& Segment::channel(int from, int to) const {
  const auto n = static_cast<std::size_t>(ranks_);
  auto* const channels = reinterpret_cast<Channel*>(base_ + head_bytes + n * slot_bytes);
  return channels[static_cast<std::size_t>(from) * n + static_cast<std::size_t>(to)];
}

void Segment::ring(int rank) const {
  auto& bell = slot(rank).doorbell;
  ++bell;
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&bell), FUTEX_WAKE, INT_MAX, nullptr, nullptr,
          0);
}

void Segment::ring_all() const {
  for (int rank = 0; rank < ranks_; ++rank) ring(rank);
}

void Segment::refuse(int rank, const Outcome& cause) const {
  std::uint32_t nobody = 0;
  if (!head().refused_by.compare_exchange_strong(nobody, static_cast<std::uint32_t>(rank) + 1))
    return;
  std::strncpy(head().text, cause.text.c_str(), sizeof head().text - 1);
  head().error = cause.code;
  ring_all();
}

void Segment::cut_other_hosts(int rank) const {
  for (int other = 0; other < ranks_; ++other) {
    if (slot(other).host == slot(rank).host && !broken("flags_are_local")) continue;
    slot(other).cut_by = static_cast<std::uint32_t>(rank) + 1;
    ring(other);
  }
}

Outcome Segment::trouble(int rank) const {
  const auto code = static_cast<ncclResult_t>(head().error.load());
  if (code != ncclSuccess) return {code, head().text};
  // misc/socket.cc:71 (2.28.9), socketProgress: the end of a connection.
  if (const std::uint32_t by = slot(rank).cut_by; by != 0)
    return failed(ncclRemoteError, "Connection closed by remote peer, rank %u", by - 1);
  return {};
}

}  // namespace fake
