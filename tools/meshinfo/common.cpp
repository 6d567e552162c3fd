#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace meshinfo {

using rankmesh::UsageError;
using rankmesh::report::Format;

void MeshOptions::add_to(CLI::App& command) {
  command.add_option("MESH", mesh, "mesh string or path ending in .toml")->envname("RANKMESH");
  command.add_option("--world-size", world_size, "number of ranks, where the mesh leaves it open (auto)");
  command.add_flag("--offline", offline, "ignore the job that this runs in");
}

void OutputOptions::add_to(CLI::App& command, bool has_csv) {
  command.add_option("--format", format, has_csv ? "text, json or csv" : "text or json")
      ->check(has_csv ? CLI::IsMember({"text", "json", "csv"}) : CLI::IsMember({"text", "json"}));
  command.add_option("-o,--output", path, "write to a file; its extension picks the format");
}

Format OutputOptions::chosen_format() const {
  std::string name = format;
  if (name.empty()) {
    const auto dot = path.find_last_of('.');
    const std::string extension = dot == std::string::npos ? "" : path.substr(dot + 1);
    name = extension == "json" || extension == "csv" ? extension : "text";
  }
  if (name == "json") return Format::json;
  return name == "csv" ? Format::csv : Format::text;
}

bool OutputOptions::colour() const {
  const char* no_colour = std::getenv("NO_COLOR");
  // A launcher gives rank 0 a terminal of its own, whatever its output goes to.
  return path.empty() && !is_in_job() && isatty(STDOUT_FILENO) == 1 &&
         (no_colour == nullptr || *no_colour == '\0');
}

Output::Output(const OutputOptions& options) : path_{options.path}, file_{stdout} {
  if (path_.empty()) return;
  temporary_ = fmt::format("{}.{}.tmp", path_, getpid());
  file_ = std::fopen(temporary_.c_str(), "w");
  if (file_ == nullptr)
    throw UsageError{fmt::format("cannot write '{}': {}", path_, std::strerror(errno)),
                     "choose another path for -o"};
}

Output::~Output() {
  if (file_ == nullptr || file_ == stdout) return;
  std::fclose(file_);
  std::remove(temporary_.c_str());
}

void Output::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return;
  if (errno == EPIPE && path_.empty()) std::_Exit(ok);  // the reader has seen enough
  throw UsageError{fmt::format("cannot write the output: {}", std::strerror(errno)), "is the disk full?"};
}

void Output::finish() {
  if (std::fflush(file_) != 0) {
    if (errno == EPIPE && path_.empty()) std::_Exit(ok);
    throw UsageError{fmt::format("cannot write the output: {}", std::strerror(errno)), "is the disk full?"};
  }
  if (path_.empty()) return;
  std::fclose(file_);
  file_ = nullptr;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    throw UsageError{fmt::format("cannot write '{}': {}", path_, std::strerror(errno)),
                     "choose another path for -o"};
}

// The launchers' own variables; SLURM_PROCID alone proves nothing, batch scripts have it too.
bool is_in_job() {
  for (const char* name : {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

bool is_printing_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char* rank = std::getenv(name)) return std::strcmp(rank, "0") == 0;
  return true;
}

int fail(const std::exception& error) {
  if (!is_printing_rank()) return wrong_usage;
  const auto* own = dynamic_cast<const rankmesh::Error*>(&error);
  const std::string message = own != nullptr ? own->message() : error.what();
  const std::string hint = own != nullptr ? own->hint() : "";
  std::fputs(fmt::format("meshinfo: {}\n", message).c_str(), stderr);
  if (!hint.empty()) std::fputs(fmt::format("  hint: {}\n", hint).c_str(), stderr);
  return wrong_usage;
}

int run(const Request& request) {
  if (request.mesh.mesh.empty())
    throw UsageError{"no mesh is given", "give a mesh string such as pp=2,dp=4,tp=8, or set RANKMESH"};
  if (!request.mesh.offline && is_in_job()) return run_in_job(request);
  const auto plan = rankmesh::MeshSpec::parse(request.mesh.mesh).plan(request.mesh.world_size);
  return request.print(plan, nullptr);
}

}  // namespace meshinfo
