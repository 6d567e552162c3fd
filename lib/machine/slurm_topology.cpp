// SPDX-License-Identifier: BSD-3-Clause
// Slurm's topology.conf and topology.yaml, with the plugins topology/tree and topology/block (man
// pages of the same names).
#include <algorithm>

#include <fmt/format.h>

#include "detail/data.hpp"
#include "detail/input.hpp"
#include "detail/network_builder.hpp"
#include "rankmesh/base/detail/parse.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::string_view conf_hint =
    "write `SwitchName=s1 Nodes=node[1-4]` or `BlockName=b1 Nodes=node[1-4]`";
constexpr std::string_view yaml_hint = "see the man page topology.yaml(5)";

struct Block {
  std::string name;
  std::vector<std::string> hosts;
  std::int64_t line;
};

// Blocks are numbered in the order of the text. A larger block size joins several blocks. Their
// number is the ratio of this size to the smallest size.
void add_blocks(NetworkBuilder& builder, const std::vector<Block>& blocks,
                const std::vector<std::int64_t>& sizes) {
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    std::int32_t child = builder.switch_called(block.name, LevelKind::domain, block.line);
    for (const std::string& host : block.hosts) builder.put_host(host, child, block.line);
    for (std::size_t s = 1; s < sizes.size(); ++s) {
      const std::size_t joined = static_cast<std::size_t>(sizes[s] / sizes.front());
      const std::int32_t parent = builder.switch_called(
          fmt::format("{} nodes from {}", sizes[s], blocks[b / joined * joined].name),
          LevelKind::network, block.line);
      builder.put_switch(child, parent, block.line);
      child = parent;
    }
  }
}

void require_sizes(const std::vector<std::int64_t>& sizes, std::string_view origin,
                   std::int64_t line) {
  for (std::size_t s = 1; s < sizes.size(); ++s)
    if (sizes[s] <= sizes[s - 1] || sizes[s] % sizes[s - 1] != 0)
      refuse(origin, line,
             fmt::format("the block size {} is not a multiple of {}", sizes[s], sizes[s - 1]),
             "write the sizes in ascending order, as in 4,8,16");
}

// The keys of one line of topology.conf, without regard to case.
struct ConfLine {
  std::string name, switches, nodes, sizes;
  bool is_block = false;
};

ConfLine conf_line(std::string_view text, std::string_view origin, std::int64_t line) {
  ConfLine result;
  for (const std::string_view word : words_of(text)) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos)
      refuse(origin, line, fmt::format("'{:.40}' is not of the form Key=value", word), conf_hint);
    const std::string_view key = word.substr(0, equals);
    const std::string value{word.substr(equals + 1)};
    const auto is = [&](std::string_view name) { return equals_ignoring_case(key, name); };
    if (is("SwitchName") || is("BlockName")) {
      result.name = value;
      result.is_block = is("BlockName");
    } else if (is("Switches")) {
      result.switches = value;
    } else if (is("Nodes")) {
      result.nodes = value;
    } else if (is("BlockSizes")) {
      result.sizes = value;
    } else if (!is("LinkSpeed")) {
      refuse(origin, line, fmt::format("unknown key '{:.40}'", key), conf_hint);
    }
  }
  return result;
}

std::vector<std::int64_t> read_sizes(std::string_view text, std::string_view origin,
                                     std::int64_t line) {
  std::vector<std::int64_t> sizes;
  for (const std::string_view size : split(text, ','))
    sizes.push_back(number_in(stripped(size), "a block size", 1, most_hosts, origin, line));
  require_sizes(sizes, origin, line);
  return sizes;
}

void add_switch(NetworkBuilder& builder, const std::string& name, std::string_view switches,
                std::string_view nodes, std::string_view origin, std::int64_t line) {
  const std::int32_t parent = builder.switch_called(name, LevelKind::network, line);
  if (!switches.empty())
    for (const std::string& child : read_hostlist(switches, origin, line))
      builder.put_switch(builder.switch_called(child, LevelKind::network, line), parent, line);
  if (!nodes.empty())
    for (const std::string& host : read_hostlist(nodes, origin, line))
      builder.put_host(host, parent, line);
}

