// SPDX-License-Identifier: BSD-3-Clause
// Random pairs of places with all features, and the transfer between them by brute force.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "rankmesh/transfer/plan.hpp"

namespace rankmesh_test {

using Random = std::minstd_rand;

inline std::int64_t pick(Random& random, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random() >> 4) % (most - least + 1);
}

/// Makes the texts of places.
class RandomPlaces {
 public:
  explicit RandomPlaces(Random& random) : random_{random} {
    for (std::int64_t axes = pick(random, 0, 3); axes > 0; --axes)
      shape_.push_back(pick(random, 0, 9) == 0 ? pick(random, 0, 2) : pick(random, 1, 9));
  }

  [[nodiscard]] const std::vector<std::int64_t>& shape() const { return shape_; }

  /// @param may_sum  whether the place may have partial sums.
  /// @param has_all  whether some rank must have each element.
  std::string place(bool may_sum, bool has_all) {
    std::string mesh;
    std::vector<std::pair<std::string, std::int64_t>> free;
    std::int64_t ranks = 1;
    const char* const names[] = {"pp", "dp", "tp"};
    for (std::int64_t d = pick(random_, 1, 3); d > 0; --d) {
      const std::int64_t size = pick(random_, 1, ranks > 6 ? 2 : 4);
      free.emplace_back(names[d - 1], size);
      ranks *= size;
      mesh += (mesh.empty() ? "" : ",") + free.back().first + "=" + std::to_string(size);
    }
    std::string text = "[";
    for (std::size_t a = 0; a < shape_.size(); ++a)
      text += (a == 0 ? "" : ",") + std::to_string(shape_[a]);
    text += "] f32 @ " + mesh;
    if (pick(random_, 0, 2) == 0) text += " on " + some_ranks(ranks);
    std::ranges::shuffle(free, random_);
    if (pick(random_, 0, 5) == 0) {
      text += " at " + free.back().first + "=" +
              std::to_string(pick(random_, 0, free.back().second - 1));
      free.pop_back();
    }
    std::string sums;
    if (may_sum && !free.empty() && pick(random_, 0, 5) == 0) {
      sums = " sum(" + free.back().first + ")";
      free.pop_back();
    }
    text += " : (";
    for (std::size_t a = 0; a < shape_.size(); ++a)
      text += (a == 0 ? "" : ", ") + axis(shape_[a], free, has_all);
    return text + ")" + sums;
  }

 private:
  using Dimensions = std::vector<std::pair<std::string, std::int64_t>>;

  std::string some_ranks(std::int64_t count) {
    std::vector<std::int64_t> all;
    for (std::int64_t r = 0; r < count + 4; ++r) all.push_back(r);
    if (pick(random_, 0, 1) == 0) std::ranges::shuffle(all, random_);
    const auto first = static_cast<std::size_t>(pick(random_, 0, 4));
    std::string text;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      text += (i == 0 ? "" : ",") + std::to_string(all[first + i]);
    return text;
  }

  std::string axis(std::int64_t size, Dimensions& free, bool has_all) {
    Dimensions own;
    while (!free.empty() && own.size() < 2 && pick(random_, 0, 2) > 0) {
      own.push_back(free.back());
      free.pop_back();
    }
    if (size < 2 || pick(random_, 0, 3) > 0) return share(size, own, has_all);
    // A fused axis. A segment need not be divided by all dimensions.
    std::vector<std::string> segments;
    std::int64_t first = 0;
    while (first < size) {
      const std::int64_t count = pick(random_, 1, size - first);
      const std::string extent =
          std::to_string(first) + "-" + std::to_string(first + count - 1) + ":";
      Dimensions some = own;
      if (!some.empty() && pick(random_, 0, 3) == 0) some.pop_back();
      if (has_all || pick(random_, 0, 4) > 0)
        segments.push_back(extent + share(count, some, has_all));
      first += count;
    }
    if (segments.empty()) return share(size, own, has_all);
    std::ranges::shuffle(segments, random_);
    std::string text;
    for (const std::string& segment : segments) text += (text.empty() ? "" : " + ") + segment;
    return text;
  }

