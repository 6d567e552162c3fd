// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.hpp"
#include "rankmesh/base/detail/parse.hpp"
#include "rankmesh/base/error.hpp"
#include "report/search.hpp"
#include "terminal.hpp"
#include "traffic.hpp"

namespace rankmesh::meshinfo {
namespace {

struct SearchArguments {
  std::string model;
  MachineArguments machine;  // its sources also name a device, or a TOML file of one
  std::optional<std::int64_t> devices, sequence;
  std::int64_t rows = 10;
  std::string memory, tokens, software = "megatron", precision = "bf16";
  std::vector<std::string> fixed;  // KEY=VALUE
  bool has_scores = false;
  std::string compared, row, settings;
  OutputOptions output;
};

// Reads "80GB", "80GiB" or "16Mi". An amount below `least` lacks its unit.
double read_amount(const std::string& option, const std::string& text, double least = 0) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  std::string_view unit{at, static_cast<std::size_t>(end - at)};
  if (unit.ends_with('B')) unit.remove_suffix(1);
  const bool is_binary = unit.ends_with('i');
  if (is_binary) unit.remove_suffix(1);
  const std::size_t place = std::string_view{"KMGT"}.find(unit);
  const std::size_t power = unit.empty() ? 0 : place + 1;
  for (std::size_t p = 0; p < power; ++p) value *= is_binary ? 1024 : 1000;
  if (error != std::errc{} || !(value > 0) || !std::isfinite(value) || unit.size() > 1 ||
      place == std::string_view::npos || (is_binary && power == 0) || value < least)
    throw UsageError{fmt::format("{} must be an amount, got '{}'", option, text),
                     "write a number with a unit, such as 80GB, 80GiB or 16Mi"};
  return value;
}

constexpr const char* path_hint = "give the path of a file";

// Takes the names of devices and the TOML files from the sources of the machine.
search::DeviceFigures take_device(MachineArguments& machine) {
  std::optional<search::DeviceFigures> device;
  std::vector<std::string> rest;
  const auto names = search::device_names();
  for (const std::string& source : machine.sources) {
    const bool is_name = std::ranges::find(names, source) != names.end();
    const bool is_toml = source.ends_with(".toml");
    if (is_name || is_toml) {
      if (device) throw UsageError{"the device is given twice", "give one name or TOML file"};
      device = is_name ? search::device_figures(source)
                       : search::parse_device(read_input("machine", source, path_hint), source);
    } else {
      rest.push_back(source);
    }
  }
  machine.sources = rest;
  if (!device)
    throw UsageError{
        rest.empty() ? "the figures of the devices are not given"
                     : fmt::format("the figures of the devices are not given: '{}' is no name of a "
                                   "device and no TOML file",
                                   fmt::join(rest, "', '")),
        fmt::format("give --machine {}, or a TOML file (docs/search.md)", fmt::join(names, ", "))};
  return *device;
}

Machine machine_of(const SearchArguments& options, const MachineArguments& machine,
                   const search::DeviceFigures& device) {
  MachineArguments used = machine;
  const bool has_hosts = !used.sources.empty();
  if (!used.numbers.ranks_per_node && !has_hosts) used.numbers.ranks_per_node = device.per_node;
  if (!options.devices && !has_hosts)
    throw UsageError{"the number of devices is not given", "give --devices N, or a file of hosts"};
  if (!options.devices) return *used.machine(std::nullopt);
  constexpr std::int64_t most_devices = 1 << 30;
  if (*options.devices < 1 || *options.devices > most_devices)
    throw UsageError{fmt::format("--devices must be 1 to {}", most_devices),
                     "give the number of devices"};
  return *used.machine(*options.devices);
}

std::int64_t read_number(const std::string& text, const std::string& value, bool is_zero) {
  const std::int64_t least = is_zero ? 0 : 1, most = is_zero ? 3 : 1 << 30;
  const auto number = detail::parse_number(value);
  if (!number || *number < least || *number > most)
    throw UsageError{fmt::format("'{}' has no number from {} to {}", text, least, most),
                     is_zero ? "write zero=1" : "write a whole number, as in tp=8"};
  return *number;
}

// Reads what the user fixes.
search::Fixed read_fixed(const std::vector<std::string>& texts) {
  search::Fixed fixed;
  const std::vector<std::pair<std::string, std::optional<std::int64_t>*>> numbers{
      {"pp", &fixed.pp},
      {"dp", &fixed.dp},
      {"cp", &fixed.cp},
      {"tp", &fixed.tp},
      {"ep", &fixed.ep},
      {"virtual_stages", &fixed.virtual_stages},
      {"micro_batch", &fixed.micro_batch},
      {"zero", &fixed.zero}};
  std::map<std::string, std::string> given;  // the texts, by their keys
  for (const std::string& text : texts) {
    const std::string key = text.substr(0, text.find('='));
    const std::string value = text.size() > key.size() ? text.substr(key.size() + 1) : "";
    if (const auto [at, is_first] = given.emplace(key, text); !is_first)
      throw UsageError{fmt::format("{} is fixed twice: '{}' and '{}'", key, at->second, text),
                       "give each figure once"};
    const auto number = std::ranges::find(
        numbers, key, &std::pair<std::string, std::optional<std::int64_t>*>::first);
    if (number != numbers.end()) {
      *number->second = read_number(text, value, key == "zero");
    } else if (key == "recompute" && (value == "none" || value == "selective" || value == "full")) {
      fixed.recompute = value == "none"   ? search::Recompute::none
                        : value == "full" ? search::Recompute::full
                                          : search::Recompute::selective;
    } else if (key == "sequence_parallel" && (value == "true" || value == "false")) {
      fixed.sequence_parallel = value == "true";
    } else {
      throw UsageError{fmt::format("'{}' fixes nothing", text),
                       "write pp, dp, cp, tp, ep, virtual_stages, micro_batch or zero =N, "
                       "recompute=none, selective or full, or sequence_parallel=true or false"};
    }
  }
  return fixed;
}

bool is_file(const std::string& text) { return text.ends_with(".toml") || text.ends_with(".json"); }

void require_legal(const std::string& text, const search::RuleLimits& limits,
                   const search::MeshSettings& settings, search::RuleChoice last) {
  if (const search::Rule* rule = first_refusing(limits, settings, last))
    throw UsageError{fmt::format("'{}' is not legal: {}", text, rule->why(limits, settings)),
                     fmt::format("the rule: {}", rule->source)};
}

// Reads a mesh, or a file of settings, and completes it for the step. The settings that a mesh does
// not have are left to the search.
search::SettingsRow read_row(const std::string& text, const search::RuleLimits& limits) {
  search::SettingsRow row;
  if (is_file(text))
    row = search::parse_settings(read_input("settings", text, path_hint), text);
  else
    row.settings = search::settings_of_mesh(text);
  search::MeshSettings& s = row.settings;
  if (limits.batch % s.dp == 0 && limits.batch / s.dp % s.micro_batch == 0)
    s.microbatches = static_cast<std::int32_t>(limits.batch / s.dp / s.micro_batch);
  const std::int64_t chunks = std::int64_t{1} * s.pp * s.virtual_stages;
  if (s.stages == search::StageKind::even && limits.model.layers % chunks != 0)
    s.stages = (limits.model.layers + 2) % chunks == 0 ? search::StageKind::counted
                                                       : search::StageKind::uneven;
  require_legal(text, limits, s,
                is_file(text) ? search::RuleChoice::sharing : search::RuleChoice::ep);
  return row;
}

// Chooses the settings of a mesh of the user that are best for it.
search::MeshSettings best_of_mesh(const search::CostModel& cost, search::SearchOptions options,
                                  const std::string& text, const search::RuleLimits& limits) {
  const search::MeshSettings given = read_row(text, limits).settings;
  if (is_file(text)) return given;
  options.devices = given.ranks();
  options.fixed.pp = given.pp, options.fixed.dp = given.dp, options.fixed.cp = given.cp;
  options.fixed.tp = given.tp;
  if (given.ep > 1) options.fixed.ep = given.ep;
  const auto found = search::search(cost, options);
  const auto best = grouped(found.candidates, 1);
  if (!best.empty()) return best.front().candidate.settings;
  if (found.smallest) return found.smallest->settings;
  require_legal(text, limits, given, search::RuleChoice::sharing);
  return given;
}

void check_options(const SearchArguments& options) {
  const std::string& path = options.settings;
  if (!path.empty() && !is_file(path))
    throw UsageError{fmt::format("the settings cannot be written to '{}'", path),
                     "give a name that ends in .toml or .json, so that it is a mesh for commands"};
  if (options.rows < 1)
    throw UsageError{"--rows must be 1 or more", "give the number of meshes to print"};
}

void write_settings(const std::string& path, const search::MeshSettings& settings,
                    std::int64_t layers) {
  Output output{path};
  output.write(path.ends_with(".json") ? report::settings_json(settings, layers).dump(2) + "\n"
                                       : "# by meshinfo search\n" + to_toml(settings, layers));
  output.finish();
}

ModelFigures model_for(const SearchArguments& options) {
  ModelFigures model = read_model(options.model);
  if (options.sequence) model.sequence = *options.sequence;
  if (model.sequence < 1) throw UsageError{"--sequence must be 1 or more", "give its tokens"};
  return model;
}

std::int64_t batch_of(const SearchArguments& options, const ModelFigures& model) {
  const double tokens = read_amount("--tokens-per-step", options.tokens);
  const auto sequence = static_cast<double>(model.sequence);
  constexpr double most_sequences = 1 << 30, most_tokens = 1e11;
  if (const double most = std::min(most_sequences * sequence, most_tokens); tokens > most)
    throw UsageError{fmt::format("--tokens-per-step must be at most {:.0f} for sequences of {} "
                                 "tokens, got '{}'",
                                 most, model.sequence, options.tokens),
                     "give the tokens of one step"};
  const auto batch = static_cast<std::int64_t>(tokens / sequence + 0.5);
  if (batch < 1 || static_cast<double>(batch) * sequence != tokens)
    throw UsageError{fmt::format("{:.0f} tokens per step are not a multiple of the {} tokens of a "
                                 "sequence",
                                 tokens, model.sequence),
                     fmt::format("write --tokens-per-step {}, or give --sequence N",
                                 std::max<std::int64_t>(1, batch) * model.sequence)};
  return batch;
}

int run_search(const SearchArguments& options, Job& job) {
  if (!job.prints()) return ok;
  check_options(options);
  MachineArguments machine = options.machine;
  const ModelFigures model = model_for(options);
  search::DeviceFigures device = take_device(machine);
  if (!options.memory.empty()) device.memory = read_amount("--memory", options.memory, 1e6);
  const Machine tree = machine_of(options, machine, device);
  if (machine.is_given()) device.per_node = tree.largest(tree.node_level());
  search::Software software = search::software(options.software, options.precision);
  software.has_flash_attention = !options.has_scores;
  search::CostModel cost{model, device, tree, software, {}};
  search::SearchOptions search_options{.devices = tree.slot_count(),
                                       .batch = batch_of(options, model),
                                       .fixed = read_fixed(options.fixed)};
  const search::RuleLimits limits{cost.model(), cost.shape(), search_options.batch,
                                  search_options.devices, &cost.software()};
  if (!options.row.empty()) {
    const auto row = read_row(options.row, limits);
    if (!row.measured.seconds && !row.measured.bytes)
      throw UsageError{fmt::format("'{}' has neither seconds nor memory_gb", options.row),
                       "add seconds = NUMBER or memory_gb = NUMBER, as measured"};
    cost.set_margins(calibrate(cost, row.settings, row.measured));
  }
  const Progress whole{false};       // the time since the first search
  std::optional<Progress> progress;  // of each search
  search_options.progress = [&](std::int64_t done, std::int64_t total) {
    if (done == 0) progress.emplace(true);
    if (whole.seconds() > 1) progress->show_step(done, total, "meshes");
  };
  const auto result = search::search(cost, search_options);
  report::SearchReport report{cost, search_options, result};
  report.rows = static_cast<std::size_t>(options.rows);
  report.is_calibrated = !options.row.empty();
  if (!options.compared.empty()) {
    report.compared = best_of_mesh(cost, search_options, options.compared, limits);
    report.is_reordered = !is_file(options.compared) && !search::has_search_order(options.compared);
  }
  if (result.candidates.empty() && result.smallest)
    report.enough_devices = least_devices(cost, search_options);
  progress.reset();
  if (!options.settings.empty() && !result.candidates.empty())
    write_settings(options.settings, grouped(result.candidates, 1).front().candidate.settings,
                   model.layers);
  print(report::search(report), options.output, 80);
  return result.candidates.empty() ? check_failed : ok;
}

}  // namespace

