// SPDX-License-Identifier: BSD-3-Clause
// Tensors in the memory of several ranks. A group without some members stands for the survivors of
// a loss; in tests/survive, ranks really die.
#include "rankmesh/exchange/kept_tensors.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using exchange::KeptTensors;
using exchange::LoadedTensor;
using exchange::SavedTensor;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;

namespace {

// The places of some tensors on a number of ranks.
std::vector<TensorPlacement> places_on(std::int64_t ranks) {
  std::vector<TensorPlacement> places;
  for (const char* const text : {"[23] f64 @ dp={} : (dp)", "[6,5] f64 @ dp={} : (_, dp:cyclic)",
                                 "[4,3] f64 @ dp={} : (_, _)", "[40] f64 @ dp={} : (dp:ceil)"})
    places.push_back(TensorPlacement::parse(fmt::format(fmt::runtime(text), ranks)));
  return places;
}

// The value of an element in a step.
double value_of(std::size_t tensor, std::int64_t number, std::int64_t step) {
  return static_cast<double>(1'000'000 * step + 1'000 * static_cast<std::int64_t>(tensor) + number);
}

// The tensors of one member.
struct Tensors {
  Tensors(std::int64_t ranks, std::int64_t self_in_group)
      : self{self_in_group}, places{places_on(ranks)} {
    for (const TensorPlacement& place : places)
      memory.emplace_back(static_cast<std::size_t>(place.local_count(self)), -1.0);
  }
  // Calls use(value, tensor, number) for each element of this member.
  template <class Use>
  void for_each(Use&& use) {
    for (std::size_t t = 0; t < places.size(); ++t) {
      const auto& shape = places[t].shape();
      std::vector<std::int64_t> index(shape.size());
      for (std::int64_t number = 0; number < places[t].element_count(); ++number) {
        std::int64_t rest = number;
        for (std::size_t axis = index.size(); axis-- > 0; rest /= shape[axis])
          index[axis] = rest % shape[axis];
        if (const auto offset = places[t].local_offset(self, index))
          use(memory[t][static_cast<std::size_t>(*offset)], t, number);
      }
    }
  }
  void fill(std::int64_t step) {
    for_each([&](double& value, std::size_t t, std::int64_t n) { value = value_of(t, n, step); });
  }
  void check(std::int64_t step) {
    int wrong = 0;
    for_each([&](const double& value, std::size_t t, std::int64_t n) {
      wrong += value == value_of(t, n, step) ? 0 : 1;
    });
    CHECK(wrong == 0);
  }
  [[nodiscard]] std::vector<SavedTensor> saved() const {
    std::vector<SavedTensor> list;
    for (std::size_t t = 0; t < places.size(); ++t)
      list.push_back({fmt::format("tensor {}", t), places[t], memory[t]});
    return list;
  }
  [[nodiscard]] std::vector<LoadedTensor> loaded() {
    std::vector<LoadedTensor> list;
    for (std::size_t t = places.size(); t-- > 0;)
      list.push_back({fmt::format("tensor {}", t), places[t], memory[t]});
    return list;
  }

  Rank self;
  std::vector<TensorPlacement> places;
  std::vector<std::vector<double>> memory;
};

// A group of the ranks that are not in a list; null on the others.
std::shared_ptr<GroupCoordinator> group_without(Mesh& mesh, const std::vector<int>& gone) {
  std::vector<Rank> ranks;
  for (int r = 0; r < size(); ++r)
    if (std::ranges::find(gone, r) == gone.end()) ranks.emplace_back(r);
  if (std::ranges::find(gone, rank()) != gone.end()) return nullptr;
  return mesh.new_group(ranks);
}

// Keeps two steps on a group, or so many. The values of the tensors are those of a later step.
Tensors kept_in(KeptTensors& kept, GroupCoordinator& group, std::int64_t step,
                std::int64_t steps = 2) {
  Tensors tensors{group.size(), group.rank_in_group().value()};
  for (std::int64_t s = step - steps + 1; s <= step; ++s) {
    tensors.fill(s);
    kept.keep(group, s, tensors.saved());
  }
  tensors.fill(step + 1);
  return tensors;
}

// Restores a step on a group, and checks the values and what has moved.
void restore(KeptTensors& kept, GroupCoordinator& group, std::int64_t step) {
  Tensors tensors{group.size(), group.rank_in_group().value()};
  const TransferPlan plan = kept.restore(group, step, tensors.loaded());
  tensors.check(step);
  const TransferVolume volume = plan.volume();
  CHECK(volume.moved_bytes == volume.least_moved_bytes);
}

// The same on the ranks that are left when some are gone.
void restore_without(Mesh& mesh, const std::vector<int>& gone, KeptTensors& kept,
                     std::int64_t step) {
  const auto group = group_without(mesh, gone);
  if (group == nullptr) return;
  restore(kept, *group, step);
  mesh.close(group);
}

}  // namespace

TEST_CASE("each single rank may be lost, and both steps can be restored") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  for (int lost = 0; lost < size(); ++lost)
    for (const std::int64_t step : {7, 8}) {
      CAPTURE(lost);
      KeptTensors kept;
      kept_in(kept, mesh["dp"], 8);
      restore_without(mesh, {lost}, kept, step);
    }
  mesh.close();
}

