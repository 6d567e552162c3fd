// SPDX-License-Identifier: BSD-3-Clause
// Tests the completions in the shells themselves, and the manual pages with their own tools.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "process.hpp"
#include "support/checks.hpp"
#include "support/machine.hpp"

namespace {

using rankmesh_test::is_installed;
using rankmesh_test::lines_of;
using rankmesh_test::Scratch;
using rankmesh_test::shell;

// Returns what bash offers for a line: the candidates, joined by blanks.
std::string bash_offers(const Scratch& scratch, const std::string& line) {
  // bash ends the word that it completes at "=" and ":".
  const std::string word = line.substr(line.find_last_of(" =:") + 1);
  const auto result =
      shell(scratch,
            "cat >try.bash <<'EOF'\n"
            "source <(meshinfo completion bash)\n"
            "COMP_LINE='" +
                line + "' COMP_POINT=" + std::to_string(line.size()) + " COMP_WORDS=('" + word +
                "') COMP_CWORD=0\n_meshinfo\necho ${COMPREPLY[*]}\n"
                "EOF\nbash try.bash");
  CHECK(result.err == "");
  return result.out.substr(0, result.out.find('\n'));
}

}  // namespace

TEST_CASE("bash completes commands, options and values") {
  const Scratch scratch;
  REQUIRE(shell(scratch, "mkdir folder; touch mesh.toml folder/a.toml other.txt").status == 0);
  CHECK(bash_offers(scratch, "meshinfo sho") == "show");
  CHECK(bash_offers(scratch, "meshinfo explain ") == "rank order");
  CHECK(bash_offers(scratch, "meshinfo show --off") == "--offline");
  CHECK(bash_offers(scratch, "meshinfo --ver") == "--version");
  CHECK(bash_offers(scratch, "meshinfo show tp=2 --format ") == "text json csv svg html");
  CHECK(bash_offers(scratch, "meshinfo show tp=2 --format=j") == "json");
  CHECK(bash_offers(scratch, "meshinfo groups tp=2 --format l") == "long");
  CHECK(bash_offers(scratch, "meshinfo bench tp=2 --op all_r") == "all_reduce");
  CHECK(bash_offers(scratch, "meshinfo bench tp=2 -d bf") == "bfloat16");
  CHECK(bash_offers(scratch, "meshinfo help expl") == "explain");
  CHECK(bash_offers(scratch, "meshinfo explain rank --w") == "--world-size");
  CHECK(bash_offers(scratch, "meshinfo pl") == "plan");
  CHECK(bash_offers(scratch, "meshinfo emit open") == "openmpi openmpi5 openmpi-seq");
  CHECK(bash_offers(scratch, "meshinfo check tp=2 --fail-on n") == "note never");
  CHECK(bash_offers(scratch, "meshinfo show tp=2 --machine oth") == "other.txt");
  CHECK(bash_offers(scratch, "meshinfo estimate tp=2 --model oth") == "other.txt");
  CHECK(bash_offers(scratch, "meshinfo show meg") == "megatron:");
  CHECK(bash_offers(scratch, "meshinfo show deepspeed:kind=g") == "grid groups");
  CHECK(bash_offers(scratch, "meshinfo show mesh") == "mesh.toml meshes");
  CHECK(bash_offers(scratch, "meshinfo diff tp=2 folder/") == "folder/a.toml");
  CHECK(bash_offers(scratch, "meshinfo show tp=2 -o other") == "other.txt");
  CHECK(bash_offers(scratch, "meshinfo trace --collect fo") == "folder");
}

TEST_CASE("fish completes commands, options and values") {
  const Scratch scratch;
  REQUIRE(shell(scratch, "meshinfo completion fish").out.size() > 200);
  SKIP_UNLESS(is_installed("fish"), "needs fish (Debian: fish)");
  const auto offers = [&](const std::string& line) {
    const auto result = shell(scratch,
                              "HOME=$PWD fish --no-config -c 'meshinfo completion fish | "
                              "source; complete -C \"" +
                                  line + "\"' | cut -f 1");
    std::string text;
    for (const std::string& candidate : lines_of(result.out)) text += candidate + " ";
    return text;
  };
  CHECK(offers("meshinfo sho") == "show ");
  CHECK(offers("meshinfo explain ") == "order rank ");
  CHECK(offers("meshinfo show --off") == "--offline ");
  CHECK(offers("meshinfo show --format ") == "csv html json svg text ");
  CHECK(offers("meshinfo show megat") == "megatron: ");
}

