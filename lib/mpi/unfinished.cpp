// SPDX-License-Identifier: BSD-3-Clause
#include "detail/unfinished.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/detail/private_api.hpp"
#include "detail/job_end.hpp"
#include "detail/returned_errors.hpp"

namespace rankmesh::mpi {
namespace {

struct UnfinishedRecord {
  struct OpenMesh {
    std::string mesh;
    int ranks = 0;
    std::string coordinates{};
    bool is_destroyed = false;
  };

  std::mutex mutex;
  std::uint64_t next_number = 0;
  std::map<std::uint64_t, OpenMesh> meshes;
  std::string last_coordinates;  // of the mesh that was closed last
  std::string abandoned;         // the first operation
  std::size_t abandoned_count = 0;
  std::vector<MPI_Request> requests;
  std::set<std::int64_t> companions;  // processes
  rankmesh::Deadline::Duration timeout{1e9};
};

// There is one MPI per process, and therefore one record. It is never destroyed, because the
// program may end while other static objects are destroyed.
UnfinishedRecord& record() {
  static UnfinishedRecord& only = *new UnfinishedRecord;  // leaked on purpose
  return only;
}

std::atomic<bool> may_survive{false};
std::atomic<bool> has_lost_ranks{false};
std::atomic<void (*)()> before_end{nullptr};

// Tells the guard around this process (tools/guard) that the job goes on if it dies, or that this
// process has no place in the mesh that goes on. The number of the descriptor may mean another file
// by now, so the pipe is recognised by its inode.
void tell_guard(char word) noexcept {
  const char* const text = std::getenv("RANKMESH_GUARD");
  int descriptor = -1;
  unsigned long inode = 0;
  struct stat status {};
  if (text == nullptr || std::sscanf(text, "%d:%lu", &descriptor, &inode) != 2) return;
  if (::fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode) || status.st_ino != inode)
    return;
  // If the pipe is full, the guard has been told.
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &word, 1);
}

// MPI may write to the socket of a rank that has ended, and the signal would end this process, too.
void ignore_closed_sockets() noexcept {
  struct sigaction action {};
  if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL)
    ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

void record_survivor() noexcept {
  if (may_survive.exchange(true)) return;
  ignore_closed_sockets();
  tell_guard('s');
}
void record_idle() noexcept { tell_guard('i'); }
bool is_survivor() noexcept { return may_survive; }
bool may_job_lose_ranks() noexcept {
  const char* const recovery = std::getenv("OMPI_MCA_orte_enable_recovery");
  return std::getenv("RANKMESH_GUARD") != nullptr ||
         (recovery != nullptr && std::string_view{recovery} != "0");
}
void record_companions(const std::vector<std::int64_t>& processes,
                       rankmesh::Deadline::Duration timeout) noexcept {
  const std::lock_guard lock{record().mutex};
  record().companions.insert(processes.begin(), processes.end());
  record().timeout = timeout;
}

rankmesh::Deadline deadline_of_companions() noexcept {
  const std::lock_guard lock{record().mutex};
  return rankmesh::Deadline{record().timeout};
}

bool has_companion_ended() noexcept {
  const std::lock_guard lock{record().mutex};
  return std::ranges::any_of(record().companions, [](std::int64_t process) {
    return ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
  });
}

void on_end_of_survivor(void (*action)()) noexcept { before_end = action; }
void before_end_of_survivor() noexcept {
  if (auto* const action = before_end.exchange(nullptr)) action();
}

void record_loss() noexcept { has_lost_ranks = true; }
RANKMESH_PRIVATE_API bool has_loss() noexcept { return has_lost_ranks; }

OpenMark::OpenMark(const std::string& mesh, int ranks, const std::string& coordinates) {
  UnfinishedRecord& r = record();
  const std::lock_guard lock{r.mutex};
  number_ = r.next_number++;
  r.meshes[number_] = {mesh, ranks, coordinates};
}

OpenMark::~OpenMark() {
  const std::lock_guard lock{record().mutex};
  const auto found = record().meshes.find(number_);
  if (found != record().meshes.end()) found->second.is_destroyed = true;
}

void OpenMark::close() noexcept {
  UnfinishedRecord& r = record();
  const std::lock_guard lock{r.mutex};
  const auto found = r.meshes.find(number_);
  if (found == r.meshes.end()) return;
  r.last_coordinates = std::move(found->second.coordinates);
  r.meshes.erase(found);
}

RANKMESH_PRIVATE_API void record_abandoned(const std::string& activity) noexcept {
  const std::lock_guard lock{record().mutex};
  if (record().abandoned_count++ == 0) record().abandoned = activity;
}

RANKMESH_PRIVATE_API void record_requests(const std::vector<MPI_Request>& requests) noexcept {
  const std::lock_guard lock{record().mutex};
  record().requests.insert(record().requests.end(), requests.begin(), requests.end());
}

std::vector<UnfinishedReason> unfinished_reasons() {
  UnfinishedRecord& r = record();
  const std::lock_guard lock{r.mutex};
  std::vector<UnfinishedReason> reasons;
  if (!r.meshes.empty()) {
    const auto& [mesh, ranks, coordinates, is_destroyed] = r.meshes.begin()->second;
    const std::string more =
        r.meshes.size() == 1 ? "" : fmt::format(" (and {} more)", r.meshes.size() - 1);
    reasons.push_back({is_destroyed
                           ? fmt::format("the mesh {}{} was destroyed without close()", mesh, more)
                           : fmt::format("the mesh {}{} is still open", mesh, more),
                       "call close() on every rank before the Environment ends"});
  }
  if (r.abandoned_count > 0)
    reasons.push_back(
        {fmt::format(
             "MPI may still use the memory of {}{}, which did not end", r.abandoned,
             r.abandoned_count == 1 ? "" : fmt::format(" (and {} more)", r.abandoned_count - 1)),
         "the exception of that operation says why"});
  int are_complete = 1;
  const ReturnedErrors returned{MPI_COMM_WORLD};
  if (!r.requests.empty() && MPI_Testall(static_cast<int>(r.requests.size()), r.requests.data(),
                                         &are_complete, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
    are_complete = 0;
  if (are_complete == 0)
    reasons.push_back({fmt::format("some of {} messages were not received", r.requests.size()),
                       "receive every message before the Environment ends"});
  return reasons;
}

std::string recorded_coordinates() {
  UnfinishedRecord& r = record();
  const std::lock_guard lock{r.mutex};
  const UnfinishedRecord::OpenMesh* largest = nullptr;
  for (const auto& [number, mesh] : r.meshes)
    if (largest == nullptr || mesh.ranks >= largest->ranks) largest = &mesh;
  return largest == nullptr ? r.last_coordinates : largest->coordinates;
}

}  // namespace rankmesh::mpi
