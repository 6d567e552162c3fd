// SPDX-License-Identifier: BSD-3-Clause
#include "command_model.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "output.hpp"
#include "rankmesh/version.hpp"

namespace rankmesh::meshinfo {
namespace {

// A backslash, a hyphen that is typed and a dot at the begin of a line have meanings in roff.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool begins_line = result.empty() || result.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// "meshinfo explain rank" is described on the page meshinfo-explain-rank.
std::string page_of(const CommandModel& command) {
  std::string name = command.name;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string options_text(const std::vector<OptionModel>& options, bool with_names) {
  std::string text;
  for (const OptionModel& option : options) {
    text += ".TP\n";
    if (with_names) {
      std::vector<std::string> names;
      for (const std::string& name : option.names) names.push_back("\\fB" + escaped(name) + "\\fR");
      text += fmt::format("{}", fmt::join(names, ", "));
      const std::string value = escaped(option.value);
      if (option.takes_value())
        text += fmt::format("{}\\fI{}\\fR{}", option.is_value_optional ? " [" : " ", value,
                            option.is_value_optional ? "]" : "");
    } else {
      text += "\\fI" + escaped(option.names.front()) + "\\fR";
    }
    text += "\n" + escaped(option.description) + ".\n";
  }
  return text;
}

// A line that ends in a colon begins a section. Indented lines are printed as they are.
std::string notes_text(const std::string& notes) {
  std::string text;
  bool is_verbatim = false;
  std::istringstream lines{notes};
  for (std::string line; std::getline(lines, line);) {
    const bool is_indented = line.starts_with(' ');
    if (is_verbatim && !is_indented) text += ".fi\n.RE\n";
    if (!is_verbatim && is_indented) text += ".PP\n.RS 4\n.nf\n";
    is_verbatim = is_indented;
    if (is_indented)
      text += escaped(line.substr(line.find_first_not_of(' '))) + "\n";
    else if (line.ends_with(':') && line.size() < 20)
      text += ".SH \"" + upper(line.substr(0, line.size() - 1)) + "\"\n";
    else if (!line.empty())
      text += escaped(line) + "\n";
  }
  if (is_verbatim) text += ".fi\n.RE\n";
  // A list of lines that begins a section needs no paragraph in front of it.
  for (auto at = text.find("\n.PP\n.RS"); at != std::string::npos;
       at = text.find("\n.PP\n.RS", at + 1))
    if (text.rfind(".SH ", at) != std::string::npos &&
        text.rfind('\n', at - 1) + 1 == text.rfind(".SH ", at))
      text.erase(at + 1, 4);
  return text;
}

std::string commands_text(const CommandModel& command) {
  std::string text;
  for (const CommandModel& below : command.commands)
    text +=
        fmt::format(".TP\n\\fB{}\\fR(1)\n{}.\n", escaped(page_of(below)), escaped(below.summary));
  return text;
}

// The present date, or the release date of the sources if the packager has set it.
std::string date_text() {
  const char* release = std::getenv("SOURCE_DATE_EPOCH");
  const std::time_t when = release == nullptr ? std::time(nullptr) : std::atoll(release);
  std::tm day{};
  gmtime_r(&when, &day);
  return fmt::format("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

// Returns the page of a command, for man(1) in section 1.
std::string manual_page(const CommandModel& command) {
  const std::string page = page_of(command);
  std::string text = fmt::format(
      ".\\\" Written by meshinfo manual-pages.\n"
      ".TH {} 1 {} \"rankmesh {}\" \"rankmesh\"\n"
      ".SH NAME\n{} \\- {}\n"
      ".SH SYNOPSIS\n\\fB{}\\fR {}\n",
      upper(escaped(page)), date_text(), version_string(), escaped(page), escaped(command.summary),
      escaped(command.name), escaped(arguments_of(command)));
  const auto add = [&](const char* title, const std::string& section) {
    if (!section.empty()) text += fmt::format(".SH {}\n{}", title, section);
  };
  add("ARGUMENTS", options_text(command.positionals, false));
  add("COMMANDS", commands_text(command));
  add("OPTIONS", options_text(command.options, true));
  text += notes_text(command.notes);
  const auto parent = page.find_last_of('-');
  if (parent != std::string::npos)
    text += fmt::format(".SH \"SEE ALSO\"\n.BR {} (1)\n", escaped(page.substr(0, parent)));
  return text;
}

// Writes the pages of a command and of all commands below it.
void write_pages(const CommandModel& command, const std::string& folder) {
  write_file(fmt::format("{}/{}.1", folder, page_of(command)), manual_page(command));
  for (const CommandModel& below : command.commands) write_pages(below, folder);
}

}  // namespace

void add_manual_pages(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("manual-pages", "write the manual pages into a folder");
  command->group("");  // for the build
  command->add_option("FOLDER", *folder, "where the pages are written")
      ->type_name("FOLDER")
      ->required();
  command->callback([&app, folder] { write_pages(model_of(app), *folder); });
}

}  // namespace rankmesh::meshinfo
