// SPDX-License-Identifier: BSD-3-Clause
#include "command_model.hpp"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/base/detail/suggest.hpp"
#include "rankmesh/base/error.hpp"

namespace meshinfo {

using rankmesh::report::Document;
using rankmesh::report::Table;

namespace {

// A table without titles: what to write, and what it means.
Table list_of(const std::vector<OptionModel>& options) {
  Table table{.columns = {{""}, {""}}};
  for (const OptionModel& option : options) {
    const bool is_positional = !option.names.front().starts_with('-');
    table.rows.push_back(
        {is_positional ? option.names.front() : title_of(option), option.description});
  }
  return table;
}

void add_list(Document& document, const char* title, Table table) {
  if (table.rows.empty()) return;
  document.add_bold(fmt::format("\n{}:\n", title));
  document.text.emplace_back(std::move(table));
}

}  // namespace

Document help_of(const CommandModel& command) {
  Document document;
  document.add_bold(command.name);
  document.add(fmt::format(": {}\n", command.summary));
  document.add(fmt::format("\nUsage: {} {}\n", command.name, arguments_of(command)));
  add_list(document, "Arguments", list_of(command.positionals));
  Table commands{.columns = {{""}, {""}}};
  for (const CommandModel& below : command.commands)
    commands.rows.push_back({below.last_name(), below.summary});
  add_list(document, "Commands", std::move(commands));
  add_list(document, "Options", list_of(command.options));
  if (!command.notes.empty()) document.add("\n" + command.notes + "\n");
  return document;
}

void add_help(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "print the help of meshinfo, or of a command");
  CLI::Option* of = command->add_option("COMMAND", *words, "a command, such as show");
  of->type_name("COMMAND");
  offer(*of, names_below(model_of(app)));
  command->callback([&app, words] {
    const CLI::App* found = &app;
    for (const std::string& word : *words) {
      const auto below = found->get_subcommands(
          [&](const CLI::App* c) { return c->get_name() == word && !c->get_group().empty(); });
      if (below.empty())
        throw rankmesh::UsageError{
            fmt::format("there is no command '{:.40}'", word),
            rankmesh::detail::suggest(word, names_below(model_of(*found)), "the commands are")};
      found = below.front();
    }
    throw HelpCall{found};
  });
}

const CLI::App& command_of_call(const CLI::App& app) {
  const auto called = app.get_subcommands();
  return called.empty() ? app : command_of_call(*called.back());
}

}  // namespace meshinfo