TEST_CASE("each node may be lost") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  SKIP_UNLESS(mesh.placement().node_count() > 1, "needs several nodes");
  for (std::int32_t node = 0; node < mesh.placement().node_count(); ++node) {
    std::vector<int> lost;
    for (int r = 0; r < size(); ++r)
      if (mesh.placement().node(Rank{r}) == node) lost.push_back(r);
    KeptTensors kept;
    kept_in(kept, mesh["dp"], 8);
    restore_without(mesh, lost, kept, 8);
  }
  mesh.close();
}

TEST_CASE("copies are in another replica, although it is farther away") {
  SKIP_UNLESS(size() % 2 == 0 && size() >= 4, "needs an even number of ranks, at least 4");
  Mesh mesh{MPI_COMM_WORLD, fmt::format("dp={},tp=2", size() / 2)};
  KeptTensors kept;
  kept_in(kept, mesh["world"], 8);
  restore_without(mesh, {0, 1}, kept, 8);  // a replica, without which the others go on
  mesh.close();
}

TEST_CASE("after it is restored, a step survives another loss") {
  NEEDS_RANKS(3);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  for (const auto& [first, second] : {std::pair{0, 1}, std::pair{1, 0}, std::pair{2, 1}}) {
    KeptTensors kept;
    kept_in(kept, mesh["dp"], 8);
    for (const std::vector<int>& gone : {std::vector{first}, std::vector{first, second}})
      restore_without(mesh, gone, kept, 8);
  }
  mesh.close();
}

TEST_CASE("of two versions of a step, the one that most members have is restored") {
  NEEDS_RANKS(3);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  KeptTensors kept;
  kept_in(kept, mesh["dp"], 8);
  restore_without(mesh, {0}, kept, 8);  // as if a loss had kept rank 0 from it
  Tensors tensors{size(), rank()};
  const TransferPlan plan = kept.restore(mesh["dp"], 8, tensors.loaded());
  tensors.check(8);
  CHECK(plan.tensors().front().from.ranks().size() == size());
  mesh.close();
}

TEST_CASE("a spare rank has kept nothing, and gets its elements") {
  NEEDS_RANKS(3);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  KeptTensors kept;
  if (const auto group = group_without(mesh, {size() - 1})) {
    kept_in(kept, *group, 4);
    mesh.close(group);
  }
  restore_without(mesh, {0}, kept, 4);
  mesh.close();
}

