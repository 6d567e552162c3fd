// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/kept_tensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "detail/agree.hpp"
#include "detail/kept_layout.hpp"
#include "detail/kept_versions.hpp"
#include "detail/tensor_kind.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/group/detail/group_life.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "transfer/detail/placement_data.hpp"
#include "transfer/detail/strided_runs.hpp"

namespace rankmesh::exchange {
namespace {

using detail::KeptLayout;
using detail::KeptTensor;
using Version = detail::KeptVersion;
using rankmesh::detail::GroupAccess;

// Calls use(address, bytes, offset) for the pieces of an array that are contiguous in memory;
// the offset is that in a dense array, in bytes.
template <class Given, class Use>
void for_each_piece(const Given& given, const std::vector<std::int64_t>& shape, std::int64_t count,
                    Use&& use) {
  rankmesh::detail::ArrayGaps gaps;
  gaps.set(shape, given.strides);
  const rankmesh::detail::ArrayView view{const_cast<std::byte*>(given.memory.data),
                                         given.memory.type, &gaps};
  std::size_t offset = 0;
  if (count > 0)
    view.for_each(0, count, [&](std::byte* piece, std::int64_t elements) {
      const auto bytes = static_cast<std::size_t>(elements * view.width());
      use(piece, bytes, offset);
      offset += bytes;
    });
}

// Copies elements between memory of the program and the host memory of a version.
void copy(std::byte* to, const std::byte* from, std::size_t bytes, MemoryKind of_program,
          device::detail::Direction direction) {
  if (of_program == MemoryKind::device)
    device::detail::copy(to, from, bytes, direction, StreamRef{});
  else
    std::memcpy(to, from, bytes);
}

template <class Tensor>
std::vector<KeptTensor> list_of(std::span<const Tensor> tensors) {
  std::vector<KeptTensor> list;
  for (const Tensor& tensor : tensors) list.push_back({tensor.name, tensor.place});
  return list;
}

TransferPlan plan_of_copies(const KeptLayout& layout) {
  std::vector<TensorTransfer> moves;
  for (const KeptTensor& tensor : layout.tensors)
    if (tensor.copy) moves.push_back({tensor.place, *tensor.copy, tensor.name});
  return plan_transfer(std::move(moves));
}

// Returns the number of ranks from 0 to the highest one of the place's mesh, whose tensor may be on
// fewer.
std::int64_t ranks_of_mesh(const TensorPlacement& place) {
  const TensorPlacement::Data& data = place.data();
  return data.on ? data.on->highest().value() + 1 : data.mesh_layout.size();
}

// Throws the errors of arguments that are wrong on this rank alone.
template <class Tensor>
void check(const GroupCoordinator& group, const char* function, std::span<const Tensor> tensors) {
  std::map<std::string_view, int> names;
  for (const Tensor& tensor : tensors) {
    const auto refuse = [&](const std::string& what, const char* hint) {
      throw UsageError{fmt::format("{} over '{}': {}", function, group.name(), what), hint};
    };
    if (++names[tensor.name] == 2)
      refuse(fmt::format("there are two tensors '{}'", tensor.name), "give each tensor a name");
    if (!tensor.place.sums().empty())
      refuse(fmt::format("the tensor '{}' has partial sums", tensor.name), "add them up first");
    if (ranks_of_mesh(tensor.place) > group.size())
      refuse(fmt::format("the mesh of the tensor '{}' at '{}' has more ranks than the group",
                         tensor.name, tensor.place.to_string()),
             "the ranks of a place are the members of the group, from 0");
    const TensorTransfer whole{tensor.place, tensor.place, tensor.name};
    const detail::TensorKind kind{whole, Rank{group.rank_in_group().value()}};
    if constexpr (requires { tensor.source; })
      kind.check_source(whole, tensor.source, tensor.source.memory.kind);
    else
      kind.check_target(whole, tensor.target, tensor.target.memory.kind);
  }
}

Hash128 hash_of_call(std::int64_t step, const std::shared_ptr<const KeptLayout>& layout) {
  return hash_bytes(layout == nullptr
                        ? std::string{}
                        : fmt::format("{} {}", step, rankmesh::to_string(layout->hash)));
}

template <class Tensor>
detail::Comparison comparison(detail::UserFunction function, const GroupCoordinator& group,
                              std::int64_t step, std::span<const Tensor> tensors,
                              std::exception_ptr failure) {
  return {.function = function,
          .describe =
              [&group, function, step, tensors] {
                detail::Arguments arguments{
                    fmt::format("{} over '{}'", to_string(function), group.name()),
                    {fmt::format("step {}, {} tensors", step, tensors.size())}};
                for (const Tensor& tensor : tensors)
                  arguments.entries.push_back(
                      fmt::format("tensor '{}' at '{}'", tensor.name, tensor.place.to_string()));
                return arguments;
              },
          .hint = "pass the same step and the same tensors on every rank",
          .failure = std::move(failure)};
}

}  // namespace

struct KeptTensors::State {
  RedistributionOptions options;
  detail::KeptVersions versions{};

