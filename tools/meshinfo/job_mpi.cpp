// SPDX-License-Identifier: BSD-3-Clause
// meshinfo in a job: opens the mesh and gathers the host and the process of every rank.
#include "job.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include <fmt/format.h>

#include "launcher.hpp"
#include "rankmesh/base/launcher.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/rankmesh.hpp"

namespace rankmesh::meshinfo {
namespace {

using mpi::check;
using report::LiveFacts;

std::optional<LauncherMismatch> mismatch_of(int world_size) {
  return launcher_mismatch(world_size, mpi::library_text());
}

// Returns the largest values of all ranks, on rank 0.
std::vector<double> highest(const std::vector<double>& values) {
  std::vector<double> result(values.size());
  check(MPI_Reduce(values.data(), result.data(), static_cast<int>(values.size()), MPI_DOUBLE,
                   MPI_MAX, 0, MPI_COMM_WORLD),
        "MPI_Reduce");
  return result;
}

void gather_device_facts(Mesh& mesh, LiveFacts& facts) {
  if (!mesh.device()) return;
  const int device = *mesh.device();
  std::vector<int> devices(static_cast<std::size_t>(mesh.size()));
  check(MPI_Gather(&device, 1, MPI_INT, devices.data(), 1, MPI_INT, 0, MPI_COMM_WORLD),
        "MPI_Gather");
  facts.devices = std::move(devices);
  std::vector<double> phases(5);
  std::vector<double> opened;  // warm-up and memory of each name
  for (std::size_t f = 0; f < mesh.plan().families().size(); ++f) {
    const auto& family = mesh.plan().families()[f];
    const BootstrapReport* report = nullptr;
    if (mesh.plan().has_communicators(f) && family.find(mesh.rank()))
      report = mesh[family.name()].bootstrap();
    opened.push_back(report == nullptr ? 0 : report->warm_up);
    opened.push_back(report == nullptr ? -1 : static_cast<double>(report->device_memory));
    if (report != nullptr)
      phases = {report->unique_ids, report->broadcasts, report->barriers, report->inits,
                report->splits};
  }
  phases = highest(phases);
  opened = highest(opened);
  facts.phases = {phases[0], phases[1], phases[2], phases[3], phases[4]};
  for (std::size_t i = 0; i < opened.size(); i += 2)
    facts.opened.push_back({opened[i], static_cast<std::int64_t>(opened[i + 1])});
}

// Gathers the host and the process of every rank, on rank 0.
LiveFacts gather_facts(Mesh& mesh) {
  char host[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  check(MPI_Get_processor_name(host, &length), "MPI_Get_processor_name");
  const std::vector<std::string> hosts = gather_texts({host, static_cast<std::size_t>(length)});
  const std::int64_t pid = getpid();
  std::vector<std::int64_t> pids(hosts.size());
  check(MPI_Gather(&pid, 1, MPI_INT64_T, pids.data(), 1, MPI_INT64_T, 0, MPI_COMM_WORLD),
        "MPI_Gather");
  LiveFacts facts{.placement = mesh.placement(), .hosts = {}, .process_ids = std::move(pids)};
  facts.hosts.resize(static_cast<std::size_t>(mesh.placement().node_count()));
  facts.why_no_shared_memory.resize(facts.hosts.size());
  const std::vector<std::string> reasons = gather_texts(mesh.why_no_shared_memory());
  for (std::size_t r = 0; r < hosts.size(); ++r) {
    const auto node = static_cast<std::size_t>(mesh.placement().node(static_cast<std::int64_t>(r)));
    facts.hosts[node] = hosts[r];
    facts.why_no_shared_memory[node] = reasons[r];
  }
  facts.why_no_devices = mesh.why_no_device();
  gather_device_facts(mesh, facts);
  return facts;
}

// Opens the mesh with the requested devices. If the ranks cannot use them together, opens it
// without devices; `trouble` then has the reason. If the mesh itself is invalid, both attempts fail
// with the same error.
std::shared_ptr<Mesh> open_mesh(const std::string& text, const std::string& devices,
                                std::string& trouble) {
  MeshOptions options;
  options.devices = devices == "off" ? DeviceUse::off : DeviceUse::automatic;
  options.share_devices = devices == "shared";
  if (devices != "off") {
    try {
      return std::make_shared<Mesh>(MPI_COMM_WORLD, std::string_view{text}, options);
    } catch (const MismatchError& error) {  // the same on every rank
      trouble = error.message();
      std::ranges::replace(trouble, '\n', ' ');
      options.devices = DeviceUse::off;
      options.share_devices = false;
    }
  }
  return std::make_shared<Mesh>(MPI_COMM_WORLD, std::string_view{text}, options);
}

std::optional<RouteExplanation> explain_route(Mesh& mesh, const std::string& name,
                                              const RouteQuery& query) {
  if (!mesh.plan().families()[mesh.plan().index_of(name)].find(mesh.rank())) return std::nullopt;
  // One type of each class, in the order of TypeClass.
  constexpr DataType samples[] = {DataType::int8, DataType::float32, DataType::float16,
                                  DataType::float8_e4m3};
  return mesh[name].explain(
      query.operation, query.bytes.value_or(-1), query.kind,
      samples[static_cast<std::size_t>(query.type.value_or(TypeClass::integer))], query.capture);
}

}  // namespace

// The counts of MPI are ints. Therefore the texts are gathered from blocks of ranks whose texts
// together have less than 2^31 bytes.
std::vector<std::string> gather_texts(const std::string& own) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  constexpr std::size_t most_bytes = std::size_t{520} << 10;  // a record is smaller
  constexpr int block = 4000;
  if (own.size() > most_bytes)
    throw UsageError{fmt::format("the facts of a rank have {} bytes", own.size()),
                     "unset variables that are very long, for example LD_LIBRARY_PATH"};
  int size = 0, rank = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  const int bytes = static_cast<int>(own.size());
  std::vector<int> sizes(rank == 0 ? static_cast<std::size_t>(size) : 0);
  check(MPI_Gather(&bytes, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, comm), "MPI_Gather");
  std::vector<std::string> texts;
  for (int first = 0; first < size; first += block) {
    const bool sends = rank >= first && rank < first + block;
    std::vector<int> counts(sizes.size()), offsets(sizes.size());
    int total = 0;
    for (std::size_t r = 0; r < sizes.size(); ++r) {
      const int number = static_cast<int>(r);
      counts[r] = number >= first && number < first + block ? sizes[r] : 0;
      offsets[r] = total;
      total += counts[r];
    }
    std::string all(static_cast<std::size_t>(total), '\0');
    check(MPI_Gatherv(own.data(), sends ? bytes : 0, MPI_CHAR, all.data(), counts.data(),
                      offsets.data(), MPI_CHAR, 0, comm),
          "MPI_Gatherv");
    for (std::size_t r = static_cast<std::size_t>(first);
         r < std::min(sizes.size(), static_cast<std::size_t>(first + block)); ++r)
      texts.push_back(
          all.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(counts[r])));
  }
  return texts;
}

