// SPDX-License-Identifier: BSD-3-Clause
#include "network.hpp"

#include <net/if.h>

#include <sstream>
#include <string>

#include "common/settings.hpp"

namespace fake {

bool network_interface_exists() {
  const auto wanted = setting("NCCL_SOCKET_IFNAME");
  if (!wanted || wanted->empty()) return true;
  const bool excludes = wanted->front() == '^';
  std::string rest = wanted->substr(excludes ? 1 : 0);
  const bool exact = !rest.empty() && rest.front() == '=';
  if (exact) rest.erase(0, 1);
  bool found = false;
  struct if_nameindex* const all = if_nameindex();
  for (const struct if_nameindex* entry = all; entry != nullptr && entry->if_index != 0; ++entry) {
    const std::string name = entry->if_name;
    bool named = false;
    std::stringstream items(rest);
    for (std::string item; std::getline(items, item, ',');)
      named = named || (exact ? name == item : name.compare(0, item.size(), item) == 0);
    found = found || named != excludes;
  }
  if (all != nullptr) if_freenameindex(all);
  return found;
}

}  // namespace fake
