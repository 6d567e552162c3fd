// SPDX-License-Identifier: BSD-3-Clause
// Tests that golden files cannot express: size limits, memory, pipes, terminals, files.
#include <doctest/doctest.h>

#include <string>

#include "process.hpp"
#include "support/checks.hpp"

namespace {

using rankmesh_test::lines_of;
using rankmesh_test::Scratch;
using rankmesh_test::shell;

// `count` entries of `first`, `second`, ... with a number in the place of '#'.
std::string listed(int count, const std::string& pattern, const std::string& separator) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += i > 0 ? separator : "";
    for (const char c : pattern) text += c == '#' ? std::to_string(i) : std::string{c};
  }
  return text;
}

}  // namespace

TEST_CASE("show stays under 50 lines") {
  const Scratch scratch;
  const std::string many_names = "a=2,b=2,c=2,d=2 ; " + listed(200, "n#=a*b", ", ");
  for (const std::string& mesh :
       {std::string{"tp=1"}, std::string{"dp=16,tp=8"}, std::string{"dp=17,tp=8"},
        std::string{"dp=100000,tp=8"}, std::string{"a=1073741824"},
        std::string{"a=9223372036854775807"}, listed(32, "d#=1", ","), listed(30, "d#=2", ","),
        listed(16, "a=4,b=4,v#=4", " | "), listed(16, "v#=16", " | "),
        listed(16, "a=4,b=2,c=2,v#=1", " | "), many_names,
        listed(31, "a_name_of_many_letters_that_nobody_would_ever_want_to_type_#=1", ",") +
            ",z=4"}) {
    CAPTURE(mesh);
    const auto result = shell(scratch, "meshinfo show '" + mesh + "'");
    CHECK(result.status == 0);
    const auto lines = lines_of(result.out);
    CHECK(lines.size() < 50);
    CHECK(lines.size() >= 5);
    for (const auto& line : lines) CHECK(line.size() < 500);
  }
}

TEST_CASE("a reader that closes the pipe early is no error") {
  const Scratch scratch;
  const auto result =
      shell(scratch, "{ meshinfo groups dp=524288,tp=8; echo \"[exit $?]\" >&2; } | head -n 1");
  CHECK(result.out == "dp  8 groups of 524288\n");
  CHECK(result.err == "[exit 0]\n");
}

TEST_CASE("output that cannot be written is an error") {
  const Scratch scratch;
  for (const std::string command :
       {"meshinfo show tp=2 >/dev/full", "meshinfo groups dp=65536,tp=8 >/dev/full",
        "meshinfo version >/dev/full", "meshinfo --version >/dev/full", "meshinfo help >/dev/full",
        "meshinfo show --help >/dev/full", "meshinfo show tp=2 -o /dev/full"}) {
    CAPTURE(command);
    const auto result = shell(scratch, command);
    CHECK(result.status == 2);
    CHECK(result.err.starts_with("meshinfo: cannot write"));
  }
}

TEST_CASE("groups of 4 million ranks take constant memory") {
  const Scratch scratch;
  for (const std::string format : {"text", "json", "csv", "long"}) {
    const std::string command = "exec meshinfo groups dp=2097152,tp=2 --dim tp --format " + format;
    const auto result = shell(scratch, command + " >/dev/null");
    CHECK(result.status == 0);
#if !defined(__SANITIZE_ADDRESS__)
    CHECK(result.peak_kib < 50 * 1024);
#endif
  }
  // A group of all ranks is too long for the memory too.
  const auto result = shell(scratch, "exec meshinfo groups all=4194304 --format json >/dev/null");
  CHECK(result.status == 0);
#if !defined(__SANITIZE_ADDRESS__)
  CHECK(result.peak_kib < 50 * 1024);
#endif
}