std::optional<report::RouteFacts> OpenMesh::routes() const {
  if (mesh == nullptr) return std::nullopt;
  return report::RouteFacts{mesh->placement(),
                            [&open = *mesh](const std::string& name, const RouteQuery& query) {
                              return explain_route(open, name, query);
                            }};
}

void OpenMesh::close() {
  if (mesh != nullptr) mesh->close();
}

struct Job::State {
  mpi::Environment environment;
  int size = 0;
  int rank = 0;
};

Job::Job() = default;
Job::~Job() = default;

void Job::abort(int status) {
  if (state_ == nullptr || state_->size == 1) return;
  // MPICH's launcher drops what it has not forwarded yet when a rank aborts.
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  MPI_Abort(MPI_COMM_WORLD, status);
}

// If the launcher does not belong to the MPI library, each process is rank 0 of a world of its own.
// Then the first process prints.
bool Job::prints() const {
  if (state_ == nullptr || mismatch_of(state_->size)) return is_printing_rank();
  return state_->rank == 0;
}

void Job::start() {
  if (state_ != nullptr) return;
  state_ = std::make_unique<State>();
  MPI_Comm_size(MPI_COMM_WORLD, &state_->size);
  MPI_Comm_rank(MPI_COMM_WORLD, &state_->rank);
}