TEST_CASE("the error says which ranks had the elements, if owner and copy are lost") {
  NEEDS_RANKS(3);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  SKIP_UNLESS(mesh.placement().node_count() == 1, "on several nodes, copies are farther away");
  KeptTensors kept;
  kept_in(kept, mesh["dp"], 8);
  if (const auto group = group_without(mesh, {0, 1})) {
    Tensors tensors{group->size(), group->rank_in_group().value()};
    const auto error = thrown_by<LostElements>([&] { kept.restore(*group, 8, tensors.loaded()); });
    CHECK_CONTAINS(error.message(), "step 8 cannot be restored: the element [");
    CHECK_CONTAINS(error.message(), "was kept by ranks 0 and 1 of the mesh before");
    CHECK_CONTAINS(error.hint(), "load the tensors from a checkpoint");
    CHECK(error.holders() == std::vector{Rank{0}, Rank{1}});
    const auto unknown =
        thrown_by<LostElements>([&] { kept.restore(*group, 6, tensors.loaded()); });
    CHECK_CONTAINS(unknown.message(), "has kept step 6");
    mesh.close(group);
  }
  mesh.close();
}

TEST_CASE("what a restore moves is what the members need and do not have") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  SKIP_UNLESS(mesh.placement().node_count() == 1, "on several nodes, copies are farther away");
  // Rank 0 is lost. The element e of n was on the rank e and is kept by the next one, too.
  const auto place = [](std::int64_t ranks) {
    return TensorPlacement::parse(fmt::format("[{}] f64 @ dp={} : (dp)", 60 * size(), ranks));
  };
  const TensorPlacement before = place(size());
  std::vector<double> values(static_cast<std::size_t>(before.local_count(Rank{rank()})));
  std::int64_t done = 0, all = 0;
  KeptTensors kept{
      {.progress = [&](std::int64_t now, std::int64_t end) { done = now, all = end; }}};
  kept.keep(mesh["dp"], 0, {{"x", before, values}});
  if (const auto group = group_without(mesh, {0})) {
    const std::int64_t members = group->size();
    const TensorPlacement after = place(members);
    std::vector<double> restored(static_cast<std::size_t>(after.local_count(Rank{rank() - 1})));
    done = all = 0;
    const auto plan = kept.restore(*group, 0, {{"x", after, restored}});
    // What the members receive, own elements and copies, element by element.
    std::int64_t least = 0, kept_here = 0;
    const auto is_in = [](std::int64_t e, std::int64_t owner, const TensorPlacement& placed,
                          std::int64_t ranks) {
      return placed.local_offset(Rank{(owner + ranks) % ranks}, {&e, 1}).has_value();
    };
    for (std::int64_t m = 0; m < members; ++m)
      for (std::int64_t e = 0; e < 60 * size(); ++e) {
        const bool has = is_in(e, m + 1, before, size()) || is_in(e, m, before, size());
        const int needs = (is_in(e, m, after, members) ? 1 : 0) +
                          (members > 1 && is_in(e, m - 1, after, members) ? 1 : 0);
        (has ? kept_here : least) += needs;
      }
    CHECK(plan.volume().moved_bytes == 8 * least);
    // Each rank counts what it sends, receives and copies.
    CHECK(done == all);
    group->all_reduce(done);
    CHECK(done == 8 * (2 * least + kept_here));
    mesh.close(group);
  }
  mesh.close();
}

