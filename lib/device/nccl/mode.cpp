// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/nccl/mode.hpp"

#include <cstdlib>
#include <fstream>
#include <string>

#include "rankmesh/base/settings.hpp"

namespace rankmesh::nccl {
namespace {

constexpr int first_with_threads = 22300;

std::optional<std::string> value_in(const std::string& path, const std::string& name) {
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
  return std::nullopt;
}

// An empty variable counts as set: NCCL does not replace it by the value in a file.
std::optional<std::string> setting(const char* name) {
  if (const char* value = std::getenv(name)) return value;
  std::string users = environment_variable("NCCL_CONF_FILE").value_or("");
  if (users.empty()) users = environment_variable("HOME").value_or("") + "/.nccl.conf";
  if (auto value = value_in(users, name)) return value;
  return value_in("/etc/nccl.conf", name);
}

std::optional<bool> read() {
  const std::optional<std::string> text = setting("NCCL_COMM_BLOCKING");
  if (!text || text->empty()) return std::nullopt;
  const long long value = std::strtoll(text->c_str(), nullptr, 0);  // as NCCL reads it
  return value == 0 || value == 1 ? std::optional{value == 1} : std::nullopt;
}

}  // namespace

std::optional<bool> forced_blocking() {
  static const std::optional<bool> forced = read();
  return forced;
}

bool blocks_after_creation(const Library& library, bool wanted) {
  return forced_blocking().value_or(wanted && library.version() >= first_with_threads);
}

}  // namespace rankmesh::nccl