TEST_CASE("colour goes to a terminal only") {
  const Scratch scratch;
  const std::string command = "meshinfo show dp=2,tp=2";
  CHECK_CONTAINS(shell_on_terminal(scratch, command).out, "\x1b");
  CHECK_LACKS(shell_on_terminal(scratch, command, {"NO_COLOR=1"}).out, "\x1b");
  CHECK_LACKS(shell_on_terminal(scratch, command + " | cat").out, "\x1b");
  CHECK_LACKS(shell_on_terminal(scratch, command + " --format json").out, "\x1b");
  CHECK_LACKS(shell_on_terminal(scratch, command + " -o f; cat f").out, "\x1b");
}

TEST_CASE("a file is written completely or not at all") {
  const Scratch scratch;
  REQUIRE(shell(scratch, "echo old >f.json; meshinfo rank 9 tp=2 -o f.json").status == 2);
  CHECK(scratch.read("f.json") == "old\n");
  REQUIRE(shell(scratch, "meshinfo show tp=2 -o nowhere/f.json").status == 2);
  CHECK_FALSE(scratch.has("nowhere"));
  REQUIRE(shell(scratch, "mkdir d; meshinfo show tp=2 -o d").status == 2);
  REQUIRE(
      shell(scratch, "meshinfo groups dp=65536,tp=8 -o f.json; test $(wc -l <f.json) = 1").status ==
      0);
  CHECK(shell(scratch, "ls").out ==
        "d\nf.json\nfiles\nmeshes\nspecs\n");  // no temporary file is left
}

TEST_CASE("-o - is standard output for emitted files, too") {
  const Scratch scratch;
  const std::string emit = "meshinfo emit openmpi tp=4 --ranks-per-node 2";
  const auto result = shell(scratch, emit + " -o -");
  CHECK(result.status == 0);
  CHECK(result.out == shell(scratch, emit).out);
  CHECK_FALSE(scratch.has("-"));
}

TEST_CASE("a range of ranks that is too large is refused at once") {
  const Scratch scratch;
  const auto ranks = shell(scratch, "meshinfo rank dp=2,tp=4 0-99999999999");
  CHECK(ranks.status == 2);
  CHECK_CONTAINS(ranks.err, "'0-99999999999' makes more than 1048576 ranks");
  const auto lost = shell(scratch, "meshinfo shrink dp=2,tp=4 --lost 0-99999999999");
  CHECK(lost.status == 2);
  CHECK_CONTAINS(lost.err, "--lost has 100000000000 ranks, but there are 8");
}

TEST_CASE("transfer --element refuses what it would ignore") {
  const Scratch scratch;
  const std::string element =
      "meshinfo transfer '[8] f32 @ tp=2 : (tp)' '[8] f32 @ tp=4 : (tp)' --element 1";
  for (const char* ignored : {" --run", " --format json", " -o f.csv"})
    CHECK_CONTAINS(shell(scratch, element + ignored).err, "--element prints a text");
}

TEST_CASE("doctor --offline does not judge the launcher of a job that it does not join") {
  const Scratch scratch;
  const auto result =
      shell(scratch,
            "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0 meshinfo doctor --offline "
            "--format json");
  CHECK_LACKS(result.out, "although the launcher started");
  CHECK_CONTAINS(result.out, "rankmesh.doctor/1");
}

TEST_CASE("a dot in the name of a folder is no extension") {
  const Scratch scratch;
  REQUIRE(shell(scratch, "mkdir d.x; meshinfo show tp=2 -o d.x/f").status == 0);
  CHECK(scratch.read("d.x/f").starts_with("mesh  tp=2"));
  CHECK(shell(scratch, "meshinfo show tp=2 -o f.x").status == 2);
}

TEST_CASE("control characters of an argument do not reach the terminal") {
  const Scratch scratch;
  const auto result = shell(scratch, "meshinfo show tp=2 -o \"$(printf 'nowhere/a\\177b\\033c')\"");
  CHECK(result.status == 2);
  CHECK_CONTAINS(result.err, "nowhere/a?b?c");
}

