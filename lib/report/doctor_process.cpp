// SPDX-License-Identifier: BSD-3-Clause
// Rules of doctor about the process: the launcher, the libraries, the variables, the limits, shared
// memory and permissions.
#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/detail/misspelt.hpp"
#include "detail/doctor.hpp"
#include "rankmesh/base/launcher.hpp"

namespace rankmesh::report::detail {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
constexpr std::int64_t least_locked = 1024 * mebibyte;

const LibraryFacts* library_of(const RankFacts& facts, const std::string& name) {
  const auto found = std::ranges::find(facts.libraries, name, &LibraryFacts::name);
  return found == facts.libraries.end() ? nullptr : &*found;
}

std::vector<std::string> library_names(const Examination& job) {
  std::vector<std::string> names;
  for (const RankFacts& facts : job.ranks)
    for (const LibraryFacts& library : facts.libraries)
      if (std::ranges::find(names, library.name) == names.end()) names.push_back(library.name);
  return names;
}

std::vector<Variant> versions_of(const Examination& job, const std::string& name) {
  return variants(job, [&](const RankFacts& facts) {
    const LibraryFacts* library = library_of(facts, name);
    return library == nullptr || library->version.empty() ? "not found" : library->version;
  });
}

enum class Kind : std::uint8_t {
  own,       // set by the launcher, or different on each rank for good reasons
  settings,  // NCCL needs the same value on all ranks
  node,      // names hardware of the node, and may differ between nodes
  job,       // the same on all ranks
};

// Variables that a launcher sets by itself. Of Open MPI's own variables, only OMPI_MCA_... can be
// set by a user; the variables of its run-time environment (orte, prte, ess, pmix) differ between
// ranks.
constexpr std::string_view launcher_prefixes[] = {"OMPI_MCA_orte_",
                                                  "OMPI_MCA_ess",
                                                  "OMPI_MCA_pmix",
                                                  "OMPI_MCA_prte_",
                                                  "OMPI_MCA_shmem_RUN",
                                                  "OMPI_MCA_initial",
                                                  "OMPI_MCA_mpi_oversubs",
                                                  "PMI",
                                                  "SLURM_",
                                                  "MPICH_INTERFACE_HOSTNAME",
                                                  "MPIR_CVAR_CH3_INTERFACE_HOST",
                                                  "RANKMESH_GUARD",
                                                  "RANKMESH_MPIRUN",
                                                  "CUDA_VISIBLE_DEVICES"};

// Job scripts often choose these for each local rank.
constexpr std::string_view node_variables[] = {"NCCL_SOCKET_IFNAME",
                                               "NCCL_IB_HCA",
                                               "UCX_NET_DEVICES",
                                               "OMPI_MCA_btl_tcp_if_include",
                                               "OMPI_MCA_btl_openib_if_include",
                                               "FI_TCP_IFACE",
                                               "FI_SOCKETS_IFACE",
                                               "MPIR_CVAR_OFI_NIC",
                                               "NCCL_TOPO_FILE"};

constexpr std::string_view nccl_settings[] = {"NCCL_ALGO",          "NCCL_PROTO",
                                              "NCCL_NET",           "NCCL_IB_DISABLE",
                                              "NCCL_P2P_DISABLE",   "NCCL_SHM_DISABLE",
                                              "NCCL_BUFFSIZE",      "NCCL_COLLNET_ENABLE",
                                              "NCCL_NVLS_ENABLE",   "NCCL_MIN_NCHANNELS",
                                              "NCCL_MAX_NCHANNELS", "NCCL_NTHREADS",
                                              "NCCL_CROSS_NIC",     "NCCL_LAUNCH_ORDER_IMPLICIT",
                                              "NCCL_NET_PLUGIN",    "NCCL_CUMEM_ENABLE"};

bool contains(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

Kind kind_of(std::string_view name) {
  const bool is_of_launcher =
      std::ranges::any_of(launcher_prefixes,
                          [&](std::string_view prefix) { return name.starts_with(prefix); }) ||
      (name.starts_with("OMPI_") && !name.starts_with("OMPI_MCA_"));
  if (is_of_launcher) return Kind::own;
  if (contains(nccl_settings, name)) return Kind::settings;
  return contains(node_variables, name) ? Kind::node : Kind::job;
}

// The variables of a kind that differ between ranks.
template <Kind kind>
std::vector<Found> differing_variables(const Examination& job) {
  std::set<std::string> names;
  for (const RankFacts& facts : job.ranks)
    for (const auto& [name, value] : facts.variables)
      if (kind_of(name) == kind) names.insert(name);
  return of_each(names, [&](const std::string& name) {
    const auto values = variants(job, [&](const RankFacts& facts) {
      const auto found = facts.variables.find(name);
      if (found == facts.variables.end()) return std::string{"not set"};
      return found->second.empty() ? "''" : found->second;
    });
    return differing(values, fmt::format("{} differs:", name));
  });
}

struct NamedLimit {
  const char* name;
  const char* option;  // of ulimit
  std::int64_t LimitFacts::*value;
  bool is_size;
};
constexpr NamedLimit limits[] = {
    {"locked memory", "-l", &LimitFacts::locked_memory, true},
    {"number of descriptors", "-n", &LimitFacts::descriptors, false},
    {"address space", "-v", &LimitFacts::address_space, true},
};

// Returns the lowest limit of the members, which are not empty.
std::string lowest_of(const Members& members, std::int64_t LimitFacts::*limit) {
  const auto value = [&](const RankFacts* facts) { return facts->limits.*limit; };
  return size_text(value(*std::ranges::min_element(members, {}, value)));
}

std::vector<Found> find_launcher(const Examination& job) {
  const RankFacts& first = job.ranks.front();
  if (first.mpi_library.empty()) return {};  // with --offline, doctor does not join the job
  const auto mismatch = launcher_mismatch(first.world_size, first.mpi_library,
                                          [&](const char* name) { return variable(first, name); });
  if (!mismatch) return {};
  return {{{}, mismatch->message, mismatch->hint}};
}

// Only a job that is started with guards wants to survive deaths.
std::vector<Found> find_end_by_death(const Examination& job) {
  const RankFacts& first = job.ranks.front();
  const auto read = [&](const char* name) { return variable(first, name); };
  if (!read("RANKMESH_GUARD")) return {};
  const bool spans_nodes = std::ranges::any_of(
      job.ranks, [&](const RankFacts& facts) { return facts.node != first.node; });
  const auto end = end_by_death(first.mpi_library, spans_nodes, read);
  if (!end) return {};
  return {{{}, end->message, end->hint}};
}

std::vector<Found> find_library_versions(const Examination& job) {
  return of_each(library_names(job), [&](const std::string& name) {
    return differing(versions_of(job, name), fmt::format("{} differs:", name), name);
  });
}

// Applies only if the versions are equal. Otherwise the other rule has found the difference.
std::vector<Found> find_library_paths(const Examination& job) {
  return of_each(library_names(job), [&](const std::string& name) -> std::vector<Found> {
    if (versions_of(job, name).size() > 1) return {};
    const auto paths = variants(job, [&](const RankFacts& facts) {
      const LibraryFacts* library = library_of(facts, name);
      return library == nullptr ? std::string{} : library->path;
    });
    return differing(paths, fmt::format("{} is loaded from", name));
  });
}

std::vector<Found> find_different_limits(const Examination& job) {
  return of_each(limits, [&](const NamedLimit& limit) {
    const auto values = variants(job, [&](const RankFacts& facts) {
      const std::int64_t value = facts.limits.*limit.value;
      return limit.is_size || value < 0 ? size_text(value) : fmt::format("{}", value);
    });
    return differing(values, fmt::format("the limit of the {} differs:", limit.name), limit.option);
  });
}

std::vector<Found> find_locked_memory(const Examination& job) {
  const auto low = members_with(job, [](const RankFacts& facts) {
    return !facts.rdma_devices.empty() && facts.limits.locked_memory >= 0 &&
           facts.limits.locked_memory < least_locked;
  });
  return of_members(low, [](const Members& members) {
    return fmt::format("only {} of memory can be locked, but there are RDMA devices",
                       lowest_of(members, &LimitFacts::locked_memory));
  });
}

// TCP needs a descriptor for each rank on another node; RDMA does not.
std::vector<Found> find_few_descriptors(const Examination& job) {
  constexpr std::int64_t least = 256;
  const auto needed = [&](const RankFacts& facts) {
    return facts.rdma_devices.empty() ? std::max(least, 64 + std::ssize(job.ranks)) : least;
  };
  const auto low = members_with(job, [&](const RankFacts& facts) {
    return facts.limits.descriptors >= 0 && facts.limits.descriptors < needed(facts);
  });
  std::int64_t limit = std::numeric_limits<std::int64_t>::max(), wanted = 0;
  for (const RankFacts* facts : low) {
    limit = std::min(limit, facts->limits.descriptors);
    wanted = std::max(wanted, needed(*facts));
  }
  if (low.empty()) return {};
  return {{ranks_of(low),
           fmt::format("a process is allowed to have {} descriptors, but this job needs about {}",
                       limit, wanted),
           fmt::format("{}", std::max<std::int64_t>(4096, 2 * wanted))}};
}

std::vector<Found> find_limited_addresses(const Examination& job) {
  return of_members(
      members_with(job, [](const RankFacts& facts) { return facts.limits.address_space >= 0; }),
      [](const Members& members) {
        return fmt::format("the address space is limited to {}",
                           lowest_of(members, &LimitFacts::address_space));
      });
}

std::vector<Found> find_little_shared_memory(const Examination& job) {
  return of_each(by_node(job), [](const auto& node) -> std::vector<Found> {
    const RankFacts& first = *node.second.front();
    const auto ranks = std::ssize(node.second);
    if (first.shared_memory_free >= 16 * mebibyte * ranks) return {};
    return {{ranks_of(node.second),
             first.shared_memory_size < 0
                 ? fmt::format("host {} has no /dev/shm", first.host)
                 : fmt::format("/dev/shm of host {} has {} free of {}, for {}", first.host,
                               size_text(first.shared_memory_free),
                               size_text(first.shared_memory_size), count_text(ranks, "rank")),
             fmt::format("{}", std::max<std::int64_t>(1, ranks / 8))}};
  });
}

std::vector<Found> find_no_shared_memory(const Examination& job) {
  return of_each(by_node(job), [](const auto& node) {
    Members members = node.second;
    std::erase_if(members,
                  [](const RankFacts* facts) { return facts->why_no_shared_memory.empty(); });
    return of_members(members, [](const Members& some) {
      return fmt::format("the ranks of host {} share no memory: {}", some.front()->host,
                         some.front()->why_no_shared_memory);
    });
  });
}

std::vector<Found> find_wrong_settings(const Examination& job) {
  return of_each(variants(job, [](const RankFacts& facts) { return facts.wrong_settings; }),
                 [](const Variant& variant) -> std::vector<Found> {
                   if (variant.value.empty()) return {};
                   return {{variant.ranks, variant.value}};
                 });
}

std::vector<Found> find_misspelt_settings(const Examination& job) {
  std::set<std::string> names;
  for (const RankFacts& facts : job.ranks)
    for (const auto& [name, value] : facts.variables)
      if (!rankmesh::detail::meant_setting(name).empty()) names.insert(name);
  return of_each(names, [&](const std::string& name) {
    const auto having = [&](const RankFacts& facts) { return facts.variables.contains(name); };
    return of_members(members_with(job, having),
                      fmt::format("{} is not known; did you mean {}?", name,
                                  rankmesh::detail::meant_setting(name)));
  });
}

// With ptrace_scope 1, a process may trace only its children. This is the default of several
// distributions, and MPI works with it.
std::vector<Found> find_ptrace_scope(const Examination& job) {
  return of_members(
      members_with(job, [](const RankFacts& facts) { return facts.ptrace_scope >= 2; }),
      "kernel.yama.ptrace_scope is 2 or 3");
}

using enum Severity;

constexpr Rule rules[] = {
    {"launcher", error,
     "each process takes itself for the whole job: it reads all data and writes the same files as "
     "the others, or refuses the mesh because ranks are missing",
     "{}", find_launcher},
    {"deaths", warning, "the others cannot go on, although rankmesh-guard is around each rank",
     "{}", find_end_by_death},
    {"library-versions", error,
     "different versions choose different algorithms and message formats, so ranks wait for "
     "messages that never come",
     "install the same {} on all nodes, and set the same LD_LIBRARY_PATH", find_library_versions},
    {"library-paths", warning,
     "two builds of one version may have different options, and an update may reach only one of "
     "them",
     "set the same LD_LIBRARY_PATH on all ranks, or install the library under the same path on all "
     "nodes",
     find_library_paths},
    {"nccl-settings", error,
     "NCCL decides on each rank by itself how it sends; ranks that decide differently wait for "
     "each "
     "other without end, or NCCL refuses to start",
     "set the variable to the same value on all ranks, or on none: in the job script, with mpirun "
     "-x NAME, or in /etc/nccl.conf of all nodes",
     differing_variables<Kind::settings>},
    {"variables", warning,
     "libraries of different ranks then behave differently; mpirun does not pass on all variables "
     "to other nodes",
     "set it in the job script and pass it on (Open MPI: mpirun -x NAME; MPICH: -genvlist NAME; "
     "Slurm: srun --export=ALL), and not in the shell start-up files of single nodes",
     differing_variables<Kind::job>},
    {"node-variables", note,
     "that is right if the hardware of the nodes has different names, or if each rank has a "
     "network "
     "card of its own",
     "if the nodes are equal, set the same value on all ranks", differing_variables<Kind::node>},
    {"limits", warning, "the ranks with the lower limit fail first, at a size that works elsewhere",
     "set the same limit on all nodes: ulimit {} in the job script, /etc/security/limits.conf, or "
     "LimitNOFILE and LimitMEMLOCK of the daemon that starts the ranks",
     find_different_limits},
    {"locked-memory", warning,
     "RDMA locks the memory that it sends from; MPI and NCCL then fail with 'cannot allocate "
     "memory', or fall back to TCP",
     "ulimit -l unlimited in the job script, memlock in /etc/security/limits.conf, or "
     "LimitMEMLOCK=infinity for the daemon that starts the ranks",
     find_locked_memory},
    {"descriptors", warning,
     "each connection and each shared segment takes a descriptor; MPI and NCCL fail with 'too many "
     "open files', often only when the groups are created",
     "ulimit -n {} in the job script, or a higher nofile in /etc/security/limits.conf",
     find_few_descriptors},
    {"address-space", warning,
     "CUDA, MPI and shared memory reserve more address space than the memory they use, so they can "
     "fail even when memory is free",
     "ulimit -v unlimited in the job script; limit the memory by the batch system instead",
     find_limited_addresses},
    {"shared-memory", warning,
     "MPI and NCCL keep the buffers between ranks of a node there; a process that writes beyond "
     "the "
     "end of the memory is killed by SIGBUS",
     "remove old files from /dev/shm, or make it larger: docker run --shm-size={}g (or "
     "--ipc=host), "
     "or mount -o remount,size=... /dev/shm",
     find_little_shared_memory},
    {"no-shared-memory", warning,
     "groups inside the node use MPI instead of shared memory, which is several times slower for "
     "small calls, and every call is compared by messages",
     "let the processes of a node see each other: start all ranks in one container, or containers "
     "with --ipc=host --pid=host, and let them be processes of one user",
     find_no_shared_memory},
    {"settings", error,
     "no rank can open a mesh as long as a variable has such a value on any rank",
     "correct the variable, or unset it", find_wrong_settings},
    {"setting-names", warning, "a variable that rankmesh does not know has no effect",
     "correct the name in the job script", find_misspelt_settings},
    {"ptrace-scope", note,
     "debuggers cannot attach to a rank that hangs, and MPI copies messages inside a node twice "
     "because it cannot read the memory of another process",
     "sysctl kernel.yama.ptrace_scope=1, if the administrator agrees", find_ptrace_scope},
};

}  // namespace

std::span<const Rule> process_rules() { return rules; }

}  // namespace rankmesh::report::detail
