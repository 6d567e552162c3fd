// SPDX-License-Identifier: BSD-3-Clause
#include "detail/checkpoint_files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/detail/file_size.hpp"
#include "mpi/detail/unfinished.hpp"

namespace rankmesh::exchange::detail {
namespace {

constexpr std::size_t most_open = 64;  // files of an OpenFiles

[[noreturn]] void throw_errno(std::string_view what, const std::string& path, int error) {
  const bool is_full = error == ENOSPC || error == EFBIG || error == EDQUOT;
  throw FileError{
      fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(error)),
      is_full           ? "free some space, or write elsewhere"
      : error == EEXIST ? "save under another name"
                        : "check the path and its permissions"};
}

// Writes the entries of a folder to disk.
void sync_folder(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw_errno("open", path, errno);
  const bool is_done = ::fsync(descriptor) == 0;
  const int error = errno;
  ::close(descriptor);
  if (!is_done) throw_errno("write", path, error);
}

// Throws if a link that save_checkpoint() makes would replace a file of the user.
void require_own_link(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && !S_ISLNK(status.st_mode))
    throw FileError{fmt::format("{} is not a link that save_checkpoint() has made", path),
                    "move it, or save into another folder"};
}

}  // namespace

File::File(std::string path, Mode mode) : path_{std::move(path)} {
  const int flags = mode == Mode::read    ? O_RDONLY
                    : mode == Mode::write ? O_WRONLY
                                          : O_WRONLY | O_CREAT | O_EXCL;
  descriptor_ = ::open(path_.c_str(), flags | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_errno(mode == Mode::create ? "create" : "open", path_, errno);
}
File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}
File::File(File&& other) noexcept
    : path_{std::move(other.path_)}, descriptor_{std::exchange(other.descriptor_, -1)} {}

void File::resize(std::int64_t bytes) {
  if (!rankmesh::detail::set_file_size(descriptor_, static_cast<std::uint64_t>(bytes)))
    throw_errno("enlarge", path_, errno);
}

void File::write(std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_errno("write", path_, n < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
}

void File::read(std::int64_t offset, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pread(descriptor_, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("read", path_, errno);
    if (n == 0)
      throw FileError{fmt::format("{} is cut: it ends at byte {}", path_, offset),
                      "load another checkpoint"};
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
}

std::int64_t File::size() {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw_errno("read", path_, errno);
  return status.st_size;
}

void File::sync() {
  if (::fsync(descriptor_) != 0) throw_errno("write", path_, errno);
}

File& OpenFiles::operator[](const std::string& name) {
  const std::string path = folder_ + "/" + name;
  const auto known = std::ranges::find(files_, path, &File::path);
  if (known != files_.end()) return *known;
  if (files_.size() == most_open) {
    if (mode_ == File::Mode::write) files_.front().sync();
    files_.pop_front();
  }
  return files_.emplace_back(path, mode_);
}

void OpenFiles::sync() {
  for (File& file : files_) file.sync();
}

// Some file systems have no such locks.
FolderLock::FolderLock(const std::string& root) {
  std::error_code error;
  std::filesystem::create_directories(root, error);
  if (error) throw_errno("create", root, error.value());
  descriptor_ = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) throw_errno("open", root, errno);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK || mpi::has_loss())
    return;
  ::close(descriptor_);
  throw FileError{fmt::format("another job is saving a checkpoint in {}", root),
                  "wait until it has ended, or save into another folder"};
}
FolderLock::~FolderLock() { ::close(descriptor_); }

void create_folder(const std::string& root, const std::string& name) {
  require_own_link(root + "/latest");
  const std::string path = root + "/" + name;
  if (::mkdir(path.c_str(), 0777) != 0) throw_errno("create", path, errno);
}

void write_file(const std::string& path, std::string_view text) {
  File file{path, File::Mode::create};
  file.resize(std::ssize(text));
  file.write(0, std::as_bytes(std::span{text}));
  file.sync();
}

void make_link(const std::string& root, const std::string& link, const std::string& name) {
  sync_folder(root + "/" + name);
  const std::string path = root + "/" + link;
  require_own_link(path);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_errno("remove", path, errno);
  if (::symlink(name.c_str(), path.c_str()) != 0) throw_errno("create", path, errno);
  sync_folder(root);
}

void set_latest(const std::string& root, const std::string& link) {
  const std::string latest = root + "/latest";
  if (::rename((root + "/" + link).c_str(), latest.c_str()) != 0)
    throw_errno("replace", latest, errno);
  sync_folder(root);
}

bool remove_link(const std::string& root, const std::string& link) noexcept {
  return ::unlink((root + "/" + link).c_str()) == 0;
}

void remove_folder(const std::string& root, const std::string& name) noexcept {
  const std::string folder = root + "/" + name;
  std::error_code error;
  for (std::filesystem::directory_iterator entry{folder, error}, end; !error && entry != end;
       entry.increment(error))
    ::unlink(entry->path().c_str());
  ::rmdir(folder.c_str());
}

}  // namespace rankmesh::exchange::detail
