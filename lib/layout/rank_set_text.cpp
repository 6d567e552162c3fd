// SPDX-License-Identifier: BSD-3-Clause
// The compact text form of a set of ranks.
#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {
namespace {

// item := a | a-b (step 1) | a-b:s (step s >= 2).
struct Text {
  char text[96];  // three numbers of at most 20 characters, and separators
  std::size_t size = 0;

  void number(std::int64_t value) {
    size = static_cast<std::size_t>(std::to_chars(text + size, text + size + 20, value).ptr - text);
  }
  void character(char c) { text[size++] = c; }
};

// Reads the text that RankSet::write() produces.
class ItemReader {
 public:
  explicit ItemReader(std::string_view text) : text_{text} {}

  RankSet read(std::int64_t most) {
    const Run first = run();
    if (at_ == text_.size()) return strided(first);
    std::vector<Rank> ranks;
    for (Run next = first;; next = run()) {
      if (next.count > most - std::ssize(ranks))
        refuse(fmt::format("more than {} ranks are listed", most),
               "write one range, or list fewer ranks");
      for (std::int64_t i = 0; i < next.count; ++i) ranks.emplace_back(next.first + i * next.step);
      if (at_ == text_.size()) return RankSet::of(ranks);
      if (!take(',')) refuse("expected ',' or the end of the ranks", form);
    }
  }

 private:
  static constexpr const char* form = "write ranks as 0-3,8,16-120:8 (first-last:step)";
  struct Run {
    std::int64_t first, count, step;
  };

  static RankSet strided(const Run& run) {
    const Mode mode{run.count, run.step};
    return RankSet::strided(run.first, {&mode, 1});
  }

  Run run() {
    const std::int64_t first = number();
    if (!take('-')) return {first, 1, 1};
    const std::size_t at = at_;
    const std::int64_t last = number();
    const std::int64_t step = take(':') ? number() : 1;
    if (last < first || step < 1 || (last - first) % step != 0) {
      at_ = at;
      if (last < first)
        refuse(fmt::format("the range from {} to {} falls", first, last),
               "list descending ranks one by one: 3,2,1");
      refuse(fmt::format("steps of {} from {} do not reach {}", step, first, last),
             "end the range at a rank that the steps reach");
    }
    return {first, (last - first) / step + 1, step};
  }

  std::int64_t number() {
    skip_blanks();
    std::int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range || value == INT64_MAX)
      refuse("a rank overflows 64 bits", "use smaller ranks");
    if (error != std::errc{} || *begin == '-') refuse("expected a rank", form);
    at_ += static_cast<std::size_t>(end - begin);
    skip_blanks();
    return value;
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void refuse(const std::string& reason, const std::string& hint) const {
    throw SpecError{fmt::format("ranks, position {}: {}", at_, reason), hint, at_};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

RankSet RankSet::parse(std::string_view text, std::int64_t most) {
  return ItemReader{text}.read(most);
}

// Items are formed greedily from the left. An item with a step has at least 3 members, because two
// separate ranks are as short.
void RankSet::items(const std::function<bool(const Item&)>& take) const {
  // Without a table, a run that begins at an innermost block contains the whole block, so the loop
  // advances by blocks.
  const std::int64_t block = table_ == nullptr && !modes_.empty() ? modes_.back().size : 1;
  for (std::int64_t i = 0; i < size_;) {
    const std::int64_t first = (*this)[i].value();
    const std::int64_t step = i + 1 < size_ ? (*this)[i + 1].value() - first : 0;
    std::int64_t run = std::min<std::int64_t>(2, size_ - i);
    if (step > 0) {
      const std::int64_t stride = block > 2 && i % block == 0 ? block : 1;
      run = std::max(run, stride);
      while (i + run < size_ && (*this)[i + run].value() - (*this)[i + run - 1].value() == step)
        run += stride;
    }
    const bool is_run = step == 1 || (step > 1 && run >= 3);
    const Item item = is_run ? Item{first, first + (run - 1) * step, step} : Item{first, first, 0};
    i += is_run ? run : 1;
    if (!take(item)) return;
  }
}

void RankSet::write(const std::function<bool(std::string_view)>& take) const {
  bool is_first = true;
  items([&](const Item& item) {
    Text text;
    if (!is_first) text.character(',');
    is_first = false;
    text.number(item.first);
    if (item.step > 0) {
      text.character('-');
      text.number(item.last);
    }
    if (item.step > 1) {
      text.character(':');
      text.number(item.step);
    }
    return take({text.text, text.size});
  });
}

std::string RankSet::to_string(std::size_t limit) const {
  std::string text;
  write([&](std::string_view item) {
    if (item.size() > limit || text.size() > limit - item.size()) {
      text += text.empty() ? "..." : ",...";
      return false;
    }
    text += item;
    return true;
  });
  return text;
}

}  // namespace rankmesh
