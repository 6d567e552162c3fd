// meshinfo in a live job: the same mesh, built for real, joined with hosts and processes.
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "meshinfo.hpp"
#include "rankmesh/mesh/libraries.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/rankmesh.hpp"

namespace meshinfo {
namespace {

constexpr int host_length = 128;

// The largest of all ranks, on rank 0.
std::vector<double> most(std::vector<double> values) {
  std::vector<double> result(values.size());
  rankmesh::mpi::check(MPI_Reduce(values.data(), result.data(), static_cast<int>(values.size()),
                                  MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD),
                       "MPI_Reduce");
  return result;
}

void gather_device_facts(rankmesh::Mesh& mesh, rankmesh::report::LiveFacts& facts) {
  facts.why_no_devices = mesh.why_no_device();
  if (!mesh.device()) return;
  const int device = *mesh.device();
  std::vector<int> devices(static_cast<std::size_t>(mesh.size()));
  rankmesh::mpi::check(
      MPI_Gather(&device, 1, MPI_INT, devices.data(), 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Gather");
  facts.devices = std::move(devices);
  std::vector<double> phases(5);
  std::vector<double> opened;  // warm-up and memory of each name
  for (std::size_t f = 0; f < mesh.plan().families().size(); ++f) {
    const auto& family = mesh.plan().families()[f];
    const rankmesh::BootstrapReport* report = nullptr;
    if (mesh.plan().has_communicators(f) && family.find(mesh.rank()))
      report = mesh[family.name()].bootstrap();
    opened.push_back(report == nullptr ? 0 : report->warm_up);
    opened.push_back(report == nullptr ? -1 : static_cast<double>(report->device_memory));
    if (report != nullptr)
      phases = {report->unique_ids, report->broadcasts, report->barriers, report->inits,
                report->splits};
  }
  phases = most(std::move(phases));
  opened = most(std::move(opened));
  facts.phases = {phases[0], phases[1], phases[2], phases[3], phases[4]};
  for (std::size_t i = 0; i < opened.size(); i += 2)
    facts.opened.push_back({opened[i], static_cast<std::int64_t>(opened[i + 1])});
}

// What every rank says of itself, in rank order; filled on rank 0.
rankmesh::report::LiveFacts gather_facts(rankmesh::Mesh& mesh) {
  using rankmesh::mpi::check;
  char host[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  check(MPI_Get_processor_name(host, &length), "MPI_Get_processor_name");
  std::string name(host, static_cast<std::size_t>(std::min(length, host_length - 1)));
  name.resize(host_length, '\0');
  const auto ranks = static_cast<std::size_t>(mesh.size());
  const std::int64_t pid = getpid();
  const bool prints = mesh.rank() == rankmesh::Rank{0};
  std::string names(prints ? ranks * host_length : 0, '\0');
  std::vector<std::int64_t> pids(prints ? ranks : 0);
  check(MPI_Gather(name.data(), host_length, MPI_CHAR, names.data(), host_length, MPI_CHAR, 0,
                   MPI_COMM_WORLD),
        "MPI_Gather");
  check(MPI_Gather(&pid, 1, MPI_INT64_T, pids.data(), 1, MPI_INT64_T, 0, MPI_COMM_WORLD),
        "MPI_Gather");

  rankmesh::report::LiveFacts facts{
      .placement = mesh.placement(), .hosts = {}, .process_ids = std::move(pids)};
  facts.hosts.resize(static_cast<std::size_t>(mesh.placement().node_count()));
  if (prints)
    for (std::size_t r = 0; r < ranks; ++r)
      facts.hosts[static_cast<std::size_t>(mesh.placement().node(r))] =
          names.c_str() + r * host_length;
  gather_device_facts(mesh, facts);
  return facts;
}

// With devices where they can be used; where not, the mapping is shown all the same, with the
// reason.
rankmesh::Mesh open(const std::string& text, rankmesh::MeshOptions options, std::string& trouble) {
  if (options.devices != rankmesh::DeviceUse::off) {
    rankmesh::MeshOptions without = options;
    without.devices = rankmesh::DeviceUse::off;
    rankmesh::Mesh mesh{MPI_COMM_WORLD, text,
                        without};  // what is wrong without devices is an error
    try {
      rankmesh::Mesh with_devices{MPI_COMM_WORLD, text, options};
      mesh.close();
      return with_devices;
    } catch (const rankmesh::MismatchError& error) {  // the same on every rank
      trouble = error.message();
      std::ranges::replace(trouble, '\n', ' ');
      return mesh;
    }
  }
  return {MPI_COMM_WORLD, text, options};
}

}  // namespace

int run_in_job(const Request& request) {
  const rankmesh::mpi::Environment environment;
  int size = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    if (request.mesh.world_size && *request.mesh.world_size != size)
      throw rankmesh::UsageError{
          fmt::format("--world-size {} in a job of {} ranks", *request.mesh.world_size, size),
          "leave it out, or add --offline to ignore the job"};
    if (!request.wants_live)
      return rank == 0
                 ? request.print(rankmesh::MeshSpec::parse(request.mesh.mesh).plan(size), nullptr)
                 : ok;
    rankmesh::MeshOptions options;
    options.devices =
        request.devices == "off" ? rankmesh::DeviceUse::off : rankmesh::DeviceUse::automatic;
    options.share_devices = request.devices == "shared";
    std::string trouble;
    rankmesh::Mesh mesh = open(request.mesh.mesh, options, trouble);
    rankmesh::report::LiveFacts facts = gather_facts(mesh);
    if (!trouble.empty()) facts.why_no_devices = trouble;
    if (request.with_mesh) request.with_mesh(mesh);
    mesh.close();
    return rank == 0 ? request.print(mesh.plan(), &facts) : ok;
  } catch (const rankmesh::TimeoutError&) {
    throw;  // unwinds past the environment: a finalisation would wait for the missing
  } catch (const std::exception& error) {
    return fail(error);
  }
}

std::optional<rankmesh::RouteExplanation> explain_route(rankmesh::Mesh& mesh,
                                                        const std::string& name,
                                                        const rankmesh::RouteQuery& query) {
  if (!mesh.plan().families()[mesh.plan().index_of(name)].find(mesh.rank())) return std::nullopt;
  constexpr rankmesh::DataType types[] = {rankmesh::DataType::int8, rankmesh::DataType::float32,
                                          rankmesh::DataType::float16,
                                          rankmesh::DataType::float8_e4m3};
  return mesh[name].explain(
      query.operation, query.bytes.value_or(-1), query.kind,
      types[static_cast<std::size_t>(query.type.value_or(rankmesh::TypeClass::integer))],
      query.capture);
}

rankmesh::Placement placement_of(const rankmesh::Mesh& mesh) { return mesh.placement(); }

std::vector<Component> components() {
  std::vector<Component> result;
  for (const rankmesh::LibraryInfo& library : rankmesh::libraries())
    result.push_back({library.name, library.version, library.path, library.why_not});
  return result;
}

}  // namespace meshinfo
