// SPDX-License-Identifier: BSD-3-Clause
#include "command_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace meshinfo {
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

}  // namespace meshinfo