// The text of a field, which must be a scalar; empty if the field is missing.
std::string_view field_text(const Data& map, std::string_view key, std::string_view origin) {
  const Data* value = map.find(key);
  if (value == nullptr) return {};
  if (value->kind != Data::Kind::text)
    refuse(origin, value->line, fmt::format("'{}' must be a text", key), yaml_hint);
  return value->text;
}

const Data& field_list(const Data& map, std::string_view key, std::string_view origin) {
  const Data* value = map.find(key);
  if (value == nullptr || value->kind != Data::Kind::list)
    refuse(origin, value == nullptr ? map.line : value->line,
           fmt::format("'{}' must be a list", key), yaml_hint);
  return *value;
}

void add_yaml_tree(NetworkBuilder& builder, const Data& tree, std::string_view origin) {
  for (const Data& entry : field_list(tree, "switches", origin).items) {
    const std::string name{field_text(entry, "switch", origin)};
    if (name.empty()) refuse(origin, entry.line, "a switch has no name", yaml_hint);
    add_switch(builder, name, field_text(entry, "children", origin),
               field_text(entry, "nodes", origin), origin, entry.line);
  }
}

void add_yaml_blocks(NetworkBuilder& builder, const Data& data, std::string_view origin) {
  std::vector<std::int64_t> sizes;
  if (const Data* list = data.find("block_sizes")) {
    for (const Data& size : field_list(data, "block_sizes", origin).items)
      sizes.push_back(number_in(size.text, "a block size", 1, most_hosts, origin, size.line));
    require_sizes(sizes, origin, list->line);
  }
  std::vector<Block> blocks;
  for (const Data& entry : field_list(data, "blocks", origin).items) {
    const std::string name{field_text(entry, "block", origin)};
    const std::string_view nodes = field_text(entry, "nodes", origin);
    if (name.empty()) refuse(origin, entry.line, "a block has no name", yaml_hint);
    blocks.push_back({name, {}, entry.line});
    if (!nodes.empty()) blocks.back().hosts = read_hostlist(nodes, origin, entry.line);
  }
  add_blocks(builder, blocks, sizes);
}

}  // namespace

Network read_slurm_conf(std::string_view text, std::string_view origin) {
  NetworkBuilder builder{origin};
  std::vector<Block> blocks;
  std::vector<std::int64_t> sizes;
  for (const Line& line : lines_of(text)) {
    const ConfLine entry = conf_line(line.text, origin, line.number);
    if (!entry.sizes.empty()) sizes = read_sizes(entry.sizes, origin, line.number);
    if (entry.name.empty() && entry.sizes.empty())
      refuse(origin, line.number, "the line names no switch and no block", conf_hint);
    if (entry.is_block) {
      blocks.push_back({entry.name, {}, line.number});
      if (!entry.nodes.empty())
        blocks.back().hosts = read_hostlist(entry.nodes, origin, line.number);
    } else if (!entry.name.empty()) {
      add_switch(builder, entry.name, entry.switches, entry.nodes, origin, line.number);
    }
  }
  add_blocks(builder, blocks, sizes);
  return builder.finish();
}

Network read_slurm_yaml(std::string_view text, std::string_view origin) {
  const Data data = read_data(text, origin);
  if (data.kind != Data::Kind::list || data.items.empty())
    refuse(origin, data.line, "topology.yaml must be a list of topologies", yaml_hint);
  // Slurm uses the first topology that is the default of the cluster.
  const auto is_default = [](const Data& topology) {
    const Data* flag = topology.find("cluster_default");
    return flag != nullptr && equals_ignoring_case(flag->text, "true");
  };
  auto chosen = std::ranges::find_if(data.items, is_default);
  if (chosen == data.items.end()) chosen = data.items.begin();
  NetworkBuilder builder{origin};
  if (const Data* tree = chosen->find("tree"))
    add_yaml_tree(builder, *tree, origin);
  else if (const Data* block = chosen->find("block"))
    add_yaml_blocks(builder, *block, origin);
  else
    refuse(origin, chosen->line, "the default topology is neither a tree nor blocks",
           "choose a topology with `tree` or `block`, or use a host file alone");
  return builder.finish();
}

}  // namespace rankmesh::detail
