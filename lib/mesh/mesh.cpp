// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/mesh/mesh.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/state.hpp"
#include "mpi/detail/job_end.hpp"
#include "rankmesh/base/settings.hpp"

namespace rankmesh {
namespace {

std::size_t symmetric_bytes(const MeshPlan& plan, std::size_t count, std::size_t size_of_element,
                            std::span<const std::string_view> names) {
  for (const std::string_view name : names)
    (void)plan.index_of(name);  // throws for an unknown name
  if (count > std::numeric_limits<std::ptrdiff_t>::max() / 4096 / size_of_element)
    throw UsageError{fmt::format("allocate_symmetric cannot allocate {} elements", count),
                     "the number of bytes is too large: correct the count"};
  return count * size_of_element;
}

// Returns what all ranks must pass alike to allocate_symmetric.
Agreement symmetric_agreement(std::size_t bytes, std::span<const std::string_view> names) {
  Agreement agreement;
  agreement.add("bytes of symmetric memory", fmt::format("{}", bytes));
  agreement.advise("pass the same count and the same families to allocate_symmetric on all ranks");
  agreement.add("families of symmetric memory", fmt::format("{}", fmt::join(names, ",")));
  return agreement;
}

// Returns this rank's connections of these families, in the order of the plan.
std::vector<std::shared_ptr<detail::Connection>> connections_of(
    const detail::MeshState& state, std::span<const std::string_view> names) {
  const auto is_named = [&](std::size_t f) {
    return std::ranges::find(names, state.plan->families()[f].name()) != names.end();
  };
  std::vector<std::shared_ptr<detail::Connection>> found;
  for (const auto& connection : state.connections)
    if (std::ranges::any_of(connection->group.families, is_named)) found.push_back(connection);
  return found;
}

}  // namespace

Mesh::Mesh(MPI_Comm world, std::string_view mesh, MeshOptions options)
    : state_{detail::open_mesh(world, std::move(options), std::string{mesh},
                               [&] { return MeshSpec::parse(mesh); })} {}

Mesh::Mesh(MPI_Comm world, const MeshSpec& mesh, MeshOptions options)
    : state_{detail::open_mesh(world, std::move(options), mesh.describe(), [&] { return mesh; })} {}

Mesh::Mesh(std::unique_ptr<detail::MeshState> state) : state_{std::move(state)} {}

Mesh Mesh::from_environment(MPI_Comm world, MeshOptions options) {
  const auto text = environment_variable("RANKMESH");
  return Mesh{
      detail::open_mesh(world, std::move(options), text.value_or("(RANKMESH is not set)"), [&] {
        if (!text)
          throw SpecError{"the environment variable RANKMESH is not set",
                          "set it to a mesh such as pp=2,dp=4,tp=8"};
        return MeshSpec::parse(*text);
      })};
}

Mesh::~Mesh() = default;
Mesh::Mesh(Mesh&&) noexcept = default;
Mesh& Mesh::operator=(Mesh&&) noexcept = default;

detail::MeshState& Mesh::state() const {
  if (state_ == nullptr)
    throw ClosedError{"a moved-from mesh is used", "use the object to which the mesh was moved"};
  return *state_;
}

detail::MeshState& Mesh::open_state(const char* activity, bool is_for_spares) const {
  (void)mpi::is_job_ending();  // this rank does not go on while another thread ends the process
  if (state().runtime->is_closed)
    throw ClosedError{fmt::format("{} is called on a closed mesh", activity),
                      "close the mesh last"};
  if (state_->runtime->batch.is_open())
    throw UsageError{fmt::format("{} inside an NcclGroup", activity), "end the group first"};
  if (is_spare() && !is_for_spares)
    throw UsageError{fmt::format("{} is called on a spare rank", activity),
                     "call next(): it waits until this rank is needed, or the mesh is closed"};
  return *state_;
}

GroupCoordinator& Mesh::operator[](std::string_view name) {
  const auto found = state().named.find(name);
  if (found != state().named.end()) return *found->second;
  state().control->throw_if_lost();  // it may have been lost before it had groups
  if (GroupCoordinator* const world = implied_world(name)) return *world;
  const GroupFamily& family = plan().groups(name);  // throws for an unknown name
  if (family.coverage(size()) == Coverage::overlapping)
    throw NotMember{fmt::format("the groups of '{}' overlap and have no coordinators", name),
                    "create the groups that you need with new_groups"};
  throw NotMember{fmt::format("rank {} ({}) is in no group of '{}'", rank().value(),
                              plan().describe(rank()), name),
                  family.group_count() == 0
                      ? std::string{"no group of the family is left, because ranks were lost"}
                      : fmt::format("its first group is {}", family.group(0).to_string(60))};
}

GroupCoordinator& Mesh::duplicate(std::string_view name, std::string_view key) {
  const GroupOptions& options = plan().options(plan().index_of(name));
  if (std::ranges::find(options.duplicates, key) == options.duplicates.end())
    throw UnknownName{fmt::format("'{}' has no duplicate communicator '{}'", name, key),
                      fmt::format("list the key in the options of '{}': GroupOptions::duplicates, "
                                  "or duplicates = [\"{}\"] in its table of a mesh file",
                                  name, key)};
  const auto found = state().named.find(detail::duplicate_name(name, key));
  return found != state().named.end() ? *found->second : (*this)[name];  // which throws NotMember
}

std::optional<int> Mesh::device() const {
  return state().device == nullptr ? std::nullopt : state().runtime->device;
}

void Mesh::progress() {
  detail::MeshState& state = open_state("progress");
  {
    const detail::CallLock lock{*state.runtime};
    state.runtime->in_flight.progress();
    state.runtime->device_calls.look();
  }
  detail::advance_between_tests();
}

void Mesh::mark(std::string_view text) {
  detail::MeshState& state = open_state("mark");
  const detail::CallLock lock{*state.runtime};
  if (const auto& recorder = state.control->recorder()) recorder->mark(text);
}

std::shared_ptr<const SymmetricWindow> Mesh::allocate_window(
    std::size_t count, std::size_t size_of_element, std::span<const std::string_view> names) {
  detail::MeshState& state = open_state("allocate_symmetric");
  const detail::CallLock lock{*state.runtime};
  const std::size_t bytes = symmetric_bytes(*state.plan, count, size_of_element, names);
  std::vector<const detail::GroupDescription*> groups;
  for (const auto& connection : connections_of(state, names)) groups.push_back(&connection->group);
  return state.shared->allocate(bytes, symmetric_agreement(bytes, names), groups);
}

std::byte* Mesh::allocate_on_device(std::size_t count, std::size_t size_of_element,
                                    std::span<const std::string_view> names) {
  detail::MeshState& state = open_state("allocate_symmetric");
  const detail::CallLock lock{*state.runtime};
  const std::size_t bytes = symmetric_bytes(*state.plan, count, size_of_element, names);
  if (state.device == nullptr)
    throw NoDeviceError{fmt::format("allocate_symmetric cannot allocate device memory: {}",
                                    state.runtime->why_no_device),
                        "use host memory, or a machine with CUDA and NCCL"};
  std::vector<std::shared_ptr<detail::Connection>> members = connections_of(state, names);
  std::erase_if(members, [](const auto& connection) { return connection->size() == 1; });
  return state.device->allocate_symmetric(bytes, symmetric_agreement(bytes, names), members);
}

const std::string& Mesh::why_no_device() const { return state().runtime->why_no_device; }

std::string Mesh::why_no_shared_memory() const { return state().shared->why_not_on_node(); }

const MeshPlan& Mesh::plan() const { return *state().plan; }
Rank Mesh::rank() const { return state().runtime->rank; }
std::int64_t Mesh::size() const { return state().plan->world_size(); }
Coordinate Mesh::coordinate(std::string_view dimension) const {
  return plan().coordinate(rank(), dimension);
}
const Placement& Mesh::placement() const { return state().control->placement; }
bool Mesh::is_spare() const { return state().control->is_spare(); }
bool Mesh::is_closed() const { return state_ == nullptr || state_->runtime->is_closed; }

}  // namespace rankmesh
