// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/launcher.hpp"

#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <system_error>

#include <fmt/format.h>

#include "base/detail/launched.hpp"
#include "rankmesh/base/detail/read_file.hpp"
#include "rankmesh/base/settings.hpp"

namespace rankmesh {
namespace {

constexpr const char* size_variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE"};
constexpr const char* rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
constexpr const char* local_rank_variables[] = {"OMPI_COMM_WORLD_LOCAL_RANK",
                                                "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                                "PALS_LOCAL_RANKID", "FLUX_TASK_LOCAL_ID"};
constexpr const char* slurm_local_rank = "SLURM_LOCALID";
constexpr const char* slurm_size = "SLURM_STEP_NUM_TASKS";
constexpr const char* slurm_rank = "SLURM_PROCID";

std::optional<std::int64_t> number(const VariableReader& read, const char* name) {
  const auto text = read(name);
  std::int64_t value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return value;
}

// The least number of processes that the launcher has started, and the variable from which it
// follows.
struct LauncherClaim {
  const char* variable = nullptr;
  std::int64_t processes = 0;
};

// Returns the smallest size that the variables of launchers of ranks state. A launcher that runs
// inside another one inherits the variables of the outer launcher, but only the size in its own
// variables is right.
std::optional<LauncherClaim> claim_of_rank_launcher(const VariableReader& read) {
  std::optional<LauncherClaim> claim;
  for (const char* name : size_variables)
    if (const auto size = number(read, name); size && (!claim || *size < claim->processes))
      claim = LauncherClaim{name, *size};
  if (claim) return claim;
  if (const auto rank = number(read, "PMIX_RANK"); rank && *rank > 0)
    return LauncherClaim{"PMIX_RANK", *rank + 1};
  return std::nullopt;
}

std::optional<LauncherClaim> claim_of(const VariableReader& read) {
  if (const auto claim = claim_of_rank_launcher(read)) return claim;
  if (const auto tasks = number(read, slurm_size)) return LauncherClaim{slurm_size, *tasks};
  return std::nullopt;
}

std::string message_of(const LauncherClaim& claim) {
  if (std::string_view{claim.variable} == "PMIX_RANK")
    return fmt::format(
        "the MPI world has 1 rank, although the launcher started more: PMIX_RANK={} is set",
        claim.processes - 1);
  return fmt::format("the MPI world has 1 rank, although the launcher started {}: {}={} is set",
                     claim.processes, claim.variable, claim.processes);
}

std::string hint_for(const VariableReader& read, std::string_view mpi_library) {
  const std::string name = short_mpi_name(mpi_library);
  const std::string own =
      name.empty() ? std::string{"the mpirun of the MPI library that the program is linked with"}
                   : fmt::format("the mpirun of {}, with which the program is linked", name);
  if (!read(slurm_size) && !read(slurm_rank)) return "start the program with " + own;
  const bool is_open_mpi = mpi_library.starts_with("Open MPI");
  return fmt::format(
      "start the program with srun --mpi=pmix{} (srun --mpi=list prints what this Slurm offers), "
      "or with {}",
      is_open_mpi || mpi_library.empty() ? "" : " or srun --mpi=pmi2", own);
}

// Returns the environment with which a process was started.
std::string environment_of(const std::string& process) {
  return detail::read_file("/proc/" + process + "/environ").value_or("");  // it may end meanwhile
}

// Variables that are set to an empty text count as not set.
std::optional<std::string> variable_in(const std::string& start, const char* name) {
  const std::string key = std::string{name} + '=';
  for (std::size_t at = 0; at < start.size(); at = start.find('\0', at) + 1) {
    const std::string_view entry{start.c_str() + at};
    if (entry.starts_with(key) && entry.size() > key.size())
      return std::string{entry.substr(key.size())};
    if (start.find('\0', at) == std::string::npos) break;
  }
  return std::nullopt;
}

std::optional<std::int64_t> launched_as(const VariableReader& read) {
  for (const char* name : rank_variables)
    if (const auto rank = number(read, name)) return rank;
  return number(read, slurm_rank);
}

// Returns the number of processes of the job if the launcher has started all of them on this node,
// otherwise 0.
std::int64_t all_on_this_node() {
  const auto claim = claim_of_rank_launcher(variable_at_start);
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (const auto here = number(variable_at_start, name))
      return claim && *here == claim->processes ? *here : 0;
  return 0;
}

// Returns the launcher of a process, which is its parent, or the parent of the guard around it.
std::int64_t launcher_of(const detail::ProcessStat& stat) {
  const auto parent = detail::read_process_stat(std::to_string(stat.parent));
  return parent && parent->name == "rankmesh-guard" ? parent->parent : stat.parent;
}

}  // namespace

std::optional<std::string> variable_at_start(const char* name) {
  static const auto& start = *new std::string{environment_of("self")};  // as in default_routes.cpp
  return start.empty() ? environment_variable(name) : variable_in(start, name);
}

std::map<std::int64_t, detail::ProcessState> detail::states_of_launched() {
  std::map<std::int64_t, ProcessState> states;
  const auto self = read_process_stat("self");
  const std::int64_t launcher = self ? launcher_of(*self) : 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc", error}) {
    const std::string process = entry.path().filename();
    if (!self || process.front() < '0' || process.front() > '9') continue;
    const auto stat = read_process_stat(process);
    if (!stat || stat->name == "rankmesh-guard" || launcher_of(*stat) != launcher) continue;
    const std::string start = environment_of(process);
    if (const auto rank = launched_as([&](const char* name) { return variable_in(start, name); }))
      states[*rank] = stat->state;
  }
  // Without guards, scripts may stand between the launcher and the ranks.
  if (states.size() > 1 || (self && launcher != self->parent))
    for (std::int64_t rank = 0; rank < all_on_this_node(); ++rank)
      states.try_emplace(rank, ProcessState::ended);
  return states;
}

std::string short_mpi_name(std::string_view mpi_library) {
  constexpr std::string_view mpich = "MPICH Version:";
  std::string_view text = mpi_library.substr(0, mpi_library.find_first_of(",\n"));
  if (!text.starts_with(mpich)) return std::string{text};
  text.remove_prefix(mpich.size());
  const auto number = text.find_first_not_of(" \t");
  return "MPICH " + std::string{number == std::string_view::npos ? "" : text.substr(number)};
}

std::optional<LauncherMismatch> launcher_mismatch(std::int64_t world_size,
                                                  std::string_view mpi_library,
                                                  const VariableReader& read) {
  if (world_size != 1) return std::nullopt;
  const auto claim = claim_of(read);
  if (!claim || claim->processes <= 1) return std::nullopt;
  return LauncherMismatch{message_of(*claim), hint_for(read, mpi_library)};
}

std::optional<LauncherMismatch> srun_without_pmix(std::string_view mpi_library,
                                                  const VariableReader& read) {
  if (!mpi_library.starts_with("Open MPI")) return std::nullopt;
  // Open MPI treats a process with SLURM_STEPID as one that srun has started. An mpirun inside the
  // step brings a PMIx of its own.
  if (!read("SLURM_STEPID") || read("PMIX_RANK") || read("OMPI_COMM_WORLD_RANK"))
    return std::nullopt;
  // srun says which of its plugins it uses, unless it uses none.
  auto plugin = read("SLURM_MPI_TYPE");
  if (!plugin && read(slurm_rank) && number(read, slurm_size).value_or(1) > 1) plugin = "none";
  if (!plugin || plugin->starts_with("pmix")) return std::nullopt;
  return LauncherMismatch{
      fmt::format(
          "this job was started with srun --mpi={}, but {} usually needs PMIx, and MPI_Init "
          "ends the process if it is missing",
          *plugin, short_mpi_name(mpi_library)),
      hint_for(read, mpi_library)};
}

std::optional<LauncherMismatch> end_by_death(std::string_view mpi_library, bool spans_nodes,
                                             const VariableReader& read) {
  const auto is_on = [&](const char* name) {
    const std::string value = read(name).value_or("0");
    return value != "0" && value != "false";
  };
  if (!claim_of(read)) return std::nullopt;
  const bool is_open_mpi_4 = mpi_library.starts_with("Open MPI v4");
  const bool is_later_open_mpi = !is_open_mpi_4 && mpi_library.starts_with("Open MPI");
  const bool is_guarded = read("RANKMESH_GUARD").has_value();
  const std::string_view option = is_open_mpi_4 ? "--mca orte_allowed_exit_without_sync 1 "
                                  : is_later_open_mpi && spans_nodes ? "--with-ft ulfm "
                                  : is_later_open_mpi
                                      ? "--prtemca prte_allowed_exit_without_sync 1 "
                                      : "";
  const std::string mpirun = fmt::format("mpirun {}-n ... rankmesh-guard PROGRAM", option);
  // An mpirun inside the step brings a PMIx of its own.
  if (read("SLURM_STEPID") && read("PMIX_RANK") && !read("OMPI_COMM_WORLD_RANK"))
    return LauncherMismatch{"srun --mpi=pmix ends the job when a rank dies, with guards, too",
                            fmt::format("use salloc or sbatch, and start it with {}", mpirun)};
  if (is_on(is_open_mpi_4 ? "OMPI_MCA_orte_enable_recovery" : "OMPI_MCA_mpi_ft_enable"))
    return std::nullopt;
  if (is_later_open_mpi && spans_nodes)
    return LauncherMismatch{"MPI ends the job when a rank of another node dies",
                            fmt::format("start it with {}", mpirun)};
  // Later releases of Open MPI do not tell the ranks their option.
  if (is_guarded && (!is_open_mpi_4 || is_on("OMPI_MCA_orte_allowed_exit_without_sync")))
    return std::nullopt;
  return LauncherMismatch{is_guarded ? "mpirun ends the job when a rank ends without MPI_Finalize"
                                     : "the launcher ends the job when a rank dies",
                          fmt::format("start it with {}", mpirun)};
}

// SLURM_PROCID is not sufficient, because batch scripts have it too. An interactive shell of Slurm
// is a step of one task.
bool is_launched() {
  for (const char* name : rank_variables)
    if (variable_at_start(name)) return true;
  const auto tasks = number(variable_at_start, slurm_size);
  return tasks && *tasks > 1 && variable_at_start(slurm_rank);
}

std::optional<std::int64_t> launcher_rank() {
  if (!is_launched()) return std::nullopt;
  return launched_as(variable_at_start);
}

std::optional<int> launcher_local_rank(const VariableReader& read) {
  const auto local = [&](const char* name) -> std::optional<int> {
    const auto value = number(read, name);
    if (!value || *value < 0 || *value > std::numeric_limits<int>::max()) return std::nullopt;
    return static_cast<int>(*value);
  };
  for (const char* name : local_rank_variables)
    if (const auto rank = local(name)) return rank;
  for (const char* name : {"PMIX_RANK", "PMI_RANK"})
    if (const auto rank = number(read, name); rank && rank == number(read, slurm_rank))
      return local(slurm_local_rank);
  return std::nullopt;
}

}  // namespace rankmesh
