// SPDX-License-Identifier: BSD-3-Clause
// Presets: the layouts of established systems.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// A preset as the user wrote it, for example `megatron:tp=8,pp=16`.
///
///     preset := system ':' key '=' value { ',' key '=' value }
///     value  := a number, `true`, `false`, a word, numbers joined by `x`, or names joined by `.`
struct PresetCall {
  /// A key and its value.
  struct Argument {
    std::string key;                 ///< The name of the setting.
    std::string value;               ///< The value as text.
    std::size_t key_position = 0;    ///< byte offset in the text, which errors report
    std::size_t value_position = 0;  ///< byte offset in the text, which errors report
    /// Returns whether all fields are equal.
    friend bool operator==(const Argument&, const Argument&) = default;
  };
  std::string system;               ///< The name of the other system.
  std::size_t position = 0;         ///< The byte offset in the text.
  std::vector<Argument> arguments;  ///< The settings, in the order of the text.
  /// Returns whether all fields are equal.
  friend bool operator==(const PresetCall&, const PresetCall&) = default;
};

/// A key that a preset accepts.
struct PresetKey {
  std::string_view name;     ///< The name of the setting.
  std::string_view form;     ///< form of the value, such as `size` or `sizes joined by x`
  std::string_view meaning;  ///< one line of help, including the default value
};

/// The preset of one system. If a system has several kinds of layouts (`deepspeed:kind=grid`), each
/// kind has its own PresetInfo.
struct PresetInfo {
  std::string_view system;      ///< The name of the other system.
  std::string_view kind;        ///< empty if the system has only one kind
  std::string_view convention;  ///< one line of help, which says which dimension varies fastest
  std::vector<PresetKey> keys;  ///< all keys except `world_size` and `kind`
};

/// Returns all presets, for help texts.
RANKMESH_API std::vector<PresetInfo> preset_catalogue();

}  // namespace rankmesh
