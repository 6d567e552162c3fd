// SPDX-License-Identifier: BSD-3-Clause
#include "detail/arguments.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "spec/detail/text.hpp"

namespace rankmesh::presets {

std::string_view text_of(ValueForm form) {
  return rankmesh::detail::name_in(
      {"a whole number from 1 up", "a whole number from 0 up", "a whole number from 1 up, or -1",
       "true or false", "a word of letters, digits, '_' and '-'",
       "whole numbers from 1 up joined by x, such as 2x4",
       "whole numbers from 0 up joined by x, such as 0x1",
       "distinct names joined by '.', such as dp.tp"},
      form);
}

const PresetCall::Argument* Arguments::find(std::string_view key) const {
  const auto found = std::ranges::find(call_.arguments, key, &PresetCall::Argument::key);
  return found == call_.arguments.end() ? nullptr : &*found;
}

const PresetCall::Argument& Arguments::require(std::string_view key, std::string_view hint) const {
  if (const auto* argument = find(key)) return *argument;
  refuse(key, fmt::format("the preset '{}' needs the key '{}'", call_.system, key), hint);
}

void Arguments::refuse(std::string_view key, std::string_view reason, std::string_view hint) const {
  const auto* argument = find(key);
  detail::refuse_at(text_, argument != nullptr ? argument->value_position : call_.position, reason,
                    hint);
}

std::int64_t Arguments::number(std::string_view key, std::int64_t fallback) const {
  const auto* argument = find(key);
  if (argument == nullptr) return fallback;
  if (const auto value = parse_number(argument->value)) return *value;
  refuse(key, fmt::format("'{}' overflows 64 bits", key), "use a smaller number");
}

bool Arguments::flag(std::string_view key, bool fallback) const {
  const auto* argument = find(key);
  return argument == nullptr ? fallback : argument->value == "true";
}

std::string Arguments::word(std::string_view key, std::string_view fallback,
                            std::span<const std::string> allowed) const {
  const auto* argument = find(key);
  std::string value{argument == nullptr ? fallback : std::string_view{argument->value}};
  for (char& c : value)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (argument != nullptr && !allowed.empty() && std::ranges::find(allowed, value) == allowed.end())
    refuse(key, fmt::format("'{}' cannot be '{:.40}'", key, value),
           detail::suggest(value, allowed, "the values are"));
  return value;
}

std::vector<std::int64_t> Arguments::numbers(std::string_view key) const {
  std::vector<std::int64_t> result;
  for (const std::string& part :
       split(require(key, fmt::format("write for example {}=2x4", key)).value, 'x'))
    if (const auto value = parse_number(part)) result.push_back(*value);
  return result;
}

std::vector<std::string> Arguments::names(std::string_view key) const {
  return split(require(key, fmt::format("write for example {}=dp.tp", key)).value, '.');
}

std::optional<std::int64_t> Arguments::world() const {
  if (has("world_size")) return size("world_size");
  return job_;
}

std::int64_t Arguments::required_world() const {
  open_ = !has("world_size");
  if (const auto value = world()) return *value;
  refuse("world_size", fmt::format("the preset '{}' needs the world size", call_.system),
         "add world_size=N to its keys, or give the world size (meshinfo: --world-size N)");
}

std::int64_t Arguments::whole_world(std::int64_t product) const {
  if (has("world_size") && size("world_size") != product)
    refuse(
        "world_size",
        fmt::format("the sizes multiply to {}, but world_size is {}", product, size("world_size")),
        fmt::format("write world_size={}, or remove it", product));
  return product;
}

std::int64_t Arguments::free_size(std::string_view key, std::int64_t others) const {
  if (has(key)) {
    const std::int64_t given = size(key);
    static_cast<void>(whole_world(product({given, others})));
    return given;
  }
  open_ = !has("world_size");
  return world()
             ? quotient(*world(), others, "world_size", fmt::format("the world size {}", *world()),
                        fmt::format("the product of all sizes except '{}'", key))
             : 1;
}

std::int64_t Arguments::product(std::span<const std::int64_t> factors) const {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors)
    if (__builtin_mul_overflow(result, factor, &result))
      refuse("", "the product of the sizes overflows 64 bits", "use smaller sizes");
  return result;
}

std::int64_t Arguments::sum(std::int64_t a, std::int64_t b) const {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result))
    refuse("", "the ranks overflow 64 bits", "use smaller numbers");
  return result;
}

std::int64_t Arguments::quotient(std::int64_t a, std::int64_t b, std::string_view key,
                                 std::string_view dividend, std::string_view divisor) const {
  if (a % b == 0) return a / b;
  refuse(key, fmt::format("{} is not divisible by {} = {}", dividend, divisor, b),
         "choose sizes that divide it");
}

}  // namespace rankmesh::presets
