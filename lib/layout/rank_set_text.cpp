// The compact text form of a set of ranks.
#include <algorithm>
#include <charconv>

#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {
namespace {

// item := a | a-b (step 1) | a-b:s (step s >= 2).
struct Item {
  char text[96];  // three numbers of at most 20 digits, and what parts them
  std::size_t size = 0;

  void number(std::int64_t value) {
    size = static_cast<std::size_t>(std::to_chars(text + size, text + size + 20, value).ptr - text);
  }
  void character(char c) { text[size++] = c; }
};

}  // namespace

// Items are found greedily from the left; a stepped one has at least 3 members.
void RankSet::write(const std::function<bool(std::string_view)>& take) const {
  // Without a table a run from the start of an innermost block is that block, and perhaps the next ones.
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
    Item item;
    if (i > 0) item.character(',');
    item.number(first);
    if (step == 1 || (step > 1 && run >= 3)) {
      item.character('-');
      item.number(first + (run - 1) * step);
      if (step > 1) {
        item.character(':');
        item.number(step);
      }
      i += run;
    } else {
      i += 1;
    }
    if (!take({item.text, item.size})) return;
  }
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