void Job::join(const MeshArguments& arguments) {
  start();
  if (const auto mismatch = mismatch_of(state_->size)) {
    const std::string hint = mismatch->hint + "; or add --offline to ignore the job";
    throw UsageError{mismatch->message, hint};
  }
  if (arguments.world_size && *arguments.world_size != state_->size)
    throw UsageError{fmt::format("--world-size is {}, but the job has {} ranks",
                                 *arguments.world_size, state_->size),
                     "leave it out, or add --offline to ignore the job"};
}

MeshPlan Job::plan(const MeshArguments& arguments) {
  arguments.require();
  if (!is_in_job()) return arguments.spec().plan(arguments.world_size);
  join(arguments);
  return arguments.spec().plan(state_->size);
}

OpenMesh Job::open(const MeshArguments& arguments, const std::string& devices) {
  arguments.require();
  if (!is_in_job()) return {arguments.spec().plan(arguments.world_size)};
  join(arguments);
  std::string trouble;
  const std::shared_ptr<Mesh> mesh = open_mesh(arguments.mesh, devices, trouble);
  LiveFacts facts = gather_facts(*mesh);
  if (!trouble.empty()) facts.why_no_devices = trouble;
  return {mesh->plan(), mesh, std::move(facts)};
}

int Job::agree(int status) {
  if (state_ != nullptr) check(MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  return status;
}

Placement nodes_of_job() {
  const mpi::CommunicatorView world{MPI_COMM_WORLD};
  MPI_Comm node = MPI_COMM_NULL;
  check(
      MPI_Comm_split_type(world.native(), MPI_COMM_TYPE_SHARED, world.rank(), MPI_INFO_NULL, &node),
      "MPI_Comm_split_type");
  std::int32_t lowest = world.rank();  // that of the node, which member 0 has
  check(MPI_Bcast(&lowest, 1, MPI_INT32_T, 0, node), "MPI_Bcast");
  check(MPI_Comm_free(&node), "MPI_Comm_free");
  std::vector<std::int32_t> lowest_of(static_cast<std::size_t>(world.size()));
  check(MPI_Allgather(&lowest, 1, MPI_INT32_T, lowest_of.data(), 1, MPI_INT32_T, world.native()),
        "MPI_Allgather");
  return Placement{lowest_of};
}

bool Job::starts_node() {
  start();
  if (const auto mismatch = mismatch_of(state_->size))
    throw UsageError{mismatch->message, mismatch->hint};
  return nodes_of_job().local_rank(Rank{state_->rank}) == 0;
}

void on_first_rank(const std::function<void()>& run) {
  std::exception_ptr failure;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    if (rank == 0) run();
  } catch (const Error&) {
    failure = std::current_exception();
  }
  int has_failed = failure != nullptr;
  check(MPI_Bcast(&has_failed, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  if (failure) std::rethrow_exception(failure);
  if (has_failed != 0)
    throw UsageError{"rank 0 cannot open the output", "see the message of rank 0"};
}

std::int64_t greatest(std::int64_t number) {
  std::int64_t result = 0;
  check(MPI_Allreduce(&number, &result, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce");
  return result;
}

std::vector<LibraryInfo> components() { return libraries(); }

}  // namespace rankmesh::meshinfo
