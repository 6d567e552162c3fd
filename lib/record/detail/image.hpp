// SPDX-License-Identifier: BSD-3-Clause
// The bytes of a record that does not change any more.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rankmesh/record/format.hpp"
#include "rankmesh/record/record.hpp"

namespace rankmesh::record::detail {

/// No thread writes to an image, so every load may be relaxed.
inline constexpr auto relaxed = std::memory_order_relaxed;

/// A private copy of the bytes, aligned as the format requires.
struct alignas(64) Image {
  std::array<std::byte, format::total_bytes> bytes;

  [[nodiscard]] const format::Header& header() const {
    return *reinterpret_cast<const format::Header*>(bytes.data());
  }
  /// Returns the entry in a slot of the ring.
  [[nodiscard]] const format::Entry& entry(std::size_t slot) const {
    return *reinterpret_cast<const format::Entry*>(bytes.data() + format::header_bytes +
                                                   slot * sizeof(format::Entry));
  }
  /// Returns the lines of JSON. The header must be valid.
  [[nodiscard]] std::string_view lines() const {
    return {reinterpret_cast<const char*>(bytes.data()) + format::header_bytes +
                format::entry_count * sizeof(format::Entry),
            header().group_bytes_used};
  }
};

/// Throws the DataError of a record that a program other than rankmesh has changed.
[[noreturn]] void refuse_altered(const std::string& name, const std::string& what);

/// Checks that bytes begin like a record of this version and are complete.
/// @param bytes  the first bytes, up to the size of a header.
/// @param size   the size of all bytes.
/// @throws DataError
void check_layout(std::span<const std::byte> bytes, std::size_t size, const std::string& name);

/// Checks the numbers of the header.
/// @throws DataError
void check_header(const format::Header& header, const std::string& name);

/// Adds the groups and the places of calls to a record that has the facts of its header already.
/// @throws DataError
void read_lines(const Image& image, const std::string& name, Record& record);

/// Returns the wait that a text of Header::wait describes, without its time and its point.
/// @throws DataError
Wait read_wait(const Image& image, std::string_view text, const std::string& name);

/// Returns a text without control characters and without bytes that are not UTF-8.
std::string printable(std::string_view text);

/// Converts the counter and the clock of a record to the clock of node 0. All results lie between
/// -2^60 and 2^60 ns (36 years).
class Clock {
 public:
  explicit Clock(const format::Header& header);
  /// Returns nothing if the frequency of the counter does not follow from the header with
  /// sufficient precision.
  [[nodiscard]] std::optional<Time> of_counter(std::uint64_t counter) const;
  [[nodiscard]] Time of_clock(std::int64_t nanoseconds) const;
  /// Returns when the record was opened.
  [[nodiscard]] Time opening() const { return of_clock(opened_); }

 private:
  std::uint64_t counter_ = 0;
  std::int64_t nanoseconds_ = 0;
  std::int64_t opened_ = 0;
  std::int64_t offset_ = 0;
  double nanoseconds_per_count_ = 0;                              // 0 if it is not known
  double most_counts_ = std::numeric_limits<double>::infinity();  // for which it is exact enough
};

/// Adds the calls and the marks of the ring to a record that has its groups already.
/// @throws DataError
void read_entries(const Image& image, const Clock& clock, const std::string& name, Record& record);

}  // namespace rankmesh::record::detail
