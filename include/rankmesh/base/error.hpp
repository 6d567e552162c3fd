// Every exception that rankmesh throws derives from Error.
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

/// What went wrong and where (`message`), and what to do about it (`hint`, may be empty).
/// `what()` holds both, the hint on a line of its own.
class RANKMESH_API Error : public std::runtime_error {
 public:
  explicit Error(std::string message, std::string hint = {});
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }

 private:
  std::string message_;
  std::string hint_;
};

/// A mesh string, a spec file or a layout that means nothing. `position` counts bytes from 0 in the
/// text.
class RANKMESH_API SpecError : public Error {
 public:
  SpecError(std::string message, std::string hint,
            std::optional<std::size_t> position = std::nullopt);
  [[nodiscard]] std::optional<std::size_t> position() const noexcept { return position_; }

 private:
  std::optional<std::size_t> position_;
};

/// A call that breaks its contract: wrong sizes, overlapping buffers, a root outside the group.
/// Thrown before anything was sent: the coordinator stays usable.
class RANKMESH_API UsageError : public Error {
 public:
  using Error::Error;
};

/// A name that the mesh does not have; the hint lists those it has.
class RANKMESH_API UnknownName : public UsageError {
 public:
  using UsageError::UsageError;
};

/// This rank is in no group of that name.
class RANKMESH_API NotMember : public UsageError {
 public:
  using UsageError::UsageError;
};

/// Use after `close()`, or after a failure that left the coordinator broken.
class RANKMESH_API ClosedError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A call on device memory where no device transport is there; says what was looked for and where.
class RANKMESH_API NoDeviceError : public Error {
 public:
  using Error::Error;
};

/// An operation that this transport or data type does not offer.
class RANKMESH_API UnsupportedError : public Error {
 public:
  using Error::Error;
};

/// What came from another rank is not what was to come: truncated, of another kind, or no message
/// of rankmesh's at all; or the sender could not make it and says why.
class RANKMESH_API DataError : public Error {
 public:
  using Error::Error;
};

/// The ranks do not agree, or one of them failed before the first collective. The same text on
/// every rank.
class RANKMESH_API MismatchError : public Error {
 public:
  /// @param is_common  every rank failed, with the same message.
  MismatchError(std::string message, std::string hint, bool is_common)
      : Error{std::move(message), std::move(hint)}, is_common_{is_common} {}
  [[nodiscard]] bool is_common() const noexcept { return is_common_; }

 private:
  bool is_common_;
};

/// A deadline passed. `missing` holds the world ranks that did not report (empty: could not be
/// told).
class RANKMESH_API TimeoutError : public Error {
 public:
  TimeoutError(std::string message, std::string hint, std::vector<Rank> missing);
  [[nodiscard]] const std::vector<Rank>& missing() const noexcept { return missing_; }

 private:
  std::vector<Rank> missing_;
};

}  // namespace rankmesh
