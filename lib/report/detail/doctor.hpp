// SPDX-License-Identifier: BSD-3-Clause
// The rules of doctor, and what they share.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/layout/rank_set.hpp"
#include "report/doctor.hpp"

namespace rankmesh::report::detail {

using Findings = std::vector<Finding>;
using RankList = std::vector<std::int64_t>;
using Members = std::vector<const RankFacts*>;

/// The ranks that have the same value.
struct Variant {
  std::string value;
  RankList ranks;
};
/// Returns the distinct values of the ranks, and the ranks of each; the rarest value first.
std::vector<Variant> variants(const Examination& job,
                              const std::function<std::string(const RankFacts&)>& value);
/// Returns the ranks of all variants except the most frequent one.
RankList outliers(const std::vector<Variant>& variants);
/// Returns "rank 2: 4; ranks 0-1,3: 8".
std::string to_string(const std::vector<Variant>& variants);

/// Returns the ranks that meet a condition.
RankList ranks_with(const Examination& job, const std::function<bool(const RankFacts&)>& condition);
/// Returns the ranks of each node, as pointers to their facts.
std::map<std::int32_t, Members> by_node(const Examination& job);

/// Returns the ranks of members.
RankList ranks_of(const Members& members);

/// Returns the cores that members are allowed to use.
std::set<int> cores_of(const Members& members);

/// Returns the ranks as a set.
RankSet set_of(const RankList& ranks);
/// Returns the number of nodes.
std::size_t node_count(const Examination& job);

/// Returns "rank 3" or "ranks 0-1,3".
std::string ranks_text(const RankList& ranks);
/// Returns the value of a variable; nothing if it is not set or empty.
std::optional<std::string> variable(const RankFacts& facts, const std::string& name);
/// Returns the items of a list that is separated by commas; empty items are left out.
std::vector<std::string> items(const std::string& list);
/// Returns a size such as "64 KiB" or "1.5 GiB", or "unlimited" for -1.
std::string size_text(std::int64_t bytes);
/// Returns the finding of a rule.
Finding finding(const Rule& rule, RankList ranks, std::string what, std::string why,
                std::string fix);

/// Returns the finding that the ranks have different values; nothing if all have the same one.
/// @param what  what differs, in front of the values.
Findings differing(const Rule& rule, const std::vector<Variant>& values, std::string_view what,
                   std::string why, std::string fix);

/// Returns a finding for each text, about the ranks of which it says what is wrong.
Findings findings_of(const Rule& rule, const std::map<std::string, RankList>& wrong,
                     const std::string& why, const std::string& fix);

// One function per rule; doctor.cpp lists them.
Findings check_launcher(const Rule& rule, const Examination& job);
Findings check_library_versions(const Rule& rule, const Examination& job);
Findings check_library_paths(const Rule& rule, const Examination& job);
Findings check_nccl_settings(const Rule& rule, const Examination& job);
Findings check_variables(const Rule& rule, const Examination& job);
Findings check_node_variables(const Rule& rule, const Examination& job);
Findings check_limits_differ(const Rule& rule, const Examination& job);
Findings check_locked_memory(const Rule& rule, const Examination& job);
Findings check_descriptors(const Rule& rule, const Examination& job);
Findings check_address_space(const Rule& rule, const Examination& job);
Findings check_shared_memory(const Rule& rule, const Examination& job);
Findings check_ptrace_scope(const Rule& rule, const Examination& job);
Findings check_oversubscription(const Rule& rule, const Examination& job);
Findings check_bindings(const Rule& rule, const Examination& job);
Findings check_threads(const Rule& rule, const Examination& job);
Findings check_core_counts(const Rule& rule, const Examination& job);
Findings check_clocks(const Rule& rule, const Examination& job);
Findings check_host_names(const Rule& rule, const Examination& job);
Findings check_latency(const Rule& rule, const Examination& job);
Findings check_bandwidth(const Rule& rule, const Examination& job);
Findings check_shared_devices(const Rule& rule, const Examination& job);
Findings check_missing_devices(const Rule& rule, const Examination& job);
Findings check_device_kinds(const Rule& rule, const Examination& job);
Findings check_device_ecc(const Rule& rule, const Examination& job);
Findings check_visible_devices(const Rule& rule, const Examination& job);
Findings check_device_driver(const Rule& rule, const Examination& job);
Findings check_nccl_interface(const Rule& rule, const Examination& job);
Findings check_nccl_network(const Rule& rule, const Examination& job);
Findings check_nccl_hca(const Rule& rule, const Examination& job);
Findings check_rdma_disabled(const Rule& rule, const Examination& job);
Findings check_spanning_groups(const Rule& rule, const Examination& job);

}  // namespace rankmesh::report::detail
