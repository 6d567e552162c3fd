// SPDX-License-Identifier: BSD-3-Clause
// Opens a mesh.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/detail/misspelt.hpp"
#include "detail/communicators.hpp"
#include "detail/job_facts.hpp"
#include "detail/launcher_hint.hpp"
#include "detail/local_plan.hpp"
#include "detail/open_loss_link.hpp"
#include "detail/open_record.hpp"
#include "detail/opening_once.hpp"
#include "detail/state.hpp"
#include "mpi/detail/job_end.hpp"
#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/mesh/routes_machine.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {
namespace {

// Throws if MPI does not allow this thread to call it.
void require_thread_of_mpi() {
  int level = MPI_THREAD_SINGLE;
  int is_main = 0;
  mpi::check(MPI_Query_thread(&level), "MPI_Query_thread");
  mpi::check(MPI_Is_thread_main(&is_main), "MPI_Is_thread_main");
  if (is_main == 0 && level < MPI_THREAD_SERIALIZED)
    throw UsageError{"a mesh is opened in a thread that may not call MPI",
                     "open it in the thread that initialised MPI, or pass ThreadLevel::serialized "
                     "or multiple to the Environment or to run()"};
}

// Returns the communicator of the mesh: a duplicate of the program's, or a split with the new rank
// of each process as the key.
mpi::Communicator communicator_of_mesh(const mpi::CommunicatorView& world,
                                       const std::vector<std::int64_t>& reorder) {
  if (reorder.empty()) return mpi::duplicate(world);
  const auto own = std::ranges::find(reorder, std::int64_t{world.rank()});
  return mpi::split(world, 0, static_cast<int>(own - reorder.begin()));
}

// Brings all ranks together: lets them agree on the mesh, gathers their facts, and
// duplicates the program's communicator, on which they exchange their messages until then.
std::shared_ptr<ControlPlane> make_control(const mpi::CommunicatorView& world,
                                           std::uint64_t opening, LocalPlan& local,
                                           const std::string& description,
                                           const MeshOptions& options, NextMesh* next) {
  const RankNames names = local.plan ? RankNames{local.plan} : RankNames{};
  // The others wait for this rank until its exception has destroyed the mesh before. Then it is
  // lost, and they go on without it.
  if (next != nullptr && local.failure) std::rethrow_exception(local.failure);
  auto control = std::make_shared<ControlPlane>(
      world, opening, options.reorder.empty() ? names : RankNames{}, local.timeout, local.stall,
      std::make_shared<const Log>(options.log, local.settings.log));
  const Deadline first_question{local.timeout / 4};  // a wait asks after twice this time
  try {
    control->all().agree("the mesh's first collective",
                         agreement_on(local, world.size(), description, options));
  } catch (const MismatchError& mismatch) {
    // If the description is invalid in the same way on all ranks, they throw the SpecError itself.
    if (local.failure && mismatch.is_common()) std::rethrow_exception(local.failure);
    throw;
  }
  // The functions of MPI that create communicators block for ever if a rank is missing. So all
  // ranks first wait for each other with a deadline. Afterwards the program may receive any message
  // on its communicator.
  gather_facts(*control, local.devices, options.reorder, first_question);
  const auto create = [&] {
    std::vector<int> all(static_cast<std::size_t>(world.size()));
    std::iota(all.begin(), all.end(), 0);
    return create_bounded(
        *control, control->losses_before, all,
        [world, reorder = options.reorder] { return communicator_of_mesh(world, reorder); });
  };
  // It is older than the others; see Mesh::next().
  if (options.survive) control->reserve = next != nullptr ? std::move(next->reserve) : create();
  control->move_to(create(), names);
  return control;
}

// Warns on rank 0, once per process, of variables whose names are probably misspelt.
void warn_of_misspelt(const ControlPlane& control) {
  static std::atomic<bool> has_warned{false};
  if (control.rank() != Rank{0} || has_warned.exchange(true)) return;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text{*variable};
    const std::string name{text.substr(0, text.find('='))};
    if (const std::string meant = meant_setting(name); !meant.empty())
      control.log()->report(fmt::format(
          "the environment variable {} is not known, and ignored; did you mean {}?", name, meant));
  }
}