TEST_CASE("control characters of a file's name do not reach the terminal") {
  const Scratch scratch;
  const auto result = shell(
      scratch,
      "make-records running jobs; echo text >\"jobs/a$(printf '\\033[31m\\302\\233')b.rankmesh\";"
      "meshinfo trace jobs");
  CHECK(result.status == 0);
  CHECK(result.err == "meshinfo: 'jobs/a [31m b.rankmesh' is not a record of rankmesh\n");
}

TEST_CASE("the sizes of bench: one size alone and the largest are valid") {
  const Scratch scratch;
  for (const std::string sizes : {"-b 8 -e 8", "-b 1024 -e 1K", "-b 1048576G -e 1048576G"}) {
    CAPTURE(sizes);  // there is no job, which is found after the options are read
    const auto result = shell(scratch, "meshinfo bench tp=4 " + sizes);
    CHECK(result.status == 2);
    CHECK_LACKS(result.err, "-b");
  }
  CHECK_CONTAINS(shell(scratch, "meshinfo bench tp=4 -b 1048577G -e 1048577G").err,
                 "-b must be a size in bytes");
  CHECK_CONTAINS(shell(scratch, "meshinfo bench tp=4 -b 9 -e 8").err, "-b 9 is above -e 8");
}

TEST_CASE("a link or a pipe in the place of the file is kept") {
  const Scratch scratch;
  REQUIRE(shell(scratch, "touch real; ln -s real link; meshinfo show tp=2 -o link").status == 0);
  CHECK(shell(scratch, "test -L link && test -s real").status == 0);
  REQUIRE(shell(scratch, "mkfifo pipe; cat pipe & meshinfo show tp=2 -o pipe; wait")
              .out.starts_with("mesh  tp=2"));
  CHECK(shell(scratch, "test -p pipe").status == 0);
}

TEST_CASE("a link in the place of the temporary file is not followed") {
  const Scratch scratch;
  const auto result = shell(scratch,
                            "echo kept >other; ln -s other new.txt.$$.tmp; umask 022;"
                            "exec meshinfo show tp=2 -o new.txt");
  CHECK(result.status == 0);
  CHECK(scratch.read("other") == "kept\n");
  CHECK(shell(scratch, "stat -c %F,%a new.txt").out == "regular file,644\n");
}

TEST_CASE("copies of records belong to their user alone") {
  const Scratch scratch;
  const auto result = shell(scratch,
                            "umask 022; make-records running jobs;"
                            "meshinfo trace jobs --collect copies >text; stat -c %a copies/*");
  CHECK(result.out == "600\n600\n600\n600\n");
}

TEST_CASE("each mesh that has not ended is followed in a table of its own") {
  const Scratch scratch;
  // The copies have the key of another mesh.
  const std::string copies =
      "mkdir other; cd other; for file in ../jobs/*; do"
      " { head -c 40 $file; printf '\\001'; tail -c +42 $file; } >second-$(basename $file);"
      " done; cd ..; mv other/* jobs;";
  const auto titles = [&](const std::string& job) {
    return shell(scratch, "rm -rf jobs other; make-records " + job + " jobs;" + copies +
                              "make-records running jobs;"
                              "meshinfo trace jobs --follow | grep nodes")
        .out;
  };
  const std::string title = "dp=2,tp=2  4 ranks on 2 nodes, the last 0.0 s\n";
  CHECK(titles("running") == title + title);
  CHECK(titles("ended") == title);
}

