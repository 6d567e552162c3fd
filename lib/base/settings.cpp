// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/detail/misspelt.hpp"
#include "base/detail/private_api.hpp"
#include "rankmesh/base/detail/suggest.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

constexpr const char* variable_hint = "correct the variable, or unset it";

[[noreturn]] void refuse_variable(const char* name, std::string_view wanted,
                                  const std::string& value) {
  throw UsageError{
      fmt::format("the environment variable {} must be {}, got '{}'", name, wanted, value),
      variable_hint};
}

// The loader searches for a name without a folder, and reports the error if it does not find the
// file.
void check_library(const char* name) {
  const auto value = environment_variable(name);
  if (value && value->find('/') != std::string::npos && ::access(value->c_str(), R_OK) != 0)
    refuse_variable(name, "a library that can be read", *value);
}

// Returns `off`, or a folder in which files can be made. Several ranks may make the folder.
std::string record_from_environment() {
  const char* name = "RANKMESH_RECORD";
  std::string value = environment_variable(name).value_or("");
  if (value.empty() || value == "off") return value;
  // A user who writes one of these words does not mean a folder. rankmesh would create a folder of
  // this name in the current folder.
  for (const char* word : {"0", "1", "on", "On", "ON", "Off", "OFF", "true", "false", "yes", "no"})
    if (value == word) refuse_variable(name, "'off' or a folder (./NAME)", value);
  std::error_code error;
  std::filesystem::create_directories(value, error);
  if (!std::filesystem::is_directory(value, error) ||
      ::access(value.c_str(), R_OK | W_OK | X_OK) != 0)
    refuse_variable(name, "'off' or a folder in which files can be written", value);
  return value;
}

SingleCopy single_copy_from_environment() {
  const char* name = "RANKMESH_SINGLE_COPY";
  const std::string value = environment_variable(name).value_or("auto");
  if (value == "auto") return SingleCopy::automatic;
  if (value == "off") return SingleCopy::off;
  if (value == "allow") return SingleCopy::allow;
  refuse_variable(name, "auto, off or allow", value);
}

}  // namespace

RANKMESH_PRIVATE_API std::string detail::meant_setting(std::string_view name) {
  static const auto& settings = *new std::vector<std::string>{
      // as in default_routes.cpp
      "RANKMESH_CHECK",   "RANKMESH_DEADLINE",     "RANKMESH_DEVICE_DEADLINE",
      "RANKMESH_LOG",     "RANKMESH_NCCL_LIBRARY", "RANKMESH_NVTX",
      "RANKMESH_RECORD",  "RANKMESH_RECORD_LINES", "RANKMESH_RECORD_TIMES",
      "RANKMESH_ROUTES",  "RANKMESH_SINGLE_COPY",  "RANKMESH_STALL",
      "RANKMESH_TIMEOUT", "RANKMESH_WATCHDOG"};
  const bool is_one = std::ranges::find(settings, name) != settings.end();
  return is_one || !name.starts_with("RANKMESH_") ? "" : nearest(name, settings);
}

std::optional<std::string> environment_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<Deadline::Duration> seconds_from_environment(const char* name) {
  const auto value = environment_variable(name);
  if (!value) return std::nullopt;
  double seconds = 0;
  const char* const last = value->data() + value->size();
  // In contrast to strtod, the decimal point does not depend on the locale of the program.
  const auto [end, error] = std::from_chars(value->data(), last, seconds);
  // The upper bound of thirty years keeps the sum of the clock and the time from overflowing.
  if (error != std::errc{} || end != last || !std::isfinite(seconds) || seconds <= 0 ||
      seconds > 1e9)
    refuse_variable(name, "a positive number of seconds", *value);
  return Deadline::Duration{seconds};
}

std::optional<bool> flag_from_environment(const char* name) {
  const auto value = environment_variable(name);
  if (!value) return std::nullopt;
  if (*value != "0" && *value != "1") refuse_variable(name, "0 or 1", *value);
  return *value == "1";
}

LogChoice log_choice_from_environment() {
  const char* name = "RANKMESH_LOG";
  const auto value = environment_variable(name);
  if (!value) return LogChoice::reports;
  for (const LogChoice choice :
       {LogChoice::debug, LogChoice::info, LogChoice::warning, LogChoice::off})
    if (to_string(choice) == *value) return choice;
  refuse_variable(name, "off, debug, info or warning", *value);
}

Settings Settings::from_environment() {
  Settings settings;
  std::string wrong;
  const auto read = [&](const auto& action) {
    try {
      action();
    } catch (const UsageError& error) {
      wrong += (wrong.empty() ? "" : "; ") + error.message();
    }
  };
  read([&] { settings.timeout = seconds_from_environment("RANKMESH_TIMEOUT"); });
  read([&] { settings.deadline = seconds_from_environment("RANKMESH_DEADLINE"); });
  read([&] { settings.device_deadline = seconds_from_environment("RANKMESH_DEVICE_DEADLINE"); });
  read([&] { settings.stall = seconds_from_environment("RANKMESH_STALL"); });
  read([&] { settings.watchdog = flag_from_environment("RANKMESH_WATCHDOG"); });
  read([&] { settings.check = flag_from_environment("RANKMESH_CHECK"); });
  read([&] { settings.record = record_from_environment(); });
  read([&] { settings.record_times = flag_from_environment("RANKMESH_RECORD_TIMES"); });
  read([&] { settings.record_lines = flag_from_environment("RANKMESH_RECORD_LINES"); });
  read([&] { settings.nvtx = flag_from_environment("RANKMESH_NVTX"); });
  read([&] { settings.single_copy = single_copy_from_environment(); });
  read([&] { settings.log = log_choice_from_environment(); });
  read([&] { check_library("RANKMESH_NCCL_LIBRARY"); });
  if (!wrong.empty()) throw UsageError{wrong, variable_hint};
  return settings;
}

}  // namespace rankmesh
