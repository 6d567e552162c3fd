// SPDX-License-Identifier: BSD-3-Clause
// The exceptions of rankmesh. All of them derive from Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// The base class of all exceptions of rankmesh. `message()` describes the error and says where it
/// occurred. `hint()` suggests a remedy and may be empty. `what()` returns the message, followed by
/// the hint on a second line.
class RANKMESH_API Error : public std::runtime_error {
 public:
  /// Creates an error from its text and a hint, which may be empty.
  explicit Error(std::string message, std::string hint = {});
  /// Returns what is wrong, without the hint.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  /// Returns what to do about the error; empty if there is no hint.
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }

 private:
  std::string message_;
  std::string hint_;
  std::shared_ptr<const std::string> alive_;  // says that the error has not been handled yet
};

/// A mesh string, a mesh file or a layout is invalid.
class RANKMESH_API SpecError : public Error {
 public:
  /// Creates an error. `position` is a byte offset in the description of the mesh.
  SpecError(std::string message, std::string hint,
            std::optional<std::size_t> position = std::nullopt);
  /// Returns the byte offset of the error in the text, or nothing if the error has no position.
  [[nodiscard]] std::optional<std::size_t> position() const noexcept { return position_; }

 private:
  std::optional<std::size_t> position_;
};

/// A call violates its contract. For example, a buffer has the wrong size, buffers overlap, or the
/// root is not in the group. This exception is thrown before any data is sent, so the coordinator
/// stays usable.
class RANKMESH_API UsageError : public Error {
 public:
  using Error::Error;  ///< Creates an error from its text and a hint, which may be empty.
};

/// The requested name does not exist. For example, no family of the mesh has this name. The hint
/// lists the existing names.
class RANKMESH_API UnknownName : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A rank is in no group of the requested family, or it is outside the requested layout.
class RANKMESH_API NotMember : public UsageError {
 public:
  using UsageError::UsageError;
};

/// The object was closed, or the coordinator is broken because of an earlier failure.
class RANKMESH_API ClosedError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A call needs a device transport, but the mesh has none. The message gives the reason. For
/// example, it names a library that was not found and the places where rankmesh searched for it.
class RANKMESH_API NoDeviceError : public Error {
 public:
  using Error::Error;  ///< Creates an error from its text and a hint, which may be empty.
};

/// The operation is not supported by the transport or for the data type.
class RANKMESH_API UnsupportedError : public Error {
 public:
  using Error::Error;  ///< Creates an error from its text and a hint, which may be empty.
};

/// Data from another rank is invalid: it is truncated, it is of an unexpected kind, or it is not a
/// message of rankmesh. This exception is also thrown if the sender could not create its message.
/// In this case the exception contains the reason.
class RANKMESH_API DataError : public Error {
 public:
  using Error::Error;  ///< Creates an error from its text and a hint, which may be empty.
};

/// The ranks passed different values where all values must be equal, or some ranks failed before
/// the first collective. Every rank throws this exception with the same text.
class RANKMESH_API MismatchError : public Error {
 public:
  /// @param is_common  true if every rank failed with the same message.
  MismatchError(std::string message, std::string hint, bool is_common)
      : Error{std::move(message), std::move(hint)}, is_common_{is_common} {}
  /// Returns whether every rank failed with the same message.
  [[nodiscard]] bool is_common() const noexcept { return is_common_; }

 private:
  bool is_common_;
};

/// A wait did not end before its deadline, or cannot end (PeerError).
class RANKMESH_API TimeoutError : public Error {
 public:
  /// Creates an error that names the missing ranks of the world.
  TimeoutError(std::string message, std::string hint, std::vector<Rank> missing);
  /// Returns the missing ranks, which did not enter the wait. The list is empty if the missing
  /// ranks could not be determined.
  [[nodiscard]] const std::vector<Rank>& missing() const noexcept { return missing_; }

 private:
  std::vector<Rank> missing_;
};

/// Another rank has ended, has left the mesh or has given up an operation, so the operation of this
/// rank can never be complete. The message names that rank and its reason. This exception is thrown
/// before the deadline, and also if there is no deadline.
class RANKMESH_API PeerError : public TimeoutError {
 public:
  /// Creates an error that names the ranks of the world that failed or are missing.
  explicit PeerError(std::string message, std::string hint = {}, std::vector<Rank> missing = {});
};

/// A library below rankmesh, or a transport of the program, has reported an error. In a mesh that
/// may survive, such an error is often the first sign that a rank is lost. Then LostRanks is thrown
/// instead.
class RANKMESH_API LibraryError : public Error {
 public:
  using Error::Error;  ///< Creates an error from its text and a hint, which may be empty.
};

/// Ranks of a mesh that may survive (MeshOptions::survive) are lost: their processes have ended, or
/// exceptions have destroyed their meshes. The current or next call of every surviving rank throws
/// this exception, with the same text. Mesh::next() opens the mesh of the survivors.
class RANKMESH_API LostRanks : public Error {
 public:
  /// Creates an error that names the lost ranks.
  LostRanks(std::string message, std::string hint, std::vector<Rank> ranks,
            std::optional<std::int64_t> step);
  /// Returns the lost ranks of the mesh, in ascending order: the same on every survivor.
  [[nodiscard]] const std::vector<Rank>& ranks() const noexcept { return ranks_; }
  /// Returns the step from which all survivors go on: the last one that all of them have passed to
  /// Mesh::commit(). The same on every survivor; nothing if there is none.
  [[nodiscard]] std::optional<std::int64_t> step() const noexcept { return step_; }

 private:
  std::vector<Rank> ranks_;
  std::optional<std::int64_t> step_;
};

}  // namespace rankmesh
