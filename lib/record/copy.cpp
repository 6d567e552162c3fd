// SPDX-License-Identifier: BSD-3-Clause
// Copies a record that its rank may be writing.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

#include "detail/image.hpp"
#include "detail/recorded_call.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/record/read.hpp"

namespace rankmesh::record {
namespace {

using format::Entry;
using format::Header;

constexpr std::size_t entries_end = format::header_bytes + format::entry_count * sizeof(Entry);
// From here to the end of the header, changes are rare, and the parts must be consistent with each
// other.
constexpr std::size_t rare_begin = offsetof(Header, first);

// If a file were mapped, and then truncated, a signal would end this process. Reading a file does
// not have this risk.
class File {
 public:
  File(int descriptor, const std::string& name) : descriptor_{descriptor}, name_{name} {}

  // Fills the span. Throws if the file is too short.
  void read(std::span<std::byte> to, std::size_t offset) const {
    while (!to.empty()) {
      const ssize_t size = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
      if (size < 0 && errno == EINTR) continue;
      if (size < 0)
        throw UsageError{fmt::format("the record '{}' cannot be read: {}", name_,
                                     std::system_category().message(errno)),
                         "check that you have permission to read the file"};
      if (size == 0)
        throw DataError{fmt::format("the record '{}' was cut while it was read", name_),
                        "copy the file again"};
      to = to.subspan(static_cast<std::size_t>(size));
      offset += static_cast<std::size_t>(size);
    }
  }
  [[nodiscard]] std::size_t size() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
    return static_cast<std::size_t>(status.st_size);
  }

 private:
  int descriptor_;
  const std::string& name_;
};

template <class Number>
Number load(std::span<const std::byte> bytes, std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

template <class Number>
void store(std::span<std::byte> bytes, std::size_t offset, Number number) {
  std::memcpy(bytes.data() + offset, &number, sizeof number);
}

void check_layout(const File& file, const std::string& name) {
  const std::size_t size = file.size();
  std::vector<std::byte> header(std::min(size, format::header_bytes));
  file.read(header, 0);
  detail::check_layout(header, size, name);
}

// Copies the entries and clears those that may have changed meanwhile. Returns the highest
// position.
std::uint64_t copy_entries(const File& file, std::span<std::byte> bytes) {
  std::uint64_t next = 0;
  const auto read_next = [&] {
    file.read(std::as_writable_bytes(std::span{&next, 1}), offsetof(Header, next));
    return next / format::position_unit;
  };
  std::uint64_t highest = read_next();
  std::atomic_thread_fence(std::memory_order_acquire);
  file.read(bytes.subspan(format::header_bytes, entries_end - format::header_bytes),
            format::header_bytes);
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::uint64_t last_begun = read_next();
  for (std::size_t at = format::header_bytes; at < entries_end; at += sizeof(Entry)) {
    const std::uint64_t position =
        load<std::uint64_t>(bytes, at + offsetof(Entry, sequence)) / format::position_unit;
    if (position + format::entry_count <= last_begun)
      store(bytes, at + offsetof(Entry, sequence), std::uint64_t{0});
    else if (position <= last_begun)
      highest = std::max(highest, position);
  }
  return highest;
}

// Copies the header so that its texts and its clocks are consistent. They are consistent if they
// are equal before and after the copy. If a rank was stopped in the middle of a change, its text is
// empty.
void copy_header(const File& file, std::span<std::byte> bytes) {
  const auto header = bytes.first(format::header_bytes);
  std::vector<std::byte> before(sizeof(Header) - rare_begin);
  std::vector<std::byte> after(before.size());
  for (int attempt = 0; attempt < 100; ++attempt) {
    file.read(before, rare_begin);
    std::atomic_thread_fence(std::memory_order_acquire);
    file.read(header, 0);
    std::atomic_thread_fence(std::memory_order_acquire);
    file.read(after, rare_begin);
    if (before == after) return;
  }
  std::ranges::fill(header.subspan(offsetof(Header, wait), sizeof(Header::wait)), std::byte{});
  std::ranges::fill(header.subspan(offsetof(Header, reason), sizeof(Header::reason)), std::byte{});
}

}  // namespace

std::vector<std::byte> copy(int descriptor, const std::string& name) {
  const File file{descriptor, name};
  check_layout(file, name);
  std::vector<std::byte> bytes(format::total_bytes);
  // A rank that makes many calls may overwrite most entries during a copy that is interrupted.
  constexpr int attempts = 4;
  for (int attempt = 1;; ++attempt) {
    const std::uint64_t highest = copy_entries(file, bytes);
    copy_header(file, bytes);  // after the entries: it has all groups of their calls
    const std::uint64_t next =
        load<std::uint64_t>(bytes, offsetof(Header, next)) / format::position_unit;
    store(bytes, offsetof(Header, next), highest * format::position_unit + format::first_next);
    if (attempt == attempts || next - highest < format::entry_count / 2) break;
  }
  file.read(std::span{bytes}.subspan(entries_end), entries_end);
  return bytes;
}

std::vector<std::byte> copy(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    throw UsageError{fmt::format("the record '{}' cannot be opened: {}", path,
                                 std::system_category().message(errno)),
                     "check that you have permission to read the file"};
  const struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } closer{descriptor};
  return copy(descriptor, path);
}

void observe(std::span<std::byte> bytes, const Observation& observation) {
  store(bytes, offsetof(Header, observed_process), static_cast<std::uint32_t>(observation.process));
  if (!observation.is_alive_here) return;
  Header header{};
  header.counter_is_clock = load<std::uint32_t>(bytes, offsetof(Header, counter_is_clock));
  const auto read = rankmesh::detail::read_counter_and_clock(header);
  const std::int64_t now = read.nanoseconds + observation.clock_shift;
  const std::uint64_t counter =
      header.counter_is_clock == 1 ? static_cast<std::uint64_t>(now) : read.counter;
  store(bytes, offsetof(Header, observed_at), now);
  const std::size_t last = offsetof(Header, last);
  store(bytes, last + offsetof(format::ClockPair, counter), counter);
  store(bytes, last + offsetof(format::ClockPair, nanoseconds), now);
}

}  // namespace rankmesh::record