TEST_CASE("version lists the libraries") {
  const Scratch scratch;
  const auto lines = lines_of(shell(scratch, "meshinfo version").out);
  REQUIRE(lines.size() >= 2);
  CHECK(lines[0] == "rankmesh      " RANKMESH_EXPECTED_VERSION);
  CHECK(lines[1].starts_with("MPI           "));
  CHECK(lines.at(lines.size() - 5) == "built with");
  CHECK(lines.at(lines.size() - 4).starts_with("  MPI           "));
  CHECK(lines.at(lines.size() - 3).starts_with("  compiler      "));
  SKIP_UNLESS(!rankmesh_test::has_part(lines[1], "not found"),
              "meshinfo was built without MPI and the other libraries");
  // The MPI library of the build is the one that is loaded: "openmpi 4.1.4", "Open MPI v4.1.4".
  const std::string mpi = lines.at(lines.size() - 4);
  CHECK_CONTAINS(lines[1], mpi.substr(mpi.rfind(' ') + 1));
  REQUIRE(lines.size() == 10);
  CHECK(lines[2].starts_with("CUDA runtime  "));
  CHECK(lines[3].starts_with("CUDA driver   "));
  CHECK(lines[4].starts_with("NCCL          "));
  const auto without =
      lines_of(shell(scratch, "RANKMESH_NCCL_LIBRARY=/no/such/libnccl.so meshinfo version").out);
  CHECK_CONTAINS(without.at(4), "not found (");
}

TEST_CASE("help goes to stdout, names every subcommand, and is no error") {
  const Scratch scratch;
  const auto all = shell(scratch, "meshinfo --help");
  CHECK(all.status == 0);
  CHECK(all.err == "");
  for (const std::string name : {"show", "rank", "groups", "version", "RANKMESH"})
    CHECK_CONTAINS(all.out, name);
  for (const std::string name : {"show", "rank", "groups", "version"}) {
    const auto one = shell(scratch, "meshinfo " + name + " --help");
    CHECK(one.status == 0);
    CHECK_CONTAINS(one.out, "--format");
    CHECK(shell(scratch, "meshinfo help " + name).out == one.out);
  }
  CHECK(shell(scratch, "meshinfo help").out == all.out);
  CHECK(shell(scratch, "meshinfo --version").out == "meshinfo " RANKMESH_EXPECTED_VERSION "\n");
}

TEST_CASE("junk of any size is refused in one short line") {
  const Scratch scratch;
  for (const std::string command :
       {"head -c 60000 /dev/zero | tr '\\0' 'x' >j; meshinfo show \"$(cat j)\"",
        "head -c 60000 /dev/zero | tr '\\0' 'x' >j; meshinfo groups tp=2 --dim \"$(cat j)\"",
        "head -c 60000 /dev/zero | tr '\\0' 'x' >j; meshinfo show \"$(cat j).toml\"",
        "head -c 60000 /dev/zero | tr '\\0' 'x' >j; meshinfo \"$(cat j)\"",
        "head -c 60000 /dev/zero | tr '\\0' 'x' >j; meshinfo rank \"$(cat j)\" tp=2",
        "head -c 1000000 /dev/urandom >j.toml; meshinfo show j.toml",
        "(printf 'mesh = \"'; head -c 1000000 /dev/zero | tr '\\0' x; echo '\"') >j.toml; meshinfo "
        "show "
        "j.toml"}) {
    CAPTURE(command);
    const auto result = shell(scratch, command);
    CHECK(result.status == 2);
    CHECK(result.out == "");
    const auto lines = lines_of(result.err);
    CHECK(lines.size() == 2);
    CHECK(result.err.starts_with("meshinfo: "));
    CHECK(result.err.size() < 2000);
  }
}

TEST_CASE("a rank that does not print fails like the one that does") {
  const Scratch scratch;
  // Launchers tell the rank by one of these.
  for (const std::string rank : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    for (const std::string command : {"show --nosuch", "groups tp=2 --format xml", "nosuch"}) {
      CAPTURE(rank);
      CAPTURE(command);
      const auto first = shell(scratch, "meshinfo " + command, {rank + "=0"});
      CHECK(first.status == 2);
      CHECK_CONTAINS(first.err, "meshinfo: ");
      const auto other = shell(scratch, "meshinfo " + command, {rank + "=3"});
      CHECK(other.status == 2);
      CHECK(other.out == "");
      CHECK(other.err == "");
    }
}
