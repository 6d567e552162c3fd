// SPDX-License-Identifier: BSD-3-Clause
// meshinfo: prints, explains and checks rank mappings, offline and in a live job.
#include <algorithm>
#include <csignal>
#include <string_view>

#include "launcher.hpp"
#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"

namespace {

void add_subcommands(CLI::App& app, meshinfo::Program& program) {
  meshinfo::add_show(app, program);
  meshinfo::add_rank(app, program);
  meshinfo::add_groups(app, program);
  meshinfo::add_count(app, program);
  meshinfo::add_diff(app, program);
  meshinfo::add_explain(app, program);
  meshinfo::add_routes(app, program);
  meshinfo::add_bench(app, program);
  meshinfo::add_trace(app, program);
  meshinfo::add_doctor(app, program);
  meshinfo::add_tune(app, program);
  meshinfo::add_check(app, program);
  meshinfo::add_estimate(app, program);
  meshinfo::add_plan(app, program);
  meshinfo::add_emit(app, program);
  meshinfo::add_convert(app, program);
  meshinfo::add_presets(app, program);
  meshinfo::add_version(app, program);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is seen as EPIPE and is no error
  meshinfo::Program program;
  CLI::App app{"Prints, explains and checks how a parallel layout maps to ranks.", "meshinfo"};
  // A missing subcommand is refused below: CLI11 would not name an unknown word.
  app.require_subcommand(0, 1);
  app.footer(
      "MESH is a mesh string (pp=2,dp=4,tp=8: outermost first, the last varies fastest), a preset\n"
      "(megatron:tp=8,pp=16; meshinfo presets lists them) or a path ending in .toml. If it is "
      "left\n"
      "out, the environment variable RANKMESH is read.\n"
      "Exit status: 0 success, 1 a check failed, 2 wrong usage or a bad mesh.");
  add_subcommands(app, program);
  // Known before parsing, since it decides which ranks report a usage error.
  if (std::find(argv + 1, argv + argc, std::string_view{"--offline"}) != argv + argc)
    meshinfo::ignore_job();
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty())
      throw rankmesh::UsageError{
          "no subcommand is given",
          "use show, rank, groups, count, diff, explain, routes, bench, "
          "trace, doctor, tune, check, estimate, plan, emit, convert, presets or version; "
          "see meshinfo --help"};
  } catch (const CLI::Success& success) {  // --help
    return meshinfo::is_printing_rank() ? app.exit(success) : meshinfo::ok;
  } catch (const CLI::ParseError& error) {
    return meshinfo::fail(rankmesh::UsageError{
        error.what(), "meshinfo --help lists the subcommands and their options"});
  } catch (const std::exception& error) {
    const int status = meshinfo::fail(error);
    program.job.abort(status);
    return status;
  }
  return program.status;
}