  // How the copies of a layout get to the members that keep them.
  struct Refreshing {
    rankmesh::detail::GroupLife life;
    const GroupCoordinator* group;
    std::shared_ptr<const KeptLayout> layout;
    std::optional<Redistribution> move{};
  };
  std::optional<Refreshing> refreshing{};

  [[nodiscard]] Version& newest() {
    return versions[versions[0].number >= versions[1].number ? 0 : 1];
  }
  [[nodiscard]] Version& other(const Version& than) {
    return versions[&than == versions.data() ? 1 : 0];
  }
  [[nodiscard]] Version& replaced_in(const GroupCoordinator& group);
  template <class Tensor>
  std::shared_ptr<const KeptLayout> layout_of(const GroupCoordinator& group,
                                              std::span<const Tensor> tensors);
  void refresh(GroupCoordinator& group, Version& version);
  void move(GroupCoordinator& group, const TransferPlan& plan, const Version* from, Version& to);
};

// The members pass the same tensors in each step, so the layout is planned once.
template <class Tensor>
std::shared_ptr<const KeptLayout> KeptTensors::State::layout_of(const GroupCoordinator& group,
                                                                std::span<const Tensor> tensors) {
  const auto is_same = [](const KeptTensor& kept, const Tensor& given) {
    return kept.place == given.place && kept.name == given.name;
  };
  if (!refreshing || !refreshing->life.exists() || refreshing->group != &group ||
      !std::ranges::equal(refreshing->layout->tensors, tensors, is_same))
    refreshing.emplace(Refreshing{rankmesh::detail::GroupLife{group}, &group,
                                  detail::layout_of(group, list_of(tensors))});
  return refreshing->layout;
}

// Returns the version in whose place the next step is kept: not the newest one of the step that is
// committed. Without it, nobody returns to an older step.
Version& KeptTensors::State::replaced_in(const GroupCoordinator& group) {
  const auto& losses = GroupAccess::runtime(group).control->losses;
  const auto committed = losses != nullptr ? losses->step() : std::nullopt;
  for (Version* version : {&newest(), &other(newest())})
    if (version->number != Version::incomplete && version->step == committed)
      return other(*version);
  return other(newest());
}

void KeptTensors::State::refresh(GroupCoordinator& group, Version& version) {
  const std::vector<KeptTensor>& tensors = version.layout->tensors;
  std::vector<TensorSource> sources;
  std::vector<TensorTarget> targets;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (!tensors[t].copy) continue;
    sources.emplace_back().memory = version.own(t).as_input();
    targets.emplace_back().memory = version.copies(t);
  }
  if (sources.empty()) return;
  run_or_leak(
      [&] {
        if (!refreshing->move)
          refreshing->move.emplace(group, plan_of_copies(*version.layout), options);
        refreshing->move->start(sources, targets).wait();
      },
      version.memory);
}

void KeptTensors::keep(GroupCoordinator& group, std::int64_t step,
                       std::span<const SavedTensor> tensors) {
  if (state_ == nullptr) rankmesh::detail::GroupLife::refuse_moved("KeptTensors");
  State& s = *state_;
  const Rank self{group.rank_in_group().value()};
  std::array<std::int64_t, 2> maxima{s.newest().number, 1};
  auto& [number, must_plan] = maxima;
  Version& version = s.replaced_in(group);
  Version next;
  const std::exception_ptr failure = detail::failure_of([&] {
    check(group, "KeptTensors::keep", tensors);
    next = version.with(s.layout_of(group, tensors), self);
    must_plan = s.refreshing->move ? 0 : 1;
  });
  // When all have come, nobody needs the older version any more.
  detail::agree(group, hash_of_call(step, next.layout),
                comparison(detail::UserFunction::keep_tensors, group, step, tensors, failure),
                maxima);
  if (must_plan == 1) s.refreshing->move.reset();  // some members have kept other tensors meanwhile
  version = std::move(next);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const Buffer own = version.own(t);
    for_each_piece(tensors[t].source, tensors[t].place.local_shape(self), own.count,
                   [&](const std::byte* piece, std::size_t bytes, std::size_t offset) {
                     copy(own.data + offset, piece, bytes, tensors[t].source.memory.kind,
                          device::detail::Direction::to_host);
                   });
  }
  s.refresh(group, version);
  version.step = step;
  version.number = number + 1;
}