TEST_CASE("kept tensors: mistakes are named on all ranks") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  KeptTensors kept;
  Tensors tensors = kept_in(kept, dp, 2);
  CHECK_CONTAINS(thrown_by<MismatchError>([&] {
                   kept.keep(dp, rank() == 0 ? 3 : 4, tensors.saved());
                 }).message(),
                 "step 3, 4 tensors");
  std::vector<SavedTensor> twice = tensors.saved();
  twice.push_back(twice.front());
  CHECK_CONTAINS(thrown_by<UsageError>([&] { kept.keep(dp, 3, twice); }).message(),
                 "there are two tensors 'tensor 0'");
  const auto sum = TensorPlacement::parse(fmt::format("[3] f64 @ dp={} : (_) sum(dp)", size()));
  const std::vector<double> three(3);
  CHECK_CONTAINS(thrown_by<UsageError>([&] {
                   kept.keep(dp, 3, {{"x", sum, three}});
                 }).message(),
                 "has partial sums");
  const auto large = TensorPlacement::parse(fmt::format("[3] f64 @ dp={} : (_)", size() + 1));
  CHECK_CONTAINS(thrown_by<UsageError>([&] {
                   kept.keep(dp, 3, {{"x", large, three}});
                 }).message(),
                 "has more ranks than the group");
  // The tensor itself is on few ranks.
  const auto part = TensorPlacement::parse(fmt::format("[3] f64 @ a=2,dp={} at a=0 : (_)", size()));
  CHECK_CONTAINS(thrown_by<UsageError>([&] {
                   kept.keep(dp, 3, {{"x", part, three}});
                 }).message(),
                 "has more ranks than the group");
  // A mistake on one rank is an error of all.
  const std::vector<double> five(5);
  std::vector<SavedTensor> short_ones = tensors.saved();
  if (rank() == 0) short_ones[2].source = five;
  const auto keep_short = [&] { kept.keep(dp, 3, short_ones); };
  if (rank() == 0)
    CHECK_CONTAINS(thrown_by<UsageError>(keep_short).message(), "it has 5 elements, 12 are needed");
  else
    CHECK_CONTAINS(thrown_by<MismatchError>(keep_short).message(), "12 are needed");
  std::vector<LoadedTensor> fewer = tensors.loaded();
  fewer.pop_back();
  CHECK_CONTAINS(thrown_by<UsageError>([&] { kept.restore(dp, 2, fewer); }).message(),
                 "4 tensors were kept, but 3 are restored");
  fewer.push_back({"other", tensors.places[0], tensors.memory[0]});
  CHECK_CONTAINS(thrown_by<UsageError>([&] { kept.restore(dp, 2, fewer); }).message(),
                 "there is no tensor 'other' to restore");
  restore(kept, dp, 2);  // nothing of this has harmed it
  mesh.close();
}

TEST_CASE("the memory is that of two steps with their copies") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  KeptTensors kept;
  CHECK(kept.bytes() == 0);
  std::vector<double> values(100);
  const auto place =
      TensorPlacement::parse(fmt::format("[{}] f64 @ dp={} : (dp)", 100 * size(), size()));
  const std::int64_t of_step = 800 * (size() > 1 ? 2 : 1);
  for (std::int64_t step = 0; step < 4; ++step) {
    kept.keep(mesh["dp"], step, {{"x", place, values}});
    CHECK(kept.bytes() == of_step * (step == 0 ? 1 : 2));
  }
  mesh.close();
}

TEST_CASE("after elements are lost, tensors are kept again, from an earlier step on") {
  // The mesh may survive, so rankmesh knows which step is committed.
  NEEDS_RANKS(3);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto", MeshOptions{.survive = Survival{}}};
  KeptTensors kept;
  kept_in(kept, mesh["dp"], 4);
  mesh.commit(3);  // step 4 is kept, but not committed
  if (const auto group = group_without(mesh, {1, 2})) {
    Tensors tensors{group->size(), group->rank_in_group().value()};
    if (mesh.placement().node_count() == 1)
      CHECK_THROWS_AS(kept.restore(*group, 3, tensors.loaded()), LostElements);
    else
      restore(kept, *group, 3);
    mesh.close(group);
  }
  for (const std::int64_t step : {2, 3, 4}) {
    mesh.commit(step);  // the first time, all go back
    Tensors tensors{size(), rank()};
    tensors.fill(step + 1);
    kept.keep(mesh["dp"], step + 1, tensors.saved());
    restore(kept, mesh["dp"], step + 1);
  }
  mesh.commit(5);
  kept_in(kept, mesh["dp"], 8, 3);  // without commits
  restore(kept, mesh["dp"], 5);
  mesh.close();
}
