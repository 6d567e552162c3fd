// SPDX-License-Identifier: BSD-3-Clause
// Opens a mesh.
#include <algorithm>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/launcher_hint.hpp"
#include "detail/open_board.hpp"
#include "detail/open_record.hpp"
#include "detail/state.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/base/settings.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/mpi/node.hpp"
#include "rankmesh/spec/routes.hpp"
#include "rankmesh/transport/local_transport.hpp"
#include "rankmesh/transport/mpi_transport.hpp"
#include "rankmesh/version.hpp"
#include "rankmesh/wait/monitored_barrier.hpp"
#include "transport/detail/checked_transport.hpp"
#include "transport/detail/compared_transport.hpp"

namespace rankmesh::detail {
namespace {

// The plan that this rank made of the description, or the reason why it has none.
struct LocalPlan {
  std::shared_ptr<const MeshPlan> plan;
  std::optional<RouteTable> routes;
  Deadline::Duration timeout{600};
  Deadline::Duration stall{30};
  Settings settings;
  std::exception_ptr failure;
  std::string message;
};

// The timeout of a rank whose options or environment may be invalid. The rank has to wait for the
// others, which also report the failure.
Deadline::Duration timeout_of_failure(const MeshOptions& options) {
  if (options.timeout && options.timeout->count() > 0) return *options.timeout;
  try {
    return default_timeout();
  } catch (const UsageError&) {
    return Deadline::Duration{600};
  }
}

// Replaces the options that are empty by the values of the environment.
void apply_settings(LocalPlan& local, MeshOptions& options) {
  local.timeout = timeout_of_failure(options);
  local.settings = Settings::from_environment();  // also where the options replace all of it
  local.timeout = options.timeout.value_or(local.timeout);
  require_positive(local.timeout, "MeshOptions::timeout");
  if (!options.deadline) options.deadline = local.settings.deadline;
  if (options.deadline) require_positive(*options.deadline, "MeshOptions::deadline");
  if (!options.check) options.check = local.settings.check;
  local.stall = options.stall.value_or(local.settings.stall.value_or(local.stall));
  require_positive(local.stall, "MeshOptions::stall");
}

// Throws unless every process takes one rank of the mesh.
void require_permutation(const std::vector<std::int64_t>& reorder, int ranks) {
  if (reorder.empty()) return;
  std::vector<bool> is_taken(static_cast<std::size_t>(ranks));
  if (reorder.size() != is_taken.size())
    throw UsageError{
        fmt::format("MeshOptions::reorder has {} processes for {} ranks", reorder.size(), ranks),
        "list one process for each rank, as Arrangement::slots does"};
  for (std::size_t r = 0; r < reorder.size(); ++r) {
    if (reorder[r] < 0 || reorder[r] >= ranks || is_taken[static_cast<std::size_t>(reorder[r])])
      throw UsageError{fmt::format("MeshOptions::reorder gives rank {} to process {}, which does "
                                   "not exist or has another rank",
                                   r, reorder[r]),
                       "list each process once"};
    is_taken[static_cast<std::size_t>(reorder[r])] = true;
  }
}

// The options of all ranks are compared by this text.
std::string reorder_text(const std::vector<std::int64_t>& reorder) {
  if (reorder.empty()) return "none";
  const std::string_view bytes{reinterpret_cast<const char*>(reorder.data()),
                               reorder.size() * sizeof(std::int64_t)};
  return fmt::format("{} (hash {})", fmt::join(reorder | std::views::take(16), ","),
                     to_string(hash_bytes(bytes)).substr(0, 8));
}

LocalPlan plan_locally(int ranks, MeshOptions& options, const std::function<MeshSpec()>& parse) {
  LocalPlan local;
  try {
    apply_settings(local, options);
    if (options.largest_count < 1 || options.largest_count > std::numeric_limits<int>::max())
      throw UsageError{fmt::format("MeshOptions::largest_count must be from 1 to 2^31-1, got {}",
                                   options.largest_count),
                       "leave it at its default"};
    require_permutation(options.reorder, ranks);
    for (const auto& one : transports_of_every_mesh()) options.transports.insert(one);
    check_transports(options);
    const MeshSpec spec = parse();
    MeshPlan plan = plan_with_hint(spec, ranks);
    for (const auto& [name, of_name] : options.names) plan.set_options(name, of_name);
    local.routes = routes_of(spec, plan, options.routes, names_of_transports(options));
    local.plan = std::make_shared<const MeshPlan>(std::move(plan));
  } catch (const Error& error) {
    local.failure = std::current_exception();
    local.message = error.message();
  } catch (const std::exception& error) {
    local.failure = std::current_exception();
    local.message = error.what();
  }
  if (!options.check) options.check = false;
  if (local.failure) local.timeout = timeout_of_failure(options);
  return local;
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  mpi::check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  return {text, static_cast<std::size_t>(length)};
}

Agreement agreement_on(const LocalPlan& local, int ranks, const std::string& description,
                       const MeshOptions& options) {
  Agreement agreement;
  if (local.plan) {
    const Hash128 digest = local.plan->digest();
    agreement.add("mesh", digest,
                  fmt::format("{} (digest {})", description, to_string(digest).substr(0, 8)));
  }
  agreement.add("size of the world", fmt::format("{}", ranks));
  agreement.add("rankmesh", version_string());
  agreement.add("MPI library", mpi_library());
  agreement.add("timeout", fmt::format("{} s", local.timeout.count()));
  agreement.add("option deadline",
                options.deadline ? fmt::format("{} s", options.deadline->count()) : "none");
  agreement.add("option check", options.check.value_or(false) ? "on" : "off");
  agreement.add("option devices", fmt::format("{}{}", static_cast<int>(options.devices),
                                              options.share_devices ? ", shared" : ""));
  agreement.add("option reorder", reorder_text(options.reorder));
  if (local.plan) agreement.add("options of families", local.plan->options_text());
  if (local.routes) agreement.add("routes", local.routes->to_string());
  agreement.add("option transports",
                fmt::format("{}", fmt::join(std::views::keys(options.transports), ",")));
  agreement.add("option largest_count", fmt::format("{}", options.largest_count));
  if (local.failure) agreement.fail(local.message);
  return agreement;
}

// Returns the communicator of the mesh: a duplicate of the program's, or a split with the new rank
// of each process as the key.
mpi::Communicator communicator_of_mesh(const mpi::CommunicatorView& world,
                                       const std::vector<std::int64_t>& reorder) {
  if (reorder.empty()) return mpi::duplicate(world);
  const auto own = std::ranges::find(reorder, std::int64_t{world.rank()});
  return mpi::split(world, 0, static_cast<int>(own - reorder.begin()));
}

// Verifies that all ranks pass the same mesh, and duplicates the program's communicator. rankmesh
// has no communicator yet, so the ranks exchange their messages on the program's.
std::shared_ptr<ControlPlane> make_control(const mpi::CommunicatorView& world,
                                           const LocalPlan& local, const std::string& description,
                                           const MeshOptions& options) {
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
  monitor.receive_leftovers(
      WaitPoint::of_all(world.size(), "the creation of the control communicator"),
      Deadline{local.timeout});
  return std::make_shared<ControlPlane>(communicator_of_mesh(world, options.reorder), names,
                                        local.timeout, std::move(context));
}

// Gives the mesh a number that differs from those of other meshes.
void agree_on_key(ControlPlane& control) {
  std::random_device random;
  std::uint64_t key = std::uint64_t{random()} << 32 | random();
  mpi::check(MPI_Bcast(&key, 1, MPI_UINT64_T, 0, control.comm().native()), "MPI_Bcast");
  control.key_of_mesh = key;
}

// Runs the splits of the plan. Returns the communicators of this rank's groups; groups
// of one rank have none.
std::vector<mpi::Communicator> make_communicators(const ConnectionPlan& plan,
                                                  const mpi::CommunicatorView& world) {
  std::vector<mpi::Communicator> comms(plan.groups.size());
  for (const ConnectionPlan::Split& split : plan.splits) {
    auto comm = mpi::split(world, split.colour.value_or(MPI_UNDEFINED), split.key);
    if (split.group) comms[*split.group] = std::move(comm);
  }
  return comms;
}

// The devices of the groups of this rank.
struct OpenDevices {
  std::unique_ptr<DeviceBackend> backend;
  std::string why_not;
  std::vector<std::unique_ptr<DeviceTransport>> transports;  // one per group; null if it has none
  std::vector<bool> has_split;                               // per family
};

OpenDevices open_devices(const MeshPlan& plan, const ConnectionPlan& connections,
                         const std::vector<mpi::CommunicatorView>& comms,
                         const MeshOptions& options, const Placement& placement,
                         const std::shared_ptr<ControlPlane>& control) {
  auto [backend, why_not] = open_device_backend(options, placement, control);
  OpenDevices devices{std::move(backend), std::move(why_not), {}, {}};
  devices.transports.resize(comms.size());
  devices.has_split.resize(plan.families().size());
  if (devices.backend == nullptr) return devices;
  std::vector<bool> asked;
  for (std::size_t f = 0; f < plan.families().size(); ++f) asked.push_back(!plan.options(f).lazy);
  std::vector<DeviceCandidate> candidates;
  for (std::size_t g = 0; g < comms.size(); ++g)
    candidates.push_back({&connections.groups[g], comms[g], nullptr});
  const DeviceOpening wanted =
      device_opening(plan, control->rank(), candidates, asked, devices.has_split);
  OpenedDevices opened = devices.backend->open(wanted, control->all());
  for (std::size_t i = 0; i < opened.groups.size(); ++i)
    devices.transports[wanted.groups[i].order] = std::move(opened.groups[i]);
  for (std::size_t i = 0; i < opened.children.size(); ++i)
    if (wanted.splits[i].child)
      devices.transports[wanted.splits[i].child->order] = std::move(opened.children[i]);
  devices.has_split = std::move(asked);
  return devices;
}

std::shared_ptr<MeshRuntime> make_runtime(const std::shared_ptr<ControlPlane>& control,
                                          const Placement& placement, const MeshOptions& options,
                                          OpenDevices& devices, RouteTable routes,
                                          const Settings& settings) {
  std::string why_no_ranges;
  MeshFacts facts{.rank = control->rank(),
                  .local_rank = placement.local_rank(control->rank()),
                  .deadline = options.deadline,
                  .why_no_device = std::move(devices.why_not),
                  .ranges = CallRanges::find(settings.nvtx, why_no_ranges),
                  .routes = std::move(routes)};
  if (!why_no_ranges.empty() && control->rank() == Rank{0})
    control->log(LogLevel::warning,
                 fmt::format("RANKMESH_NVTX=1 has no effect: {}", why_no_ranges));
  if (devices.backend == nullptr)
    return std::make_shared<MeshRuntime>(std::move(facts), control, nullptr);
  facts.device = devices.backend->device();
  return std::make_shared<MeshRuntime>(std::move(facts), control, devices.backend->batch());
}

}  // namespace

HostTransports host_transports(const GroupDescription& group, const mpi::CommunicatorView& comm,
                               const MeshOptions& options, const ControlPlane& control,
                               SharedTransport shared, ProgramTransports own) {
  HostTransports transports;
  ProgramTransport::Meeting meeting{.shared = shared.transport.get()};
  if (group.ranks.size() == 1) {
    transports.list.push_back(std::make_unique<LocalTransport>());
    return transports;
  }
  if (options.check.value_or(false)) {
    if (shared.transport != nullptr)
      shared.transport->leave_messages_to_others(
          "the option check compares messages on both members, over MPI");
    auto checked = std::make_unique<CheckedTransport>(
        comm,
        CheckedTransport::Options{.largest_count = options.largest_count,
                                  .has_deadline = options.deadline.has_value()},
        GroupMembers{group.ranks, control.names, group.names,
                     GroupKey{hash_bytes(group.identity + group.ranks.to_string()).low,
                              control.key_of_mesh}},
        shared.transport.get());
    transports.comparison = checked.get();
    meeting.exchange = checked->exchange();
    transports.list.push_back(std::move(checked));
  } else if (shared.transport != nullptr) {
    transports.list.push_back(
        std::make_unique<ComparedTransport>(comm, options.largest_count, *shared.transport));
  } else {
    auto of_mpi = std::make_unique<MpiTransport>(comm, options.largest_count);
    meeting.mpi = of_mpi.get();
    transports.list.push_back(std::move(of_mpi));
  }
  if (shared.transport != nullptr)
    transports.list.push_back(std::move(shared.transport));
  else
    transports.absent.emplace("shm", std::move(shared.why_not));
  add_program_transports(transports, std::move(own), meeting, comm, options);
  return transports;
}

namespace {

// Opens the parts of a mesh on its control communicator. Collective over the mesh; blocks.
std::unique_ptr<MeshState> make_state(LocalPlan local, MeshOptions options,
                                      const std::string& description,
                                      const std::shared_ptr<ControlPlane>& control) {
  monitored_barrier(
      control->comm(), control->monitor,
      WaitPoint::of_all(control->comm().size(), "the creation of the groups' communicators"),
      control->deadline());
  agree_on_key(*control);
  control->open_record(detail::open_record(*control, *local.plan, description, local.settings,
                                           names_of_transports(options)));
  mpi::Node node;
  Placement placement = mpi::discover_nodes(control->comm(), &node);
  relate_clocks(*control, placement, node);
  control->open_board(detail::open_board(placement, node, *control),
                      local.settings.watchdog.value_or(true));
  auto shared = std::make_unique<SharedMemoryBackend>(local.plan, placement, std::move(node),
                                                      control, local.settings.single_copy);

  ConnectionPlan plan{*local.plan, control->rank(), placement, control->timeout};
  std::vector<mpi::Communicator> owned = make_communicators(plan, control->comm());
  std::vector<mpi::CommunicatorView> comms;
  for (const mpi::Communicator& c : owned)
    comms.push_back(c ? c.view() : mpi::CommunicatorView{MPI_COMM_SELF});
  OpenDevices devices = open_devices(*local.plan, plan, comms, options, placement, control);
  const auto runtime =
      make_runtime(control, placement, options, devices, std::move(*local.routes), local.settings);

  std::vector<TransportGroup> groups_of_transports;
  for (std::size_t g = 0; g < comms.size(); ++g)
    groups_of_transports.push_back(transport_group(plan.groups[g], comms[g], *control, options));
  std::vector<ProgramTransports> own =
      open_program_transports(options, groups_of_transports, control->all());

  std::vector<std::shared_ptr<Connection>> connections;
  for (std::size_t g = 0; g < comms.size(); ++g) {
    Recordings recordings = recordings_of(
        *control, plan.groups[g], devices.backend != nullptr || !options.transports.empty());
    HostTransports host =
        host_transports(plan.groups[g], comms[g], options, *control,
                        shared->make_transport(plan.groups[g], recordings.host), std::move(own[g]));
    connections.push_back(std::make_shared<Connection>(
        std::move(plan.groups[g]), std::move(owned[g]), comms[g], std::move(host),
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
      .placement = std::move(placement),
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
  const auto control = make_control(world, local, description, options);
  warn_of_launcher(*control);
  try {
    return make_state(std::move(local), std::move(options), description, control);
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
