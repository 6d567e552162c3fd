// How a mesh comes to be.
#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "detail/agreement.hpp"
#include "detail/state.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/mpi/node.hpp"
#include "rankmesh/spec/routes.hpp"
#include "rankmesh/transport/local_transport.hpp"
#include "rankmesh/transport/mpi_transport.hpp"
#include "rankmesh/version.hpp"

namespace rankmesh::detail {
namespace {

// What this rank made of the description: a plan, or why there is none.
struct Local {
  std::optional<MeshPlan> plan;
  std::optional<RouteTable> routes;
  Deadline::Duration timeout{600};
  std::exception_ptr failure;
  std::string message;
};

Local plan_locally(int ranks, const MeshOptions& options, const std::function<MeshSpec()>& parse) {
  Local local;
  try {
    local.timeout = options.timeout ? *options.timeout : default_timeout();
    require_positive(local.timeout, "MeshOptions::timeout");
    if (options.deadline) require_positive(*options.deadline, "MeshOptions::deadline");
    if (options.largest_count < 1 || options.largest_count > std::numeric_limits<int>::max())
      throw UsageError{fmt::format("MeshOptions::largest_count is {}", options.largest_count),
                       "it is 1 .. 2^31-1"};
    const MeshSpec spec = parse();
    local.plan = spec.plan(ranks);
    for (const auto& [name, of_name] : options.names) local.plan->set_options(name, of_name);
    local.routes = routes_of(spec, *local.plan, options.routes);
  } catch (const Error& error) {
    local.failure = std::current_exception();
    local.message = error.message();
  } catch (const std::exception& error) {
    local.failure = std::current_exception();
    local.message = error.what();
  }
  if (local.failure && !(local.timeout.count() > 0)) local.timeout = Deadline::Duration{600};
  return local;
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  mpi::check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  return {text, static_cast<std::size_t>(length)};
}

Agreement agreement_on(const Local& local, int ranks, const std::string& description,
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
  agreement.add("option devices", fmt::format("{}{}", static_cast<int>(options.devices),
                                              options.share_devices ? ", shared" : ""));
  if (local.plan) agreement.add("options of names", local.plan->options_text());
  if (local.routes) agreement.add("routes", local.routes->to_string());
  agreement.add("option largest_count", fmt::format("{}", options.largest_count));
  if (local.failure) agreement.fail(local.message);
  return agreement;
}

// MPI's creating calls block for ever where a rank does not come: all ranks meet first, with a
// deadline.
void meet(const mpi::CommunicatorView& comm, WaitMonitor& monitor, const std::string& what,
          const Deadline& deadline) {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Ibarrier(comm.native(), &request), "MPI_Ibarrier");
  WaitPoint step{hash_bytes(what).low, what,
                 std::vector<int>(static_cast<std::size_t>(comm.size()))};
  std::iota(step.members.begin(), step.members.end(), 0);
  monitor.wait({&request, 1}, step, deadline);
}

// The communicator of this rank's group, where a split of all ranks makes one. Whether there is a
// split is the plan's to say; a rank that is not served passes no colour.
mpi::Communicator split(const MeshState& state, const std::optional<GroupIndex>& place,
                        bool takes_part) {
  return takes_part ? mpi::split(state.control.view(), static_cast<int>(place->group),
                                 static_cast<int>(place->rank_in_group.value()))
                    : mpi::split(state.control.view(), MPI_UNDEFINED, 0);
}

void add_coordinator(MeshState& state, const std::string& name,
                     const std::shared_ptr<Channel>& channel) {
  state.named.emplace(name, std::make_unique<GroupCoordinator>(name, channel, state.services));
}

// Of the name that comes first of those that share it.
BatchPlace place_of(const Channel& channel, const MeshState& state) {
  BatchPlace first{std::numeric_limits<int>::max(), 0};
  for (const std::size_t f : channel.families) {
    const std::string& name = state.plan.families()[f].name();
    first = std::min(first, {state.plan.options(f).priority, name == "dp"   ? 2
                                                             : name == "pp" ? 1
                                                                            : 0});
  }
  return first;
}

// One split per name that needs it; names whose groups exist already share their communicators.
void open_name(MeshState& state, std::size_t f) {
  const GroupFamily& family = state.plan.families()[f];
  const GroupOptions& options = state.plan.options(f);
  const auto place = family.find(state.services->rank);
  const RankSet ranks = place ? family.group(place->group) : RankSet{};
  const auto leader = [&](std::size_t number) {
    return (state.plan.leader(f, place->group).value() + static_cast<std::int64_t>(number)) %
           ranks.size();
  };
  std::shared_ptr<Channel> channel;
  if (place) {
    const auto same = std::ranges::find_if(state.channels, [&](const auto& c) {
      return c->ranks == ranks && c->duplicate_key.empty() &&
             state.options_of(*c).can_share(options);
    });
    if (same != state.channels.end()) channel = *same;
  }
  if (state.plan.needs_creation(f)) {
    const bool takes_part = place && ranks.size() > 1 && channel == nullptr;
    auto comm = split(state, place, takes_part);
    if (takes_part) {
      channel = state.add_channel(family.name(), family.name(), ranks, std::move(comm));
      channel->leader = leader(0);
      if (options.timeout) channel->timeout = Deadline::Duration{*options.timeout};
    }
  }
  if (place) {
    if (channel == nullptr)
      channel = state.add_channel(family.name(), family.name(), ranks, {});  // a group of one
    channel->families.push_back(f);
    channel->place = place_of(*channel, state);
    add_coordinator(state, family.name(), channel);
  }
  for (std::size_t k = 0; k < options.duplicates.size() && state.plan.has_communicators(f); ++k) {
    const std::string name = duplicate_name(family.name(), options.duplicates[k]);
    const bool takes_part = place && ranks.size() > 1;
    auto comm = split(state, place, takes_part);
    if (!place) continue;
    auto further = state.add_channel(name, name, ranks, std::move(comm));
    further->leader = leader(k + 1);
    further->timeout = channel->timeout;
    further->families.push_back(f);
    further->place = place_of(*further, state);
    further->duplicate_key = options.duplicates[k];
    add_coordinator(state, name, further);
  }
  if (place && !state.plan.has_communicators(f))  // groups of one rank: nothing to isolate
    for (const std::string& key : options.duplicates)
      add_coordinator(state, duplicate_name(family.name(), key), channel);
}

void open_names(MeshState& state) {
  for (std::size_t f = 0; f < state.plan.families().size(); ++f)
    if (state.plan.families()[f].coverage(state.plan.world_size()) != Coverage::overlapping)
      open_name(state, f);
}

}  // namespace

