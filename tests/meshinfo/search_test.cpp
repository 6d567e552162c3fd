// SPDX-License-Identifier: BSD-3-Clause
// meshinfo search as its users see it: the width of its report, the files that it writes, and its
// progress.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "process.hpp"
#include "support/checks.hpp"

namespace {

using rankmesh_test::lines_of;
using rankmesh_test::Scratch;
using rankmesh_test::shell;
using rankmesh_test::shell_on_terminal;

const std::string models = std::string{EXAMPLE_MESHES_DIR} + "/../models/";
const std::string small =
    "meshinfo search files/mixtral.json --machine H100 --devices 16 "
    "--sequence 4096 --tokens-per-step 1Mi --fix pp=2 --fix zero=1 ";

void write(const Scratch& scratch, const std::string& name, const std::string& text) {
  std::ofstream{scratch.path() + "/" + name} << text;
}

}  // namespace

TEST_CASE("no line of a search is wider than 80 columns, also where no terminal shows it") {
  const Scratch scratch;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{models})
    for (const char* more : {"--devices 16384 --tokens-per-step 16Mi --compare dp=64",
                             "--devices 1 --tokens-per-step 1Mi --memory 2GB --rows 1"}) {
      const std::string command =
          "meshinfo search '" + entry.path().string() + "' --machine H100 " + more;
      CAPTURE(command);
      const auto result = shell(scratch, command);
      CHECK(result.status != 2);
      CHECK(lines_of(result.out).size() > 10);
      for (const std::string& line : lines_of(result.out)) CHECK_MESSAGE(line.size() <= 80, line);
      ++count;
    }
  CHECK(count >= 8);
  const auto experts = shell(scratch, "meshinfo search '" + models +
                                          "deepseek_v3.toml' --machine H100 --devices 2048 "
                                          "--tokens-per-step 60Mi --fix ep=64 --fix cp=2");
  CHECK_CONTAINS(experts.out, "|pp=");  // a mesh stays in one line
  for (const std::string& line : lines_of(experts.out)) CHECK_MESSAGE(line.size() <= 80, line);
}

TEST_CASE("the settings that search writes are meshes for other commands") {
  const Scratch scratch;
  for (const std::string file : {"best.toml", "best.json"}) {
    CAPTURE(file);
    const auto result = shell(scratch, small + "--format json --settings " + file);
    REQUIRE(result.status == 0);
    const std::string mesh = nlohmann::json::parse(result.out).at("best").at(0).at("mesh");
    for (const std::string command :
         {"show", "groups", "check --ranks-per-node 8", "plan --ranks-per-node 8",
          "emit mesh-order --ranks-per-node 8"}) {
      CAPTURE(command);
      const auto of_file = shell(scratch, "meshinfo " + command + " " + file);
      const auto of_mesh = shell(scratch, "meshinfo " + command + " '" + mesh + "'");
      CHECK(of_file.err == "");
      CHECK(of_file.status == of_mesh.status);
      CHECK(of_file.status != 2);
      if (command == "groups") CHECK(of_file.out == of_mesh.out);
    }
    // It is also what search reads.
    CHECK(shell(scratch, small + "--compare " + file).status == 0);
  }
}

TEST_CASE("a calibration below the formulas is warned of, and one below the states refused") {
  const Scratch scratch;
  const auto calibrated = [&](const std::string& measured) {
    write(scratch, "row.toml",
          "mesh = \"pp=2,dp=1,cp=4,tp=2|pp=2,edp=1,ep=8\"\n[settings]\n" + measured + "\n");
    return shell(scratch, small + "--calibrate row.toml");
  };
  const auto low = calibrated("memory_gb = 55");
  CHECK(low.status == 0);
  CHECK_CONTAINS(low.out, "warning  the measured device took 7.");
  CHECK_CONTAINS(low.out, "reserve -7.");
  CHECK_LACKS(calibrated("memory_gb = 70").out, "warning");
  const auto too_low = calibrated("memory_gb = 5");
  CHECK(too_low.status == 2);
  CHECK_CONTAINS(too_low.err, "the measured 5.0 GB are less than the ");
}

TEST_CASE("a search that takes longer than a second shows its progress on a terminal only") {
  const Scratch scratch;
  std::string command, shown;
  auto step = std::string::npos;
  // A quick machine needs more devices for a second.
  for (long devices = 1'000'000; step == std::string::npos; devices *= 4) {
    REQUIRE(devices < 1'000'000'000);
    command = "meshinfo search '" + models + "deepseek_v3.toml' --machine H100 --devices " +
              std::to_string(devices) + " --tokens-per-step " + std::to_string(3840 * devices) +
              " --sequence 3840 --rows 1";
    shown = shell_on_terminal(scratch, command, {"NO_COLOR=1"}).out;
    step = shown.rfind("] meshes");
  }
  CHECK(shown.find("\r\x1b[K", step) < shown.find("model "));  // the line is cleared
  // Its first seconds are enough.
  CHECK(shell(scratch, "timeout 3 " + command).err == "");
}
