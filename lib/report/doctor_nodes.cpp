// SPDX-License-Identifier: BSD-3-Clause
// Rules of doctor about nodes: clocks, host names, the connections between nodes, and the place of
// groups on nodes.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/doctor.hpp"
#include "detail/parts.hpp"
#include "rankmesh/layout/placement.hpp"

namespace rankmesh::report::detail {
namespace {

constexpr double clock_tolerance = 0.1;  // seconds

const RankFacts& rank_of(const Examination& job, std::int64_t rank) {
  return job.ranks[static_cast<std::size_t>(rank)];
}

// For an even number of values, the result is the better one of the two middle values: if half of
// the connections are slow, they do not count as usual.
double median(std::vector<double> values, bool is_small_good) {
  const std::size_t index = (values.size() - (is_small_good ? 1 : 0)) / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The ranks that have measured a link.
std::vector<const RankFacts*> linked(const Examination& job) {
  std::vector<const RankFacts*> result;
  for (const RankFacts& facts : job.ranks)
    if (facts.link) result.push_back(&facts);
  return result;
}

// The host that is an end of all these links, if there are several links and one such host.
std::string common_host(const Examination& job, const std::vector<const RankFacts*>& links) {
  if (links.size() < 2) return {};
  const auto ends = [&](const RankFacts* from) {
    return std::set<std::string>{from->host, rank_of(job, from->link->to).host};
  };
  std::set<std::string> common = ends(links.front());
  for (const RankFacts* from : links) {
    const auto others = ends(from);
    std::erase_if(common, [&](const std::string& host) { return !others.contains(host); });
  }
  return common.size() == 1 ? *common.begin() : std::string{};
}

struct Links {
  std::vector<const RankFacts*> list;
  std::function<std::string(double)> text;  // of a value
  double LinkFacts::*value;
  double usual;  // the median
};

std::string links_text(const Examination& job, const Links& links) {
  constexpr std::size_t most = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, links.list.size()); ++i) {
    const RankFacts& from = *links.list[i];
    text += fmt::format("{}{} to {}: {}", i == 0 ? "" : "; ", from.host,
                        rank_of(job, from.link->to).host, links.text((*from.link).*links.value));
  }
  if (links.list.size() > most) text += fmt::format("; and {} others", links.list.size() - most);
  text += fmt::format(" (the median of all connections is {})", links.text(links.usual));
  if (const std::string host = common_host(job, links.list); !host.empty())
    text += fmt::format("; host {} is an end of each of them", host);
  return text;
}

RankList ends_of(const std::vector<const RankFacts*>& links) {
  std::set<std::int64_t> ranks;
  for (const RankFacts* from : links) {
    ranks.insert(from->rank);
    ranks.insert(from->link->to);
  }
  return {ranks.begin(), ranks.end()};
}

std::vector<double> values_of(const std::vector<const RankFacts*>& links,
                              double LinkFacts::*value) {
  std::vector<double> result;
  for (const RankFacts* from : links) result.push_back((*from->link).*value);
  return result;
}

// The links that have at least one bad value. Nothing if there are fewer than three, since two
// links say nothing about what is usual.
// @param is_small_good  Whether the smaller one of two values is better.
// @param is_bad         is_bad(value, usual)
Links bad_links(const Examination& job, double LinkFacts::*value, bool is_small_good,
                std::function<std::string(double)> text,
                const std::function<bool(double, double)>& is_bad) {
  Links bad{{}, std::move(text), value, 0};
  const auto links = linked(job);
  if (links.size() < 3) return bad;
  bad.usual = median(values_of(links, value), is_small_good);
  std::ranges::copy_if(links, std::back_inserter(bad.list), [&](const RankFacts* from) {
    return is_bad((*from->link).*value, bad.usual);
  });
  return bad;
}

// The family of the dimension that varies fastest in the first view; null if it has none.
const GroupFamily* fastest_family(const MeshPlan& plan) {
  const Layout::Dimension* dimension = fastest(plan.views().front());
  if (dimension == nullptr) return nullptr;
  const auto found = std::ranges::find(plan.families(), dimension->name, &GroupFamily::name);
  return found == plan.families().end() ? nullptr : &*found;
}

}  // namespace

