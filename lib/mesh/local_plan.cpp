// SPDX-License-Identifier: BSD-3-Clause
#include "detail/local_plan.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/launcher_hint.hpp"
#include "detail/state.hpp"
#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/mpi/environment.hpp"
#include "rankmesh/spec/routes.hpp"
#include "rankmesh/version.hpp"

namespace rankmesh::detail {
namespace {

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
  if (!options.device_deadline) options.device_deadline = local.settings.device_deadline;
  if (options.device_deadline)
    require_positive(*options.device_deadline, "MeshOptions::device_deadline");
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

// A wait that ends by its time limit excludes nobody.
void require_exclusion_in_time(const MeshOptions& options, Deadline::Duration timeout) {
  const auto after = options.survive->exclude_after;
  if (!after) return;
  const Deadline::Duration limit = std::min(timeout, options.deadline.value_or(timeout));
  if (!(after->count() >= 0.5 && *after < limit))
    throw UsageError{fmt::format("Survival::exclude_after must be from 0.5 s to less than the time "
                                 "limit of waits, which is {} s, got {} s",
                                 limit.count(), after->count()),
                     "choose it longer than a rank computes, and raise the options timeout and "
                     "deadline"};
}

// Returns how many ranks of the communicator the mesh may take.
std::int64_t ranks_for(const MeshSpec& spec, std::int64_t ranks, const MeshOptions& options) {
  const bool has_spares = options.survive && options.survive->policy == ShrinkPolicy::spare;
  return has_spares ? std::min(ranks, spec.world_size().value_or(ranks)) : ranks;
}

// Throws unless the mesh that remains after a loss can be computed.
void require_survivable(const MeshPlan& plan, std::int64_t spares, bool is_first,
                        const Survival& survival) {
  const ShrinkPolicy policy = survival.policy;
  if (!(survival.silence.count() >= 0.2 && survival.silence.count() <= 1e6))
    throw UsageError{fmt::format("Survival::silence must be from 0.2 s to 1,000,000 s, got {} s",
                                 survival.silence.count()),
                     "leave it at its default"};
  if (policy == ShrinkPolicy::spare && spares == 0 && is_first)
    throw UsageError{"MeshOptions::survive has the policy spare, but the mesh takes all ranks",
                     "start more ranks than the mesh has, and give the sizes of all its "
                     "dimensions; or use drop_replica or compact"};
  if (plan.world_size() + spares > 1)
    (void)shrink(plan, std::array{Rank{0}}, policy, std::max(spares, std::int64_t{1}));
}

// The options of all ranks are compared by this text.
std::string reorder_text(const std::vector<std::int64_t>& reorder) {
  if (reorder.empty()) return "none";
  const std::string_view bytes{reinterpret_cast<const char*>(reorder.data()),
                               reorder.size() * sizeof(std::int64_t)};
  return fmt::format("{} (hash {})", fmt::join(reorder | std::views::take(16), ","),
                     to_string(hash_bytes(bytes)).substr(0, 8));
}

std::string survival_text(const Survival& survival) {
  return fmt::format("{}, silence {} s, {}", to_string(survival.policy), survival.silence.count(),
                     survival.exclude_after
                         ? fmt::format("exclusion after {} s", survival.exclude_after->count())
                         : "no exclusion");
}

// The default rules belong to the release, which is compared too.
std::string routes_text(const RouteTable& routes) {
  std::string text;
  for (const RouteRule& rule : routes.rules())
    if (rule.source != RouteSource::builtin) text += rule.to_string() + "; ";
  return text + "then the default rules";
}

}  // namespace

LocalPlan plan_locally(int ranks, MeshOptions& options, const std::function<MeshSpec()>& parse,
                       const MeshPlan* given) {
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
    local.devices = probe_devices(options);
    const MeshSpec& spec = local.spec.emplace(parse());
    MeshPlan plan =
        given != nullptr ? *given : plan_with_hint(spec, ranks_for(spec, ranks, options));
    for (const auto& [name, of_name] : options.names) plan.set_options(name, of_name);
    local.routes = routes_of(spec, plan, options.routes, names_of_transports(options));
    if (options.survive) {
      require_survivable(plan, ranks - plan.world_size(), given == nullptr, *options.survive);
      require_exclusion_in_time(options, local.timeout);
    }
    local.plan = std::make_shared<const MeshPlan>(std::move(plan));
  } catch (...) {
    local.failure = std::current_exception();
    local.message = current_reasons().message;
  }
  if (!options.check) options.check = false;
  if (local.failure) local.timeout = timeout_of_failure(options);
  return local;
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
  agreement.add("MPI library", mpi::library_text());
  agreement.add("timeout", fmt::format("{} s", local.timeout.count()));
  agreement.add("option deadline",
                options.deadline ? fmt::format("{} s", options.deadline->count()) : "none");
  agreement.add(
      "option device_deadline",
      options.device_deadline ? fmt::format("{} s", options.device_deadline->count()) : "none");
  agreement.add("option check", options.check.value_or(false) ? "on" : "off");
  agreement.add("option survive", options.survive ? survival_text(*options.survive) : "none");
  agreement.add("option devices", fmt::format("{}{}", static_cast<int>(options.devices),
                                              options.share_devices ? ", shared" : ""));
  agreement.add("option reorder", reorder_text(options.reorder));
  if (local.plan) agreement.add("options of families", local.plan->options_text());
  if (local.routes) agreement.add("routes", routes_text(*local.routes));
  agreement.add("option transports",
                fmt::format("{}", fmt::join(std::views::keys(options.transports), ",")));
  agreement.add("option largest_count", fmt::format("{}", options.largest_count));
  if (local.failure) agreement.fail(local.message);
  return agreement;
}

}  // namespace rankmesh::detail
