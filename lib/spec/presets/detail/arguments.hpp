// The arguments of a preset, read by type.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/spec/presets.hpp"

namespace rankmesh::presets {

/// The forms that a value can have.
enum class Form : std::uint8_t {
  size,          ///< 1 up
  count,         ///< 0 up
  default_size,  ///< 1 up, or -1 for the system's default
  flag,          ///< true or false
  word,          ///< letters, digits, '_' and '-'
  sizes,         ///< sizes joined by x
  counts,        ///< counts joined by x
  names,         ///< distinct names joined by '.'
};

std::string_view text_of(Form form);

struct Key {
  std::string_view name;
  Form form = Form::size;
  std::string_view meaning;
};

/// What a preset was called with, and the world that it meets. Every number is within 64 bits and
/// every product checked; whatever is wrong is refused at its place in the text.
class Arguments {
 public:
  Arguments(std::string_view text, const PresetCall& call, std::optional<std::int64_t> job)
      : text_{text}, call_{call}, job_{job} {}

  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  [[nodiscard]] std::int64_t number(std::string_view key, std::int64_t fallback) const;
  [[nodiscard]] std::int64_t size(std::string_view key) const { return number(key, 1); }
  [[nodiscard]] bool flag(std::string_view key, bool fallback) const;
  /// The word in lower case; one of `allowed` where that is not empty.
  [[nodiscard]] std::string word(std::string_view key, std::string_view fallback,
                                 std::span<const std::string> allowed) const;
  /// Required, joined by x.
  [[nodiscard]] std::vector<std::int64_t> numbers(std::string_view key) const;
  /// Required, joined by '.'.
  [[nodiscard]] std::vector<std::string> names(std::string_view key) const;

  /// `world_size` as stated, else the job's; nothing where neither is there.
  [[nodiscard]] std::optional<std::int64_t> world() const;
  /// The same where there must be one.
  [[nodiscard]] std::int64_t required_world() const;
  /// For systems whose sizes make the world: `product`, refused where the text states another
  /// `world_size`.
  [[nodiscard]] std::int64_t whole_world(std::int64_t product) const;
  /// The size of the data dimension: as given and checked, else what `others` leave of the world,
  /// else 1.
  [[nodiscard]] std::int64_t free_size(std::string_view key, std::int64_t others) const;
  /// Whether the job's size decides about a dimension.
  [[nodiscard]] bool is_open() const { return open_; }

  [[nodiscard]] std::int64_t product(std::span<const std::int64_t> factors) const;
  [[nodiscard]] std::int64_t product(std::initializer_list<std::int64_t> factors) const {
    return product(std::span{factors.begin(), factors.size()});
  }
  [[nodiscard]] std::int64_t sum(std::int64_t a, std::int64_t b) const;
  /// Returns a / b, or refuses at `key` if b does not divide a. The message then reads
  /// "`dividend` is not divisible by `divisor` = b".
  [[nodiscard]] std::int64_t quotient(std::int64_t a, std::int64_t b, std::string_view key,
                                      std::string_view dividend, std::string_view divisor) const;

  /// Refuses at the value of `key`, or at the system where the key was left out.
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

/// The parts of a text between separators; an empty text has one empty part.
std::vector<std::string> split(std::string_view text, char separator);

/// A whole number in 64 bits, or nothing.
std::optional<std::int64_t> parse_number(std::string_view text);

}  // namespace rankmesh::presets
