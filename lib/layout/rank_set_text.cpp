// The compact text form of a set of ranks.
#include <algorithm>

#include <fmt/format.h>

#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {

// item := a | a-b (step 1) | a-b:s (step s >= 2, at least 3 members). Items are found greedily from the left.
std::string RankSet::to_string(std::size_t limit) const {
  std::string text;
  for (std::int64_t i = 0; i < size_;) {
    const std::size_t before = text.size();
    const std::int64_t first = at(i).value();
    const std::int64_t step = i + 1 < size_ ? at(i + 1).value() - first : 0;
    std::int64_t run = std::min<std::int64_t>(2, size_ - i);
    if (step > 0) {
      // Without a table the run is the rest of the innermost mode, which needs no walk.
      if (!table_ && !modes_.empty() && i % modes_.back().size == 0 && modes_.back().size > 2) {
        run = modes_.back().size;
      } else {
        while (i + run < size_ && at(i + run).value() - at(i + run - 1).value() == step) ++run;
      }
    }
    if (!text.empty()) text += ',';
    if (step == 1) {
      fmt::format_to(std::back_inserter(text), "{}-{}", first, first + run - 1);
      i += run;
    } else if (step > 1 && run >= 3) {
      fmt::format_to(std::back_inserter(text), "{}-{}:{}", first, first + (run - 1) * step, step);
      i += run;
    } else {
      fmt::format_to(std::back_inserter(text), "{}", first);
      i += 1;
    }
    if (text.size() > limit) {
      text.resize(before);
      return text + (text.empty() ? "..." : ",...");
    }
  }
  return text;
}

}  // namespace rankmesh
