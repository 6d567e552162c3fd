// SPDX-License-Identifier: BSD-3-Clause
#include "trace.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "command.hpp"
#include "rankmesh/base/error.hpp"
#include "record/alignment.hpp"
#include "record/detail/image.hpp"
#include "record/other_meshes.hpp"
#include "report/reports.hpp"
#include "report/timeline.hpp"
#include "source_lines.hpp"

namespace rankmesh::meshinfo {

using record::Finding;

void report_remark(const std::string& remark) {
  std::fputs(fmt::format("meshinfo: {}\n", record::detail::printable(remark)).c_str(), stderr);
}

namespace {

// A number is a process id, even if a folder has this name.
std::vector<record::Source> sources_of_number(const std::string& number) {
  try {
    return record::sources_of_process(std::stoll(number));
  } catch (const UsageError& error) {
    std::error_code none;
    if (!std::filesystem::exists(number, none)) throw;
    const std::string hint =
        fmt::format("a number is a process id; write ./{} for the folder", number);
    throw UsageError{error.message(), hint};
  }
}

}  // namespace

std::vector<record::Source> sources_of(const std::string& target) {
  const bool is_number = !target.empty() && target.size() <= 10 &&
                         std::ranges::all_of(target, [](char c) { return c >= '0' && c <= '9'; });
  if (is_number) return sources_of_number(target);
  if (!target.empty()) return record::sources_in(target);
  auto sources = record::sources_of_user();
  if (sources.empty())
    throw UsageError{"no process of this user on this node has a record",
                     "run meshinfo on a node of the job, as the user of the job, while its Mesh is "
                     "open; or give the folder that RANKMESH_RECORD names"};
  return sources;
}

Records read_records(const TraceOptions& options) {
  record::Records found = record::read_all(sources_of(options.target));
  for (const std::string& remark : found.remarks) report_remark(remark);
  record::add_waits_in_other_meshes(found.records);
  if (options.mesh.empty()) return std::move(found.records);
  std::erase_if(found.records, [&](const record::Record& record) {
    return record.mesh != options.mesh && fmt::format("{:016x}", record.mesh_key) != options.mesh;
  });
  if (found.records.empty())
    throw UsageError{fmt::format("no record belongs to the mesh '{}'", options.mesh),
                     "leave --mesh out to see all meshes"};
  return std::move(found.records);
}

namespace {

constexpr std::string_view page_ending = ".html";

// Whether the path names a timeline.
bool is_timeline(const std::string& path) {
  return path.ends_with(".trace.json") || path.ends_with(page_ending);
}

// Writes the timeline of one mesh to a file.
void write_timeline(const std::vector<Records>& meshes, const record::Diagnosis& diagnosis,
                    const std::string& path) {
  if (meshes.size() > 1)
    throw UsageError{"the records belong to several meshes, and a timeline shows one",
                     fmt::format("choose one with --mesh, for example --mesh {:016x}",
                                 meshes[1].front().mesh_key)};
  const Records aligned = record::align(meshes.front());
  std::vector<std::string> sentences;
  for (const Finding& finding : diagnosis.findings)
    sentences.push_back(fmt::format("{}: {}", to_string(finding.severity), finding.text));
  Output output{path};
  const auto write = [&](std::string_view text) { output.write(text); };
  if (path.ends_with(page_ending))
    report::write_html(write, aligned, sentences);
  else
    report::write_trace_events(write, aligned);
  output.finish();
}

bool is_trouble(const Finding& finding) { return finding.severity != Finding::Severity::note; }

// Prints the trace, and writes the timeline if the options have one.
int print_trace(const TraceOptions& options) {
  OutputOptions output = options.output;
  const std::string timeline = is_timeline(output.path) ? output.path : "";
  if (!timeline.empty()) output.path.clear();
  static_cast<void>(output.chosen_format());  // a wrong ending is refused before the work
  Records records = read_records(options);
  find_source_lines(records);
  const std::vector<Records> meshes = record::by_mesh(records);
  bool has_trouble = false;
  std::vector<record::Diagnosis> diagnoses;
  for (const Records& mesh : meshes) {
    diagnoses.push_back(record::diagnose(mesh));
    if (std::ranges::any_of(diagnoses.back().findings, is_trouble)) has_trouble = true;
  }
  if (!timeline.empty()) write_timeline(meshes, diagnoses.front(), timeline);
  print(report::trace(meshes, diagnoses), output);
  return has_trouble ? check_failed : ok;
}

// An empty value would have the same effect as an option that was left out.
void refuse_empty(const CLI::App& command, const char* name, const std::string& value) {
  if (value.empty() && command.count(name) > 0)
    throw UsageError{fmt::format("{} has an empty value", name),
                     "is a variable of the shell not set?"};
}

int run_trace(TraceOptions options, Job& job) {
  for (const auto& [name, value] :
       {std::pair{"PID|DIR", &options.target}, std::pair{"--collect", &options.collect},
        std::pair{"--mesh", &options.mesh}})
    refuse_empty(*options.command, name, *value);
  if (options.interval && (!options.collect.empty() || !options.output.path.empty()))
    throw UsageError{"--follow prints to the standard output only",
                     "leave --collect and -o out, or leave --follow out"};
  if (!options.collect.empty()) {
    collect(options, job);
    options.target = options.collect;
  }
  if (!job.prints()) return ok;
  if (!options.interval) return print_trace(options);
  follow(options);
  return ok;
}

// The number after --follow may be left out.
void add_follow(CLI::App& command, TraceOptions& options) {
  const auto read = [&options](const CLI::results_t& texts) {
    const std::string text = texts.empty() || texts.front() == "true" ? "" : texts.front();
    double seconds = 1;
    if (!text.empty() &&
        (!CLI::detail::lexical_cast(text, seconds) || !(seconds >= 0.1) || seconds > 86400))
      throw UsageError{fmt::format("--follow takes seconds from 0.1 to 86400, got '{}'", text),
                       CLI::detail::lexical_cast(text, seconds)
                           ? "write such a number"
                           : "write the process id or the folder before --follow"};
    options.interval = seconds;
    return true;
  };
  command.add_option("--follow", read, "show what the job does, every second or every SECONDS")
      ->type_name("SECONDS")
      ->expected(0, 1);
}

}  // namespace

void add_trace(CLI::App& app, Program& program) {
  auto [command, options] = add_command<TraceOptions>(
      app, program, "trace", "a running or ended job: what each rank is in, and why the job hangs",
      run_trace);
  options.command = &command;
  add_word(command, "PID|DIR", options.target, "FILE",
           "a rank of the job or its launcher, or a folder of records (default: all "
           "jobs of this user on this node)");
  add_word(command, "--mesh", options.mesh, "MESH", "only the meshes with this description or key");
  add_follow(command, options);
  add_word(command, "--collect", options.collect, "FOLDER",
           "copy the records of all nodes into this folder first; start with mpirun, one "
           "process per node");
  options.output.more_extensions = ", .html or .trace.json";
  options.output.add_to(
      command, {},
      "write to a file; its extension picks the format. FILE.trace.json (for Perfetto) and "
      "FILE.html get a timeline, and the trace is printed too");
  options.output.add_short_formats_to(command);
}

}  // namespace rankmesh::meshinfo
