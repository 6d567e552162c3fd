// meshinfo: prints, explains and checks rank mappings, offline and in a live job.
#include <csignal>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is seen as EPIPE and is no error
  int status = meshinfo::ok;
  CLI::App app{"Prints, explains and checks how a parallel layout maps to ranks.", "meshinfo"};
  app.require_subcommand(1);
  app.footer(
      "MESH is a mesh string (pp=2,dp=4,tp=8: outermost first, the last varies fastest), or a path ending\n"
      "in .toml; where it is left out, the environment variable RANKMESH is read.\n"
      "Exit status: 0 fine, 1 a check failed, 2 wrong usage or a bad mesh.");
  meshinfo::add_show(app, status);
  meshinfo::add_rank(app, status);
  meshinfo::add_groups(app, status);
  meshinfo::add_version(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help
    return meshinfo::is_printing_rank() ? app.exit(success) : meshinfo::ok;
  } catch (const CLI::ParseError& error) {
    return meshinfo::fail(
        rankmesh::UsageError{error.what(), "meshinfo --help lists the subcommands and their options"});
  } catch (const std::exception& error) {
    return meshinfo::fail(error);
  }
  return status;
}
