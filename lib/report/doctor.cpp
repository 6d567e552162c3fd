// SPDX-License-Identifier: BSD-3-Clause
// The table of rules, and how they are applied.
#include "report/doctor.hpp"

#include <algorithm>

#include "detail/doctor.hpp"

namespace rankmesh::report {
namespace {

using enum Severity;

// docs/doctor.md has the same table, with what to do.
constexpr Rule all_rules[] = {
    {"launcher", error, "a world of one rank although the launcher started several processes",
     detail::check_launcher},
    {"library-versions", error, "ranks load different versions of a library",
     detail::check_library_versions},
    {"library-paths", warning, "ranks load a library from different files",
     detail::check_library_paths},
    {"nccl-settings", error, "a variable of NCCL that must be the same on all ranks differs",
     detail::check_nccl_settings},
    {"variables", warning, "an environment variable differs between ranks",
     detail::check_variables},
    {"node-variables", note, "a variable that names hardware of the node differs between nodes",
     detail::check_node_variables},
    {"limits", warning, "a limit differs between ranks", detail::check_limits_differ},
    {"locked-memory", warning, "RDMA devices exist, but little memory can be locked",
     detail::check_locked_memory},
    {"descriptors", warning, "the limit of open files and connections per process is too low",
     detail::check_descriptors},
    {"address-space", warning, "the address space is limited", detail::check_address_space},
    {"shared-memory", warning, "/dev/shm is missing or too small for the ranks of the node",
     detail::check_shared_memory},
    {"ptrace-scope", note, "processes of the same user are not allowed to trace each other",
     detail::check_ptrace_scope},
    {"oversubscription", warning,
     "a node has more ranks than cores that these ranks are allowed to use",
     detail::check_oversubscription},
    {"overlapping-bindings", warning, "ranks are bound to the same cores", detail::check_bindings},
    {"threads", warning, "OMP_NUM_THREADS asks for more threads than there are cores",
     detail::check_threads},
    {"core-counts", note, "ranks are allowed to use different numbers of cores",
     detail::check_core_counts},
    {"clock-offset", warning, "the clock of a node differs from that of rank 0",
     detail::check_clocks},
    {"host-names", warning, "a host name cannot be resolved", detail::check_host_names},
    {"latency", warning, "a connection between nodes takes much longer than the others",
     detail::check_latency},
    {"bandwidth", warning, "a connection between nodes is much slower than the others",
     detail::check_bandwidth},
    {"shared-device", error, "two ranks use the same device", detail::check_shared_devices},
    {"missing-devices", error, "some ranks have a device and others have none",
     detail::check_missing_devices},
    {"device-kinds", warning, "ranks have devices of different kinds", detail::check_device_kinds},
    {"device-ecc", warning, "error correction is on for some devices and off for others",
     detail::check_device_ecc},
    {"visible-devices", warning, "CUDA_VISIBLE_DEVICES is set on some ranks only",
     detail::check_visible_devices},
    {"device-driver", note, "device nodes exist, but the devices cannot be used",
     detail::check_device_driver},
    {"nccl-interface", error, "NCCL_SOCKET_IFNAME names no network interface",
     detail::check_nccl_interface},
    {"nccl-network", error, "NCCL_NET names a network that does not exist",
     detail::check_nccl_network},
    {"nccl-hca", error, "NCCL_IB_HCA names no RDMA device", detail::check_nccl_hca},
    {"rdma-disabled", note, "RDMA devices exist, but NCCL must not use them",
     detail::check_rdma_disabled},
    {"spanning-groups", warning, "groups of the fastest dimension span nodes without need",
     detail::check_spanning_groups},
};

}  // namespace

std::string_view to_string(Severity severity) {
  switch (severity) {
    case error:
      return "error";
    case warning:
      return "warning";
    case note:
      return "note";
  }
  return "?";
}

std::span<const Rule> doctor_rules() { return all_rules; }

std::vector<Finding> examine(const Examination& job) {
  std::vector<Finding> findings;
  for (const Rule& rule : all_rules)
    for (Finding& found : rule.check(rule, job)) findings.push_back(std::move(found));
  std::ranges::stable_sort(findings, {}, &Finding::severity);
  return findings;
}

bool has_trouble(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const Finding& found) { return found.severity != note; });
}

}  // namespace rankmesh::report
