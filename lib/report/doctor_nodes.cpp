// SPDX-License-Identifier: BSD-3-Clause
// Rules of doctor about nodes: the cores of the ranks, clocks, host names, and the connections
// between nodes.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "detail/doctor.hpp"

namespace rankmesh::report::detail {
namespace {

constexpr double clock_tolerance = 0.1;  // seconds

bool is_oversubscribed(const Members& members) {
  const auto cores = cores_of(members);
  return !cores.empty() && members.size() > cores.size();
}

// The ranks of a node, grouped by the set of cores that they are allowed to use.
std::map<std::vector<int>, Members> by_cores(const Members& members) {
  std::map<std::vector<int>, Members> sets;
  for (const RankFacts* facts : members)
    if (!facts->cores.empty()) sets[facts->cores].push_back(facts);
  return sets;
}

// The ranks that share cores: those with equal sets that are too small for all of them, and those
// with different sets that have cores in common. Ranks with one set that is large enough are bound
// to a socket, or not bound at all.
Members sharing(const Members& members) {
  const auto sets = by_cores(members);
  std::set<const RankFacts*> found;
  for (auto a = sets.begin(); a != sets.end(); ++a) {
    if (a->second.size() > a->first.size()) found.insert(a->second.begin(), a->second.end());
    for (auto b = std::next(a); b != sets.end(); ++b) {
      std::vector<int> common;
      std::ranges::set_intersection(a->first, b->first, std::back_inserter(common));
      if (common.empty()) continue;
      found.insert(a->second.begin(), a->second.end());
      found.insert(b->second.begin(), b->second.end());
    }
  }
  Members result{found.begin(), found.end()};
  std::ranges::sort(result, {}, &RankFacts::rank);
  return result;
}

std::string bindings_text(const Members& members) {
  std::vector<std::string> texts;
  for (const auto& [cores, ranks] : by_cores(members)) {
    const std::vector<Rank> list(cores.begin(), cores.end());
    texts.push_back(fmt::format("{}: core{} {}", ranks_text(ranks_of(ranks)),
                                cores.size() == 1 ? "" : "s", RankSet::of(list).to_string(60)));
  }
  return first_of(texts, "; ...");
}

// The number of threads that OMP_NUM_THREADS asks for at the outer level; 0 if it is not set.
std::int64_t threads_of(const RankFacts& facts) {
  const std::string text = variable(facts, "OMP_NUM_THREADS").value_or("");
  std::int64_t threads = 0;
  std::from_chars(text.data(), text.data() + text.size(), threads);
  return threads;
}

std::vector<Found> find_oversubscription(const Examination& job) {
  return of_each(by_node(job), [](const auto& node) -> std::vector<Found> {
    const Members& members = node.second;
    if (!is_oversubscribed(members)) return {};
    return of_members(
        members, fmt::format("{} ranks on host {} share {}", members.size(), members.front()->host,
                             count_text(cores_of(members).size(), "core")));
  });
}

// On a node with too few cores, ranks share cores regardless of their binding.
std::vector<Found> find_overlapping_bindings(const Examination& job) {
  return of_each(by_node(job), [](const auto& node) -> std::vector<Found> {
    if (is_oversubscribed(node.second)) return {};
    return of_members(sharing(node.second), [](const Members& shared) {
      return fmt::format("ranks of host {} are bound to the same cores: {}", shared.front()->host,
                         bindings_text(shared));
    });
  });
}

std::vector<Found> find_threads(const Examination& job) {
  return of_each(by_node(job), [](const auto& node) -> std::vector<Found> {
    std::int64_t threads = 0;
    Members crowded;
    for (const RankFacts* facts : node.second) {
      threads += std::max<std::int64_t>(1, threads_of(*facts));
      if (threads_of(*facts) > std::ssize(facts->cores)) crowded.push_back(facts);
    }
    if (!crowded.empty()) {
      const RankFacts& first = *crowded.front();
      return of_members(
          crowded,
          fmt::format("OMP_NUM_THREADS={} on rank {}, which is allowed to use {}",
                      threads_of(first), first.rank, count_text(first.cores.size(), "core")));
    }
    const auto cores = std::ssize(cores_of(node.second));
    const bool asks = std::ranges::any_of(
        node.second, [](const RankFacts* facts) { return threads_of(*facts) > 1; });
    if (!asks || threads <= cores) return {};
    return of_members(node.second,
                      fmt::format("OMP_NUM_THREADS makes {} threads on the {} cores of host {}",
                                  threads, cores, node.second.front()->host));
  });
}

std::vector<Found> find_core_counts(const Examination& job) {
  const auto counts = variants(
      job, [](const RankFacts& facts) { return fmt::format("{} cores", facts.cores.size()); });
  return differing(counts, "ranks are allowed to use different numbers of cores:");
}

// The clock of each node is measured by its first rank; the finding names all ranks of the node.
// It is compared with the median, because rank 0, with which all are measured, may be the one
// whose clock is wrong. Of two nodes nobody knows which one is right, so rank 0's counts.
std::vector<Found> find_clocks(const Examination& job) {
  const std::map<std::int32_t, Members> nodes = by_node(job);
  Members leaders;
  for (const auto& [node, members] : nodes)
    std::ranges::copy_if(members, std::back_inserter(leaders),
                         [](const RankFacts* facts) { return facts->clock.has_value(); });
  if (leaders.empty()) return {};
  const auto offset = [](const RankFacts* leader) { return leader->clock->offset; };
  Members sorted = leaders;
  std::ranges::stable_sort(sorted, {}, offset);
  const RankFacts* usual = sorted[(sorted.size() - 1) / 2];
  if (sorted.size() == 2) usual = leaders.front();
  return of_each(leaders, [&](const RankFacts* leader) -> std::vector<Found> {
    const double ahead = offset(leader) - offset(usual);
    const double error = leader->clock->error + (leader == usual ? 0 : usual->clock->error);
    if (std::abs(ahead) - error <= clock_tolerance) return {};
    return of_members(
        nodes.at(leader->node),
        fmt::format("the clock of host {} is {:.3f} s {} that of host {}", leader->host,
                    std::abs(ahead), ahead > 0 ? "ahead of" : "behind", usual->host));
  });
}

std::vector<Found> find_host_names(const Examination& job) {
  std::map<std::string, RankList> names;
  for (const RankFacts& facts : job.ranks)
    for (const std::string& name : facts.unresolved_hosts) names[name].push_back(facts.rank);
  return of_each(names, [](const auto& entry) -> std::vector<Found> {
    const auto& [name, ranks] = entry;
    return {{ranks, fmt::format("the host name {} cannot be resolved", name), name}};
  });
}

// What is measured of the connections between nodes, and when a value is bad.
struct Quantity {
  double LinkFacts::*value;
  bool is_small_good;
  bool (*is_bad)(double value, double usual);
  std::string (*text)(double value);
  const char* what;
};

constexpr Quantity latency{
    &LinkFacts::latency, true,
    [](double value, double usual) { return value > std::max(3 * usual, usual + 50e-6); },
    [](double value) { return fmt::format("{:.1f} us", 1e6 * value); }, "long latency"};

constexpr Quantity bandwidth{
    &LinkFacts::bandwidth, false, [](double value, double usual) { return value < 0.5 * usual; },
    [](double value) { return fmt::format("{:.3g} GB/s", value / 1e9); }, "low bandwidth"};

// For an even number of values, the result is the better one of the two middle values: if half of
// the connections are slow, they do not count as usual.
double median(std::vector<double> values, bool is_small_good) {
  const std::size_t index = (values.size() - (is_small_good ? 1 : 0)) / 2;
  std::ranges::sort(values);
  return values[index];
}

const RankFacts& end_of(const Examination& job, const RankFacts& from) {
  return job.ranks[static_cast<std::size_t>(from.link->to)];
}

// The host that is an end of all these links, if there are several links and one such host.
std::string common_host(const Examination& job, const Members& links) {
  if (links.size() < 2) return {};
  const auto ends = [&](const RankFacts* from) {
    return std::set<std::string>{from->host, end_of(job, *from).host};
  };
  std::set<std::string> common = ends(links.front());
  for (const RankFacts* from : links) {
    const auto others = ends(from);
    std::erase_if(common, [&](const std::string& host) { return !others.contains(host); });
  }
  return common.size() == 1 ? *common.begin() : std::string{};
}

// The links that have a bad value. Nothing if there are fewer than three, since two links say
// nothing about what is usual.
template <const Quantity& quantity>
std::vector<Found> find_links(const Examination& job) {
  Members links = members_with(job, [](const RankFacts& facts) { return facts.link.has_value(); });
  if (links.size() < 3) return {};
  std::vector<double> values;
  for (const RankFacts* from : links) values.push_back((*from->link).*quantity.value);
  const double usual = median(values, quantity.is_small_good);
  std::erase_if(links, [&](const RankFacts* from) {
    return !quantity.is_bad((*from->link).*quantity.value, usual);
  });
  if (links.empty()) return {};
  std::set<std::int64_t> ends;
  std::vector<std::string> texts;
  for (const RankFacts* from : links) {
    ends.insert({from->rank, from->link->to});
    texts.push_back(fmt::format("{} to {}: {}", from->host, end_of(job, *from).host,
                                quantity.text((*from->link).*quantity.value)));
  }
  std::string text = fmt::format("{}: {} (the median of all connections is {})", quantity.what,
                                 first_of(texts, "; and {} others"), quantity.text(usual));
  if (const std::string host = common_host(job, links); !host.empty())
    text += fmt::format("; host {} is an end of each of them", host);
  return {{{ends.begin(), ends.end()}, std::move(text)}};
}

using enum Severity;

constexpr Rule rules_of_nodes[] = {
    {"oversubscription", warning,
     "ranks that wait poll, and take the cores from the ranks that they wait for",
     "start fewer ranks per node, or reserve more cores (sbatch --cpus-per-task, docker run "
     "--cpuset-cpus); for a test, let ranks yield: mpirun --mca mpi_yield_when_idle 1",
     find_oversubscription},
    {"overlapping-bindings", warning,
     "ranks on one core take turns, so each of them is at most half as fast, and all others wait "
     "for them",
     "let the launcher bind the ranks, and start only one job per node: mpirun --bind-to core, "
     "srun "
     "--cpu-bind=cores; remove taskset, numactl and KMP_AFFINITY from the job script",
     find_overlapping_bindings},
    {"threads", warning,
     "threads on one core take turns, and OpenMP waits for the last thread at the end of each loop",
     "set OMP_NUM_THREADS to the number of cores of a rank, or bind ranks to more cores (srun "
     "--cpus-per-task, mpirun --map-by slot:PE=N)",
     find_threads},
    {"core-counts", note, "the ranks with fewer cores may be slower, and the others wait for them",
     "if the nodes are equal, start the same number of ranks on each, with the same binding",
     find_core_counts},
    {"clock-offset", warning,
     "times in the logs of different hosts cannot be compared; make, rsync and checkpoints take "
     "new "
     "files for old ones; certificates and Kerberos tickets are refused",
     "start chrony or ntpd on the host, and check what it synchronises with: chronyc tracking",
     find_clocks},
    {"host-names", warning,
     "launchers and libraries that connect by name fail, or wait for the time-out of DNS, which "
     "looks like a hang at the start",
     "add {} to /etc/hosts of all nodes, or to DNS; in a container, start it with --hostname and "
     "--add-host",
     find_host_names},
    {"latency", warning, "each collective over several nodes is as slow as its slowest connection",
     "check the cable, the switch port and the driver of this host (ethtool, ibstat), and whether "
     "MPI chose another network there (ompi_info, UCX_TLS, FI_PROVIDER); then run doctor without "
     "this host",
     find_links<latency>},
    {"bandwidth", warning,
     "each large collective over several nodes is as slow as its slowest connection",
     "check the speed of the network card (ethtool, ibstat: a link may have negotiated a lower "
     "speed), the PCIe slot (lspci -vv), and whether another job uses this host; then run doctor "
     "without this host",
     find_links<bandwidth>},
};

}  // namespace

std::span<const Rule> node_rules() { return rules_of_nodes; }

}  // namespace rankmesh::report::detail
