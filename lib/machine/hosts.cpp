// SPDX-License-Identifier: BSD-3-Clause
// The hosts of a job: lists of names as Slurm writes them, host files, and Slurm's variables.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "detail/input.hpp"
#include "detail/parts.hpp"
#include "rankmesh/base/detail/parse.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::size_t longest_name = 255;  // of a host
constexpr std::int64_t most_number = 999'999'999'999;
constexpr std::string_view hostlist_hint = "write names such as tux[0-3,12,018-020],login1";

class HostlistReader {
 public:
  HostlistReader(std::string_view text, std::string_view origin, std::int64_t line)
      : text_{text}, origin_{origin}, line_{line} {}

  std::vector<std::string> read() {
    while (true) {
      read_item();
      if (at_ == text_.size()) return std::move(names_);
      ++at_;  // the comma
    }
  }

 private:
  // One item is a sequence of texts and brackets: rack[0-1]node[1-4].
  void read_item() {
    std::vector<std::string> found{""};
    while (at_ < text_.size() && text_[at_] != ',') {
      if (text_[at_] == '[') {
        found = combined(found, read_brackets());
        require_short(found.front().size());
        continue;
      }
      const auto is_plain = [](char c) {
        return c > ' ' && c != '[' && c != ']' && c != ',' && c != 127 && c != '=';
      };
      const std::size_t begin = at_;
      while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
      if (at_ == begin)
        refuse(origin_, line_,
               fmt::format("a list of names must not contain this character: '{}'",
                           text_[at_] > ' ' && text_[at_] != 127 ? text_[at_] : '?'),
               hostlist_hint);
      require_short(found.front().size() + at_ - begin);
      for (std::string& name : found) name += text_.substr(begin, at_ - begin);
    }
    if (found.size() == 1 && found.front().empty())
      refuse(origin_, line_, "a name is missing in a list of names", hostlist_hint);
    require_few(names_.size() + found.size());
    std::ranges::move(found, std::back_inserter(names_));
  }

  std::vector<std::string> combined(const std::vector<std::string>& fronts,
                                    const std::vector<std::string>& backs) const {
    require_few(fronts.size() * backs.size());
    std::vector<std::string> result;
    for (const std::string& front : fronts)
      for (const std::string& back : backs) result.push_back(front + back);
    return result;
  }

  std::vector<std::string> read_brackets() {
    const std::size_t end = text_.find(']', at_);
    if (end == text_.npos)
      refuse(origin_, line_, "a bracket of a list of names is not closed", hostlist_hint);
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    std::vector<std::string> result;
    for (const std::string_view range : split(inside, ',')) add_range(range, result);
    return result;
  }

  void add_range(std::string_view range, std::vector<std::string>& result) const {
    const std::size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash == range.npos ? low : range.substr(dash + 1);
    const std::int64_t first =
        number_in(low, "a number in brackets", 0, most_number, origin_, line_);
    const std::int64_t last =
        number_in(high, "a number in brackets", first, most_number, origin_, line_);
    require_few(result.size() + static_cast<std::size_t>(last - first) + 1);
    if (low.size() > 20)
      refuse(origin_, line_, "a number in brackets has too many digits", hostlist_hint);
    for (std::int64_t i = first; i <= last; ++i)
      result.push_back(fmt::format("{:0{}}", i, low.size()));
  }

  void require_short(std::size_t characters) const {
    if (characters > longest_name)
      refuse(origin_, line_, fmt::format("a name has more than {} characters", longest_name),
             hostlist_hint);
  }

  void require_few(std::size_t count) const {
    if (count > static_cast<std::size_t>(most_hosts))
      refuse(origin_, line_, fmt::format("more than {} names are listed", most_hosts),
             "check the numbers in brackets");
  }

  std::string_view text_;
  std::string_view origin_;
  std::int64_t line_;
  std::size_t at_ = 0;
  std::vector<std::string> names_;
};

constexpr std::string_view hostfile_hint = "write `node1 slots=8` (Open MPI) or `node1:8` (MPICH)";

// Stores the number of slots of a host, which may be given twice.
void set_slots(std::int64_t& slots, std::int64_t number, std::string_view origin,
               std::int64_t line) {
  if (slots > 0 && slots != number)
    refuse(origin, line, fmt::format("a host cannot have both {} and {} slots", slots, number),
           "give the number of its slots once");
  slots = number;
}

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
      set_slots(slots, number_in(value, "the number of slots", 1, most_listed_slots, origin, line),
                origin, line);
    else if (key != "max_slots" && key != "max-slots" && key != "user" && key != "ifname" &&
             key != "binding" && key != "map" && key != "port")
      refuse(origin, line, fmt::format("unknown option '{:.40}' after a host", key), hostfile_hint);
  }
  return slots;
}

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
  for (const std::string_view item : split(text, ',')) {
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
    if (total > most_listed_slots || std::ssize(counts) + times > most_hosts)
      refuse(origin, line, fmt::format("more than {} slots are listed", most_listed_slots),
             "check the numbers of tasks");
    counts.insert(counts.end(), static_cast<std::size_t>(times), tasks);
  }
  return counts;
}

}  // namespace

// For example tux[0-3,12],login1.
std::vector<std::string> read_hostlist(std::string_view text, std::string_view origin,
                                       std::int64_t line) {
  return HostlistReader{text, origin, line}.read();
}

// Host files of Open MPI (man page of mpirun: `node1 slots=4 max_slots=8`) and of MPICH's Hydra
// (`node1:4`). A host without a number has one slot for each line that names it.
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
    // An IPv6 address has several colons, and no number after them.
    if (const std::size_t colon = name.find(':'); colon != name.npos && colon == name.rfind(':')) {
      set_slots(slots,
                number_in(name.substr(colon + 1), "the number after a host", 1, most_listed_slots,
                          origin, line.number),
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

// The nodes of a Slurm job: SLURM_JOB_NODELIST=node[1-4] and SLURM_TASKS_PER_NODE=8(x3),4, as
// `env` prints them. The man page of sbatch describes both.
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
