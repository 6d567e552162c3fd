// SPDX-License-Identifier: BSD-3-Clause
// Opens a mesh.
#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "detail/communicators.hpp"
#include "detail/job_facts.hpp"
#include "detail/launcher_hint.hpp"
#include "detail/local_plan.hpp"
#include "detail/open_board.hpp"
#include "detail/open_record.hpp"
#include "detail/state.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/mesh/libraries.hpp"

namespace rankmesh::detail {
namespace {

// Returns the communicator of the mesh: a duplicate of the program's, or a split with the new rank
// of each process as the key.
mpi::Communicator communicator_of_mesh(const mpi::CommunicatorView& world,
                                       const std::vector<std::int64_t>& reorder) {
  if (reorder.empty()) return mpi::duplicate(world);
  const auto own = std::ranges::find(reorder, std::int64_t{world.rank()});
  return mpi::split(world, 0, static_cast<int>(own - reorder.begin()));
}

// Verifies that all ranks pass the same mesh, gathers their facts, and duplicates the program's
// communicator. rankmesh has no communicator yet, so the ranks exchange their messages on the
// program's.
std::shared_ptr<ControlPlane> make_control(const mpi::CommunicatorView& world,
                                           const LocalPlan& local, const std::string& description,
                                           const MeshOptions& options,
                                           std::optional<JobFacts>& facts) {
  const RankNames names = local.plan ? RankNames{local.plan} : RankNames{};
  const RankNames names_in_world = options.reorder.empty() ? names : RankNames{};
  WaitContext context{.board = {},
                      .log = std::make_shared<const Log>(options.log, local.settings.log),
                      .stall = local.stall};
  WaitMonitor monitor{world, WaitMonitor::Audience::shared, names_in_world};
  monitor.set_context(std::make_shared<const WaitContext>(context));
  const Deadline deadline{local.timeout};
  try {
    agreement_on(local, world.size(), description, options)
        .verify(world, monitor, "the mesh's first collective", deadline);
  } catch (const MismatchError& mismatch) {
    // If the description is invalid in the same way on all ranks, they throw the SpecError itself.
    if (local.failure && mismatch.is_common()) std::rethrow_exception(local.failure);
    throw;
  }
  // The functions of MPI that create communicators block for ever if a rank is missing. So all
  // ranks first wait for each other with a deadline. Afterwards the program may receive any message
  // on its communicator.
  facts = gather_facts({world, &monitor, local.timeout}, local.devices.agreement.summary(),
                       options.reorder);
  auto control = std::make_shared<ControlPlane>(communicator_of_mesh(world, options.reorder), names,
                                                local.timeout, std::move(context));
  control->key_of_mesh = facts->key_of_mesh;
  return control;
}

// Warns on rank 0 if the rules were measured on another machine.
void warn_of_other_machine(const ControlPlane& control, const RouteTable& routes,
                           const Placement& placement) {
  if (control.rank() != Rank{0}) return;
  const std::string here = routes_machine(placement.cores(placement.node(control.rank())).value());
  for (const RouteMachine& machine : routes.machines())
    if (machine.text != here)
      control.context()->log->report(
          fmt::format("{}: the routes were measured on another machine ({}) than this one ({}): "
                      "measure them here with meshinfo tune",
                      machine.origin, machine.text, here));
}

// The devices of the groups of this rank.
struct OpenDevices {
  std::unique_ptr<DeviceBackend> backend;
  std::string why_not;
  std::vector<std::unique_ptr<DeviceTransport>> transports;  // one per group; null if it has none
  std::vector<bool> has_split;                               // per family
};

// Chooses the device of every rank. Collective over the mesh.
OpenDevices choose_devices(const DeviceProbe& probe, const JobFacts& facts,
                           const std::shared_ptr<ControlPlane>& control) {
  if (!facts.agree_on_devices) control->all().verify("the choice of devices", probe.agreement);
  auto [backend, why_not] = probe.open(facts.placement, control);
  return {std::move(backend), std::move(why_not), {}, {}};
}

// Opens the device transports of the groups. Collective over the mesh.
void open_transports(OpenDevices& devices, const MeshPlan& plan, const ConnectionPlan& connections,
                     const std::vector<GroupCommunicator>& comms,
                     const std::shared_ptr<ControlPlane>& control) {
  devices.transports.resize(connections.groups.size());
  devices.has_split.resize(plan.families().size());
  if (devices.backend == nullptr) return;
  std::vector<bool> asked;
  for (std::size_t f = 0; f < plan.families().size(); ++f) asked.push_back(!plan.options(f).lazy);
  std::vector<DeviceCandidate> candidates;
  for (std::size_t g = 0; g < connections.groups.size(); ++g)
    candidates.push_back({&connections.groups[g], comms[g].view, nullptr});
  const DeviceOpening wanted =
      device_opening(plan, control->rank(), candidates, asked, devices.has_split);
  OpenedDevices opened = devices.backend->open(wanted, control->all());
  for (std::size_t i = 0; i < opened.groups.size(); ++i)
    devices.transports[wanted.groups[i].order] = std::move(opened.groups[i]);
  for (std::size_t i = 0; i < opened.children.size(); ++i)
    if (wanted.splits[i].child)
      devices.transports[wanted.splits[i].child->order] = std::move(opened.children[i]);
  devices.has_split = std::move(asked);
}

std::shared_ptr<MeshRuntime> make_runtime(const std::shared_ptr<ControlPlane>& control,
                                          const Placement& placement, const MeshOptions& options,
                                          OpenDevices& devices,
                                          std::shared_ptr<NodeMemory> node_memory,
                                          RouteTable routes, const Settings& settings) {
  std::string why_no_ranges;
  MeshFacts facts{.rank = control->rank(),
                  .local_rank = placement.local_rank(control->rank()),
                  .deadline = options.deadline,
                  .why_no_device = std::move(devices.why_not),
                  .ranges = CallRanges::find(settings.nvtx, why_no_ranges),
                  .node_memory = std::move(node_memory),
                  .routes = std::move(routes)};
  if (!why_no_ranges.empty() && control->rank() == Rank{0})
    control->log(LogLevel::warning,
                 fmt::format("RANKMESH_NVTX=1 has no effect: {}", why_no_ranges));
  if (devices.backend == nullptr)
    return std::make_shared<MeshRuntime>(std::move(facts), control, nullptr);
  facts.device = devices.backend->device();
  auto runtime = std::make_shared<MeshRuntime>(std::move(facts), control, devices.backend->batch());
  if (options.device_deadline) {
    runtime->device_watch = std::make_unique<DeviceWatch>(*options.device_deadline, control);
    NodeBoard& board = control->board();
    runtime->device_calls.publish_oldest(board.device_work(board.own_slot()).oldest);
    devices.backend->watch(
        [weak = std::weak_ptr{runtime}] {
          const auto alive = weak.lock();
          return alive ? alive->device_watch->reason_to_abort(alive->device_calls) : std::string{};
        },
        *options.device_deadline);
  }
  return runtime;
}

// Opens the parts of a mesh on its control communicator. Collective over the mesh; blocks.
std::unique_ptr<MeshState> make_state(LocalPlan local, MeshOptions options,
                                      const std::string& description,
                                      const std::shared_ptr<ControlPlane>& control,
                                      JobFacts facts) {
  const Placement& placement = facts.placement;
  control->open_record(detail::open_record(*control, *local.plan, description, local.settings,
                                           names_of_transports(options)));
  relate_clocks(*control, placement);
  SegmentLayout layout{*local.plan, ranks_of_node(placement, control->rank()).size()};
  std::shared_ptr<NodeMemory> memory;
  std::vector<NodeSegment> segments =
      make_node_segments(*control, placement,
                         {board_request(placement, control->rank()),
                          SharedMemoryBackend::request(layout, placement, control->rank(),
                                                       local.settings.single_copy, memory)});
  // Try to read the memory of the others now. Their results arrive while the board is opened.
  if (segments[1].segment) (void)memory->advance();
  control->open_board(detail::open_board(placement, std::move(segments[0]), *control),
                      local.settings.watchdog.value_or(true));
  auto shared = std::make_unique<SharedMemoryBackend>(
      std::move(layout), placement, std::move(segments[1]), std::move(memory), control);
  warn_of_other_machine(*control, *local.routes, placement);

  ConnectionPlan plan{*local.plan, control->rank(), placement, control->timeout};
  OpenDevices devices = choose_devices(local.devices, facts, control);
  std::vector<GroupCommunicator> comms;
  for (const GroupDescription& group : plan.groups)
    comms.push_back(make_communicator(group, control->comm()));
  open_transports(devices, *local.plan, plan, comms, control);
  const auto runtime = make_runtime(control, placement, options, devices, shared->readable_memory(),
                                    std::move(*local.routes), local.settings);

  std::vector<TransportGroup> groups_of_transports;
  for (std::size_t g = 0; g < plan.groups.size(); ++g)
    groups_of_transports.push_back(
        transport_group(plan.groups[g], comms[g].view, *control, options));
  std::vector<ProgramTransports> own =
      open_program_transports(options, groups_of_transports, control->all());

  std::vector<std::shared_ptr<Connection>> connections;
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    Recordings recordings = recordings_of(
        *control, plan.groups[g], devices.backend != nullptr || !options.transports.empty());
    HostTransports host =
        host_transports(plan.groups[g], comms[g].view, options, *control,
                        shared->make_transport(plan.groups[g], recordings.host), std::move(own[g]));
    connections.push_back(std::make_shared<Connection>(
        std::move(plan.groups[g]), std::move(comms[g].owned), comms[g].view, std::move(host),
        std::move(devices.transports[g]), std::move(recordings)));
  }
  std::map<std::string, std::unique_ptr<GroupCoordinator>, std::less<>> named;
  for (const auto& [name, group] : plan.coordinators)
    named.emplace(name, GroupAccess::make(name, connections[group], runtime));

