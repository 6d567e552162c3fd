// SPDX-License-Identifier: BSD-3-Clause
// The facts of one process: environment, limits, shared memory, cores, host and interfaces.
#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sched.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "doctor.hpp"
#include "rankmesh/base/settings.hpp"

namespace meshinfo {
namespace {

namespace fs = std::filesystem;
using rankmesh::report::RankFacts;

constexpr std::size_t most_characters = 4096;  // of a value
constexpr std::size_t most_variables = 256;

void read_variables(RankFacts& facts) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || facts.variables.size() == most_variables) continue;
    const std::string_view name = text.substr(0, equals);
    if (rankmesh::report::is_examined_variable(name))
      facts.variables.emplace(name, text.substr(equals + 1, most_characters));
  }
}

std::int64_t limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
  return static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
}

void read_shared_memory(RankFacts& facts) {
  struct statvfs status {};
  if (statvfs("/dev/shm", &status) != 0) return;
  facts.shared_memory_size = static_cast<std::int64_t>(status.f_blocks * status.f_frsize);
  facts.shared_memory_free = static_cast<std::int64_t>(status.f_bavail * status.f_frsize);
}

// A machine may have more cores than cpu_set_t, which holds 1,024.
void read_cores(RankFacts& facts) {
  constexpr int most = 1 << 16;
  facts.online_cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  for (int cores = 1024; cores <= most; cores *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(cores));
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(cores));
    const bool is_read = set != nullptr && sched_getaffinity(0, size, set) == 0;
    for (int c = 0; is_read && c < cores; ++c)
      if (CPU_ISSET_S(static_cast<std::size_t>(c), size, set)) facts.cores.push_back(c);
    CPU_FREE(set);
    if (is_read) return;
  }
}

void read_interfaces(RankFacts& facts) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return;
  std::set<std::string> names;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next)
    if ((entry->ifa_flags & IFF_UP) != 0) names.insert(entry->ifa_name);
  freeifaddrs(list);
  facts.interfaces.assign(names.begin(), names.end());
}

std::vector<std::string> entries_of(const char* folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry{folder, error}, end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return names;
}

// The function looks for the plugin only if NCCL_NET names a network that is not one of NCCL's own,
// because loading a library runs code.
bool finds_net_plugin() {
  const auto net = rankmesh::environment_variable("NCCL_NET");
  if (!net || strcasecmp(net->c_str(), "IB") == 0 || strcasecmp(net->c_str(), "Socket") == 0)
    return false;
  std::vector<std::string> names{"libnccl-net.so", "libnccl-net-" + *net + ".so"};
  if (const auto plugin = rankmesh::environment_variable("NCCL_NET_PLUGIN")) {
    names.push_back(*plugin);
    names.push_back("libnccl-net-" + *plugin + ".so");
  }
  return std::ranges::any_of(names, [](const std::string& name) {
    void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle != nullptr) dlclose(handle);
    return handle != nullptr;
  });
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

bool resolves(const std::string& host) {
  addrinfo* list = nullptr;
  const bool is_found = getaddrinfo(host.c_str(), nullptr, nullptr, &list) == 0;
  if (is_found) freeaddrinfo(list);
  return is_found;
}

RankFacts local_facts() {
  RankFacts facts;
  facts.host = host_name();
  facts.process_id = getpid();
  read_variables(facts);
  facts.limits = {limit_of(RLIMIT_MEMLOCK), limit_of(RLIMIT_NOFILE), limit_of(RLIMIT_AS)};
  read_shared_memory(facts);
  if (std::ifstream file{"/proc/sys/kernel/yama/ptrace_scope"}; file) file >> facts.ptrace_scope;
  read_cores(facts);
  if (!resolves(facts.host)) facts.unresolved_hosts.push_back(facts.host);
  read_interfaces(facts);
  facts.rdma_devices = entries_of("/sys/class/infiniband");
  facts.has_net_plugin = finds_net_plugin();
  std::error_code error;
  facts.has_device_nodes = fs::exists("/dev/nvidia0", error) || fs::exists("/dev/nvidiactl", error);
  return facts;
}

}  // namespace meshinfo
