// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/settings.hpp"

#include <doctest/doctest.h>

#include <clocale>
#include <string>

#include "rankmesh/base/error.hpp"
#include "support/checks.hpp"
#include "support/scoped_variable.hpp"

using namespace rankmesh;
using rankmesh_test::ScopedVariable;

namespace {

std::string refusal() {
  try {
    (void)Settings::from_environment();
  } catch (const UsageError& error) {
    return error.message();
  }
  return "no exception";
}

}  // namespace

TEST_CASE("variables that are not set or empty leave all values empty") {
  for (const bool is_empty : {false, true}) {
    const ScopedVariable variables[] = {
        ScopedVariable{"RANKMESH_TIMEOUT"}, ScopedVariable{"RANKMESH_DEADLINE"},
        ScopedVariable{"RANKMESH_STALL"},   ScopedVariable{"RANKMESH_WATCHDOG"},
        ScopedVariable{"RANKMESH_LOG"},     ScopedVariable{"RANKMESH_NCCL_LIBRARY"},
        ScopedVariable{"RANKMESH_NVTX"},    ScopedVariable{"RANKMESH_DEVICE_DEADLINE"}};
    for (const ScopedVariable& variable : variables) is_empty ? variable.set("") : variable.clear();
    const Settings settings = Settings::from_environment();
    CHECK(!settings.timeout);
    CHECK(!settings.deadline);
    CHECK(!settings.device_deadline);
    CHECK(!settings.stall);
    CHECK(!settings.watchdog);
    CHECK(!settings.nvtx);
    CHECK(settings.log == LogChoice::reports);
    CHECK(!log_sink_for(settings.log));
  }
}

TEST_CASE("each variable has its values") {
  const ScopedVariable deadline{"RANKMESH_DEADLINE", "2.5"};
  const ScopedVariable device_deadline{"RANKMESH_DEVICE_DEADLINE", "7.5"};
  CHECK(Settings::from_environment().device_deadline == Deadline::Duration{7.5});
  const ScopedVariable stall{"RANKMESH_STALL", "1e9"};
  const ScopedVariable watchdog{"RANKMESH_WATCHDOG", "0"};
  const ScopedVariable log{"RANKMESH_LOG", "off"};
  const ScopedVariable nvtx{"RANKMESH_NVTX", "1"};
  const ScopedVariable single_copy{"RANKMESH_SINGLE_COPY", "allow"};
  CHECK(Settings::from_environment().single_copy == SingleCopy::allow);
  single_copy.set("off");
  CHECK(Settings::from_environment().single_copy == SingleCopy::off);
  single_copy.set("auto");
  CHECK(Settings::from_environment().single_copy == SingleCopy::automatic);
  CHECK(Settings::from_environment().nvtx == true);
  CHECK(Settings::from_environment().deadline->count() == 2.5);
  CHECK(Settings::from_environment().stall->count() == 1e9);
  CHECK(Settings::from_environment().watchdog == false);
  CHECK(Settings::from_environment().log == LogChoice::off);
  watchdog.set("1");
  CHECK(Settings::from_environment().watchdog == true);
  for (const LogChoice choice : {LogChoice::debug, LogChoice::info, LogChoice::warning}) {
    log.set(std::string{to_string(choice)}.c_str());
    CHECK(Settings::from_environment().log == choice);
    CHECK(log_sink_for(choice));
  }
}

TEST_CASE("the decimal point of a number does not depend on the locale") {
  const ScopedVariable deadline{"RANKMESH_DEADLINE", "2.5"};
  const std::string before = std::setlocale(LC_NUMERIC, nullptr);
  // Not every system has one of them.
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "fr_FR.utf8", "de_DE"})
    if (std::setlocale(LC_NUMERIC, name) != nullptr) break;
  CHECK(Settings::from_environment().deadline->count() == 2.5);
  std::setlocale(LC_NUMERIC, before.c_str());
}

TEST_CASE("a bad value of any variable is refused with its name, its values and its text") {
  const struct {
    const char *name, *value, *wanted;
  } cases[] = {
      {"RANKMESH_TIMEOUT", "soon", "a positive number of seconds"},
      {"RANKMESH_DEADLINE", "0", "a positive number of seconds"},
      {"RANKMESH_DEADLINE", "2s", "a positive number of seconds"},
      {"RANKMESH_DEVICE_DEADLINE", "0", "a positive number of seconds"},
      {"RANKMESH_STALL", "-30", "a positive number of seconds"},
      {"RANKMESH_STALL", "2,5", "a positive number of seconds"},
      {"RANKMESH_STALL", " 5", "a positive number of seconds"},
      {"RANKMESH_STALL", "1e999", "a positive number of seconds"},
      {"RANKMESH_STALL", "nan", "a positive number of seconds"},
      {"RANKMESH_WATCHDOG", "yes", "0 or 1"},
      {"RANKMESH_RECORD", "1", "'off' or a folder (./NAME)"},
      {"RANKMESH_RECORD", "OFF", "'off' or a folder (./NAME)"},
      {"RANKMESH_LOG", "nonsense", "off, debug, info or warning"},
      {"RANKMESH_LOG", "reports", "off, debug, info or warning"},
      {"RANKMESH_NCCL_LIBRARY", "/no/such/library.so", "a library that can be read"},
  };
  for (const auto& [name, value, wanted] : cases) {
    const ScopedVariable variable{name, value};
    CHECK(refusal() == "the environment variable " + std::string{name} + " must be " + wanted +
                           ", got '" + value + "'");
  }
}

TEST_CASE("several bad values are refused together") {
  const ScopedVariable stall{"RANKMESH_STALL", "x"};
  const ScopedVariable watchdog{"RANKMESH_WATCHDOG", "2"};
  CHECK_CONTAINS(refusal(), "RANKMESH_STALL must be");
  CHECK_CONTAINS(refusal(), "; the environment variable RANKMESH_WATCHDOG must be");
}