// Warns on rank 0 if the rules were measured on another machine.
void warn_of_other_machine(const ControlPlane& control, const RouteTable& routes) {
  if (control.rank() != Rank{0}) return;
  const std::int32_t node = control.placement.node(control.rank());
  const std::string here = routes_machine(control.placement.cores(node).value());
  for (const RouteMachine& machine : routes.machines())
    if (machine.text != here)
      control.log()->report(
          fmt::format("{}: the routes were measured on another machine ({}) than this one ({}): "
                      "measure them here with meshinfo tune",
                      machine.origin, machine.text, here));
}

// Makes the board of this rank's node in its segment. If the ranks of the node share no memory, the
// board holds this rank alone.
std::shared_ptr<NodeBoard> open_board(NodeSegment segment, const ControlPlane& control) {
  if (segment.error)
    control.log(LogLevel::warning,
                fmt::format("the ranks of this node cannot see what the others wait for: {}",
                            segment.error->message()));
  std::vector<Rank> ranks{control.rank()};
  std::shared_ptr<SharedSegment> owner;
  if (segment.segment) {
    ranks = ranks_of_node(control);
    owner = std::make_shared<SharedSegment>(std::move(segment.segment));
  }
  std::byte* const memory = owner == nullptr ? nullptr : owner->data();
  const auto is_spare = [&](Rank rank) {
    return rank.value() >= control.names.plan()->world_size();
  };
  const auto spares = static_cast<std::size_t>(std::ranges::count_if(ranks, is_spare));
  return std::make_shared<NodeBoard>(memory, std::move(owner),
                                     std::exchange(segment.descriptor, -1), std::move(ranks),
                                     control.rank(), control.recorder(), spares);
}

// Shares the memory of the node: opens the board in it, and makes what gives groups their memory.
std::unique_ptr<SharedMemoryBackend> share_memory(const std::shared_ptr<ControlPlane>& control,
                                                  const MeshPlan& plan, const Settings& settings,
                                                  bool may_survive) {
  const std::size_t ranks = ranks_of_node(*control).size();
  SegmentLayout layout{plan, ranks};
  std::shared_ptr<NodeMemory> memory;
  std::vector<NodeSegment> segments = make_node_segments(
      NodeMessages{*control},
      {{"the creation of the node's board", ranks == 1 ? 0 : NodeBoard::bytes(ranks)},
       SharedMemoryBackend::request(layout, *control, settings.single_copy, memory)});
  // Try to read the memory of the others now. Their results arrive while the board is opened.
  if (segments[1].segment) (void)memory->advance();
  // From now on, the others can see that this rank is lost.
  if (may_survive) mpi::record_survivor();
  control->open_board(open_board(std::move(segments[0]), *control),
                      may_survive || settings.watchdog.value_or(true));
  return std::make_unique<SharedMemoryBackend>(std::move(layout), std::move(segments[1]),
                                               std::move(memory), control);
}

// Makes the connections of this rank, without device transports. Collective over the mesh.
std::vector<std::shared_ptr<Connection>> make_connections(ConnectionPlan& plan,
                                                          const MeshOptions& options,
                                                          ControlPlane& control,
                                                          const SharedMemoryBackend& shared,
                                                          bool has_devices) {
  std::vector<GroupCommunicator> comms;
  std::vector<TransportGroup> groups;
  for (const GroupDescription& group : plan.groups) {
    comms.push_back(make_communicator(group, control));
    groups.push_back(transport_group(group, comms.back().view, control, options));
  }
  std::vector<ProgramTransports> own = open_program_transports(options, groups, control.all());
  std::vector<std::shared_ptr<Connection>> connections;
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    GroupDescription& group = plan.groups[g];
    Recordings recordings =
        recordings_of(control, group, has_devices || !options.transports.empty());
    SharedTransport memory = shared.make_transport(group, recordings.host);
    connections.push_back(connect(std::move(group), std::move(comms[g]), options, control,
                                  std::move(memory), std::move(own[g]), std::move(recordings)));
  }
  return connections;
}