TEST_CASE("zsh completes commands, options and values") {
  const Scratch scratch;
  REQUIRE(shell(scratch, "mkdir f; meshinfo completion zsh >f/_meshinfo").status == 0);
  SKIP_UNLESS(is_installed("zsh"), "needs zsh (Debian: zsh)");
  // An interactive zsh within zsh expands the word when the tabulator is typed, and then runs the
  // command.
  const auto expands = [&](const std::string& line) {
    const auto result = shell(scratch,
                              "cat >try.zsh <<'EOF'\n"
                              "zmodload zsh/zpty\n"
                              "zpty z zsh -f -i\n"
                              "zpty -w z 'PS1=; fpath=($PWD/f $fpath)'\n"
                              "zpty -w z 'autoload -U compinit; compinit -u -D'\n"
                              "zpty -w z 'stty -echo; echo re\"\"ady'\n"
                              "zpty -r z text '*ready*'\n"
                              "zpty -w -n z $'" +
                                  line +
                                  "\\t'\n"
                                  "zpty -w z '; exit'\n"
                                  "while zpty -r z text; do print -rn -- $text; done\n"
                                  "EOF\nzsh -f try.zsh");
    return result.out;
  };
  CHECK_CONTAINS(expands("meshinfo prese"), "megatron:");
  CHECK_CONTAINS(expands("meshinfo show tp=2 --offl"), "varies fastest, digest");
  CHECK_CONTAINS(expands("meshinfo show tp=2 --format js"), "rankmesh.show/1");
}

TEST_CASE("there is a manual page for every command, and it is valid") {
  const Scratch scratch;
  REQUIRE(shell(scratch, "mkdir man; meshinfo manual-pages man").status == 0);
  const std::string pages = shell(scratch, "cd man; ls").out;
  // The build installs these: tools/meshinfo/generated lists them.
  const std::string installed =
      shell(scratch,
            "cat \"$(dirname \"$(command -v meshinfo)\")/../../meson-info/intro-installed.json\"")
          .out;
  for (const std::string& page : lines_of(pages)) {
    CAPTURE(page);
    CHECK_CONTAINS(installed, "man1/" + page);
    if (is_installed("groff")) {
      const auto result = shell(scratch, "groff -man -Tutf8 -ww -z man/" + page);
      CHECK(result.status == 0);
      CHECK(result.err == "");
    }
    if (is_installed("mandoc"))
      CHECK(shell(scratch, "mandoc -T lint -W warning man/" + page).out == "");
  }
  const std::string text = scratch.read("man/meshinfo-show.1");
  for (const std::string part : {".SH NAME\nmeshinfo\\-show \\- ", "\\fB\\-\\-offline\\fR"})
    CHECK_CONTAINS(text, part);
}

TEST_CASE("every option of the help is in the manual page and is completed") {
  const Scratch scratch;
  REQUIRE(shell(scratch, "mkdir man; meshinfo manual-pages man").status == 0);
  for (const std::string command :
       {"show", "rank", "bench", "tune", "trace", "doctor", "check", "emit"}) {
    std::string page = scratch.read("man/meshinfo-" + command + ".1");
    std::erase(page, '\\');
    const std::string offered = shell(scratch, "meshinfo complete " + command + " -").out;
    for (const std::string& line : lines_of(shell(scratch, "meshinfo help " + command).out)) {
      const auto begin = line.find("--");
      if (!line.starts_with("  ") || begin == std::string::npos || begin > 8) continue;
      const std::string option = line.substr(begin, line.find_first_of(" ,", begin) - begin);
      CAPTURE(command);
      CAPTURE(option);
      CHECK_CONTAINS(page, option);
      CHECK_CONTAINS(offered, "\n" + option + "\t");
    }
  }
}
