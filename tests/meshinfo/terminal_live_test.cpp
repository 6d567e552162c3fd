// SPDX-License-Identifier: BSD-3-Clause
// Tests jobs on a terminal: progress, the width, pictures, and the end by Ctrl-C.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "process.hpp"
#include "support/checks.hpp"

namespace {

using rankmesh_test::lines_of;
using rankmesh_test::Scratch;
using rankmesh_test::shell;
using rankmesh_test::shell_on_terminal;

}  // namespace

TEST_CASE("tune shows its progress on a terminal, and nothing in a pipe") {
  const Scratch scratch;
  const std::string command =
      "run-mpi 3 meshinfo tune tp=3 --op all_reduce,barrier -b 8 -e 64 -n 2 -o t.routes";
  const std::string shown = shell_on_terminal(scratch, command).out;
  CHECK_CONTAINS(shown, "[0/5] tp barrier");
  CHECK_CONTAINS(shown, "tune: 5 measurements in ");
  CHECK(scratch.has("t.routes"));
  const auto quiet = shell(scratch, command);
  CHECK(quiet.status == 0);
  CHECK(quiet.out + quiet.err == "");
}

TEST_CASE("bench fits the terminal of the launcher") {
  const Scratch scratch;
  const auto result =
      shell_on_terminal(scratch, "run-mpi 2 meshinfo bench tp=2 -b 8 -e 1K -f 16 -n 2", {}, 80);
  CHECK(result.status == 0);
  CHECK_CONTAINS(result.out, "# type float32, redop sum, root 0");
  for (const std::string& line : lines_of(result.out)) CHECK(line.size() <= 81);  // with a return
  const auto full = shell(scratch, "run-mpi 2 meshinfo bench tp=2 -b 8 -e 1K -f 16 -n 2");
  CHECK_CONTAINS(full.out, "   redop    root ");
}

TEST_CASE("bench and tune draw their curves") {
  const Scratch scratch;
  const auto bench = shell(scratch,
                           "run-mpi 3 meshinfo bench tp=3 --op all_reduce,barrier -b 16 "
                           "-e 1K -f 4 -n 2 -o curve.svg && run-mpi 3 meshinfo tune tp=3 "
                           "--op all_reduce -b 16 -e 256 -f 4 -n 2 -o tune.svg");
  CHECK(bench.status == 0);
  CHECK_CONTAINS(bench.out, "# Out of bounds values : 0 OK");
  const std::string curve = scratch.read("curve.svg");
  for (const std::string part : {"<svg ", "tp all_reduce: time in us", "bus bandwidth in GB/s",
                                 "in-place: 16 bytes", "</svg>"})
    CHECK_CONTAINS(curve, part);
  CHECK_LACKS(curve, "barrier");  // it has no sizes
  CHECK_LACKS(curve, "nan");
  // On a terminal, the rows of the table are the progress.
  const auto shown = shell_on_terminal(
      scratch, "run-mpi 2 meshinfo bench tp=2 -b 16 -e 1K -f 4 -n 2 -o curve.svg");
  CHECK_CONTAINS(shown.out, "# type float32");
  CHECK_LACKS(shown.out, "[0/");
  CHECK_CONTAINS(scratch.read("tune.svg"), "shm: ");
}

TEST_CASE("tune writes a mesh file that keeps what the mesh says") {
  const Scratch scratch;
  const auto result = shell(scratch,
                            "cat >m.toml <<'EOF'\n"
                            "mesh = \"dp=2,tp=2\"\nsource = 'a \"book\"'\n"
                            "routes = \"*.*:host=mpi\"\n[options.tp]\npriority = -1\n"
                            "EOF\n"
                            "run-mpi 4 meshinfo tune m.toml --dim tp --op barrier -n 2 -o "
                            "new.toml && meshinfo convert new.toml && "
                            "meshinfo routes new.toml --format json");
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK_CONTAINS(result.out, "priority = -1");
  CHECK_CONTAINS(result.out, "source = \"a \\\"book\\\"\"");
  CHECK_CONTAINS(result.out, "# meshinfo tune m.toml: 4 ranks");
  CHECK_LACKS(scratch.read("new.toml"), "*.*:host=mpi");
  CHECK(scratch.read("new.toml") == result.out.substr(0, scratch.read("new.toml").size()));
}

TEST_CASE("the long form has the hosts of a job") {
  const Scratch scratch;
  const auto lines = lines_of(shell(scratch, "run-mpi 3 meshinfo groups tp=3 --format long").out);
  REQUIRE(lines.size() >= 4);
  CHECK(lines[0].starts_with("rank,name,group,rank_in_group,size,host,node,local_rank,process"));
  CHECK(lines[3].starts_with("2,tp,0,2,3,"));
  CHECK_CONTAINS(lines[3], ",0,2,");  // on node 0 as local rank 2
}

TEST_CASE("Ctrl-C leaves neither half a file nor a rank behind") {
  const Scratch scratch;
  // Ctrl-C is a signal for all processes of the terminal's foreground. The name of the file tells
  // the ranks of this test from others. Open MPI gives ranks one second between SIGTERM and
  // SIGKILL, in which a busy machine may let them stand still. MPICH gives them no time at all, so
  // that a file without its name may stay.
  const auto result =
      shell(scratch,
            "trap : INT; name=$(basename $PWD).json; export OMPI_MCA_odls_base_sigkill_timeout=3\n"
            "(until ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q \" $PWD/\"; do sleep 0.05; done; "
            "kill -INT 0) &\n"
            "run-mpi 3 meshinfo bench tp=3 -b 8 -e 8 -n 2000000000 --output $name >/dev/null 2>&1\n"
            "test $? != 0 || echo 'the job did not end by the signal'\n"
            "left=100; while pgrep -f \"meshinfo bench.*$name\" >/dev/null && test $left -gt 0; do "
            "sleep 0.1; left=$((left - 1)); done\n"
            "pgrep -fa \"meshinfo bench.*$name\"; ls | grep -v "
            "\"^$name.*[.]${RANKMESH_MPICH_IDLE:+tmp}$\"");
  CHECK(result.out == "files\nmeshes\nspecs\n");
}
