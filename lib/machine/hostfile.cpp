// SPDX-License-Identifier: BSD-3-Clause
// Host files of Open MPI (man page of mpirun: `node1 slots=4 max_slots=8`) and of MPICH's Hydra
// (`node1:4`). A host without a number has one slot for each line that names it.
#include <fmt/format.h>

#include "detail/input.hpp"
#include "detail/parts.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::string_view hostfile_hint = "write `node1 slots=8` (Open MPI) or `node1:8` (MPICH)";

// The number of slots of `slots=4`, also with blanks around the equals sign; 0 if there is none.
std::int64_t slots_in(std::string_view options, std::string_view origin, std::int64_t line) {
  std::int64_t slots = 0;
  std::vector<std::string_view> words = words_of(options);
  for (std::size_t w = 0; w < words.size(); ++w) {
    const std::size_t equals = words[w].find('=');
    std::string_view key = words[w].substr(0, equals);
    std::string_view value = equals == std::string_view::npos ? "" : words[w].substr(equals + 1);
    if (equals == std::string_view::npos && w + 1 < words.size() && words[w + 1].starts_with('='))
      value = words[++w].substr(1);
    if (value.empty() && w + 1 < words.size() && words[w].ends_with('=')) value = words[++w];
    if (value.empty())
      refuse(origin, line, fmt::format("'{:.40}' after a host has no value", key), hostfile_hint);
    if (key == "slots" || key == "cpu" || key == "count")
      slots = number_in(value, "the number of slots", 1, most_listed_slots, origin, line);
    else if (key != "max_slots" && key != "max-slots" && key != "user" && key != "ifname" &&
             key != "binding" && key != "map" && key != "port")
      refuse(origin, line, fmt::format("unknown option '{:.40}' after a host", key), hostfile_hint);
  }
  return slots;
}

}  // namespace

Hosts read_hostfile(std::string_view text, std::string_view origin) {
  Hosts result;
  std::unordered_map<std::string, std::size_t> known;
  std::int64_t total = 0;
  for (const Line& line : lines_of(text)) {
    const std::size_t blank = std::min(line.text.find_first_of(" \t"), line.text.size());
    std::string_view name = line.text.substr(0, blank);
    const std::string_view options = line.text.substr(blank);
    if (name.find('=') != name.npos)
      refuse(origin, line.number, fmt::format("'{:.40}' is not a host", name), hostfile_hint);
    if (const std::size_t at = name.find('@'); at != name.npos) name.remove_prefix(at + 1);
    std::int64_t slots = slots_in(options, origin, line.number);
    if (const std::size_t colon = name.rfind(':'); colon != name.npos) {
      slots = number_in(name.substr(colon + 1), "the number after a host", 1, most_listed_slots,
                        origin, line.number);
      name = name.substr(0, colon);
    }
    for (std::string& host : read_hostlist(name, origin, line.number)) {
      total += slots > 0 ? slots : 1;
      if (total > most_listed_slots)
        refuse(origin, line.number, fmt::format("more than {} slots are listed", most_listed_slots),
               "check the numbers of slots");
      const auto [entry, is_new] = known.try_emplace(host, result.hosts.size());
      if (is_new) {
        result.hosts.push_back({std::move(host), slots, line.number});
      } else {
        Hosts::Host& same = result.hosts[entry->second];  // a host on several lines
        same.slots = (same.slots > 0 ? same.slots : 1) + (slots > 0 ? slots : 1);
      }
    }
  }
  if (result.hosts.empty()) refuse(origin, 0, "the host file names no host", hostfile_hint);
  return result;
}

}  // namespace rankmesh::detail
