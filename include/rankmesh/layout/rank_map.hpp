// A mesh put on other ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/layout/layout.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {

/// Rank r becomes `ranks[r]`: how a mesh comes to lie on a part of the world, or on a permuted one.
/// Arithmetic where the ranks follow one step (`8-31`, `0-120:8`); else through a table of all
/// ranks, made once and shared by everything that is mapped.
class RANKMESH_API RankMap {
 public:
  /// @throws SpecError where a table would be needed for more ranks than `max_table` (2^24).
  explicit RankMap(RankSet ranks);

  [[nodiscard]] const RankSet& ranks() const { return ranks_; }
  /// The same ranks in the same order, each mapped; likewise for layouts and names.
  /// @throws UsageError where a rank lies outside 0 .. ranks().size()-1.
  [[nodiscard]] RankSet map(const RankSet& set);
  /// @param prefix  put in front of every dimension's name.
  [[nodiscard]] Layout map(const Layout& layout, std::string_view prefix = {});
  /// @param prefix  put in front of the name and of its dimensions'.
  [[nodiscard]] GroupFamily map(const GroupFamily& family, std::string_view prefix = {});

  static constexpr std::int64_t max_table = std::int64_t{1} << 24;

 private:
  // What becomes of positions: start + step x position, and the table behind them.
  struct Positions {
    std::int64_t start, step;
    std::shared_ptr<const RankTable> table;
    [[nodiscard]] std::int64_t at(std::int64_t position) const;
    [[nodiscard]] std::int64_t stride(std::int64_t stride) const;
  };
  [[nodiscard]] Positions positions(const RankSet& set);
  [[nodiscard]] std::shared_ptr<const RankTable> composed(
      const std::shared_ptr<const RankTable>& inner);

  RankSet ranks_;
  bool is_stepped_;
  std::map<std::shared_ptr<const RankTable>, std::shared_ptr<const RankTable>>
      tables_;  // by the table before
};

}  // namespace rankmesh