  const auto created =
      std::ranges::count_if(connections, [](const auto& c) { return c->owns_communicator(); });
  control->log(LogLevel::info,
               fmt::format("rank {} opened mesh {}: {} communicators, {} nodes",
                           control->rank().value(), description, created, placement.node_count()));
  return std::unique_ptr<MeshState>{new MeshState{
      .plan = local.plan,
      .options = std::move(options),
      .control = control,
      .placement = std::move(facts.placement),
      .shared = std::move(shared),
      .device = std::move(devices.backend),
      .runtime = runtime,
      .connections = std::move(connections),
      .named = std::move(named),
      .has_split_devices = std::move(devices.has_split),
      .mark{description, control->comm().size(), local.plan->describe(control->rank())}}};
}

}  // namespace

std::unique_ptr<MeshState> open_mesh(MPI_Comm comm, MeshOptions options,
                                     const std::string& description,
                                     const std::function<MeshSpec()>& parse) {
  const mpi::CommunicatorView world{comm};
  LocalPlan local = plan_locally(world.size(), options, parse);
  std::optional<JobFacts> facts;
  const auto control = make_control(world, local, description, options, facts);
  warn_of_launcher(*control);
  try {
    return make_state(std::move(local), std::move(options), description, control,
                      std::move(*facts));
  } catch (const MismatchError&) {
    throw;  // every rank throws it
  } catch (const TimeoutError&) {
    throw;  // the others have been told, or are missing
  } catch (const Error& error) {
    control->leave_by_exception(error.message());
    throw;
  } catch (const std::exception& error) {
    control->leave_by_exception(error.what());
    throw;
  }
}

}  // namespace rankmesh::detail
