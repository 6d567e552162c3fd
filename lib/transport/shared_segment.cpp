// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transport/shared_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/detail/file_size.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh {
namespace {

using mpi::check;

constexpr const char* segment_hint =
    "check the limits on memory and file sizes (ulimit -f) and the size of /dev/shm (df -h "
    "/dev/shm; "
    "docker --shm-size)";

// Member 0 broadcasts it so that the others can open the segment. If member 0 failed, `error` is
// its errno.
struct Announcement {
  std::uint64_t bytes = 0;
  std::uint64_t token = 0;  // also written behind the segment
  std::int64_t process = 0;
  std::int32_t descriptor = -1;
  std::int32_t error = 0;
  std::array<char, 96> name{};  // in /dev/shm; empty for a memfd of member 0's process
};

struct Outcome {  // laid out as MPI_2INT: the highest errno, and the member that has it
  int error = 0;
  int member = 0;
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_{fd} {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// A name in /dev/shm. The destructor removes it; mappings stay valid.
class SegmentName {
 public:
  SegmentName() = default;
  explicit SegmentName(const char* name) : name_{name} {}
  ~SegmentName() {
    if (!name_.empty()) ::shm_unlink(name_.c_str());
  }
  SegmentName(const SegmentName&) = delete;
  SegmentName& operator=(const SegmentName&) = delete;
  SegmentName(SegmentName&& other) noexcept : name_{std::exchange(other.name_, {})} {}
  SegmentName& operator=(SegmentName&& other) noexcept {
    std::swap(name_, other.name_);
    return *this;
  }

 private:
  std::string name_;
};

// Pages of a file in this process's memory. Empty if mmap failed.
class Mapping {
 public:
  Mapping() = default;
  Mapping(int fd, std::size_t bytes) : bytes_{bytes} {
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data != MAP_FAILED) data_ = static_cast<std::byte*>(data);
  }
  ~Mapping() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  Mapping(Mapping&& other) noexcept
      : data_{std::exchange(other.data_, nullptr)}, bytes_{other.bytes_} {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::byte* release() { return std::exchange(data_, nullptr); }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

std::uint64_t random_bits() {
  std::random_device source;
  return (std::uint64_t{source()} << 32) | source();
}

// The size of the mapping of a segment: the token follows the segment's own bytes.
std::size_t mapped(std::size_t bytes) { return bytes + sizeof(Announcement::token); }

// One attempt to create a segment that all members have mapped.
//
// Member 0 creates it and broadcasts where it is. The other members open it, either by its name or
// through /proc/PID/fd/FD of member 0. A container may have its own process numbers, so that this
// path leads to another file there: member 0 therefore writes a random token behind the segment,
// and every member compares it. A reduction then tells all members whether one of them failed.
class Attempt {
 public:
  Attempt(const mpi::CommunicatorView& members, WaitMonitor& monitor, const WaitPoint& point,
          const Deadline& deadline)
      : members_{members}, monitor_{monitor}, point_{point}, deadline_{deadline} {}

  // Returns the mapping. It is empty if a member failed, and `outcome` holds that member and errno.
  Mapping run(std::size_t bytes, SharedSegment::Backing backing) {
    MpiMemory<Announcement> announcement;
    if (members_.rank() == 0) create(*announcement, bytes, backing);
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibcast(announcement.get(), sizeof(Announcement), MPI_BYTE, 0, members_.native(),
                     &request),
          "MPI_Ibcast");
    announcement.wait(request, monitor_, point_, deadline_);
    if (members_.rank() != 0) open(*announcement);

    struct Outcomes {
      Outcome mine, worst;
    };
    MpiMemory<Outcomes> outcomes;
    outcomes->mine = {error_, members_.rank()};
    check(MPI_Iallreduce(&outcomes->mine, &outcomes->worst, 1, MPI_2INT, MPI_MAXLOC,
                         members_.native(), &request),
          "MPI_Iallreduce");
    outcomes.wait(request, monitor_, point_, deadline_);
    outcome = outcomes->worst;
    return outcome.error == 0 ? std::move(mapping_) : Mapping{};
  }

  // Returns the descriptor of the file, which the caller closes.
  [[nodiscard]] int release_descriptor() { return descriptor_.release(); }

  Outcome outcome;
  std::uint64_t size = 0;  // of the segment, as member 0 wants it

 private:
  void create(Announcement& announcement, std::size_t bytes, SharedSegment::Backing backing) {
    size = announcement.bytes = std::max<std::size_t>(bytes, 1);
    announcement.token = random_bits();
    announcement.process = ::getpid();
    const bool is_named = backing == SharedSegment::Backing::named;
    if (is_named) {
      const std::string name =
          fmt::format("/rankmesh-{}-{:016x}{:016x}", ::getpid(), random_bits(), random_bits());
      std::copy(name.begin(), name.end(), announcement.name.begin());
      descriptor_ =
          Descriptor{::shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, S_IRUSR | S_IWUSR)};
      if (descriptor_) name_ = SegmentName{name.c_str()};
    } else {
      descriptor_ = Descriptor{::memfd_create("rankmesh", MFD_CLOEXEC)};
      if (descriptor_ && ::fchmod(descriptor_.get(), S_IRUSR | S_IWUSR) != 0)
        return fail(announcement);
    }
    announcement.descriptor = descriptor_.get();
    if (!descriptor_ || !detail::set_file_size(descriptor_.get(), mapped(size)))
      return fail(announcement);
    // Reserves the pages, so that a full /dev/shm is an error here and not a SIGBUS at the first
    // write. The size of /dev/shm does not limit a memfd.
    if (is_named) {
      if (const int code =
              ::posix_fallocate(descriptor_.get(), 0, static_cast<off_t>(mapped(size)));
          code != 0) {
        errno = code;
        return fail(announcement);
      }
    }
    mapping_ = Mapping{descriptor_.get(), mapped(size)};
    if (!mapping_) return fail(announcement);
    std::memcpy(token(), &announcement.token, sizeof announcement.token);
  }

  void fail(Announcement& announcement) { announcement.error = error_ = errno == 0 ? EIO : errno; }

  void open(const Announcement& announcement) {
    size = announcement.bytes;
    if (announcement.error != 0) return;  // member 0 reports it
    errno = 0;
    const std::string path =
        fmt::format("/proc/{}/fd/{}", announcement.process, announcement.descriptor);
    descriptor_ =
        Descriptor{announcement.name[0] != '\0' ? ::shm_open(announcement.name.data(), O_RDWR, 0)
                                                : ::open(path.c_str(), O_RDWR | O_CLOEXEC)};
    struct stat status {};
    if (!descriptor_ || ::fstat(descriptor_.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        static_cast<std::uint64_t>(status.st_size) != mapped(size))
      return fail();
    mapping_ = Mapping{descriptor_.get(), mapped(size)};
    if (!mapping_) return fail();
    if (std::memcmp(token(), &announcement.token, sizeof announcement.token) != 0) return fail();
  }

  [[nodiscard]] std::byte* token() const { return mapping_.data() + size; }
  void fail() { error_ = errno == 0 ? ENXIO : errno; }

  const mpi::CommunicatorView& members_;
  WaitMonitor& monitor_;
  const WaitPoint& point_;
  const Deadline& deadline_;
  int error_ = 0;
  Descriptor descriptor_{-1};
  SegmentName name_;
  Mapping mapping_;
};

}  // namespace

SharedSegment::SharedSegment(const mpi::CommunicatorView& members, std::size_t bytes,
                             WaitMonitor& monitor, const WaitPoint& point, const Deadline& deadline,
                             Backing backing, int* descriptor) {
  const auto attempt_with = [&](Backing chosen) {
    Attempt attempt{members, monitor, point, deadline};
    data_ = attempt.run(bytes, chosen).release();
    size_ = attempt.size;
    if (descriptor != nullptr && data_ != nullptr) *descriptor = attempt.release_descriptor();
    return attempt.outcome;
  };
  Outcome outcome = attempt_with(backing);
  if (data_ == nullptr && backing == Backing::automatic) outcome = attempt_with(Backing::named);
  if (data_ == nullptr)
    throw SharedMemoryError{
        fmt::format("{}: cannot create {} bytes of shared memory: member {} of {} failed: {}",
                    point.activity, size_, outcome.member, members.size(),
                    std::strerror(outcome.error)),
        segment_hint, outcome.error};
}

void SharedSegment::unmap() noexcept {
  if (data_ != nullptr) ::munmap(data_, mapped(size_));
  data_ = nullptr;
  size_ = 0;
}

}  // namespace rankmesh
