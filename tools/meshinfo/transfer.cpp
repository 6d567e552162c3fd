// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "command.hpp"
#include "launcher.hpp"
#include "rankmesh/base/detail/parse.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/transfer/relabel.hpp"
#include "rankmesh/transfer/tensor_list.hpp"
#include "report/reports.hpp"
#include "terminal.hpp"
#include "transfer_run.hpp"

namespace rankmesh::meshinfo {
namespace {

struct TransferArguments {
  std::string from, to;
  std::string tensors;
  std::string element;
  bool is_direct = false;
  bool is_relabelled = false;
  bool is_run = false;
  MachineArguments machine;
  OutputOptions output;
};

constexpr const char* toml_hint = "give a TOML file, see docs/redistribution.md";

// A layout file and a mesh: FILE@MESH.
struct Side {
  explicit Side(const std::string& text) {
    const std::size_t at = text.find('@');
    if (at == std::string::npos || text.starts_with('['))
      throw UsageError{fmt::format("'{:.80}' is not a layout on a mesh", text),
                       "with --tensors, write FILE@MESH, such as vllm.toml@tp=8"};
    std::string path = text.substr(0, at);
    while (path.ends_with(' ')) path.pop_back();
    rules = LayoutRules::parse_toml(read_input("layout", path, toml_hint), path);
    mesh = text.substr(at + 1);
  }
  LayoutRules rules;
  std::string mesh;
};

std::vector<TensorTransfer> read_tensors(const TransferArguments& options) {
  if (options.tensors.empty())
    return {{TensorPlacement::parse(options.from), TensorPlacement::parse(options.to)}};
  const Side from{options.from};
  const Side to{options.to};
  const auto list = TensorList::parse_toml(
      read_input("list of tensors", options.tensors, toml_hint), options.tensors);
  return transfers_of(list, {from.rules, from.mesh}, {to.rules, to.mesh});
}

// Reads numbers that are separated by commas.
std::vector<std::int64_t> read_element(const std::string& text) {
  std::vector<std::int64_t> index;
  for (const std::string_view part : detail::split(text, ',')) {
    const auto number = detail::parse_number(part);
    if (!number)
      throw UsageError{fmt::format("'{:.40}' is not an element", text),
                       "write one index per axis, such as 3,17"};
    index.push_back(*number);
  }
  return index;
}

TransferRun run(const TransferPlan& plan, Job& job) {
  if (!is_in_job())
    throw UsageError{"--run moves tensors in a job, but there is none",
                     "start it in a job: mpirun -n 4 meshinfo transfer FROM TO --run"};
  OpenMesh open = job.open({.mesh = "tp=auto"});
  TransferRun result = run_transfer(open, plan);
  open.close();
  return result;
}

void add_run(const TransferRun& run, std::int64_t moved_bytes, report::Document& document) {
  const double bandwidth = static_cast<double>(moved_bytes) / run.seconds * 1e-9;
  document.fields["run"] = {{"seconds", run.seconds}, {"first_seconds", run.first},
                            {"GB/s", bandwidth},      {"elements", run.elements},
                            {"wrong", run.wrong},     {"read_bytes", run.read_bytes}};
  document.add("\n");
  document.add_bold("run");
  document.add(
      fmt::format("      {:.3g} ms, {:.3g} GB/s; the first transfer {:.3g} ms\n"
                  "         {} elements verified, {} wrong; {} read from the memory of "
                  "other ranks\n",
                  run.seconds * 1e3, bandwidth, run.first * 1e3, run.elements, run.wrong,
                  bytes_text(run.read_bytes)));
}

int transfer(const TransferArguments& options, Job& job) {
  if (!options.element.empty() &&
      (options.is_run || options.output.chosen_format() != report::Format::text))
    throw UsageError{"--element prints a text about one element, and moves nothing",
                     "leave out --element, or --run and the other format"};
  if (!options.is_run && !job.prints()) return ok;  // the job plays no part
  auto tensors = read_tensors(options);
  std::int64_t world = 1;
  for (const TensorTransfer& tensor : tensors)
    world = std::max({world, tensor.from.ranks().highest().value() + 1,
                      tensor.to.ranks().highest().value() + 1});
  const auto machine = options.machine.machine(world);
  const Machine* const known = pointer_to(machine);
  std::optional<Relabelling> relabelling;
  if (options.is_relabelled) {
    relabelling = relabel(tensors, {.machine = known});
    tensors = relabelling->apply(tensors);
  }
  const TransferPlan plan =
      plan_transfer(std::move(tensors), known, {.fan_out = !options.is_direct});
  if (options.element.empty()) {
    const TransferRun result = options.is_run ? run(plan, job) : TransferRun{};
    if (!job.prints()) return ok;
    auto document = report::transfer(plan, known, pointer_to(relabelling));
    if (options.is_run) add_run(result, plan.volume().moved_bytes, document);
    print(document, options.output);
    return result.wrong == 0 ? ok : check_failed;
  }
  write_file(options.output.path, plan.explain(0, read_element(options.element)));
  return ok;
}

}  // namespace

void add_transfer(CLI::App& app, Program& program) {
  auto [command, options] = add_command<TransferArguments>(
      app, program, "transfer", "the bytes that move when tensors change their place", transfer);
  command
      .add_option("FROM", options.from,
                  "the place before: '[SHAPE] TYPE @ MESH : (AXES)', or FILE@MESH with --tensors")
      ->required();
  command.add_option("TO", options.to, "the place after")->required();
  add_word(command, "--tensors", options.tensors, "FILE", "the tensors of a model, a TOML file");
  add_word(command, "--element", options.element, "INDEX,...",
           "explain where one element of the first tensor comes from");
  command.add_flag("--direct", options.is_direct,
                   "let every rank receive all elements from ranks that had them before, instead "
                   "of forwarding inside nodes");
  command.add_flag("--relabel", options.is_relabelled,
                   "exchange the ranks of TO so that as little as possible moves");
  command.add_flag("--run", options.is_run,
                   "in a job: move synthetic elements, verify each of them, and print GB/s");
  options.machine.add_to(command);
  options.output.has_pictures = true;
  options.output.add_to(command);
  command.footer(
      "Examples:\n"
      "  meshinfo transfer '[8192,8192] bf16 @ dp=2,tp=8 : (_, tp)' '[8192,8192] bf16 @ tp=4 on "
      "16-19 : (_, tp)'\n"
      "  meshinfo transfer megatron.toml@pp=2,dp=4,tp=8 'vllm.toml@tp=8 on 64-71' --tensors "
      "llama3_8b.toml --ranks-per-node 8\n"
      "  mpirun -n 8 meshinfo transfer '[8192,8192] f32 @ tp=8 : (tp, _)' '[8192,8192] bf16 @ tp=8 "
      ": (_, tp)' --run");
}

}  // namespace rankmesh::meshinfo
