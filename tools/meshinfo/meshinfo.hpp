// What the subcommands of meshinfo share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/format.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {
class Mesh;
}

namespace meshinfo {

// Exit statuses.
inline constexpr int ok = 0;
inline constexpr int check_failed = 1;
inline constexpr int wrong_usage = 2;

// A whole number in decimal digits, as an option or a positional argument.
CLI::Option* add_number(CLI::App& command, const std::string& name, const std::string& description,
                        std::function<void(std::int64_t)> store);

// Options of every subcommand that reads a mesh.
struct MeshOptions {
  std::string mesh;
  std::optional<std::int64_t> world_size;
  bool offline = false;

  void add_to(CLI::App& command);
};

// The mesh as described. @throws UsageError where none is given.
rankmesh::MeshSpec read_spec(const MeshOptions& options);

// Options of every subcommand that prints.
struct OutputOptions {
  std::string format;  // empty: by the file's extension, else text
  std::string path;    // empty: standard output

  void add_to(CLI::App& command, bool has_csv = true);
  [[nodiscard]] rankmesh::report::Format chosen_format() const;
  // Colour goes to a terminal only, and never where NO_COLOR is set.
  [[nodiscard]] bool colour() const;

 private:
  bool has_csv_ = true;
};

// Where a report goes. A closed pipe ends the program quietly with status 0; a file is written
// beside its place and renamed at the end, so that it is never half-written (a device or a pipe is
// written directly).
class Output {
 public:
  explicit Output(const OutputOptions& options);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  void write(std::string_view text);
  void finish();

 private:
  void check(bool written) const;

  std::string path_;
  std::string temporary_;  // empty where the output is written directly
  std::FILE* file_;
};

// Runs a subcommand's report on the rank that prints: offline at once; in a job on rank 0 only,
// over the job's world. `live` is null offline or where the subcommand did not ask for it.
struct Request {
  MeshOptions mesh;
  bool wants_live = false;
  std::function<int(const rankmesh::MeshPlan&, const rankmesh::report::LiveFacts*)> print;
  std::string devices = "off";  // of the live mesh: auto, off or shared
  // On every rank while the live mesh is open; collective.
  std::function<void(rankmesh::Mesh&)> with_mesh{};
};
int run(const Request& request);

// A job as the launcher's environment tells it, before MPI is touched.
bool is_in_job();
bool is_printing_rank();
void ignore_job();  // --offline

// Built from job_mpi.cpp, or from job_none.cpp where there is no MPI.
int run_in_job(const Request& request);
// The answer of this rank's coordinator; nothing where it has none of that name. Needs a live mesh.
std::optional<rankmesh::RouteExplanation> explain_route(rankmesh::Mesh& mesh,
                                                        const std::string& name,
                                                        const rankmesh::RouteQuery& query);
rankmesh::Placement placement_of(const rankmesh::Mesh& mesh);
// A library that rankmesh stands on; an empty version means not found, and why_not says what was
// looked for.
struct Component {
  std::string name, version, path, why_not;
};
std::vector<Component> components();

// Prints `meshinfo: message` and the hint line to standard error (on the printing rank only).
int fail(const std::exception& error);

// Subcommands, one file each.
void add_show(CLI::App& app, int& status);
void add_rank(CLI::App& app, int& status);
void add_groups(CLI::App& app, int& status);
void add_count(CLI::App& app, int& status);
void add_diff(CLI::App& app, int& status);
void add_explain(CLI::App& app, int& status);
void add_routes(CLI::App& app, int& status);
void add_bench(CLI::App& app, int& status);
void add_tune(CLI::App& app, int& status);
void add_convert(CLI::App& app, int& status);
void add_presets(CLI::App& app, int& status);
void add_version(CLI::App& app, int& status);

}  // namespace meshinfo
