// SPDX-License-Identifier: BSD-3-Clause
// Reads the arguments of a preset by type.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/detail/parse.hpp"
#include "rankmesh/spec/presets.hpp"

namespace rankmesh::presets {

/// The forms of a value.
enum class ValueForm : std::uint8_t {
  size,          ///< from 1 up
  count,         ///< from 0 up
  default_size,  ///< from 1 up, or -1 for the system's default
  flag,          ///< true or false
  word,          ///< letters, digits, '_' and '-'
  sizes,         ///< sizes joined by x
  counts,        ///< counts joined by x
  names,         ///< distinct names joined by '.'
};

std::string_view text_of(ValueForm form);

struct Key {
  std::string_view name;
  ValueForm form = ValueForm::size;
  std::string_view meaning;
};

/// The arguments of a preset, and the size of the job. Numbers fit in 64 bits, and products are
/// checked for overflow. Errors show their place in the text.
class Arguments {
 public:
  Arguments(std::string_view text, const PresetCall& call, std::optional<std::int64_t> job)
      : text_{text}, call_{call}, job_{job} {}

  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  [[nodiscard]] std::int64_t number(std::string_view key, std::int64_t fallback) const;
  [[nodiscard]] std::int64_t size(std::string_view key) const { return number(key, 1); }
  [[nodiscard]] bool flag(std::string_view key, bool fallback) const;
  /// Returns the word in lower case. It must be one of `allowed` unless that is empty.
  [[nodiscard]] std::string word(std::string_view key, std::string_view fallback,
                                 std::span<const std::string> allowed) const;
  /// Returns the numbers of a required key, joined by x.
  [[nodiscard]] std::vector<std::int64_t> numbers(std::string_view key) const;
  /// Returns the names of a required key, joined by '.'.
  [[nodiscard]] std::vector<std::string> names(std::string_view key) const;

  /// Returns `world_size` if it is given, else the size of the job if it is known.
  [[nodiscard]] std::optional<std::int64_t> world() const;
  /// Returns the world size.
  /// @throws SpecError if it is not known.
  [[nodiscard]] std::int64_t required_world() const;
  /// Returns `product`, for systems whose sizes determine the world.
  /// @throws SpecError if `world_size` is given and differs.
  [[nodiscard]] std::int64_t whole_world(std::int64_t product) const;
  /// Returns the size of the data dimension: the given size, else the rest of the world after
  /// `others`, else 1.
  [[nodiscard]] std::int64_t free_size(std::string_view key, std::int64_t others) const;
  /// Returns whether a dimension depends on the size of the job.
  [[nodiscard]] bool is_open() const { return open_; }

  [[nodiscard]] std::int64_t product(std::span<const std::int64_t> factors) const;
  [[nodiscard]] std::int64_t product(std::initializer_list<std::int64_t> factors) const {
    return product(std::span{factors.begin(), factors.size()});
  }
  [[nodiscard]] std::int64_t sum(std::int64_t a, std::int64_t b) const;
  /// Returns a / b.
  /// @throws SpecError at `key` if b does not divide a: "`dividend` is not divisible by
  /// `divisor` = b".
  [[nodiscard]] std::int64_t quotient(std::int64_t a, std::int64_t b, std::string_view key,
                                      std::string_view dividend, std::string_view divisor) const;

  /// Throws a SpecError at the value of `key`, or at the system if the key was left out.
  [[noreturn]] void refuse(std::string_view key, std::string_view reason,
                           std::string_view hint) const;

 private:
  [[nodiscard]] const PresetCall::Argument* find(std::string_view key) const;
  [[nodiscard]] const PresetCall::Argument& require(std::string_view key,
                                                    std::string_view hint) const;

  std::string_view text_;
  const PresetCall& call_;
  std::optional<std::int64_t> job_;
  mutable bool open_ = false;
};

/// Returns the parts of a text between separators. An empty text has one empty part.
inline std::vector<std::string> split(std::string_view text, char separator) {
  return detail::split<std::string>(text, separator);
}

using detail::parse_number;

}  // namespace rankmesh::presets
