// SPDX-License-Identifier: BSD-3-Clause
// Files of a checkpoint. They use POSIX functions, because C++ streams have neither pwrite nor
// fsync.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "rankmesh/exchange/checkpoint.hpp"

namespace rankmesh::exchange::detail {

/// An open file. Move-only. All functions throw a FileError that names the file.
class File {
 public:
  enum class Mode : std::uint8_t { read, write, create };
  /// @param mode  `create`: the file must not exist.
  File(std::string path, Mode mode);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;

  void resize(std::int64_t bytes);
  void write(std::int64_t offset, std::span<const std::byte> bytes);
  void read(std::int64_t offset, std::span<std::byte> bytes);
  [[nodiscard]] std::int64_t size();
  /// Waits until the disk has the contents.
  void sync();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_;
};

/// The files of a folder, which are opened when they are used. A few of them are open at a time,
/// because the system limits their number.
class OpenFiles {
 public:
  OpenFiles(std::string folder, File::Mode mode) : folder_{std::move(folder)}, mode_{mode} {}
  /// Returns a file, until the next call. Closes the file that has been open longest if there are
  /// too many.
  File& operator[](const std::string& name);
  /// Waits until the disk has the contents of all files that were written.
  void sync();

 private:
  std::string folder_;
  File::Mode mode_;
  std::deque<File> files_{};  // in the order in which they were opened
};

/// Keeps other jobs from saving into a folder, as long as it exists. Creates the folder and its
/// parents. File systems without locks do without it, and so does a job that has lost ranks: one
/// that is excluded may be stopped while it holds the lock.
class FolderLock {
 public:
  /// @throws FileError if another job has the lock.
  explicit FolderLock(const std::string& root);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// Creates a folder in `root` that must not exist. Throws also if root/latest is a file of the
/// user.
void create_folder(const std::string& root, const std::string& name);
/// Writes a new file, and waits until the disk has it.
void write_file(const std::string& path, std::string_view text);
/// Makes a link to a folder in `root`, and writes it and the folder to disk.
/// @param link  Its name in `root`.
void make_link(const std::string& root, const std::string& link, const std::string& name);
/// Makes root/latest the link of make_link(), in one step.
void set_latest(const std::string& root, const std::string& link);
/// Removes the link of make_link(): then set_latest() can only fail. Returns whether it was there.
bool remove_link(const std::string& root, const std::string& link) noexcept;
/// Removes a folder with its files, also if other ranks remove it at the same time.
void remove_folder(const std::string& root, const std::string& name) noexcept;

}  // namespace rankmesh::exchange::detail
