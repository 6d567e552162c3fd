// SPDX-License-Identifier: BSD-3-Clause
#include "command_model.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/detail/suggest.hpp"

namespace meshinfo {

using rankmesh::UsageError;
using rankmesh::detail::nearest;

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
                      rankmesh::detail::suggest(word, names_below(model), "the commands are")};
  const std::string help = fmt::format("{} --help lists what it takes", model.name);
  if (!is_option)
    return UsageError{fmt::format("{} takes no argument '{}' here", short_name(model), word), help};
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
                          rankmesh::detail::suggest(value, option.choices, "the choices are")};
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
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !model.commands.empty())
    return UsageError{fmt::format("{} needs a command", short_name(model)),
                      fmt::format("the commands are: {}", fmt::join(names_below(model), ", "))};
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
        return UsageError{fmt::format("{} needs a value", name),
                          fmt::format("write {}", title_of(option))};
  }
  return UsageError{error.what(), fmt::format("{} --help lists its options", model.name)};
}

}  // namespace meshinfo