  std::string share(std::int64_t size, const Dimensions& dimensions, bool has_all) {
    if (dimensions.empty()) return "_";
    std::string text;
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
      // The number of indices is known for the first dimension only.
      text += (d == 0 ? "" : "*") + dimensions[d].first +
              (d == 0 ? rule(size, dimensions[d].second, has_all)
                      : std::vector<std::string>{
                            "", ":ceil", ":cyclic",
                            ":cyclic(2)"}[static_cast<std::size_t>(pick(random_, 0, 3))]);
    }
    return text;
  }

  std::string rule(std::int64_t size, std::int64_t parts, bool has_all) {
    switch (pick(random_, 0, 6)) {
      case 0:
        return ":ceil";
      case 1:
        return ":cyclic";
      case 2:
        return ":cyclic(" + std::to_string(pick(random_, 1, 3)) + ")";
      case 3:
        return sizes(size, parts);
      case 4:
        return lists(size, parts, has_all);
      default:
        return "";
    }
  }

  std::string sizes(std::int64_t size, std::int64_t parts) {
    std::string text = ":sizes(";
    for (; parts > 1; --parts) {
      const std::int64_t part = pick(random_, 0, size);
      text += std::to_string(part) + ",";
      size -= part;
    }
    return text + std::to_string(size) + ")";
  }

  std::string lists(std::int64_t size, std::int64_t parts, bool has_all) {
    std::vector<std::vector<std::int64_t>> lists(static_cast<std::size_t>(parts));
    for (std::int64_t i = 0; i < size; ++i) {
      if (!has_all && pick(random_, 0, 5) == 0) continue;
      auto& list = lists[static_cast<std::size_t>(pick(random_, 0, parts - 1))];
      list.push_back(i);
      auto& other = lists[static_cast<std::size_t>(pick(random_, 0, parts - 1))];
      if (&other != &list && pick(random_, 0, 3) == 0) other.push_back(i);
    }
    std::string text = ":lists(";
    for (std::size_t l = 0; l < lists.size(); ++l) {
      if (pick(random_, 0, 2) == 0) std::ranges::shuffle(lists[l], random_);
      text += l == 0 ? "" : "; ";
      for (std::size_t i = 0; i < lists[l].size(); ++i)
        text += (i == 0 ? "" : ",") + std::to_string(lists[l][i]);
      if (lists[l].empty()) text += "_";
    }
    return text + ")";
  }

  Random& random_;
  std::vector<std::int64_t> shape_;
};

/// The memory of each rank.
using Memory = std::map<std::int64_t, std::vector<std::int64_t>>;

/// The memory before a transfer. Partial sums of an element add up to `1 + its number`.
inline Memory filled(const rankmesh::TensorPlacement& place) {
  std::int64_t summands = 1;
  for (const std::string& name : place.sums())
    summands *= place.layout().dimensions()[place.layout().index_of(name)].size;
  Memory memory;
  for (const rankmesh::Rank rank : place.ranks().to_vector()) {
    bool is_first = true;  // of the partial sums
    for (const std::string& name : place.sums())
      is_first = is_first && *place.layout().coordinate(rank, place.layout().index_of(name)) == 0;
    const auto shape = place.local_shape(rank);
    auto& own = memory[rank.value()];
    for (std::int64_t i = 0; i < place.local_count(rank); ++i) {
      std::int64_t number = 0;
      std::int64_t rest = i;
      std::vector<std::int64_t> local(shape.size());
      for (std::size_t a = shape.size(); a-- > 0; rest /= shape[a]) local[a] = rest % shape[a];
      for (std::size_t a = 0; a < shape.size(); ++a)
        for (const auto& run : place.runs(rank, a))
          if (run.local <= local[a] && local[a] < run.local + run.count)
            number = number * place.shape()[a] + run.global + local[a] - run.local;
      own.push_back(summands == 1 ? 1 + number
                                  : (is_first ? 1 + number - 1000 * (summands - 1) : 1000));
    }
  }
  return memory;
}

}  // namespace rankmesh_test
