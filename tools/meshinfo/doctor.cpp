// SPDX-License-Identifier: BSD-3-Clause
// The command doctor: the facts of one process, the time limit of steps, and the report.
#include "doctor.hpp"

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
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "command.hpp"
#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/launcher.hpp"
#include "rankmesh/base/settings.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "report/doctor.hpp"

namespace rankmesh::meshinfo {
namespace {

namespace fs = std::filesystem;
using report::RankFacts;

constexpr std::size_t most_characters = 4096;  // of a value
constexpr std::size_t most_variables = 256;

void read_variables(RankFacts& facts) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || facts.variables.size() == most_variables) continue;
    const std::string_view name = text.substr(0, equals);
    if (report::is_examined_variable(name))
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

// The names of a program's own transports are not known here.
std::string wrong_settings() {
  using namespace rankmesh;
  std::string wrong;
  try {
    (void)Settings::from_environment();
  } catch (const UsageError& error) {
    wrong = error.message();
  }
  try {
    const std::string routes = environment_variable("RANKMESH_ROUTES").value_or("");
    (void)RouteTable::read(routes, RouteSource::environment, "RANKMESH_ROUTES");
  } catch (const SpecError& error) {
    if (error.message().find("unknown transport") == std::string::npos)
      wrong += (wrong.empty() ? "" : "; ") + error.message();
  }
  return wrong;
}

// The function looks for the plugin only if NCCL_NET names a network that is not one of NCCL's own,
// because loading a library runs code.
bool finds_net_plugin() {
  const auto net = environment_variable("NCCL_NET");
  if (!net || strcasecmp(net->c_str(), "IB") == 0 || strcasecmp(net->c_str(), "Socket") == 0)
    return false;
  std::vector<std::string> names{"libnccl-net.so", "libnccl-net-" + *net + ".so"};
  if (const auto plugin = environment_variable("NCCL_NET_PLUGIN")) {
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
  read_variables(facts);
  facts.wrong_settings = wrong_settings();
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

StepWatch::StepWatch(double seconds, std::string who) : seconds_{seconds}, who_{std::move(who)} {
  if (seconds_ > 0) thread_ = std::jthread{[this](const std::stop_token& end) { run(end); }};
}

void StepWatch::begin(std::string name) {
  {
    const std::lock_guard lock{mutex_};
    step_ = std::move(name);
    ++number_;
  }
  changed_.notify_all();
}

// Only one thread may call MPI, so this thread ends the process without MPI_Abort. The launcher
// then ends the job.
void StepWatch::run(const std::stop_token& end) {
  std::unique_lock lock{mutex_};
  while (!end.stop_requested()) {
    const std::int64_t number = number_;
    const bool has_moved = changed_.wait_for(lock, end, std::chrono::duration<double>{seconds_},
                                             [&] { return number_ != number; });
    if (has_moved || number == 0 || end.stop_requested()) continue;
    std::fputs(
        fmt::format("meshinfo: {} has waited {:g} s in {}\n  hint: check the network to that "
                    "host (ping, firewall), and which network MPI uses; --timeout N waits "
                    "longer\n",
                    who_, seconds_, step_)
            .c_str(),
        stderr);
    std::_Exit(check_failed);
  }
}

namespace {

using report::Examination;

struct DoctorOptions {
  MeshArguments mesh;
  OutputOptions output;
  double timeout = 60;
};

// If a launcher started several processes, but the world has one rank, this world cannot be
// compared with the mesh. The finding about the launcher then says more than the error that the
// mesh does not fit the world.
std::optional<MeshPlan> plan_of(const DoctorOptions& options, const GatheredFacts& facts) {
  if (options.mesh.mesh.empty() || facts.ranks.empty()) return std::nullopt;
  const MeshSpec spec = options.mesh.spec();  // refuses an invalid one, also without a job
  if (!facts.in_job) return std::nullopt;
  const auto& first = facts.ranks.front();
  if (launcher_mismatch(first.world_size, first.mpi_library)) return std::nullopt;
  return spec.plan(first.world_size);
}

// Returns how to compare all ranks; empty if that is what doctor does.
std::string start_of(const DoctorOptions& options, const GatheredFacts& facts) {
  if (facts.in_job) return {};
  const std::string& mesh = options.mesh.mesh;
  if (mesh.empty()) return "mpirun -n 4 meshinfo doctor";
  return fmt::format("mpirun -n {} meshinfo doctor '{}'",
                     options.mesh.spec().world_size().value_or(4), mesh);
}

int doctor(const DoctorOptions& options, Job& job) {
  if (!(options.timeout >= 0 && options.timeout <= 86400))
    throw UsageError{
        fmt::format("--timeout takes seconds from 0 to 86400, got {}", options.timeout),
        "0 means no time limit"};
  const GatheredFacts facts = job.gather(options.timeout);
  int status = ok;
  // If the launcher does not belong to the MPI library, each process is rank 0 of a world of its
  // own.
  if (!facts.ranks.empty()) {
    const auto plan = plan_of(options, facts);
    const Examination examination{facts.ranks, pointer_to(plan)};
    const auto findings = report::examine(examination);
    if (report::has_trouble(findings)) status = check_failed;
    if (job.prints())
      print(report::doctor(examination, findings, start_of(options, facts)), options.output);
  }
  return job.agree(status);
}

}  // namespace

void add_doctor(CLI::App& app, Program& program) {
  auto [command, options] = add_command<DoctorOptions>(
      app, program, "doctor",
      "in a job: compare all ranks and say what is wrong, and how to fix it", doctor);
  options.mesh.add_to(command);
  options.output.add_to(command);
  options.output.add_short_formats_to(command);
  command
      .add_option("--timeout", options.timeout,
                  "seconds after which a step that hangs ends doctor (60; 0: never)")
      ->type_name("SECONDS");
}

}  // namespace rankmesh::meshinfo
