// SPDX-License-Identifier: BSD-3-Clause
// Runs meshinfo as a shell does, in an empty folder and with an environment of its own.
#pragma once

#include <string>
#include <vector>

namespace rankmesh_test {

struct Result {
  std::string out;
  std::string err;
  int status = -1;    // exit status; 128 + signal if a signal ended it
  long peak_kib = 0;  // largest resident set of the command and its children
};

// A folder for one test, with links to examples/meshes (`meshes`), examples/specs (`specs`) and
// golden/files (`files`).
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool has(const std::string& file) const;
  [[nodiscard]] std::string read(const std::string& file) const;

 private:
  std::string path_;
};

// Runs a /bin/sh command in the folder; `meshinfo`, `run-mpi` and `make-records` are found. Killed
// after `seconds`.
Result shell(const Scratch& scratch, const std::string& command,
             const std::vector<std::string>& environment = {}, int seconds = 60);

// The same, with a terminal as standard input, output and error; its output is in `out`.
Result shell_on_terminal(const Scratch& scratch, const std::string& command,
                         const std::vector<std::string>& environment = {}, int columns = 80);

std::vector<std::string> lines_of(const std::string& text);

}  // namespace rankmesh_test