std::shared_ptr<MeshRuntime> make_runtime(const std::shared_ptr<ControlPlane>& control,
                                          RouteTable routes, const MeshOptions& options,
                                          const Settings& settings, DeviceBackend* device) {
  auto runtime = std::make_shared<MeshRuntime>(control, std::move(routes),
                                               device == nullptr ? nullptr : device->batch());
  runtime->rank = control->rank();
  runtime->local_rank = control->placement.local_rank(control->rank());
  if (options.deadline) runtime->limit_calls(*options.deadline);
  std::string why_no_ranges;
  if (auto ranges = CallRanges::find(settings.nvtx, why_no_ranges))
    runtime->show_calls(std::move(*ranges));
  if (!why_no_ranges.empty() && control->rank() == Rank{0})
    control->log(LogLevel::warning,
                 fmt::format("RANKMESH_NVTX=1 has no effect: {}", why_no_ranges));
  if (device == nullptr) return runtime;
  runtime->device = device->device();
  if (options.device_deadline) {
    runtime->device_watch = std::make_unique<DeviceWatch>(*options.device_deadline, control);
    NodeBoard& board = control->board();
    runtime->device_calls.publish_oldest(board.own().device.oldest);
    device->watch(
        [weak = std::weak_ptr{runtime}] {
          const auto alive = weak.lock();
          return alive ? alive->device_watch->reason_to_abort(alive->device_calls) : std::string{};
        },
        *options.device_deadline);
  }
  return runtime;
}

// Begins to watch for losses, if the mesh may survive. Collective over the mesh.
void watch_losses(ControlPlane& control, const MeshOptions& options, const std::string& description,
                  const std::shared_ptr<const MeshPlan>& plan, std::optional<std::int64_t> step) {
  if (!options.survive) return;
  if (control.board().ranks() != ranks_of_node(control))
    throw UnsupportedError{
        fmt::format("the mesh {} may not survive lost ranks, because the ranks of a node share no "
                    "memory",
                    description),
        "the log says why they cannot: correct that, or leave MeshOptions::survive empty"};
  std::unique_ptr<LossLink> link;
  if (control.placement.node_count() > 1)
    link = open_loss_link(control, *options.survive, description, plan);
  control.losses =
      LossWatch::create(control.shared_board(), control.names, description, step, control.comm(),
                        exclude_after_of(*options.survive), std::move(link));
}

// The members go on without the spare ranks. Collective over the members.
void leave_spares(ControlPlane& control, const MeshPlan& plan) {
  if (control.spares() == 0) return;
  std::vector<int> members(static_cast<std::size_t>(plan.world_size()));
  std::iota(members.begin(), members.end(), 0);
  const auto create = [all = control.comm(), members] {
    return mpi::create_group(all, members, 0);
  };
  control.leave_spares(create_bounded(control, control.losses_before, members, create));
}

// The groups of a mesh, and what they need.
struct OpenGroups {
  std::unique_ptr<DeviceBackend> device{};
  std::shared_ptr<MeshRuntime> runtime{};
  std::vector<std::shared_ptr<Connection>> connections{};
  std::map<std::string, std::unique_ptr<GroupCoordinator>, std::less<>> named{};
  std::vector<bool> has_split{};
};

// A spare rank has none. Collective over the others; blocks.
OpenGroups open_groups(LocalPlan& local, const MeshOptions& options,
                       const std::shared_ptr<ControlPlane>& control,
                       const SharedMemoryBackend& shared) {
  const MeshPlan& plan = *local.plan;
  OpenGroups groups;
  if (control->is_spare()) {
    groups.runtime =
        make_runtime(control, std::move(*local.routes), options, local.settings, nullptr);
    return groups;
  }
  leave_spares(*control, plan);
  ConnectionPlan wanted = plan_connections(plan, *control);
  if (!local.devices.is_agreed)
    control->all().agree("the choice of devices", local.devices.agreement);
  auto [device, why_no_device] = local.devices.open(control);
  groups.device = std::move(device);
  groups.connections =
      make_connections(wanted, options, *control, shared, groups.device != nullptr);
  groups.has_split.resize(plan.families().size());
  if (groups.device != nullptr) {
    std::vector<bool> asked;
    for (std::size_t f = 0; f < plan.families().size(); ++f) asked.push_back(!plan.options(f).lazy);
    open_devices(*groups.device, plan, control->rank(), groups.connections, asked, groups.has_split,
                 control->all());
  }
  groups.runtime =
      make_runtime(control, std::move(*local.routes), options, local.settings, groups.device.get());
  groups.runtime->why_no_device = std::move(why_no_device);
  for (const auto& [name, group] : wanted.coordinators)
    groups.named.emplace(name, GroupAccess::make(name, groups.connections[group], groups.runtime));
  return groups;
}

