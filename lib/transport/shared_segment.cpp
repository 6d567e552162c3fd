#include "rankmesh/transport/shared_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>

#include <fmt/format.h>

#include "rankmesh/mpi/error.hpp"

namespace rankmesh {
namespace {

using mpi::check;

constexpr const char* segment_hint =
    "look at the limits on memory and at /dev/shm (df -h /dev/shm; docker --shm-size)";

// What member 0 tells the others. Where it failed, `error` is its errno.
struct Announcement {
  std::uint64_t bytes = 0;
  std::uint64_t token = 0;  // stands behind the segment
  std::int64_t process = 0;
  std::int32_t descriptor = -1;
  std::int32_t error = 0;
  std::array<char, 96> name{};  // in /dev/shm; empty: a memfd of that process
};

struct Outcome {  // as MPI_2INT: the highest errno, and whose it is
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
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

// The name of a segment, while it stands in /dev/shm.
class Name {
 public:
  Name() = default;
  explicit Name(const char* name) : name_{name} {}
  ~Name() { remove(); }
  Name(const Name&) = delete;
  Name& operator=(const Name&) = delete;
  Name(Name&& other) noexcept : name_{std::exchange(other.name_, {})} {}
  Name& operator=(Name&& other) noexcept {
    std::swap(name_, other.name_);
    return *this;
  }
  void remove() {
    if (!name_.empty()) ::shm_unlink(name_.c_str());
    name_.clear();
  }

 private:
  std::string name_;
};

std::uint64_t random_bits() {
  std::random_device source;
  return (std::uint64_t{source()} << 32) | source();
}

// What is mapped for so many bytes: the token that proves it to be the right file stands behind
// them.
std::size_t mapped(std::size_t bytes) { return bytes + sizeof(Announcement::token); }

void* map(int fd, std::size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return data == MAP_FAILED ? nullptr : data;
}

// One attempt to make a segment that all members have.
class Attempt {
 public:
  Attempt(const mpi::CommunicatorView& members, WaitMonitor& monitor, const WaitPoint& step,
          const Deadline& deadline)
      : members_{members}, monitor_{monitor}, step_{step}, deadline_{deadline} {}

  // The mapping, or null where a member failed: then `outcome` says who and why.
  void* operator()(std::size_t bytes, bool named, Outcome& outcome, std::uint64_t& size) {
    // Lent to MPI until it is done; a deadline that passes leaves it lent for good.
    auto announcement = std::make_unique<Announcement>();
    if (members_.rank() == 0) create(*announcement, bytes, named);
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibcast(announcement.get(), sizeof(Announcement), MPI_BYTE, 0, members_.native(),
                     &request),
          "MPI_Ibcast");
    wait(request, announcement);
    if (members_.rank() != 0) open(*announcement);

    struct Both {
      Outcome mine, all;
    };
    auto both = std::make_unique<Both>();
    both->mine = {error_, members_.rank()};
    check(MPI_Iallreduce(&both->mine, &both->all, 1, MPI_2INT, MPI_MAXLOC, members_.native(),
                         &request),
          "MPI_Iallreduce");
    wait(request, both);
    outcome = both->all;
    size = announcement->bytes;
    name_.remove();
    descriptor_ = Descriptor{-1};
    if (outcome.error == 0) return data_;
    if (data_ != nullptr) ::munmap(data_, mapped(size));
    return nullptr;
  }

 private:
  template <class Lent>
  void wait(MPI_Request& request, std::unique_ptr<Lent>& lent) {
    try {
      monitor_.wait({&request, 1}, step_, deadline_);
    } catch (...) {
      (void)lent.release();  // NOLINT: MPI may still write there
      if (data_ != nullptr) ::munmap(data_, mapped(bytes_));
      throw;
    }
  }

