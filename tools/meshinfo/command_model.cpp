// SPDX-License-Identifier: BSD-3-Clause
// The model of commands, the help, and the explanation of wrong usage.
#include "command_model.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/detail/suggest.hpp"

namespace rankmesh::meshinfo {

using detail::nearest;
using detail::suggest;
using report::Document;
using report::Table;

namespace {

// CLI11 describes the check of an option behind its type: "FORMAT:{text,json,csv}".
void read_type(const CLI::Option& option, OptionModel& model) {
  const std::string type = option.get_type_name();
  const auto brace = type.find(":{");
  model.value = type.substr(0, brace);
  if (brace == std::string::npos) return;
  const std::string list = type.substr(brace + 2, type.find('}', brace) - brace - 2);
  model.choices = CLI::detail::split(list, ',');
}

OptionModel option_model(const CLI::Option& option) {
  OptionModel model;
  if (option.get_positional()) {
    model.names.push_back(option.get_name(true));
    read_type(option, model);
  } else {
    for (const std::string& name : option.get_snames()) model.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) model.names.push_back("--" + name);
    if (option.get_items_expected_max() > 0) read_type(option, model);
  }
  model.description = option.get_description();
  model.is_required = option.get_required();
  model.is_value_optional = option.get_items_expected_min() == 0;
  model.is_repeatable = option.get_expected_max() > 1;
  return model;
}

CommandModel command_model(const CLI::App& app, const std::string& parents) {
  CommandModel model;
  model.name = parents + app.get_name();
  model.summary = app.get_description();
  model.notes = app.get_footer();
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* o) { return !o->get_group().empty(); }))
    (option->get_positional() ? model.positionals : model.options).push_back(option_model(*option));
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
    model.commands.push_back(command_model(*command, model.name + " "));
  return model;
}

}  // namespace

std::string CommandModel::last_name() const { return name.substr(name.find_last_of(' ') + 1); }

CommandModel model_of(const CLI::App& app) {
  std::string parents;
  for (const CLI::App* parent = app.get_parent(); parent != nullptr; parent = parent->get_parent())
    parents.insert(0, parent->get_name() + " ");
  return command_model(app, parents);
}

std::vector<std::string> names_below(const CommandModel& command) {
  std::vector<std::string> names;
  for (const CommandModel& below : command.commands) names.push_back(below.last_name());
  return names;
}

void offer(CLI::Option& option, const std::vector<std::string>& values) {
  option.check(CLI::Validator{[](std::string&) { return std::string{}; },
                              fmt::format("{{{}}}", fmt::join(values, ",")), "offer"});
}

std::string arguments_of(const CommandModel& command) {
  std::string text = "[OPTION]...";
  if (!command.commands.empty()) text += " COMMAND";
  for (const OptionModel& option : command.options)
    if (option.is_required) text += fmt::format(" {} {}", option.names.back(), option.value);
  for (const OptionModel& option : command.positionals)
    text += fmt::format("{}{}{}{}", option.is_required ? " " : " [", option.names.front(),
                        option.is_required ? "" : "]", option.is_repeatable ? "..." : "");
  return text;
}

std::string title_of(const OptionModel& option) {
  const std::string value = option.is_value_optional ? "[" + option.value + "]" : option.value;
  return fmt::format("{}{}{}", fmt::join(option.names, ", "), option.takes_value() ? " " : "",
                     option.takes_value() ? value : "");
}

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
      if (found->get_subcommands({}).empty())
        throw UsageError{
            fmt::format("the command '{}' has no command '{:.40}'", found->get_name(), word),
            fmt::format("write meshinfo help {}", found->get_name())};
      if (below.empty())
        throw UsageError{fmt::format("there is no command '{:.40}'", word),
                         suggest(word, names_below(model_of(*found)), "the commands are")};
      found = below.front();
    }
    throw HelpCall{found};
  });
}

const CLI::App& command_of_call(const CLI::App& app) {
  const auto called = app.get_subcommands();
  return called.empty() ? app : command_of_call(*called.back());
}

