// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/transfer.hpp"

#include <algorithm>
#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "machine.hpp"
#include "meshinfo.hpp"
#include "rankmesh/base/detail/read_file.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/transfer/tensor_list.hpp"

namespace meshinfo {
namespace {

using rankmesh::LayoutRules;
using rankmesh::TensorTransfer;
using rankmesh::UsageError;

struct TransferArguments {
  std::string from, to;
  std::string tensors;
  std::string element;
  bool is_direct = false;
  MachineArguments machine;
  OutputOptions output;
};

std::string read_text(const std::string& path, const char* element) {
  auto text = rankmesh::detail::read_file(path);
  if (!text)
    throw UsageError{fmt::format("cannot read the {} '{}'", element, path),
                     "give a TOML file, see docs/transfer.md"};
  return *std::move(text);
}

// A layout file and a mesh: FILE@MESH.
struct Side {
  explicit Side(const std::string& text) {
    const std::size_t at = text.find('@');
    if (at == std::string::npos || text.starts_with('['))
      throw UsageError{fmt::format("'{:.80}' is not a layout on a mesh", text),
                       "with --tensors, write FILE@MESH, such as vllm.toml@tp=8"};
    std::string path = text.substr(0, at);
    while (path.ends_with(' ')) path.pop_back();
    rules = LayoutRules::parse_toml(read_text(path, "layout"), path);
    mesh = text.substr(at + 1);
  }
  LayoutRules rules;
  std::string mesh;
};

std::vector<TensorTransfer> read_tensors(const TransferArguments& options) {
  using rankmesh::TensorPlacement;
  if (options.tensors.empty())
    return {{TensorPlacement::parse(options.from), TensorPlacement::parse(options.to)}};
  const Side from{options.from};
  const Side to{options.to};
  const auto list = rankmesh::TensorList::parse_toml(read_text(options.tensors, "list of tensors"),
                                                     options.tensors);
  return transfers_of(list, {from.rules, from.mesh}, {to.rules, to.mesh});
}

// Reads numbers that are separated by commas.
std::vector<std::int64_t> read_element(const std::string& text) {
  std::vector<std::int64_t> index;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || (next != end && (*next != ',' || next + 1 == end)))
      throw UsageError{fmt::format("'{:.40}' is not an element", text),
                       "write one index per axis, such as 3,17"};
    index.push_back(number);
    at = next == end ? end : next + 1;
  }
  return index;
}

int transfer(const TransferArguments& options, const Job& job) {
  if (!job.prints()) return ok;  // the job plays no part
  auto tensors = read_tensors(options);
  std::int64_t world = 1;
  for (const TensorTransfer& tensor : tensors)
    world = std::max({world, tensor.from.ranks().highest().value() + 1,
                      tensor.to.ranks().highest().value() + 1});
  const auto machine = options.machine.machine(world);
  const rankmesh::TransferPlan plan = plan_transfer(
      std::move(tensors), machine ? &*machine : nullptr, {.fan_out = !options.is_direct});
  if (options.element.empty()) {
    print(rankmesh::report::transfer(plan, machine ? &*machine : nullptr), options.output);
    return ok;
  }
  Output output{options.output.path};
  output.write(plan.explain(0, read_element(options.element)));
  output.finish();
  return ok;
}

}  // namespace

void add_transfer(CLI::App& app, Program& program) {
  auto options = std::make_shared<TransferArguments>();
  CLI::App* command =
      app.add_subcommand("transfer", "the bytes that move when tensors change their place");
  command
      ->add_option("FROM", options->from,
                   "the place before: '[SHAPE] TYPE @ MESH : (AXES)', or FILE@MESH with --tensors")
      ->required();
  command->add_option("TO", options->to, "the place after")->required();
  command->add_option("--tensors", options->tensors, "the tensors of a model, a TOML file")
      ->type_name("FILE");
  command
      ->add_option("--element", options->element,
                   "explain where one element of the first tensor comes from")
      ->type_name("INDEX,...");
  command->add_flag("--direct", options->is_direct,
                    "let every rank receive all elements from ranks that had them before, instead "
                    "of forwarding inside nodes");
  options->machine.add_to(*command);
  options->output.has_pictures = true;
  options->output.add_to(*command);
  command->footer(
      "Examples:\n"
      "  meshinfo transfer '[8192,8192] bf16 @ dp=2,tp=8 : (_, tp)' '[8192,8192] bf16 @ tp=4 on "
      "16-19 : (_, tp)'\n"
      "  meshinfo transfer megatron.toml@pp=2,dp=4,tp=8 'vllm.toml@tp=8 on 64-71' --tensors "
      "llama3_8b.toml --ranks-per-node 8");
  command->callback([options, &program] { program.status = transfer(*options, program.job); });
}

}  // namespace meshinfo