// If ranks of a mesh that may survive are lost now, the program gets a mesh without groups. Its
// next use throws the loss, and then the program can call next().
OpenGroups open_groups_or_lose(LocalPlan& local, const MeshOptions& options,
                               const std::shared_ptr<ControlPlane>& control,
                               const SharedMemoryBackend& shared, const NextMesh* next) {
  try {
    return open_groups(local, options, control, shared);
  } catch (const Error& error) {
    if (next != nullptr || control->losses == nullptr) throw;
    LossWatch::look_after(error, control->losses_before);
    if (control->losses->round() == 0) throw;
    return {.runtime =
                make_runtime(control, std::move(*local.routes), options, local.settings, nullptr)};
  }
}

// Opens the parts of a mesh, in the order of MeshState. Collective over the mesh; blocks.
std::unique_ptr<MeshState> make_state(LocalPlan local, MeshOptions options,
                                      const std::string& description,
                                      const std::shared_ptr<ControlPlane>& control,
                                      const NextMesh* next) {
  const MeshPlan& plan = *local.plan;
  control->open_record(
      open_record(*control, plan, description, local.settings, names_of_transports(options)));
  relate_clocks(*control);
  auto shared = share_memory(control, plan, local.settings, options.survive.has_value());
  watch_losses(*control, options, description, local.plan,
               next == nullptr ? std::nullopt : next->step);
  warn_of_misspelt(*control);
  warn_of_other_machine(*control, *local.routes);
  OpenGroups groups = open_groups_or_lose(local, options, control, *shared, next);
  groups.runtime->node_memory = shared->readable_memory();
  const auto created = std::ranges::count_if(groups.connections,
                                             [](const auto& c) { return c->owns_communicator(); });
  control->log(LogLevel::info, fmt::format("rank {} opened mesh {}: {} communicators, {} nodes",
                                           control->rank().value(), description, created,
                                           control->placement.node_count()));
  auto state = std::unique_ptr<MeshState>{
      new MeshState{.plan = local.plan,
                    .spec = std::move(*local.spec),
                    .options = std::move(options),
                    .control = control,
                    .shared = std::move(shared),
                    .device = std::move(groups.device),
                    .runtime = std::move(groups.runtime),
                    .connections = std::move(groups.connections),
                    .named = std::move(groups.named),
                    .has_split_devices = std::move(groups.has_split),
                    .mark{description, control->comm().size(),
                          control->is_spare() ? "spare" : plan.describe(control->rank())}}};
  control->calls_of = [mesh = state.get()](std::uint64_t scope) { return mesh->calls_of(scope); };
  return state;
}

}  // namespace

std::unique_ptr<MeshState> open_mesh(MPI_Comm comm, MeshOptions options,
                                     const std::string& description,
                                     const std::function<MeshSpec()>& parse, NextMesh* next) {
  (void)mpi::is_job_ending();  // this rank does not go on while another thread ends the process
  const mpi::CommunicatorView world{comm};
  require_thread_of_mpi();
  const OpeningOnce opening{comm};
  LocalPlan local =
      plan_locally(world.size(), options, parse, next == nullptr ? nullptr : &next->plan);
  const auto control = make_control(world, opening.number(), local, description, options, next);
  warn_of_launcher(*control);
  if (options.survive && next == nullptr) warn_of_deaths(*control);
  try {
    return make_state(std::move(local), std::move(options), description, control, next);
  } catch (const MismatchError&) {
    throw;  // every rank throws it
  } catch (const TimeoutError&) {
    throw;  // the others have been told, or are missing
  } catch (const LostRanks&) {
    throw;  // every survivor throws it
  } catch (...) {
    control->leave_by_exception(current_reasons().message);
    throw;
  }
}

}  // namespace rankmesh::detail
