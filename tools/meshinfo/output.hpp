// SPDX-License-Identifier: BSD-3-Clause
// Where and in which form a subcommand prints.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "report/write.hpp"

namespace rankmesh::meshinfo {

struct OutputOptions {
  std::string format{};  // empty: by the file's extension, else text
  std::string path{};    // empty: standard output
  std::vector<std::string> text_extensions{"txt", "text"};
  std::string more_extensions{};  // those that the command itself handles, for the hint
  bool is_wide = false;           // -o wide: the terminal's width is ignored
  bool has_pictures = false;      // the command's documents can be drawn: svg and html

  // Adds --format and the path.
  // @param more  formats beside text, json and csv.
  void add_to(
      CLI::App& command, const std::vector<std::string>& more = {},
      const std::string& path_description = "write to a file, whose extension picks the format",
      const std::string& flags = "-o,--output");

  // Stores a path. "-" is standard output, and "wide" is standard output in full width.
  void set_path(const std::string& text);
  // Adds --json and --csv. The options must live as long as the command.
  void add_short_formats_to(CLI::App& command);
  // @throws UsageError if the extension is unknown.
  [[nodiscard]] report::Format chosen_format() const;
  // Colour goes to a terminal only, and never if NO_COLOR is set.
  [[nodiscard]] bool colour() const;
  // Whether the output goes to the terminal of the user.
  [[nodiscard]] bool is_on_terminal() const;
  // Returns the columns of the terminal that the text goes to; SIZE_MAX if it goes elsewhere.
  // @param usual  the width of texts that no terminal shows.
  [[nodiscard]] std::size_t width(std::size_t usual = SIZE_MAX) const;
};

// The file or the standard output that a report goes to. A closed pipe ends the program quietly
// with status 0. A file is written under a temporary name, and gets its name at the end, so it is
// never incomplete; a signal that ends the process removes it. A device or a pipe is written
// directly.
class Output {
 public:
  // @param mode  the rights of a new file, less those that the umask takes.
  explicit Output(const std::string& path, unsigned mode = 0666);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  void write(std::string_view text);
  void finish();

 private:
  void check(bool written) const;

  std::string path_;
  std::string temporary_;  // empty if the output is written directly
  std::FILE* file_;
};

// Writes a text to a file, or to the standard output if the path is empty.
// @param mode  see Output.
void write_file(const std::string& path, std::string_view text, unsigned mode = 0666);

// Writes the document in the chosen form. If this takes more than a second, the amount is shown on
// the user's terminal, unless the output goes there.
// @param usual_width  the width of texts that no terminal shows.
void print(const report::Document& document, const OutputOptions& options,
           std::size_t usual_width = SIZE_MAX);
void print(const report::Document& document, const OutputOptions& options, Output& output,
           std::size_t usual_width = SIZE_MAX);

}  // namespace rankmesh::meshinfo
