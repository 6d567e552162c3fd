// meshinfo: prints, explains and checks rank mappings, offline and in a live job.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string_view>

#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is seen as EPIPE and is no error
  int status = meshinfo::ok;
  CLI::App app{"Prints, explains and checks how a parallel layout maps to ranks.", "meshinfo"};
  app.require_subcommand(
      0, 1);  // none is refused below; CLI11 would not name a word that it does not know
  app.footer(
      "MESH is a mesh string (pp=2,dp=4,tp=8: outermost first, the last varies fastest), a preset\n"
      "(megatron:tp=8,pp=16; meshinfo presets lists them) or a path ending in .toml; where it is "
      "left out,\n"
      "the environment variable RANKMESH is read.\n"
      "Exit status: 0 fine, 1 a check failed, 2 wrong usage or a bad mesh.");
  meshinfo::add_show(app, status);
  meshinfo::add_rank(app, status);
  meshinfo::add_groups(app, status);
  meshinfo::add_count(app, status);
  meshinfo::add_diff(app, status);
  meshinfo::add_explain(app, status);
  meshinfo::add_routes(app, status);
  meshinfo::add_bench(app, status);
  meshinfo::add_tune(app, status);
  meshinfo::add_convert(app, status);
  meshinfo::add_presets(app, status);
  meshinfo::add_version(app, status);
  // Known before parsing, so that a usage error is said by whom it concerns.
  if (std::find(argv + 1, argv + argc, std::string_view{"--offline"}) != argv + argc)
    meshinfo::ignore_job();
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty())
      throw rankmesh::UsageError{
          "no subcommand is given",
          "use show, rank, groups, count, diff, explain, routes, bench, tune, convert, presets or "
          "version; see meshinfo --help"};
  } catch (const CLI::Success& success) {  // --help
    return meshinfo::is_printing_rank() ? app.exit(success) : meshinfo::ok;
  } catch (const CLI::ParseError& error) {
    return meshinfo::fail(rankmesh::UsageError{
        error.what(), "meshinfo --help lists the subcommands and their options"});
  } catch (const std::exception& error) {
    return meshinfo::fail(error);
  }
  return status;
}
