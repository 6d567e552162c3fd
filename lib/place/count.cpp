// SPDX-License-Identifier: BSD-3-Clause
#include "place/count.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace rankmesh {
namespace {

constexpr std::int64_t most_counted = std::int64_t{1} << 24;
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? largest : result;
}

std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? largest : result;
}

// A family with properties that are needed repeatedly. They are computed once, because the coverage
// of lists takes time in proportion to their length.
struct Known {
  std::size_t index;
  const GroupFamily* family;
  Coverage coverage;
  RankSet first;
  [[nodiscard]] bool is_partition() const {
    return family->is_strided() && coverage == Coverage::partition;
  }
};

class Counter {
 public:
  explicit Counter(const MeshPlan& plan) : plan_{plan} {
    for (std::size_t f = 0; f < plan.families().size(); ++f) {
      const GroupFamily& family = plan.families()[f];
      families_.push_back({f, &family, family.coverage(plan.world_size()),
                           family.group_count() > 0 ? family.group(0) : RankSet{}});
    }
  }

  PlanCounts run() {
    counts_.world_size = plan_.world_size();
    counts_.names = std::ssize(families_);
    for (const Known& known : families_) add_sizes(known);
    // Partitions come first, because they need no enumeration; overlapping families come last,
    // because their groups are compared with all others but have no communicators.
    for (const Known& known : families_)
      if (known.is_partition() && is_on_first_table(known)) add_partition(known);
    for (const Known& known : families_)
      if (!(known.is_partition() && is_on_first_table(known)) &&
          known.coverage != Coverage::overlapping)
        add_other(known);
    for (const Known& known : families_)
      if (known.coverage == Coverage::overlapping) add_other(known);
    counts_.groups_per_rank = per_rank(same_groups_, extra_groups_, plan_.memberships(0).size());
    counts_.communicators_per_rank =
        per_rank(same_communicators_, extra_communicators_, plan_.communicators(0).size());
    return counts_;
  }

 private:
  // Arithmetic can compare only families whose positions refer to the same table.
  [[nodiscard]] bool is_on_first_table(const Known& known) const {
    const auto first = std::ranges::find_if(families_, &Known::is_partition);
    return first != families_.end() && first->first.table() == known.first.table();
  }

  void add_sizes(const Known& known) {
    const std::int64_t groups = known.family->group_count();
    counts_.groups = sum(counts_.groups, groups);
    if (known.coverage == Coverage::overlapping)
      counts_.overlapping_groups = sum(counts_.overlapping_groups, groups);
    if (known.family->group_size() == 1)
      counts_.groups_of_one = sum(counts_.groups_of_one, groups);
    else if (!known.family->is_uniform())
      for (std::int64_t g = 0; g < groups; ++g)
        counts_.groups_of_one += known.family->group(g).size() == 1 ? 1 : 0;
  }

  // Two partitions by strides over one table share all groups or none: equal groups have equal
  // member strides, and the translates of one set can tile the world in only one way.
  // GroupFamily::has_same_groups() explains this.
  void add_partition(const Known& known) {
    ++same_groups_;
    const auto repeats = [&](const Known* earlier) {
      return known.family->has_same_groups(*earlier->family);
    };
    const std::int64_t groups = known.family->group_count();
    if (std::ranges::none_of(seen_, repeats))
      counts_.distinct_groups = sum(counts_.distinct_groups, groups);
    const bool is_served = std::ranges::any_of(seen_, [&](const Known* earlier) {
      return can_share(known, *earlier) && repeats(earlier);
    });
    seen_.push_back(&known);
    if (known.family->group_size() < 2) return;
    const std::int64_t made = duplicates(known) + (is_served ? 0 : 1);
    add_communicators(known, product(groups, made), known.family->group_size());
    same_communicators_ += made;
  }

  [[nodiscard]] bool can_share(const Known& a, const Known& b) const {
    return plan_.options(a.index).can_share(plan_.options(b.index));
  }

  // The number of further communicators of each group.
  [[nodiscard]] std::int64_t duplicates(const Known& known) const {
    return std::ssize(plan_.options(known.index).duplicates);
  }

  void add_communicators(const Known& known, std::int64_t number, std::int64_t ranks) {
    counts_.communicators = sum(counts_.communicators, number);
    counts_.creations = sum(counts_.creations, product(number, ranks));
    counts_.unique_ids =
        sum(counts_.unique_ids, product(number, plan_.unique_ids(known.index, ranks)));
  }

  // Whether the two families could have a common group. Strided families over one table need equal
  // modes, which all groups of a family share.
  [[nodiscard]] static bool may_share(const Known& a, const Known& b) {
    if (!a.family->is_strided() || !b.family->is_strided() || a.first.table() != b.first.table())
      return true;
    return a.first.modes() == b.first.modes();
  }