namespace {

std::vector<std::string> options_of(const CommandModel& model) {
  std::vector<std::string> names;
  for (const OptionModel& option : model.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// Messages begin with "meshinfo: " already.
std::string short_name(const CommandModel& model) {
  const auto blank = model.name.find(' ');
  return blank == std::string::npos ? model.name : model.name.substr(blank + 1);
}

UsageError unexpected(const CommandModel& model, std::string word) {
  if (word.starts_with("--")) word = word.substr(0, word.find('='));
  const bool is_option = word.size() > 1 && word.starts_with('-');
  if (!is_option && !model.commands.empty())
    return UsageError{fmt::format("there is no command '{}'", word),
                      suggest(word, names_below(model), "the commands are")};
  const std::string help = fmt::format("{} --help lists what it takes", model.name);
  if (!is_option) {
    const bool is_dimension = word.find('=') != std::string::npos &&
                              std::ranges::any_of(model.positionals, [](const OptionModel& option) {
                                return option.names.front() == "MESH";
                              });
    return UsageError{
        fmt::format("{} takes no argument '{}' here", short_name(model), word),
        is_dimension ? "a mesh is one word with commas, such as dp=2,tp=4; " + help : help};
  }
  const std::string best = nearest(word, options_of(model));
  return UsageError{fmt::format("{} has no option '{}'", short_name(model), word),
                    best.empty() ? help : fmt::format("did you mean '{}'? {}", best, help)};
}

// A value that is none of the choices: "--format: xml not in {text,json,csv}".
UsageError wrong_value(const CommandModel& model, const std::string& message) {
  for (const auto& list : {model.options, model.positionals})
    for (const OptionModel& option : list)
      for (const std::string& name : option.names) {
        if (option.choices.empty() || !message.starts_with(name + ": ")) continue;
        const std::size_t begin = name.size() + 2;
        const std::string value = message.substr(begin, message.rfind(" not in ") - begin);
        return UsageError{fmt::format("{} cannot be '{}'", name, value),
                          suggest(value, option.choices, "the choices are")};
      }
  return UsageError{message, fmt::format("{} --help lists its options", model.name)};
}

// A value that is no number: "Could not convert: --timeout = x".
UsageError wrong_type(const CommandModel& model, const std::string& message) {
  for (const OptionModel& option : model.options)
    for (const std::string& name : option.names) {
      const auto begin = message.find(name + " = ");
      if (begin == std::string::npos) continue;
      return UsageError{
          fmt::format("{} cannot be '{}'", name, message.substr(begin + name.size() + 3)),
          fmt::format("{}: {}", title_of(option), option.description)};
    }
  return UsageError{message, fmt::format("{} --help lists its options", model.name)};
}

}  // namespace

UsageError no_command(const CLI::App& app) {
  return UsageError{"no command is given",
                    fmt::format("the commands are: {}; see meshinfo help",
                                fmt::join(names_below(model_of(app)), ", "))};
}

UsageError wrong_usage_of(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = command_of_call(app);
  const CommandModel model = model_of(command);
  std::vector<std::string> words = command.remaining();
  for (const std::string& word : app.remaining(true)) words.push_back(word);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !words.empty())
    return unexpected(model, words.front());
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr)
    return wrong_value(model, error.what());
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !model.commands.empty() &&
      words.empty())
    return UsageError{fmt::format("{} needs a command", short_name(model)),
                      fmt::format("the commands are: {}", fmt::join(names_below(model), ", "))};
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !model.commands.empty())
    return unexpected(model, words.front());
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    // What is missing may be misspelt.
    const auto option =
        std::ranges::find_if(words, [](const auto& w) { return w.starts_with('-'); });
    if (option != words.end()) return unexpected(model, *option);
    return UsageError{fmt::format("{}: {}", short_name(model), error.what()),
                      fmt::format("usage: {} {}", model.name, arguments_of(model))};
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string text = error.what();
    const std::string name = text.substr(0, text.find(':'));
    for (const OptionModel& option : model.options)
      if (std::ranges::find(option.names, name) != option.names.end())
        return text.find(": At Most") != std::string::npos
                   ? UsageError{fmt::format("{} is given more than once", name),
                                "remove all of them but one"}
                   : UsageError{fmt::format("{} needs a value", name),
                                fmt::format("write {}", title_of(option))};
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr)
    return wrong_type(model, error.what());
  return UsageError{error.what(), fmt::format("{} --help lists its options", model.name)};
}

}  // namespace rankmesh::meshinfo
