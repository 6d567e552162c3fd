// SPDX-License-Identifier: BSD-3-Clause
#include "detail/segment_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/detail/blocked_signals.hpp"
#include "base/detail/file_size.hpp"
#include "base/detail/random_bits.hpp"

namespace rankmesh::detail {
namespace {

constexpr const char* segment_hint =
    "check the limits on memory and file sizes (ulimit -f) and the size of /dev/shm (df -h "
    "/dev/shm; "
    "docker --shm-size)";

}  // namespace

std::string SegmentAnnouncement::name() const {
  return fmt::format("/rankmesh-{}-{:016x}", process, token);
}

SegmentFile::~SegmentFile() {
  if (data_ != nullptr) ::munmap(data_, mapped_bytes(size_));
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!name_.empty()) ::shm_unlink(name_.c_str());  // mappings stay valid
}

void SegmentFile::swap(SegmentFile& other) noexcept {
  std::swap(error_, other.error_);
  std::swap(size_, other.size_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(name_, other.name_);
}

void SegmentFile::note(bool is_done, int otherwise) {
  if (!is_done) error_ = errno == 0 ? otherwise : errno;
}

SegmentAnnouncement SegmentFile::create(std::size_t bytes, SharedSegment::Backing backing) {
  SegmentAnnouncement announcement;
  errno = 0;
  note(create_file(bytes, backing, announcement), EIO);
  announcement.error = error_;
  return announcement;
}

bool SegmentFile::create_file(std::size_t bytes, SharedSegment::Backing backing,
                              SegmentAnnouncement& to) {
  size_ = to.bytes = std::max<std::size_t>(bytes, 1);
  to.token = random_bits();
  to.process = ::getpid();
  const bool is_named = backing == SharedSegment::Backing::named;
  to.is_named = is_named ? 1 : 0;
  if (is_named) {
    descriptor_ = ::shm_open(to.name().c_str(), O_CREAT | O_EXCL | O_RDWR, S_IRUSR | S_IWUSR);
    if (descriptor_ >= 0) name_ = to.name();
  } else {
    descriptor_ = ::memfd_create("rankmesh", MFD_CLOEXEC);
    if (descriptor_ >= 0 && ::fchmod(descriptor_, S_IRUSR | S_IWUSR) != 0) return false;
  }
  to.descriptor = descriptor_;
  if (descriptor_ < 0 || !set_file_size(descriptor_, mapped_bytes(size_))) return false;
  // Reserves the pages, so that a full /dev/shm is an error here and not a SIGBUS at the first
  // write. The size of /dev/shm does not limit a memfd.
  if (is_named) {
    const BlockedSignals blocked;  // any signal ends it with EINTR in older kernels
    errno = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(mapped_bytes(size_)));
    if (errno != 0) return false;
  }
  if (!map()) return false;
  trailer().token = to.token;
  return true;
}

void SegmentFile::open(const SegmentAnnouncement& announcement) {
  size_ = announcement.bytes;
  if (announcement.error != 0) return;  // member 0 reports it
  errno = 0;
  note(open_file(announcement), ENXIO);
}

bool SegmentFile::open_file(const SegmentAnnouncement& announcement) {
  const std::string path =
      fmt::format("/proc/{}/fd/{}", announcement.process, announcement.descriptor);
  descriptor_ = announcement.is_named != 0 ? ::shm_open(announcement.name().c_str(), O_RDWR, 0)
                                           : ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  return descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<std::uint64_t>(status.st_size) == mapped_bytes(size_) && map() &&
         trailer().token == announcement.token;
}

void SegmentFile::announce_mapping() const {
  trailer().mapped.fetch_add(1, std::memory_order_release);
}

bool SegmentFile::is_mapped_by(std::size_t members) const {
  return trailer().mapped.load(std::memory_order_acquire) >= members;
}

bool SegmentFile::map() {
  void* data =
      ::mmap(nullptr, mapped_bytes(size_), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (data == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(data);
  return true;
}

SharedMemoryError segment_error(const std::string& activity, std::uint64_t bytes, int member,
                                int members, int error) {
  return {fmt::format("{}: cannot create {} bytes of shared memory: member {} of {} failed: {}",
                      activity, bytes, member, members, std::strerror(error)),
          segment_hint, error};
}

}  // namespace rankmesh::detail
