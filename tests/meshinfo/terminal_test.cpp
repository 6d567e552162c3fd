// SPDX-License-Identifier: BSD-3-Clause
// Tests what depends on the terminal: its width, progress, and the end by a signal.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "process.hpp"
#include "support/checks.hpp"

namespace {

using rankmesh_test::lines_of;
using rankmesh_test::Scratch;
using rankmesh_test::shell;
using rankmesh_test::shell_on_terminal;

const std::vector<std::string> plain{"NO_COLOR=1"};

std::string without_returns(std::string text) {
  std::erase(text, '\r');
  return text;
}

// A line may be wider than the terminal only if a single word is.
bool fits(const std::string& line, std::size_t columns) {
  const auto begin = line.find_first_not_of(' ');
  return line.size() <= columns || line.find(' ', begin) == std::string::npos;
}

}  // namespace

TEST_CASE("no line is wider than the terminal") {
  const Scratch scratch;
  for (const std::string command :
       {"show 'pp=4,dp=2,tp=16 ; a=dp*tp'",
        "show meshes/llama3_405b_16384_gpus_long_context.toml",
        "show dp=4,tp=24",
        "rank pp=2,dp=4,tp=8 3 17 40-43",
        "rank megatron:tp=8,cp=16,pp=16,world_size=16384 9",
        "describe dp=512,tp=8 dp",
        "describe dp=64,tp=8 dp:3",
        "diff megatron:tp=8,cp=16,pp=16 llama3:tp=8,cp=16,pp=16,dp=8 --world-size 16384",
        "count megatron:world_size=16384,tp=8,pp=16,ep=64,etp=1",
        "explain order pp=2,dp=2,tp=4",
        "explain rank 13 pp=2,dp=2,tp=4",
        "routes pp=2,dp=2,tp=4",
        "presets",
        "presets megatron",
        "show pp=2,dp=2,tp=4 --ranks-per-node 4 --nodes-per-leaf 2",
        "rank dp=4,tp=8 3 17 --ranks-per-node 4 --nodes-per-leaf 2",
        "groups dp=4,tp=8 --ranks-per-node 4 --nodes-per-leaf 2",
        "check tp=4,dp=8 --ranks-per-node 8 --nodes-per-leaf 2",
        "plan tp=4,dp=8 --ranks-per-node 8 --nodes-per-leaf 2",
        "estimate pp=16,dp=4,tp=8 --model files/model.toml --ranks-per-node 8",
        "help",
        "help bench",
        "help trace",
        "help tune",
        "help plan",
        "completion --help",
        "version"})
    for (const int columns : {60, 80, 132}) {
      CAPTURE(command);
      CAPTURE(columns);
      // The longest rule has 66 characters.
      if (command.starts_with("routes") && columns == 60) continue;
      const auto result = shell_on_terminal(scratch, "meshinfo " + command, plain, columns);
      for (const std::string& line : lines_of(without_returns(result.out)))
        CHECK_MESSAGE(fits(line, static_cast<std::size_t>(columns)), line);
    }
}

TEST_CASE("a grid that is too wide is divided, and shows every rank once") {
  const Scratch scratch;
  const std::string out =
      without_returns(shell_on_terminal(scratch, "meshinfo show dp=4,tp=24", plain, 60).out);
  const auto lines = lines_of(out.substr(0, out.find("name")));
  CHECK(std::ranges::count_if(lines, [](const auto& l) { return l.find("tp ") != l.npos; }) == 3);
  for (int rank = 0; rank < 96; ++rank) {
    CAPTURE(rank);
    CHECK(std::ranges::count_if(lines, [&](const std::string& line) {
            return line.find("dp ") != line.npos &&
                   (line + " ").find(" " + std::to_string(rank) + " ", 8) != line.npos;
          }) == 1);
  }
}

TEST_CASE("-o wide and -o - go to standard output") {
  const Scratch scratch;
  const std::string command = "meshinfo show 'pp=4,dp=2,tp=16 ; a=dp*tp'";
  const std::string full = shell(scratch, command).out;
  CHECK(std::ranges::any_of(lines_of(full), [](const auto& line) { return line.size() > 80; }));
  CHECK(without_returns(shell_on_terminal(scratch, command + " -o wide", plain).out) == full);
  CHECK(shell(scratch, command + " -o -").out == full);
  CHECK(shell(scratch, command + " -o wide").out == full);
  CHECK(without_returns(shell_on_terminal(scratch, command, plain, 200).out) == full);
  REQUIRE(shell(scratch, command + " -o ./wide; test -s wide").status == 0);
}

TEST_CASE("output that takes long shows its progress on a terminal only") {
  const Scratch scratch;
  // The reader keeps meshinfo waiting after the first byte.
  const std::string command =
      "meshinfo groups dp=131072,tp=8 --format json | (head -c 1; sleep 1.3; cat) >/dev/null";
  const std::string shown = shell_on_terminal(scratch, command, plain).out;
  CHECK_CONTAINS(shown, " written to standard output in ");
  CHECK(shell(scratch, command).err == "");
}

TEST_CASE("a signal leaves no half-written file") {
  const Scratch scratch;
  for (const auto& [signal, status] : {std::pair{"INT", "130"}, {"TERM", "143"}, {"HUP", "129"}}) {
    CAPTURE(signal);
    // A shell starts background commands with SIGINT ignored, and nohup ignores SIGHUP.
    const auto result = shell(
        scratch, std::string{"env --default-signal=INT,HUP meshinfo groups dp=268435456,tp=8 -o "} +
                     "big.json & until ls -l /proc/$!/fd 2>/dev/null | grep -q \" $PWD/\"; " +
                     "do sleep 0.02; done; kill -" + signal + " $!; wait $!; echo $?; ls");
    CHECK(result.out == std::string{status} + "\nfiles\nmeshes\nspecs\n");
  }
}

TEST_CASE("a file gets its name when it is complete, and no other file stays") {
  const Scratch scratch;
  REQUIRE(shell(scratch, "meshinfo show tp=2 -o f.txt").status == 0);
  CHECK(scratch.read("f.txt").starts_with("mesh  tp=2"));
  CHECK(shell(scratch, "meshinfo rank 9 tp=2 -o g.txt").status == 2);
  CHECK(shell(scratch, "ls").out == "f.txt\nfiles\nmeshes\nspecs\n");
}
