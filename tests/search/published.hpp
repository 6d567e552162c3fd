// SPDX-License-Identifier: BSD-3-Clause
// The published configurations (published-layouts.csv), as a search sees them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "search/search.hpp"

namespace published {

namespace search = rankmesh::search;
using rankmesh::LevelKind;
using rankmesh::Machine;
using rankmesh::ModelFigures;

/// One row of the file, by the names of its columns.
using Fields = std::map<std::string, std::string>;

inline std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (const char c : line)
    if (c == '"')
      is_quoted = !is_quoted;
    else if (c == ',' && !is_quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  return cells;
}

inline std::vector<Fields> read(const std::string& path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = split(line);
  std::vector<Fields> rows;
  while (std::getline(file, line)) {
    Fields row;
    const auto cells = split(line);
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = i < cells.size() ? cells[i] : "";
    rows.push_back(row);
  }
  return rows;
}

/// A row: what ran where, and what was measured.
struct Row {
  std::string source, name, gpu;
  ModelFigures model{};
  search::MeshSettings settings{};
  search::Software software{};
  search::DeviceFigures device{};
  std::int64_t gpus = 1, batch = 1;
  std::optional<double> seconds{}, bytes{};
  bool ran_out_of_memory = false;
};

/// What the sources say about their programs, by a part of the source's name. Until 2022 attention
/// kept its scores, models had dropout, and messages did not overlap.
struct Program {
  const char* source;
  const char* software;
  bool is_old;
};
inline const std::vector<Program> programs{
    {"2104.04473", "megatron", true},  {"2205.05198", "megatron", true},
    {"2201.11990", "deepspeed", true}, {"tables.tex", "megatron", true},
    {"bigscience", "deepspeed", true}, {"torchtitan", "fsdp", false},
    {"llm-foundry", "fsdp", false},    {"2407.21783", "fsdp", false},
    {"", "megatron", false},
};

inline double number(const Fields& row, const char* name, double otherwise = 0) {
  const std::string& text = row.at(name);
  return text.empty() ? otherwise : std::strtod(text.c_str(), nullptr);
}
inline std::int32_t whole(const Fields& row, const char* name, std::int32_t otherwise) {
  return static_cast<std::int32_t>(number(row, name, otherwise));
}

inline ModelFigures model_of(const Fields& row, bool is_old) {
  ModelFigures m;
  m.name = row.at("model");
  m.layers = whole(row, "layers", 0);
  m.hidden = whole(row, "hidden", 0);
  m.heads = whole(row, "heads", 0);
  m.kv_heads = whole(row, "kv_heads", static_cast<std::int32_t>(m.heads));
  m.kv_hidden = m.heads == 0 ? 0 : m.hidden / m.heads * m.kv_heads;
  m.feed_forward = whole(row, "ffn", static_cast<std::int32_t>(4 * m.hidden));
  m.gated = m.feed_forward != 4 * m.hidden;  // Llama's and DeepSeek's
  m.vocabulary = whole(row, "vocab", 51200);
  m.sequence = whole(row, "seq", 4096);
  m.dropout = is_old;
  m.tied_embedding = !m.gated;
  m.experts = whole(row, "experts", 0);
  if (m.experts > 0) {
    m.experts_per_token = whole(row, "topk", 1);
    m.expert_layers = m.layers;
    m.gated = true, m.tied_embedding = false;
  }
  if (m.name.find("DeepSeek-V3") != std::string::npos) {
    m.experts = 256, m.experts_per_token = 8, m.expert_layers = 58, m.shared_experts = 1;
    m.expert_feed_forward = 2048, m.feed_forward = 18432, m.nodes_per_token = 4;
    m.query_rank = 1536, m.latent_rank = 512, m.rope_size = 64, m.head_size = m.value_size = 128;
    m.gated = true, m.tied_embedding = false, m.vocabulary = 129280, m.dispatch_bytes = 1;
  }
  return m;
}

inline search::DeviceFigures device_of(const std::string& gpu) {
  search::DeviceFigures d = search::device_figures(gpu.starts_with("A100") ? "A100" : "H100");
  if (gpu.find("40GB") != std::string::npos) d.memory = 40e9, d.memory_bandwidth = 1.555e12;
  if (gpu.find("H100-96GB") != std::string::npos)
    d.memory = 96 * 1.024e9 * 1.0486, d.memory_bandwidth = 2.4e12;
  if (gpu == "H800") d.node_bandwidth = 200e9;
  if (gpu.starts_with("V100")) {
    d = search::device_figures("A100");
    d.memory = 32e9, d.flops = 125e12, d.memory_bandwidth = 0.9e12;
    d.node_bandwidth = 150e9, d.network_bandwidth = 12.5e9, d.per_node = 16;
  }
  return d;
}

// The operations of a step by the row's convention (SEARCH.md).
inline double operations_of(const Fields& fields, const Row& row) {
  const ModelFigures& m = row.model;
  const double l = double(m.layers), h = double(m.hidden), s = double(m.sequence);
  const double v = double(m.vocabulary), b = double(row.batch);
  if (fields.at("convention") == "hardware")
    return 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  if (!m.gated && m.experts == 0)
    return 72 * b * l * s * h * h * (1 + s / (6 * h) + v / (12 * h * l));
  const search::ModelShape shape{m};
  return b * s * (6 * shape.all_parameters + 6 * l * h * s);
}

inline std::optional<double> seconds_of(const Fields& fields, const Row& row) {
  if (const double step = number(fields, "step_s"); step > 0) return step;
  const double tokens = double(row.batch) * double(row.model.sequence);
  if (const double rate = number(fields, "tokens_per_s_gpu"); rate > 0)
    return tokens / (rate * double(row.gpus));
  double rate = number(fields, "tflops_per_gpu_or_mfu") * 1e12;
  if (rate == 0) return {};
  if (rate < 1e12) rate *= row.device.flops / 1e12;
  return operations_of(fields, row) / (rate * double(row.gpus));
}

inline search::Recompute recompute_of(const std::string& text, bool is_old) {
  if (text == "full" || (is_old && text.empty())) return search::Recompute::full;
  return text.empty() || text == "none" || text == "core_attn" ? search::Recompute::none
                                                               : search::Recompute::selective;
}

inline std::optional<Row> row_of(const Fields& f) {
  Row row{.source = f.at("source"), .name = f.at("model"), .gpu = f.at("gpu")};
  const Program& program = *std::ranges::find_if(
      programs, [&](const Program& p) { return row.source.find(p.source) != std::string::npos; });
  row.model = model_of(f, program.is_old);
  if (row.model.layers == 0 || row.model.heads == 0) return {};
  row.device = device_of(row.gpu);
  std::string precision = f.at("precision");
  const bool is_zero3 = f.at("zero").starts_with("3");
  std::string software = !is_zero3 ? program.software : program.is_old ? "deepspeed" : "fsdp";
  if (precision == "bf16 pure") precision = "pure";
  if (precision.empty() || precision == "amp_bf16") precision = program.is_old ? "fp16" : "bf16";
  row.software = search::software(software, precision);
  row.software.has_flash_attention = !program.is_old;
  if (program.is_old) row.software.overlaps = false;
  search::MeshSettings& s = row.settings;
  row.gpus = whole(f, "gpus", 1);
  s.tp = whole(f, "tp", 1), s.pp = whole(f, "pp", 1), s.cp = whole(f, "cp", 1);
  s.ep = whole(f, "ep", 1);
  s.dp = static_cast<std::int32_t>(row.gpus / (s.tp * s.pp * s.cp));
  const bool is_interleaved = f.at("note").find("interleaved") != std::string::npos;
  s.virtual_stages = whole(f, "vpp", is_interleaved ? 8 : 1), s.micro_batch = whole(f, "micro", 1);
  row.batch = whole(f, "global_batch", s.dp * s.micro_batch);
  s.microbatches = static_cast<std::int32_t>(row.batch / s.dp / s.micro_batch);
  s.zero =
      static_cast<std::int8_t>(s.dp * s.cp == 1 ? 0 : whole(f, "zero", program.is_old ? 0 : 1));
  s.recompute =
      recompute_of(f.at("recompute").substr(0, f.at("recompute").find('+')), program.is_old);
  if (row.model.latent_rank > 0) s.recompute = search::Recompute::selective;  // 2412.19437, 3.2.3
  s.sequence_parallel = s.tp > 1 && (!program.is_old || f.at("recompute").ends_with("+sp"));
  const std::int64_t chunks = std::int64_t{1} * s.pp * s.virtual_stages;
  s.stages = row.model.layers % chunks == 0         ? search::StageKind::even
             : (row.model.layers + 2) % chunks == 0 ? search::StageKind::counted
                                                    : search::StageKind::uneven;
  if (!f.at("global_batch").empty()) row.seconds = seconds_of(f, row);
  const double unit = f.at("note").find("GiB") != std::string::npos ? 1.073741824e9 : 1e9;
  row.ran_out_of_memory = f.at("memory_gb") == "OOM";
  if (const double gb = number(f, "memory_gb"); gb > 0) row.bytes = gb * unit;
  return row;
}

inline Machine machine_of(const Row& row) {
  const std::int64_t node = std::min(row.gpus, row.device.per_node);
  return Machine{row.gpus, {{"node", LevelKind::node, node}}};
}

inline search::CostModel cost_of(const Row& row, const search::Margins& margins = {}) {
  return {row.model, row.device, machine_of(row), row.software, margins};
}

}  // namespace published
