// SPDX-License-Identifier: BSD-3-Clause
// Writes records in a signal handler, with functions that a handler may call.
#include "rankmesh/record/write.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>

#include <fmt/format.h>

#include "detail/open_records.hpp"
#include "detail/recorded_call.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/settings.hpp"
#include "rankmesh/record/record.hpp"

namespace rankmesh::detail {
namespace {

namespace format = record::format;

constexpr int signal_count = 65;  // NSIG is no constant in every C library
constexpr int no_folder = -1;

std::array<std::atomic<int>, signal_count> folders;  // by signal: descriptors plus 1
alignas(format::Header) std::array<std::byte, format::header_bytes> header_copy;
static_assert(std::atomic<int>::is_always_lock_free);

bool write_all(int file, const std::byte* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(file, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

// Copies the header. Texts that change meanwhile are copied again, so that they are whole.
void copy_header(const format::Header& header) {
  constexpr std::size_t rare_begin = offsetof(format::Header, first);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&header);
  for (int attempt = 0; attempt < 10; ++attempt) {
    std::memcpy(header_copy.data(), bytes, header_copy.size());
    std::atomic_thread_fence(std::memory_order_acquire);
    if (std::memcmp(header_copy.data() + rare_begin, bytes + rare_begin,
                    sizeof(format::Header) - rare_begin) == 0)
      break;
  }
  // The copy shows the record at this moment, even if it is read later.
  auto& copy = *reinterpret_cast<format::Header*>(header_copy.data());
  copy.observed_process = static_cast<std::uint32_t>(record::Process::running);
  const CounterAndClock now = read_counter_and_clock(copy);
  copy.observed_at = now.nanoseconds;
  copy.last.counter.store(now.counter, std::memory_order_relaxed);
  copy.last.nanoseconds.store(now.nanoseconds, std::memory_order_relaxed);
}

// The header is copied after the entries were written. It then shows which entries may have changed
// meanwhile, and the groups that follow include all groups of the entries.
bool write_record(int file, const format::Header& header) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&header);
  constexpr std::size_t entries = format::header_bytes;
  constexpr std::size_t groups = entries + format::entry_count * sizeof(format::Entry);
  if (::lseek(file, entries, SEEK_SET) < 0) return false;
  if (!write_all(file, bytes + entries, groups - entries)) return false;
  copy_header(header);
  if (!write_all(file, bytes + groups, format::total_bytes - groups)) return false;
  return ::lseek(file, 0, SEEK_SET) == 0 && write_all(file, header_copy.data(), header_copy.size());
}

void write_file(int folder, const WrittenRecord& record, const format::Header& header) {
  const char* const temporary = record.name_while_written.data();
  // A file with this name is a leftover, or a link that another program has put there.
  ::unlinkat(folder, temporary, 0);
  const int file = ::openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            S_IRUSR | S_IWUSR);
  if (file < 0) return;
  const bool is_complete = write_record(file, header);
  ::close(file);
  if (!is_complete || ::renameat(folder, temporary, folder, record.name.data()) != 0)
    ::unlinkat(folder, temporary, 0);
}

// A file that exceeds the size limit (ulimit -f) is left out. The system has also sent a signal
// that ends the process as soon as the signal is not blocked any more. Ignoring the signal for a
// moment discards it.
void drop_signal_of_size() {
  struct sigaction ignored {};
  struct sigaction before {};
  ignored.sa_handler = SIG_IGN;
  if (::sigaction(SIGXFSZ, &ignored, &before) == 0) ::sigaction(SIGXFSZ, &before, nullptr);
}

// All signals are blocked during this function, so no other handler interrupts the writing thread.
extern "C" void rankmesh_write_records(int signal) {
  const int code = errno;
  if (!take_turn_of_handlers()) return;
  int cancel_state = PTHREAD_CANCEL_ENABLE;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);  // the turn must end
  const pid_t self = ::getpid();
  const int folder = folders[static_cast<std::size_t>(signal)].load() - 1;
  for (const WrittenRecord& record : open_records) {
    const format::Header* const header = record.header.load();
    if (folder != no_folder && header != nullptr && header->process_id == self)
      write_file(folder, record, *header);
  }
  drop_signal_of_size();
  end_turn_of_handlers();
  ::pthread_setcancelstate(cancel_state, nullptr);
  errno = code;
}

}  // namespace

}  // namespace rankmesh::detail

namespace rankmesh::record {
namespace {

void check_signal(int signal) {
  const auto refuse_signal = [&](const char* why) {
    throw UsageError{fmt::format("signal {} cannot write records: {}", signal, why),
                     "choose another signal, such as SIGUSR1"};
  };
  if (signal < 1 || signal >= rankmesh::detail::signal_count)
    refuse_signal("there is no such signal");
  if (signal == SIGKILL || signal == SIGSTOP) refuse_signal("a process cannot handle it");
  for (const int error : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
    if (signal == error) refuse_signal("the error that raises it would repeat for ever");
}

// Returns a descriptor of the folder. A later change of the current folder has no effect on it.
int open_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const std::string own = environment_variable("RANKMESH_RECORD").value_or("");
  fs::create_directories(folder, error);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int code = errno;
  if (descriptor >= 0 && ::access(folder.c_str(), W_OK | X_OK) != 0) {
    code = errno;
    ::close(descriptor);
  } else if (descriptor >= 0) {
    if (own.empty() || !fs::equivalent(folder, own, error)) return descriptor;
    ::close(descriptor);
    throw UsageError{
        fmt::format("the folder '{}' cannot have the records that a signal writes: it already has "
                    "those of RANKMESH_RECORD",
                    folder),
        "choose another folder; the records of RANKMESH_RECORD need no signal"};
  }
  throw UsageError{fmt::format("no records can be written into the folder '{}': {}", folder,
                               std::system_category().message(code)),
                   "choose a folder in which you can create files"};
}

}  // namespace

void write_on_signal(int signal, const std::string& folder) {
  static std::mutex mutex;
  check_signal(signal);
  const std::lock_guard lock{mutex};
  const int descriptor = open_folder(folder);
  rankmesh::detail::use_turns_of_handlers();
  std::atomic<int>& own = rankmesh::detail::folders[static_cast<std::size_t>(signal)];
  const int before = own.exchange(descriptor + 1) - 1;
  struct sigaction action {};
  action.sa_handler = rankmesh::detail::rankmesh_write_records;
  action.sa_flags = SA_RESTART;
  ::sigfillset(&action.sa_mask);
  if (::sigaction(signal, &action, nullptr) != 0) {
    const int code = errno;
    own.store(before + 1);
    ::close(descriptor);
    throw UsageError{fmt::format("signal {} cannot be handled: {}", signal,
                                 std::system_category().message(code)),
                     "choose another signal, such as SIGUSR1"};
  }
  if (before == rankmesh::detail::no_folder) return;
  rankmesh::detail::wait_for_handlers();  // into the folder before
  ::close(before);
}

}  // namespace rankmesh::record