void MeshState::log(LogLevel level, const std::string& message) const {
  if (services->log) services->log(level, message);
}

std::string duplicate_name(std::string_view name, std::string_view key) {
  return fmt::format("{}[{}]", name, key);
}

const GroupOptions& MeshState::options_of(const Channel& channel) const {
  static const GroupOptions plain;
  return channel.families.empty() ? plain : plan.options(channel.families.front());
}

std::shared_ptr<Channel> MeshState::add_channel(std::string identity, std::string name,
                                                RankSet ranks, mpi::Communicator owned,
                                                mpi::CommunicatorView adopted) {
  auto channel = std::make_shared<Channel>();
  if (owned)
    channel->comm = owned.view();
  else
    channel->comm = adopted ? adopted : mpi::CommunicatorView{MPI_COMM_SELF};
  channel->owned = std::move(owned);
  channel->identity = std::move(identity);
  channel->name = std::move(name);
  channel->ranks = std::move(ranks);
  channel->timeout = timeout;
  channel->nodes = placement.nodes_of(channel->ranks);
  if (channel->ranks.size() == 1)
    channel->transports.push_back(std::make_unique<LocalTransport>());
  else
    channel->transports.push_back(
        std::make_unique<MpiTransport>(channel->comm, options.largest_count));
  channels.push_back(channel);
  return channel;
}

std::unique_ptr<MeshState> open_mesh(MPI_Comm comm, MeshOptions options,
                                     const std::string& description,
                                     const std::function<MeshSpec()>& parse) {
  const mpi::CommunicatorView world{comm};
  const Local local = plan_locally(world.size(), options, parse);
  // Nothing of rankmesh's own exists yet, so the ranks meet on the user's communicator.
  WaitMonitor monitor{world, WaitMonitor::Audience::shared, [&](Rank rank) {
                        return local.plan ? local.plan->describe(rank) : "no mesh";
                      }};
  try {
    agreement_on(local, world.size(), description, options)
        .settle(world, monitor, "the mesh's first collective", Deadline{local.timeout});
  } catch (const MismatchError& mismatch) {
    // A description that is bad in the same way everywhere is the user's error, not a disagreement.
    if (local.failure && mismatch.is_common()) std::rethrow_exception(local.failure);
    throw;
  }

  auto state = std::make_unique<MeshState>(*local.plan, std::move(options), local.timeout);
  MeshServices& services = *state->services;
  services.rank = world.rank();
  services.deadline = state->options.deadline;
  if (services.deadline) ++services.unusual;
  services.log = state->options.log ? state->options.log : log_sink_from_environment();
  services.describe = [plan = state->plan](Rank rank) { return plan.describe(rank); };
  meet(world, monitor, "the making of the control communicator", state->deadline());
  state->control = mpi::duplicate(world);
  services.monitor.emplace(state->control.view(), WaitMonitor::Audience::own, services.describe);
  meet(state->control.view(), *services.monitor, "the making of the groups' communicators",
       state->deadline());
  mpi::Node node;
  state->placement = mpi::discover_nodes(state->control.view(), &node);
  services.local_rank = state->placement.local_rank(services.rank);
  services.routes = *local.routes;
  state->shared = std::make_unique<SharedSide>(*state, std::move(node));
  open_names(*state);
  for (const auto& channel : state->channels) state->shared->give_transport(*channel);
  for (const auto& [name, coordinator] : state->named) coordinator->resolve_routes();
  state->device = open_device_side(*state);
  if (state->device != nullptr) {
    services.begin_batch = [&mesh = *state] { mesh.device->begin_batch(); };
    services.end_batch = [&mesh = *state] { mesh.device->end_batch(mesh.deadline()); };
  }
  const auto created =
      std::ranges::count_if(state->channels, [](const auto& c) { return bool{c->owned}; });
  state->log(LogLevel::info,
             fmt::format("rank {} opened mesh {}: {} communicators, {} nodes", world.rank(),
                         description, created, state->placement.node_count()));
  return state;
}

}  // namespace rankmesh::detail
