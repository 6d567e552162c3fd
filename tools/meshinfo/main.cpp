// SPDX-License-Identifier: BSD-3-Clause
// meshinfo: prints, explains and checks rank mappings, offline and in a live job.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "command_model.hpp"
#include "launcher.hpp"
#include "meshinfo.hpp"
#include "output.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/version.hpp"
#include "report/write.hpp"
#include "terminal.hpp"

namespace rankmesh::meshinfo {
namespace {

constexpr const char* notes_of_meshinfo =
    "Mesh:\n"
    "MESH is a mesh string (pp=2,dp=4,tp=8: outermost first, the last varies\n"
    "fastest), a preset (megatron:tp=8,pp=16; meshinfo presets lists them) or a path\n"
    "that ends in .toml or .json. If it is left out, the environment variable\n"
    "RANKMESH is read.\n"
    "\n"
    "Examples:\n"
    "  meshinfo show pp=2,dp=4,tp=8\n"
    "  mpirun -n 8 meshinfo show dp=2,tp=4\n"
    "  meshinfo rank megatron:tp=8,pp=16,world_size=256 3 17 40-43\n"
    "\n"
    "Exit status:\n"
    "0 for success, 1 if a check failed, and 2 for wrong usage or an invalid mesh.";

void add_subcommands(CLI::App& app, Program& program) {
  for (const auto add :
       {add_show,     add_rank,     add_describe, add_groups, add_count,  add_diff,
        add_explain,  add_routes,   add_bench,    add_trace,  add_doctor, add_tune,
        add_check,    add_estimate, add_search,   add_plan,   add_emit,   add_shrink,
        add_transfer, add_convert,  add_presets,  add_version})
    add(app, program);
  add_completion(app);
  add_manual_pages(app);
  add_help(app);  // last: it offers the names of the others
}

void print_help(const CLI::App& command) {
  constexpr std::size_t usual_width = 80;  // of a pipe: help is prose
  if (!is_printing_rank()) return;
  const OutputOptions options;
  Output output{""};
  report::write(help_of(model_of(command)), report::Format::text,
                [&](std::string_view text) { output.write(text); },
                {options.colour(), terminal_columns(Stream::output).value_or(usual_width)});
  output.finish();
}

// Runs the command of the arguments. Help and the version are printed here, so that main() sees an
// error of their output too.
void run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) throw no_command(app);
  } catch (const HelpCall& call) {  // meshinfo help
    print_help(*call.command);
  } catch (const CLI::CallForHelp&) {  // --help
    print_help(command_of_call(app));
  } catch (const CLI::CallForVersion& version) {  // --version
    if (is_printing_rank()) write_file("", fmt::format("{}\n", version.what()));
  }
}

// A message may quote the user's text. It is cut, and its control characters are replaced, so that
// it can neither end the line nor control a terminal.
std::string on_one_line(std::string text) {
  constexpr std::size_t most = 600;
  if (text.size() > most)
    text = text.substr(0, most / 2) + " ... " + text.substr(text.size() - most / 4);
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return text;
}

// Prints `meshinfo: message` and the hint line to standard error, on the printing rank only.
int fail(const std::exception& error) {
  if (!is_printing_rank()) {
    // A launcher ends the job at the first rank that fails, so rank 0 gets time for its message.
    std::this_thread::sleep_for(std::chrono::seconds{1});
    return wrong_usage;
  }
  const auto* own = dynamic_cast<const Error*>(&error);
  std::string message = own != nullptr ? own->message() : error.what();
  // A disagreement lists its variants on lines of their own.
  if (dynamic_cast<const MismatchError*>(&error) == nullptr) message = on_one_line(message);
  const std::string hint = own != nullptr ? on_one_line(own->hint()) : "";
  std::fputs(fmt::format("meshinfo: {}\n", message).c_str(), stderr);
  if (!hint.empty()) std::fputs(fmt::format("  hint: {}\n", hint).c_str(), stderr);
  return wrong_usage;
}

}  // namespace
}  // namespace rankmesh::meshinfo

int main(int argc, char** argv) {
  using namespace rankmesh::meshinfo;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is seen as EPIPE and is no error
  Program program;
  CLI::App app{"prints, explains and checks how a parallel layout maps to ranks", "meshinfo"};
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("--version", fmt::format("meshinfo {}", rankmesh::version_string()),
                       "print the version of rankmesh");
  // A missing subcommand is refused below: CLI11 would not name an unknown word.
  app.require_subcommand(0, 1);
  add_subcommands(app, program);
  app.footer(notes_of_meshinfo);  // last: commands that have none of their own would take it over
  if (argc > 1 && argv[1] == std::string_view{"complete"})
    return print_offers(app, {argv + 2, argv + argc});
  // Known before parsing, since it decides which ranks report a usage error.
  if (std::find(argv + 1, argv + argc, std::string_view{"--offline"}) != argv + argc) ignore_job();
  try {
    run(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    return fail(wrong_usage_of(app, error));
  } catch (const std::exception& error) {
    const int status = fail(error);
    program.job.abort(status);
    return status;
  }
  return program.status;
}