// The clock of each node is measured by its first rank; the finding names all ranks of the node.
Findings check_clocks(const Rule& rule, const Examination& job) {
  Findings findings;
  for (const RankFacts& leader : job.ranks) {
    if (!leader.clock || std::abs(leader.clock->offset) - leader.clock->error <= clock_tolerance)
      continue;
    auto ranks = ranks_with(job, [&](const RankFacts& facts) { return facts.node == leader.node; });
    findings.push_back(finding(
        rule, std::move(ranks),
        fmt::format("the clock of host {} is {:.3f} s {} that of host {}", leader.host,
                    std::abs(leader.clock->offset),
                    leader.clock->offset > 0 ? "ahead of" : "behind", job.ranks.front().host),
        "times in the logs of different hosts cannot be compared; make, rsync and checkpoints take "
        "new files for old ones; certificates and Kerberos tickets are refused",
        "start chrony or ntpd on the host, and check what it synchronises with: chronyc tracking"));
  }
  return findings;
}

Findings check_host_names(const Rule& rule, const Examination& job) {
  std::map<std::string, RankList> names;
  for (const RankFacts& facts : job.ranks)
    for (const std::string& name : facts.unresolved_hosts) names[name].push_back(facts.rank);
  Findings findings;
  for (const auto& [name, ranks] : names)
    findings.push_back(
        finding(rule, ranks, fmt::format("the host name {} cannot be resolved", name),
                "launchers and libraries that connect by name fail, or wait for the time-out of "
                "DNS, which looks like a hang at the start",
                fmt::format("add {} to /etc/hosts of all nodes, or to DNS; in a container, start "
                            "it with --hostname and --add-host",
                            name)));
  return findings;
}

Findings check_latency(const Rule& rule, const Examination& job) {
  constexpr double factor = 3;
  constexpr double least_excess = 50e-6;
  const Links slow = bad_links(
      job, &LinkFacts::latency, true, [](double s) { return fmt::format("{:.1f} us", 1e6 * s); },
      [](double latency, double usual) {
        return latency > std::max(factor * usual, usual + least_excess);
      });
  if (slow.list.empty()) return {};
  return {finding(rule, ends_of(slow.list), "long latency: " + links_text(job, slow),
                  "each collective over several nodes is as slow as its slowest connection",
                  "check the cable, the switch port and the driver of this host (ethtool, "
                  "ibstat), and whether MPI chose another network there (ompi_info, UCX_TLS, "
                  "FI_PROVIDER); then run doctor without this host")};
}

Findings check_bandwidth(const Rule& rule, const Examination& job) {
  constexpr double factor = 0.5;
  const Links slow = bad_links(
      job, &LinkFacts::bandwidth, false,
      [](double b) { return fmt::format("{:.3g} GB/s", b / 1e9); },
      [](double bandwidth, double usual) { return bandwidth < factor * usual; });
  if (slow.list.empty()) return {};
  return {finding(rule, ends_of(slow.list), "low bandwidth: " + links_text(job, slow),
                  "each large collective over several nodes is as slow as its slowest connection",
                  "check the speed of the network card (ethtool, ibstat: a link may have "
                  "negotiated a lower speed), the PCIe slot (lspci -vv), and whether another job "
                  "uses this host; then run doctor without this host")};
}

// Only the dimension that varies fastest is meant to stay inside a node.
Findings check_spanning_groups(const Rule& rule, const Examination& job) {
  if (job.plan == nullptr || job.plan->world_size() != static_cast<std::int64_t>(job.ranks.size()))
    return {};
  const GroupFamily* family = fastest_family(*job.plan);
  if (family == nullptr) return {};
  std::vector<std::int32_t> nodes;
  for (const RankFacts& facts : job.ranks) nodes.push_back(facts.node);
  const Placement placement{nodes};
  std::size_t least = job.ranks.size();
  for (const auto& [node, members] : by_node(job)) least = std::min(least, members.size());
  RankList ranks;
  std::int64_t spanning = 0, size = 0;
  for (std::int64_t g = 0; g < family->group_count(); ++g) {
    const RankSet group = family->group(g);
    size = std::max(size, group.size());
    if (placement.nodes_of(group) < 2) continue;
    ++spanning;
    for (std::int64_t i = 0; i < group.size(); ++i) ranks.push_back(group.at(i).value());
  }
  if (spanning == 0 || size > static_cast<std::int64_t>(least)) return {};
  std::ranges::sort(ranks);
  return {finding(
      rule, std::move(ranks),
      fmt::format("{} of {} groups of '{}' span nodes, although {} ranks fit on each node",
                  spanning, family->group_count(), family->name(), size),
      "the fastest dimension usually communicates most, and between nodes each call is many times "
      "slower than inside a node",
      fmt::format("start consecutive ranks on each node (mpirun --map-by slot, srun -m block), and "
                  "a multiple of {} ranks per node",
                  size))};
}

}  // namespace rankmesh::report::detail
