// SPDX-License-Identifier: BSD-3-Clause
#include "output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/base/launcher.hpp"
#include "report/document.hpp"
#include "terminal.hpp"

namespace rankmesh::meshinfo {

using report::Format;

void OutputOptions::add_to(CLI::App& command, const std::vector<std::string>& more,
                           const std::string& path_description, const std::string& flags) {
  std::vector<std::string> formats{"text", "json", "csv"};
  formats.insert(formats.end(), more.begin(), more.end());
  if (has_pictures) formats.insert(formats.end(), {"svg", "html"});
  command.add_option("--format", format, fmt::format("{}", fmt::join(formats, ", ")))
      ->type_name("FORMAT")
      ->check(CLI::IsMember(formats));
  command
      .add_option_function<std::string>(
          flags, [this](const std::string& text) { set_path(text); },
          path_description + "; - is standard output; wide prints without regard to the terminal")
      ->type_name("FILE");
}

void OutputOptions::set_path(const std::string& text) {
  is_wide = text == "wide";
  path = is_wide || text == "-" ? "" : text;
}

bool OutputOptions::is_on_terminal() const {
  return path.empty() && terminal_columns(Stream::output).has_value();
}

std::size_t OutputOptions::width(std::size_t usual) const {
  if (is_wide) return SIZE_MAX;
  return path.empty() ? terminal_columns(Stream::output).value_or(usual) : usual;
}

void OutputOptions::add_short_formats_to(CLI::App& command) {
  for (const char* name : {"json", "csv"})
    command.add_flag_callback(
        fmt::format("--{}", name), [this, name] { format = name; },
        fmt::format("the same as --format {}", name));
}

Format OutputOptions::chosen_format() const {
  std::string name = format;
  if (name.empty()) {
    const auto dot = path.find_last_of('.');
    const std::string extension = dot == std::string::npos ? "" : path.substr(dot + 1);
    // A device or a name without an extension gets text.
    const bool is_picture = has_pictures && (extension == "svg" || extension == "html");
    const bool is_extension = !extension.empty() && extension.find('/') == std::string::npos &&
                              extension != "json" && extension != "csv" && !is_picture;
    if (is_extension && std::ranges::find(text_extensions, extension) == text_extensions.end())
      throw UsageError{fmt::format("there is no format for the extension of '{}'", path),
                       fmt::format("use .txt, .json, .csv{}, or say --format",
                                   has_pictures ? ", .svg or .html" : more_extensions)};
    name = extension;
  }
  if (name == "json") return Format::json;
  if (name == "long") return Format::long_csv;
  if (has_pictures && name == "svg") return Format::svg;
  if (has_pictures && name == "html") return Format::html;
  return name == "csv" ? Format::csv : Format::text;
}

bool OutputOptions::colour() const {
  const char* no_colour = std::getenv("NO_COLOR");
  // A launcher gives its ranks terminals of their own, regardless of where their output goes.
  return path.empty() && !is_launched() && isatty(STDOUT_FILENO) == 1 &&
         (no_colour == nullptr || *no_colour == '\0');
}

namespace {

constexpr double long_time = 1;  // seconds of writing after which progress is shown

[[noreturn]] void refuse_path(const std::string& path, const char* reason) {
  throw UsageError{fmt::format("cannot write '{}': {}", path, reason),
                   "choose another path for -o"};
}

// Opens a new file. In a shared folder, others may have made a link of this name: it is removed and
// never followed.
std::FILE* open_new(const std::string& path, unsigned mode) {
  ::unlink(path.c_str());
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  return descriptor < 0 ? nullptr : ::fdopen(descriptor, "w");
}

}  // namespace

// Only a plain file is replaced. A device and a pipe are written to, and a link is followed.
Output::Output(const std::string& path, unsigned mode) : path_{path}, file_{stdout} {
  namespace fs = std::filesystem;
  if (path_.empty()) return;
  std::error_code error;
  if (fs::is_symlink(path_, error)) path_ = fs::weakly_canonical(path_, error).string();
  if (fs::is_directory(path_, error)) refuse_path(path_, std::strerror(EISDIR));
  const bool is_special = fs::exists(path_, error) && !fs::is_regular_file(path_, error);
  if (!is_special) temporary_ = fmt::format("{}.{}.tmp", path_, getpid());
  remove_if_interrupted(temporary_);
  file_ = is_special ? std::fopen(path_.c_str(), "w") : open_new(temporary_, mode);
  if (file_ == nullptr) refuse_path(path_, std::strerror(errno));
}

Output::~Output() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
  if (temporary_.empty()) return;
  std::remove(temporary_.c_str());
  remove_if_interrupted("");
}

void Output::check(bool written) const {
  if (written) return;
  if (errno == EPIPE && temporary_.empty()) std::_Exit(0);  // the reader has seen enough
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
  remove_if_interrupted("");
}

void write_file(const std::string& path, std::string_view text, unsigned mode) {
  Output output{path, mode};
  output.write(text);
  output.finish();
}

void print(const report::Document& document, const OutputOptions& options, Output& output,
           std::size_t usual_width) {
  Progress progress{!options.is_on_terminal()};
  std::int64_t written = 0;
  const auto write = [&](std::string_view text) {
    output.write(text);
    written += std::ssize(text);
    if (progress.seconds() >= long_time)
      progress.show(fmt::format("{} written", bytes_text(written)));
  };
  report::write(document, options.chosen_format(), write,
                {options.colour(), options.width(usual_width)});
  output.finish();
  if (progress.seconds() >= long_time)
    progress.finish(fmt::format("{} written to {} in {}", bytes_text(written),
                                options.path.empty() ? "standard output" : options.path,
                                duration_text(progress.seconds())));
}

void print(const report::Document& document, const OutputOptions& options,
           std::size_t usual_width) {
  Output output{options.path};
  print(document, options, output, usual_width);
}

}  // namespace rankmesh::meshinfo