void add_search(CLI::App& app, Program& program) {
  auto [command, options] = add_command<SearchArguments>(
      app, program, "search", "the best meshes for a model on a machine, with their settings",
      run_search);
  add_word(command, "MODEL", options.model, "MODEL",
           "a TOML file, or the config.json of a model of Hugging Face")
      ->required();
  options.machine.add_to(command);
  add_number(command, "--devices", "the most devices; without hosts, their number",
             options.devices);
  add_word(command, "--memory", options.memory, "SIZE",
           "memory of a device, such as 80GB or 80GiB, instead of its figure");
  add_word(command, "--tokens-per-step", options.tokens, "N", "tokens of a step, such as 16Mi")
      ->required();
  add_number(command, "--sequence", "tokens of a sequence, instead of the model's",
             options.sequence);
  add_word(command, "--software", options.software, "NAME", "the training program",
           search::software_names());
  add_word(command, "--precision", options.precision, "NAME", "of products and states",
           {"bf16", "fp16", "fp8", "fp32", "pure"});
  command.add_flag("--keep-scores", options.has_scores, "attention keeps its scores in memory");
  add_list(command, "--fix", options.fixed, "KEY=VALUE",
           "search with this figure only, such as tp=8, zero=1 or recompute=full; may be repeated");
  add_word(command, "--compare", options.compared, "MESH",
           "a mesh, or a file of settings, to put beside the best one");
  add_word(command, "--calibrate", options.row, "FILE",
           "settings with seconds and memory_gb, as measured");
  add_word(command, "--settings", options.settings, "FILE",
           "write the settings of the best mesh; .json or TOML");
  add_number(command, "--rows", "the number of meshes to print (10)", options.rows);
  options.output.add_to(command);
  command.footer(
      "Examples:\n"
      "  meshinfo search llama3_405b.toml --machine H100 --devices 16384 "
      "--tokens-per-step 16Mi\n"
      "  meshinfo search config.json --machine cluster.toml --machine hosts --memory 80GiB "
      "--tokens-per-step 4Mi --compare pp=4,dp=8,tp=8");
}

}  // namespace rankmesh::meshinfo