void KeptTensors::State::move(GroupCoordinator& group, const TransferPlan& plan,
                              const Version* from, Version& to) {
  std::vector<TensorSource> sources(plan.tensors().size());
  std::vector<TensorTarget> targets;
  std::vector<std::shared_ptr<std::byte[]>> used = to.memory;  // by MPI, also if a wait fails
  if (from != nullptr) used.insert(used.end(), from->memory.begin(), from->memory.end());
  for (std::size_t t = 0; t < to.layout->tensors.size(); ++t) {
    const KeptTensor& tensor = to.layout->tensors[t];
    const std::size_t first = targets.size();
    targets.emplace_back().memory = to.own(t);
    if (tensor.copy) targets.emplace_back().memory = to.copies(t);
    if (from == nullptr) continue;
    const KeptTensor* const kept = from->layout->find(tensor.name);
    const auto number = static_cast<std::size_t>(kept - from->layout->tensors.data());
    for (std::size_t i = first; i < targets.size(); ++i)
      sources[i].memory = from->part(number, 0, kept->count(from->self)).as_input();
  }
  Redistribution redistribution{group, plan, options};
  try {
    run_or_leak([&] { redistribution.start(sources, targets).wait(); }, used);
  } catch (...) {
    to.memory.clear();
    throw;
  }
}

TransferPlan KeptTensors::restore(GroupCoordinator& group, std::int64_t step,
                                  std::span<const LoadedTensor> tensors) {
  if (state_ == nullptr) rankmesh::detail::GroupLife::refuse_moved("KeptTensors");
  State& s = *state_;
  const Rank self{group.rank_in_group().value()};
  std::int64_t number = s.newest().number;
  std::shared_ptr<const KeptLayout> layout;
  const auto agree_if = [&](const std::exception_ptr& failure) {
    detail::agree(group, hash_of_call(step, layout),
                  comparison(detail::UserFunction::restore_tensors, group, step, tensors, failure),
                  {&number, 1});
  };
  agree_if(detail::failure_of([&] {
    check(group, "KeptTensors::restore", tensors);
    layout = s.layout_of(group, tensors);
  }));
  detail::KeptChoice choice = detail::choose(group, s.versions, step, *layout);
  const auto from = std::ranges::find_if(
      s.versions, [&](const Version& version) { return choice.is_of(version); });
  Version& version = s.other(from != s.versions.end() ? *from : s.newest());
  Version next;
  agree_if(detail::failure_of([&] { next = version.with(layout, self); }));
  version = std::move(next);
  s.move(group, choice.plan, from != s.versions.end() ? &*from : nullptr, version);
  version.step = step;
  version.number = number + 1;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const Buffer own = version.own(t);
    for_each_piece(tensors[t].target, tensors[t].place.local_shape(self), own.count,
                   [&](std::byte* piece, std::size_t bytes, std::size_t offset) {
                     copy(piece, own.data + offset, bytes, tensors[t].target.memory.kind,
                          device::detail::Direction::to_device);
                   });
  }
  return std::move(choice.plan);
}

KeptTensors::KeptTensors(RedistributionOptions options)
    : state_{new State{.options = std::move(options)}} {
  state_->options.kind = MemoryKind::host;
}
KeptTensors::~KeptTensors() = default;
KeptTensors::KeptTensors(KeptTensors&&) noexcept = default;
KeptTensors& KeptTensors::operator=(KeptTensors&&) noexcept = default;

std::int64_t KeptTensors::bytes() const noexcept {
  return state_ == nullptr ? 0 : state_->versions[0].bytes() + state_->versions[1].bytes();
}

}  // namespace rankmesh::exchange
