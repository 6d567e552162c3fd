// SPDX-License-Identifier: BSD-3-Clause
// The exceptions of rankmesh. All of them derive from Error.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// The base class of all exceptions of rankmesh. `message()` names the error and its place, and
/// `hint()` suggests a remedy. The hint may be empty. `what()` returns both, with the hint on a
/// second line.
class RANKMESH_API Error : public std::runtime_error {
 public:
  explicit Error(std::string message, std::string hint = {});
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }

 private:
  std::string message_;
  std::string hint_;
  std::shared_ptr<const std::string> alive_;  // says that the error has not been handled yet
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
/// the group. This exception is thrown before any data is sent, so the coordinator stays usable.
class RANKMESH_API UsageError : public Error {
 public:
  using Error::Error;
};

/// The mesh has no groups of the requested name. The hint lists the names that exist.
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

/// A call needs a device transport, and there is none. The message gives the reason. For example,
/// it names a library that was not found and the places that were searched.
class RANKMESH_API NoDeviceError : public Error {
 public:
  using Error::Error;
};

/// The transport or the data type does not offer the operation.
class RANKMESH_API UnsupportedError : public Error {
 public:
  using Error::Error;
};

/// Data from another rank is not the expected data: the data is truncated, is of another kind, or
/// is not a message of rankmesh. This exception is also thrown if the sender could not create its
/// message. The exception then holds the reason.
class RANKMESH_API DataError : public Error {
 public:
  using Error::Error;
};

/// The ranks do not agree, or some of them failed before the first collective. Every rank throws
/// this exception with the same text.
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
  /// Returns the world ranks that did not report. The list is empty if these ranks could not be
  /// determined.
  [[nodiscard]] const std::vector<Rank>& missing() const noexcept { return missing_; }

 private:
  std::vector<Rank> missing_;
};

}  // namespace rankmesh
