// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the readers of machines: lines, words, and errors with their line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankmesh::detail {

/// Limits of the memory that the readers allocate because of a small text.
inline constexpr std::int64_t most_hosts = std::int64_t{1} << 20;
inline constexpr std::int64_t most_listed_slots = std::int64_t{1} << 22;
inline constexpr std::size_t most_machine_characters = std::size_t{1} << 26;

/// A line of a text without its comment and without blanks at both ends.
struct Line {
  std::string_view text;
  std::int64_t number = 0;
};

/// Returns the lines that are not empty. A comment begins with '#'.
std::vector<Line> lines_of(std::string_view text);

/// Returns the text without blanks at both ends.
std::string_view stripped(std::string_view text);

/// Returns the words between blanks.
std::vector<std::string_view> words_of(std::string_view text);

/// Returns whether two texts are equal if the case of letters does not count.
bool equals_ignoring_case(std::string_view a, std::string_view b);

/// Reads a whole number without a sign.
/// @throws SpecError with the place, unless it lies between `least` and `most`.
std::int64_t number_in(std::string_view text, std::string_view what, std::int64_t least,
                       std::int64_t most, std::string_view origin, std::int64_t line);

/// Throws a SpecError whose message begins with `origin:line: `.
[[noreturn]] void refuse(std::string_view origin, std::int64_t line, std::string_view reason,
                         std::string_view hint);

/// Reads a list of names as Slurm writes it, for example `tux[0-3,12],login1`. Numbers keep their
/// leading zeros.
/// @throws SpecError with the place and the reason.
std::vector<std::string> read_hostlist(std::string_view text, std::string_view origin,
                                       std::int64_t line);

}  // namespace rankmesh::detail