  // Whether `wide` has all ranks from its lowest to its highest, and all ranks of `other` are in
  // this range.
  [[nodiscard]] static bool spans(const Known& wide, const Known& other) {
    const RankSet* const a = wide.family->in_sequence();
    const RankSet* const b = other.family->in_sequence();
    if (a == nullptr || b == nullptr || a->table() || b->table()) return false;
    const Rank lowest = a->highest().value() - a->size() + 1;
    return a->lowest() == lowest && b->lowest() >= lowest && b->highest() <= a->highest();
  }

  // Whether all groups of a family of single ranks exist already, in an earlier family.
  [[nodiscard]] static bool repeats_single_ranks(const Known& known,
                                                 const std::vector<const Known*>& rivals) {
    return known.family->group_size() == 1 && std::ranges::any_of(rivals, [&](const Known* rival) {
             return rival->family->group_size() == 1 &&
                    (rival->is_partition() || spans(*rival, known));
           });
  }

  // Adds any family that is not a partition by strides over the first table: by arithmetic if that
  // is sufficient, otherwise group by group.
  void add_other(const Known& known) {
    const GroupFamily& family = *known.family;
    std::vector<const Known*> rivals;  // earlier families that may have groups of this one
    for (const Known* earlier : seen_)
      if (may_share(known, *earlier)) rivals.push_back(earlier);
    seen_.push_back(&known);
    const std::int64_t groups = family.group_count();
    const bool is_small = product(groups, family.group_size()) <= most_counted;
    if (!is_small || plan_.world_size() > most_counted) covers_all_ = false;
    if (covers_all_) {
      extra_groups_.resize(static_cast<std::size_t>(plan_.world_size()));
      extra_communicators_.resize(extra_groups_.size());
    }
    // Arithmetic is sufficient if each rival has exactly these groups, and if the figures per rank
    // are not counted. Lists may repeat a group of their own.
    const bool is_repeat = repeats_single_ranks(known, rivals);
    const auto is_twin = [&](const Known* rival) { return family.has_same_groups(*rival->family); };
    if (covers_all_ || !family.is_strided() ||
        (!is_repeat && !std::ranges::all_of(rivals, is_twin))) {
      enumerate(known, rivals, is_repeat);
      return;
    }
    if (rivals.empty()) counts_.distinct_groups = sum(counts_.distinct_groups, groups);
    const bool is_served =
        std::ranges::any_of(rivals, [&](const Known* rival) { return can_share(known, *rival); });
    if (known.coverage != Coverage::overlapping && family.group_size() > 1)
      add_communicators(known, product(groups, duplicates(known) + (is_served ? 0 : 1)),
                        family.group_size());
  }

  void enumerate(const Known& known, const std::vector<const Known*>& rivals, bool is_repeat) {
    const GroupFamily& family = *known.family;
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      const RankSet ranks = family.group(g);
      const auto has_it = [&](const Known* rival) {
        return rival->family->find_group(ranks).has_value();
      };
      const bool is_first_here =
          !is_repeat && (family.is_strided() || family.find_group(ranks) == g);
      if (is_first_here && std::ranges::none_of(rivals, has_it))
        counts_.distinct_groups = sum(counts_.distinct_groups, 1);
      std::int64_t made = 0;
      if (known.coverage != Coverage::overlapping && ranks.size() > 1) {
        const bool is_served =
            !is_first_here || std::ranges::any_of(rivals, [&](const Known* rival) {
              return can_share(known, *rival) && has_it(rival);
            });
        made = duplicates(known) + (is_served ? 0 : 1);
        add_communicators(known, made, ranks.size());
      }
      if (covers_all_) mark(ranks, made);
    }
  }

  void mark(const RankSet& ranks, std::int64_t communicators) {
    for (const Rank rank : ranks) {
      ++extra_groups_[static_cast<std::size_t>(rank.value())];
      extra_communicators_[static_cast<std::size_t>(rank.value())] +=
          static_cast<std::uint32_t>(communicators);
    }
  }

  [[nodiscard]] PlanCounts::PerRank per_rank(std::int64_t same,
                                             const std::vector<std::uint32_t>& extra,
                                             std::size_t of_rank_0) const {
    if (!covers_all_)
      return {static_cast<std::int64_t>(of_rank_0), static_cast<std::int64_t>(of_rank_0), false};
    if (extra.empty()) return {same, same, true};
    const auto [least, most] = std::ranges::minmax(extra);
    return {same + least, same + most, true};
  }

  const MeshPlan& plan_;
  std::vector<Known> families_;
  std::vector<const Known*> seen_;
  PlanCounts counts_;
  std::int64_t same_groups_ = 0;  // groups and communicators that every rank has
  std::int64_t same_communicators_ = 0;
  bool covers_all_ = true;
  std::vector<std::uint32_t> extra_groups_;  // by rank: those that only some ranks have
  std::vector<std::uint32_t> extra_communicators_;
};

}  // namespace

std::int64_t PlanCounts::naive_creations() const { return product(groups, world_size); }

PlanCounts count(const MeshPlan& plan) { return Counter{plan}.run(); }

}  // namespace rankmesh
