// SPDX-License-Identifier: BSD-3-Clause
// The nodes of a Slurm job: SLURM_JOB_NODELIST=node[1-4] and SLURM_TASKS_PER_NODE=8(x3),4, as
// `env` prints them. The man page of sbatch describes both.
#include <fmt/format.h>

#include "detail/input.hpp"
#include "detail/parts.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::string_view slurm_job_hint =
    "write SLURM_JOB_NODELIST=node[1-4] and SLURM_TASKS_PER_NODE=8(x3),4 on two lines";

std::string_view unquoted(std::string_view text) {
  if (text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

// `8(x3),4` gives 8 8 8 4.
std::vector<std::int64_t> read_counts(std::string_view text, std::string_view origin,
                                      std::int64_t line) {
  std::vector<std::int64_t> counts;
  std::int64_t total = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    const std::size_t bracket = item.find('(');
    const std::int64_t tasks =
        number_in(item.substr(0, bracket), "a number of tasks", 1, most_listed_slots, origin, line);
    std::int64_t times = 1;
    if (bracket != item.npos) {
      const std::string_view repeat = item.substr(bracket);
      if (!repeat.starts_with("(x") || !repeat.ends_with(")") || repeat.size() < 4)
        refuse(origin, line, fmt::format("'{:.40}' is not a number of tasks", item),
               slurm_job_hint);
      times = number_in(repeat.substr(2, repeat.size() - 3), "a number of nodes", 1, most_hosts,
                        origin, line);
    }
    total += tasks * times;
    if (total > most_listed_slots || static_cast<std::int64_t>(counts.size()) + times > most_hosts)
      refuse(origin, line, fmt::format("more than {} slots are listed", most_listed_slots),
             "check the numbers of tasks");
    counts.insert(counts.end(), static_cast<std::size_t>(times), tasks);
    if (comma == text.size()) return counts;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

Hosts read_slurm_job(std::string_view text, std::string_view origin) {
  Hosts result;
  std::vector<std::int64_t> counts;
  std::int64_t counts_line = 0;
  for (const Line& line : lines_of(text)) {
    std::string_view content = line.text;
    if (content.starts_with("export ")) content = stripped(content.substr(7));
    const std::size_t equals = content.find('=');
    if (equals == content.npos) continue;
    const std::string_view key = content.substr(0, equals);
    const std::string_view value = unquoted(stripped(content.substr(equals + 1)));
    if (key == "SLURM_JOB_NODELIST" ||
        (key == "SLURM_NODELIST" && result.hosts.empty())) {  // the old name of the same list
      result.hosts.clear();
      for (std::string& host : read_hostlist(value, origin, line.number))
        result.hosts.push_back({std::move(host), 0, line.number});
    } else if (key == "SLURM_TASKS_PER_NODE") {
      counts = read_counts(value, origin, line.number);
      counts_line = line.number;
    }
  }
  if (result.hosts.empty()) refuse(origin, 0, "SLURM_JOB_NODELIST is missing", slurm_job_hint);
  if (counts.empty()) return result;
  if (counts.size() != result.hosts.size())
    refuse(origin, counts_line,
           fmt::format("SLURM_TASKS_PER_NODE gives the tasks of {} nodes, but the job has {}",
                       counts.size(), result.hosts.size()),
           "take both variables from the same job");
  for (std::size_t h = 0; h < counts.size(); ++h) result.hosts[h].slots = counts[h];
  return result;
}

}  // namespace rankmesh::detail