  void create(Announcement& announcement, std::size_t bytes, bool named) {
    bytes_ = announcement.bytes = std::max<std::size_t>(bytes, 1);
    announcement.token = random_bits();
    announcement.process = ::getpid();
    if (named) {
      const std::string name =
          fmt::format("/rankmesh-{}-{:016x}{:016x}", ::getpid(), random_bits(), random_bits());
      std::copy(name.begin(), name.end(), announcement.name.begin());
      descriptor_ =
          Descriptor{::shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, S_IRUSR | S_IWUSR)};
      if (descriptor_) name_ = Name{name.c_str()};
    } else {
      descriptor_ = Descriptor{::memfd_create("rankmesh", MFD_CLOEXEC)};
      if (descriptor_ && ::fchmod(descriptor_.get(), S_IRUSR | S_IWUSR) != 0)
        return fail(announcement);
    }
    announcement.descriptor = descriptor_.get();
    if (!descriptor_ || ::ftruncate(descriptor_.get(), static_cast<off_t>(mapped(bytes_))) != 0)
      return fail(announcement);
    // A full /dev/shm is to fail here, not as a SIGBUS later. A memfd knows no such limit.
    if (named)
      if (const int code =
              ::posix_fallocate(descriptor_.get(), 0, static_cast<off_t>(mapped(bytes_)));
          code != 0) {
        errno = code;
        return fail(announcement);
      }
    data_ = map(descriptor_.get(), mapped(bytes_));
    if (data_ == nullptr) return fail(announcement);
    std::memcpy(token(), &announcement.token, sizeof announcement.token);
  }

  void fail(Announcement& announcement) { announcement.error = error_ = errno == 0 ? EIO : errno; }

  void open(const Announcement& announcement) {
    bytes_ = announcement.bytes;
    if (announcement.error != 0) return;  // member 0 says it
    errno = 0;
    const std::string path =
        fmt::format("/proc/{}/fd/{}", announcement.process, announcement.descriptor);
    const Descriptor descriptor{announcement.name[0] != '\0'
                                    ? ::shm_open(announcement.name.data(), O_RDWR, 0)
                                    : ::open(path.c_str(), O_RDWR | O_CLOEXEC)};
    struct stat status {};
    // Where members see other processes under that number this is another file: too short, or
    // without the token.
    if (!descriptor || ::fstat(descriptor.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        static_cast<std::uint64_t>(status.st_size) != mapped(bytes_))
      return fail();
    data_ = map(descriptor.get(), mapped(bytes_));
    if (data_ == nullptr) return fail();
    if (std::memcmp(token(), &announcement.token, sizeof announcement.token) != 0) return fail();
  }

  [[nodiscard]] std::byte* token() const { return static_cast<std::byte*>(data_) + bytes_; }
  void fail() { error_ = errno == 0 ? ENXIO : errno; }

  const mpi::CommunicatorView& members_;
  WaitMonitor& monitor_;
  const WaitPoint& step_;
  const Deadline& deadline_;
  int error_ = 0;
  Descriptor descriptor_{-1};
  Name name_;
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace

SharedSegment::SharedSegment(const mpi::CommunicatorView& members, std::size_t bytes,
                             WaitMonitor& monitor, const WaitPoint& step, const Deadline& deadline,
                             Way way) {
  Outcome outcome;
  std::uint64_t size = 0;
  void* data = nullptr;
  if (way == Way::automatic)
    data = Attempt{members, monitor, step, deadline}(bytes, false, outcome, size);
  if (data == nullptr) data = Attempt{members, monitor, step, deadline}(bytes, true, outcome, size);
  if (data == nullptr)
    throw SharedMemoryError{
        fmt::format("{}: {} bytes of shared memory could not be had: member {} of {} "
                    "failed: {}",
                    step.activity, size, outcome.member, members.size(),
                    std::strerror(outcome.error)),
        segment_hint, outcome.error};
  data_ = static_cast<std::byte*>(data);
  size_ = size;
}

void SharedSegment::unmap() noexcept {
  if (data_ != nullptr) ::munmap(data_, mapped(size_));
  data_ = nullptr;
  size_ = 0;
}

}  // namespace rankmesh
