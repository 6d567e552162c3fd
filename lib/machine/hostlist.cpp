// SPDX-License-Identifier: BSD-3-Clause
// Lists of names as Slurm writes them: tux[0-3,12],login1.
#include <algorithm>

#include <fmt/format.h>

#include "detail/input.hpp"

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
    std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    std::vector<std::string> result;
    while (true) {
      const std::size_t comma = std::min(inside.find(','), inside.size());
      add_range(inside.substr(0, comma), result);
      if (comma == inside.size()) return result;
      inside.remove_prefix(comma + 1);
    }
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

}  // namespace

std::vector<std::string> read_hostlist(std::string_view text, std::string_view origin,
                                       std::int64_t line) {
  return HostlistReader{text, origin, line}.read();
}

}  // namespace rankmesh::detail
