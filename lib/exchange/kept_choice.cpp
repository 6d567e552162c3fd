// SPDX-License-Identifier: BSD-3-Clause
// Chooses what the members of a group restore.
#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/kept_versions.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/exchange/message.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange::detail {
namespace {

// What a member says about a version of the wanted step.
struct Announcement {
  std::int64_t number = KeptVersion::incomplete, member = -1;
  Hash128 layout{};

  [[nodiscard]] bool is_of_same(const Announcement& other) const {
    return number == other.number && layout == other.layout;
  }
};

// A version that some members have.
struct Candidate {
  Announcement version;
  std::int64_t members = 0;  // that have it
  std::int64_t first = 0;    // of them
  std::shared_ptr<const KeptLayout> layout{};
  std::vector<std::int64_t> member_now{};  // of each member that kept it; -1 if it is gone
};

std::vector<Announcement> announcements(GroupCoordinator& group, const KeptVersions& versions,
                                        std::int64_t step) {
  std::vector<Announcement> own;
  for (const KeptVersion& version : versions)
    own.push_back(version.number != KeptVersion::incomplete && version.step == step
                      ? Announcement{version.number, version.self.value(), version.layout->hash}
                      : Announcement{});
  std::vector<Announcement> all(own.size() * static_cast<std::size_t>(group.size()));
  run_or_leak([&] { group.all_gather_async(own, all).wait(); }, own, all);
  return all;
}

// Returns the layout of a version, which its first member sends to the others.
std::shared_ptr<const KeptLayout> layout_from(GroupCoordinator& group, const Candidate& candidate,
                                              const KeptVersions& versions) {
  Bytes text;
  const auto own = std::ranges::find(versions, candidate.version.number, &KeptVersion::number);
  if (group.rank_in_group().value() == candidate.first && own != versions.end()) {
    const auto bytes = std::as_bytes(std::span{own->layout->text});
    text.assign(bytes.begin(), bytes.end());
  }
  broadcast_message(group, text, RankInGroup{candidate.first});
  return KeptLayout::parse(std::string{reinterpret_cast<const char*>(text.data()), text.size()});
}

// Returns the versions of a step: first the one that most members have, and of those the newest.
std::vector<Candidate> candidates(GroupCoordinator& group, const KeptVersions& versions,
                                  std::int64_t step) {
  const std::vector<Announcement> announced = announcements(group, versions, step);
  const auto member_of = [&](std::size_t announcement) {
    return static_cast<std::int64_t>(announcement / versions.size());
  };
  std::vector<Candidate> found;
  for (std::size_t a = 0; a < announced.size(); ++a) {
    if (announced[a].number == KeptVersion::incomplete) continue;
    auto known = std::ranges::find_if(
        found, [&](const Candidate& c) { return c.version.is_of_same(announced[a]); });
    if (known == found.end()) known = found.insert(known, {announced[a], 0, member_of(a)});
    ++known->members;
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, [](const Candidate& c) {
    return std::pair{c.members, c.version.number};
  });
  for (Candidate& candidate : found) {
    candidate.layout = layout_from(group, candidate, versions);
    candidate.member_now.assign(static_cast<std::size_t>(candidate.layout->ranks.size()), -1);
    for (std::size_t a = 0; a < announced.size(); ++a)
      if (announced[a].is_of_same(candidate.version))
        candidate.member_now[static_cast<std::size_t>(announced[a].member)] = member_of(a);
  }
  return found;
}

// Members that are gone get numbers after those of the group.
TransferPlan plan_of(const Candidate& choice, const KeptLayout& wanted, std::int64_t members) {
  TransferOptions of_plan;
  for (std::size_t m = 0; m < choice.member_now.size(); ++m)
    if (choice.member_now[m] < 0) of_plan.lost.emplace_back(members + static_cast<std::int64_t>(m));
  OncePerPlace made;
  const auto now = [&](const TensorPlacement& place) {
    return made.of(place.to_string(), [&] {
      return rankmesh::detail::renumbered(place, [&](std::int64_t member) {
        const std::int64_t number = choice.member_now[static_cast<std::size_t>(member)];
        return number < 0 ? members + member : number;
      });
    });
  };
  if (wanted.tensors.size() != choice.layout->tensors.size())
    throw UsageError{fmt::format("{} tensors were kept, but {} are restored",
                                 choice.layout->tensors.size(), wanted.tensors.size()),
                     "restore all tensors of a step in one call"};
  std::vector<TensorTransfer> moves;
  for (const KeptTensor& tensor : wanted.tensors) {
    const KeptTensor* const kept = choice.layout->find(tensor.name);
    if (kept == nullptr)
      throw UsageError{fmt::format("there is no tensor '{}' to restore", tensor.name),
                       "pass the names that were kept"};
    TensorTransfer own{now(kept->place), tensor.place, tensor.name};
    if (kept->copy) own.copy = now(*kept->copy);
    moves.push_back(own);
    if (!tensor.copy) continue;
    own.to = *tensor.copy;
    moves.push_back(std::move(own));
  }
  return plan_transfer(std::move(moves), nullptr, of_plan);
}

// Names the ranks that had the elements as they were called when they were kept.
LostElements explained(const LostElements& lost, const KeptLayout& layout, std::int64_t step,
                       std::int64_t members) {
  std::vector<Rank> ranks;
  for (const Rank holder : lost.holders())
    ranks.push_back(layout.ranks.at(holder.value() - members));
  std::vector<std::int64_t> numbers;
  for (const Rank rank : ranks) numbers.push_back(rank.value());
  return LostElements{
      fmt::format(
          "step {} cannot be restored: the element [{}] of '{}' was kept by rank{} {} of the "
          "mesh before, and none of them is in this mesh",
          step, fmt::join(lost.index(), ","), lost.tensor(), numbers.size() == 1 ? "" : "s",
          fmt::join(numbers, " and ")),
      "load the tensors from a checkpoint, on all ranks of the mesh", lost.tensor(), lost.index(),
      std::move(ranks)};
}

}  // namespace

KeptChoice choose(GroupCoordinator& group, const KeptVersions& versions, std::int64_t step,
                  const KeptLayout& wanted) {
  const std::vector<Candidate> all = candidates(group, versions, step);
  if (all.empty())
    throw LostElements{fmt::format("no rank of '{}' has kept step {}", group.name(), step),
                       "load the tensors from a checkpoint, on all ranks of the mesh",
                       {},
                       {},
                       {}};
  std::optional<LostElements> first;
  for (const Candidate& candidate : all) try {
      return {candidate.version.number, candidate.layout->hash,
              plan_of(candidate, wanted, group.size())};
    } catch (const LostElements& lost) {
      if (!first) first = explained(lost, *candidate.layout, step, group.size());
    }
  throw std::move(*first);
}

}  // namespace rankmesh::exchange::detail
