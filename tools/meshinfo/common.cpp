#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace meshinfo {

using rankmesh::UsageError;
using rankmesh::report::Format;

namespace {

bool job_is_ignored = false;

// The launchers' own variables; SLURM_PROCID alone proves nothing, batch scripts have it too.
bool is_launched() {
  for (const char* name : {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

// What the user wrote may stand in a message: it is cut, and can neither end the line nor steer a
// terminal.
std::string on_one_line(std::string text) {
  constexpr std::size_t most = 600;
  if (text.size() > most)
    text = text.substr(0, most / 2) + " ... " + text.substr(text.size() - most / 4);
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return text;
}

}  // namespace

// Read here, because CLI11 takes 010 for 8 and cuts what 64 bits do not hold.
CLI::Option* add_number(CLI::App& command, const std::string& name, const std::string& description,
                        std::function<void(std::int64_t)> store) {
  const auto read = [name, store = std::move(store)](const CLI::results_t& texts) {
    const std::string& text = texts.front();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size())
      throw UsageError{fmt::format("{}: '{}' is no whole number of 64 bits", name, text),
                       "write decimal digits only"};
    store(number);
    return true;
  };
  return command.add_option(name, read, description)->type_name("INT");
}

void MeshOptions::add_to(CLI::App& command) {
  command
      .add_option("MESH", mesh,
                  "mesh string, preset (meshinfo presets lists them) or path ending in .toml")
      ->envname("RANKMESH");
  add_number(command, "--world-size", "number of ranks, where the mesh leaves it open (auto)",
             [this](std::int64_t number) { world_size = number; });
  command.add_flag("--offline", offline, "ignore the job that this runs in");
}

void OutputOptions::add_to(CLI::App& command, bool has_csv) {
  has_csv_ = has_csv;
  command.add_option("--format", format, has_csv ? "text, json or csv" : "text or json")
      ->check(has_csv ? CLI::IsMember({"text", "json", "csv"}) : CLI::IsMember({"text", "json"}));
  command.add_option("-o,--output", path, "write to a file; its extension picks the format");
}

Format OutputOptions::chosen_format() const {
  std::string name = format;
  if (name.empty()) {
    const auto dot = path.find_last_of('.');
    const std::string extension = dot == std::string::npos ? "" : path.substr(dot + 1);
    // Devices and names without an extension get text; what looks like a form that is not there is
    // refused.
    if (!extension.empty() && extension.find('/') == std::string::npos && extension != "json" &&
        extension != "csv" && extension != "txt" && extension != "text")
      throw UsageError{fmt::format("there is no format for the extension of '{}'", path),
                       "use .txt, .json or .csv, or say --format"};
    name = extension == "json" || extension == "csv" ? extension : "text";
  }
  if (name == "csv" && !has_csv_)
    throw UsageError{fmt::format("there is no CSV form of this, which '{}' asks for", path),
                     "use the extension .json or .txt"};
  if (name == "json") return Format::json;
  return name == "csv" ? Format::csv : Format::text;
}

bool OutputOptions::colour() const {
  const char* no_colour = std::getenv("NO_COLOR");
  // A launcher gives its ranks terminals of their own, whatever their output goes to.
  return path.empty() && !is_launched() && isatty(STDOUT_FILENO) == 1 &&
         (no_colour == nullptr || *no_colour == '\0');
}

namespace {

[[noreturn]] void refuse_path(const std::string& path, const char* reason) {
  throw UsageError{fmt::format("cannot write '{}': {}", path, reason),
                   "choose another path for -o"};
}

}  // namespace

// Only a plain file is replaced: a device, a pipe and the file behind a link stay what they are.
Output::Output(const OutputOptions& options) : path_{options.path}, file_{stdout} {
  namespace fs = std::filesystem;
  if (path_.empty()) return;
  std::error_code error;
  if (fs::is_symlink(path_, error)) path_ = fs::weakly_canonical(path_, error).string();
  if (fs::is_directory(path_, error)) refuse_path(path_, std::strerror(EISDIR));
  const bool is_special = fs::exists(path_, error) && !fs::is_regular_file(path_, error);
  if (!is_special) temporary_ = fmt::format("{}.{}.tmp", path_, getpid());
  file_ = std::fopen((is_special ? path_ : temporary_).c_str(), "w");
  if (file_ == nullptr) refuse_path(path_, std::strerror(errno));
}

Output::~Output() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void Output::check(bool written) const {
  if (written) return;
  if (errno == EPIPE && temporary_.empty()) std::_Exit(ok);  // the reader has seen enough
  throw UsageError{fmt::format("cannot write the output: {}", std::strerror(errno)),
                   "is the disk full?"};
}

void Output::write(std::string_view text) {
  check(std::fwrite(text.data(), 1, text.size(), file_) == text.size());
}

void Output::finish() {
  check(std::fflush(file_) == 0);
  if (file_ == stdout) return;
  check(std::fclose(std::exchange(file_, nullptr)) == 0);
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) refuse_path(path_, std::strerror(errno));
  temporary_.clear();
}

void ignore_job() { job_is_ignored = true; }

bool is_in_job() { return !job_is_ignored && is_launched(); }

bool is_printing_rank() {
  if (job_is_ignored) return true;
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char* rank = std::getenv(name)) return std::strcmp(rank, "0") == 0;
  return true;
}

int fail(const std::exception& error) {
  if (!is_printing_rank()) {
    // A launcher ends the job at the first rank that fails: leave rank 0 the time to say why.
    std::this_thread::sleep_for(std::chrono::seconds{1});
    return wrong_usage;
  }
  const auto* own = dynamic_cast<const rankmesh::Error*>(&error);
  std::string message = own != nullptr ? own->message() : error.what();
  // A disagreement lists its variants on lines of their own.
  if (dynamic_cast<const rankmesh::MismatchError*>(&error) == nullptr)
    message = on_one_line(message);
  const std::string hint = own != nullptr ? on_one_line(own->hint()) : "";
  std::fputs(fmt::format("meshinfo: {}\n", message).c_str(), stderr);
  if (!hint.empty()) std::fputs(fmt::format("  hint: {}\n", hint).c_str(), stderr);
  return wrong_usage;
}

namespace {

void require_mesh(const MeshOptions& options) {
  if (options.mesh.empty())
    throw UsageError{"no mesh is given",
                     "give a mesh string such as pp=2,dp=4,tp=8, or set RANKMESH"};
}

}  // namespace

rankmesh::MeshSpec read_spec(const MeshOptions& options) {
  require_mesh(options);
  return rankmesh::MeshSpec::parse(options.mesh);
}

int run(const Request& request) {
  require_mesh(request.mesh);
  if (is_in_job()) return run_in_job(request);
  return request.print(read_spec(request.mesh).plan(request.mesh.world_size), nullptr);
}

}  // namespace meshinfo
