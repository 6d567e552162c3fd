// SPDX-License-Identifier: BSD-3-Clause
// The exceptions of rankmesh. All of them derive from Error.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// The base class of all exceptions of rankmesh. `message()` says what is wrong and where, and
/// `hint()` says what to do about it; the hint may be empty. `what()` returns both, with the hint
/// on a second line.
class RANKMESH_API Error : public std::runtime_error {
 public:
  explicit Error(std::string message, std::string hint = {});
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }

 private:
  std::string message_;
  std::string hint_;
};

/// A mesh string, a mesh file or a layout is invalid.
class RANKMESH_API SpecError : public Error {
 public:
  SpecError(std::string message, std::string hint,
            std::optional<std::size_t> position = std::nullopt);
  /// Returns the place of the error in the text, in bytes from 0, if the error has one.
  [[nodiscard]] std::optional<std::size_t> position() const noexcept { return position_; }

 private:
  std::optional<std::size_t> position_;
};

/// A call breaks its contract, for example by wrong sizes, overlapping buffers or a root outside
/// the group. It is thrown before any data is sent, so the coordinator stays usable.
class RANKMESH_API UsageError : public Error {
 public:
  using Error::Error;
};

/// The mesh has no groups of this name; the hint lists the names that exist.
class RANKMESH_API UnknownName : public UsageError {
 public:
  using UsageError::UsageError;
};

/// This rank is in no group of the requested family.
class RANKMESH_API NotMember : public UsageError {
 public:
  using UsageError::UsageError;
};

/// The object was closed, or an earlier failure left the coordinator broken.
class RANKMESH_API ClosedError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A call needs a device transport, and there is none. The message says why: for example which
/// library was not found, and where it was looked for.
class RANKMESH_API NoDeviceError : public Error {
 public:
  using Error::Error;
};

/// The transport or the data type does not offer the operation.
class RANKMESH_API UnsupportedError : public Error {
 public:
  using Error::Error;
};

/// Data from another rank is not the expected data: it is truncated, of another kind, or not a
/// message of rankmesh. Also thrown if the sender could not create its message; it then holds
/// the reason.
class RANKMESH_API DataError : public Error {
 public:
  using Error::Error;
};

/// The ranks do not agree, or some of them failed before the first collective. Every rank throws it
/// with the same text.
class RANKMESH_API MismatchError : public Error {
 public:
  /// @param is_common  whether every rank failed with the same message.
  MismatchError(std::string message, std::string hint, bool is_common)
      : Error{std::move(message), std::move(hint)}, is_common_{is_common} {}
  [[nodiscard]] bool is_common() const noexcept { return is_common_; }

 private:
  bool is_common_;
};

/// A deadline passed.
class RANKMESH_API TimeoutError : public Error {
 public:
  TimeoutError(std::string message, std::string hint, std::vector<Rank> missing);
  /// Returns the world ranks that did not report. Empty if they could not be determined.
  [[nodiscard]] const std::vector<Rank>& missing() const noexcept { return missing_; }

 private:
  std::vector<Rank> missing_;
};

}  // namespace rankmesh
