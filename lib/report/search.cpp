// SPDX-License-Identifier: BSD-3-Clause
#include "report/search.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace rankmesh::report {
namespace {

using search::Candidate;
using search::CostModel;
using search::MeshSettings;

std::string gb(double bytes) { return fmt::format("{:.1f}", bytes / 1e9); }

// "b1 m16 v8 z1 sp full": what a mesh does not say.
std::string settings_text(const MeshSettings& s) {
  std::string text = fmt::format("b={} z={}", s.micro_batch, s.zero);
  if (s.virtual_stages > 1) text += fmt::format(" v={}", s.virtual_stages);
  if (s.sequence_parallel) text += " sp";
  if (s.recompute != search::Recompute::none) text += fmt::format(" {}", to_string(s.recompute));
  if (s.stages != search::StageKind::even) text += fmt::format(" {}", to_string(s.stages));
  return text;
}

void add_summary(const SearchReport& report, Document& document) {
  const CostModel& cost = report.cost;
  const ModelFigures& m = cost.model();
  const search::DeviceFigures& d = cost.device();
  document.add_line("model",
                    fmt::format("{}: {:.1f} B parameters, {} layers, sequences of {} tokens",
                                m.name.empty() ? "unnamed" : m.name,
                                cost.shape().all_parameters / 1e9, m.layers, m.sequence),
                    Document::title_width);
  document.add_line(
      "machine",
      fmt::format("{} {}: {} GB, {:.0f} TFLOP/s, in nodes of {}", report.options.devices, d.name,
                  gb(d.memory), d.flops / 1e12, d.per_node),
      Document::title_width);
  const search::Margins& margins = cost.margins();
  document.add_line("step",
                    fmt::format("{} sequences, {:.2f} M tokens; {} in {}", report.options.batch,
                                static_cast<double>(report.options.batch * m.sequence) / 1e6,
                                cost.software().name, cost.software().precision),
                    Document::title_width);
  if (report.is_calibrated)
    document.add_line(
        "fitted",
        fmt::format("efficiency {:.2f}, reserve {} GB", margins.efficiency, gb(margins.reserve)),
        Document::title_width);
  if (margins.reserve < 0) {
    const std::string text = fmt::format(
        "the measured device took {} GB less than the formulas say: others may not, so "
        "check that it was the fullest one",
        gb(-margins.reserve));
    document.add_line("warning", text, Document::title_width);
    document.fields["warning"] = text;
  }
  document.fields["model"] = {{"name", m.name},
                              {"parameters", cost.shape().all_parameters},
                              {"layers", m.layers},
                              {"sequence", m.sequence}};
  document.fields["machine"] = {{"device", d.name},
                                {"devices", report.options.devices},
                                {"memory", d.memory},
                                {"levels", cost.machine().describe()}};
  document.fields["step"] = {{"sequences", report.options.batch},
                             {"software", cost.software().name},
                             {"precision", cost.software().precision},
                             {"efficiency", margins.efficiency},
                             {"reserve", margins.reserve}};
  const search::SearchResult& r = report.result;
  std::int64_t fits = 0;
  for (const Candidate& c : r.candidates) fits += c.fit == search::Fit::fits ? 1 : 0;
  const std::int64_t tight = std::ssize(r.candidates) - fits;
  document.add_line("tried",
                    fmt::format("{} candidates: {} fit, {} are tight, {} do not fit", r.judged,
                                fits, tight, r.too_large),
                    Document::title_width);
  document.fields["candidates"] = {
      {"judged", r.judged}, {"fit", fits}, {"tight", tight}, {"too_large", r.too_large}};
}

void add_best(const SearchReport& report, const std::vector<search::GroupedCandidate>& best,
              Document& document) {
  Table& table = document.table;  // of CSV
  Table in_text;                  // a line breaks behind the mesh
  in_text.add_columns({"group", "s/step", "GB"}, right);
  in_text.add_columns({"fit", "mesh, and settings"});
  in_text.columns.front().level = 1;
  for (const auto& [c, group] : best) {
    const std::string seconds = fmt::format("{:.3g}", c.seconds), mesh = c.settings.mesh();
    const std::string settings = settings_text(c.settings);
    table.rows.push_back(
        {group, mesh, seconds, gb(c.bytes), to_string(c.fit), settings, c.settings.ranks()});
    in_text.rows.push_back(
        {group, seconds, gb(c.bytes), to_string(c.fit), fmt::format("{} {}", mesh, settings)});
    Json& one = document.fields["best"].emplace_back(Json{{"group", group},
                                                          {"seconds", c.seconds},
                                                          {"bytes", c.bytes},
                                                          {"memory", to_string(c.fit)},
                                                          {"ranks", c.settings.ranks()}});
    one.update(settings_json(c.settings, report.cost.model().layers));
  }
  document.add("\n");
  document.text.emplace_back(std::move(in_text));
  document.add(
      "\n  Times in a group differ by less than 10 %, which the formulas cannot tell\n"
      "  apart; in a group less memory comes first. b: sequences of a microbatch,\n"
      "  z: ZeRO stage, v: virtual stages, sp: sequence parallelism; counted, uneven:\n"
      "  layers of the stages (docs/search.md)\n");
}

// A row for each term that one of them has.
template <class Cost>
void add_terms(const std::string& title, const std::vector<std::pair<std::string, Cost>>& columns,
               double unit, Document& document) {
  Table table;
  table.add_columns({title});
  for (const auto& [name, cost] : columns) table.add_columns({name}, right);
  std::vector<std::vector<std::pair<std::string_view, double>>> terms;
  for (const auto& [name, cost] : columns) terms.push_back(cost.terms());
  for (std::size_t t = 0; t < terms.front().size(); ++t) {
    bool is_there = false;
    std::vector<Cell> row{std::string{terms.front()[t].first}};
    for (const auto& column : terms) {
      is_there = is_there || column[t].second != 0;
      row.emplace_back(fmt::format("{:.3f}", column[t].second / unit));
    }
    if (is_there) table.rows.push_back(std::move(row));
  }
  std::vector<Cell> sum{"all"};
  for (const auto& [name, cost] : columns)
    sum.emplace_back(fmt::format("{:.3f}", cost.total() / unit));
  table.rows.push_back(std::move(sum));
  document.add("\n");
  document.text.emplace_back(std::move(table));
}

void add_costs(const SearchReport& report,
               const std::vector<std::pair<std::string, MeshSettings>>& settings,
               Document& document) {
  std::vector<std::pair<std::string, search::StepTime>> times;
  std::vector<std::pair<std::string, search::DeviceMemory>> memories;
  for (const auto& [name, s] : settings) {
    times.emplace_back(name, report.cost.time(s));
    memories.emplace_back(name, report.cost.memory(s));
    if (name != "best") document.fields[name] = settings_json(s, report.cost.model().layers);
    Json& costs = document.fields["terms"][name];
    for (const auto& [term, seconds] : times.back().second.terms())
      costs["seconds"][std::string{term}] = seconds;
    for (const auto& [term, bytes] : memories.back().second.terms())
      costs["bytes"][std::string{term}] = bytes;
    costs["stage"] = memories.back().second.stage;
    costs["memory"] = to_string(report.cost.judge(memories.back().second));
    document.add(fmt::format("\n  {}: {} ({}), {};\n    the fullest device is of stage {}", name,
                             s.mesh(), settings_text(s),
                             to_string(report.cost.judge(memories.back().second)),
                             memories.back().second.stage));
  }
  if (report.is_reordered) {
    document.fields["is_reordered"] = true;
    document.add(
        "\n  note: the figures of the compared mesh are for this order of the ranks, tp fastest;"
        "\n    the given mesh has another order, which plan compares");
  }
  document.add("\n");
  add_terms("seconds of a step", times, 1, document);
  add_terms("GB of the fullest device", memories, 1e9, document);
}

// Tokens per second, and operations by the convention that counts causal attention and nothing
// twice.
void add_rates(const SearchReport& report, const MeshSettings& s, Document& document) {
  const CostModel& cost = report.cost;
  const double seconds = cost.time(s).total();
  const double sequence = static_cast<double>(cost.model().sequence);
  const double tokens = static_cast<double>(report.options.batch) * sequence;
  const double active = cost.shape().all_parameters - cost.shape().expert_parameters +
                        cost.shape().expert_parameters *
                            static_cast<double>(cost.model().experts_per_token) /
                            static_cast<double>(std::max<std::int64_t>(1, cost.model().experts));
  const double operations = tokens * (6 * active + 6 * static_cast<double>(cost.model().layers) *
                                                       cost.shape().query_width * sequence);
  const double devices = static_cast<double>(s.ranks());
  const double rate = operations / seconds / devices;
  document.fields["rates"] = {{"tokens_per_second", tokens / seconds},
                              {"flops_per_device", rate},
                              {"convention", "6 N + 6 l h s per token"}};
  document.add(fmt::format(
      "\n  best: {:.0f} tokens/s on each device, {:.0f} TFLOP/s (6 N + 6 l h s per token: no\n"
      "  recomputation, causal attention)\n",
      tokens / seconds / devices, rate / 1e12));
}

void add_refused(const search::SearchResult& result, Document& document) {
  if (result.refused.empty()) return;
  Table table;
  table.add_columns({"refused"}, right);
  table.add_columns({"rule", "the first one, and what works", "source"});
  table.columns.back().forms = Table::Forms::csv_only;
  for (const search::Rule& rule : search::rules()) {
    const auto found = result.refused.find(rule.id);
    if (found == result.refused.end()) continue;
    table.rows.push_back({found->second.count, std::string{rule.id}, found->second.example,
                          std::string{rule.source}});
  }
  document.fields["refused"] =
      table.objects({"refused", "rule", "the first one, and what works", "source"});
  document.add("\n");
  document.text.emplace_back(std::move(table));
}

// Nothing fits: what would.
void add_least(const SearchReport& report, Document& document) {
  if (!report.result.smallest) {
    document.add("\n  no mesh obeys all rules; the rules below say what would\n");
    return;
  }
  const Candidate& smallest = *report.result.smallest;
  document.fields["least_memory"] = smallest.bytes;
  document.add_bold("\n  nothing fits\n");
  document.add(fmt::format("  the least memory is {} GB per device, with {} ({})\n",
                           gb(smallest.bytes), smallest.settings.mesh(),
                           settings_text(smallest.settings)));
  if (report.enough_devices) {
    document.fields["least_devices"] = *report.enough_devices;
    document.add(fmt::format("  with {}, a mesh fits or is tight\n",
                             count_text(*report.enough_devices, "device")));
  }
}

}  // namespace

Json settings_json(const MeshSettings& s, std::int64_t layers) {
  return {{"mesh", s.mesh()},
          {"settings",
           {{"micro_batch", s.micro_batch},
            {"microbatches", s.microbatches},
            {"virtual_stages", s.virtual_stages},
            {"zero", s.zero},
            {"recompute", to_string(s.recompute)},
            {"sequence_parallel", s.sequence_parallel},
            {"stages", to_string(s.stages)},
            {"layers", search::chunk_layers(layers, s)}}}};
}

Document search(const SearchReport& report) {
  Document document{};
  document.schema = "rankmesh.search/1";
  document.fields = {{"best", Json::array()}};
  document.table.add_columns({"group", "mesh", "s/step", "GB", "fit", "settings", "ranks"});
  add_summary(report, document);
  const auto best = grouped(report.result.candidates, report.rows);
  std::vector<std::pair<std::string, MeshSettings>> shown;
  if (best.empty()) {
    add_least(report, document);
    if (report.result.smallest) shown.emplace_back("smallest", report.result.smallest->settings);
  } else {
    add_best(report, best, document);
    shown.emplace_back("best", best.front().candidate.settings);
  }
  if (report.compared) shown.emplace_back("compared", *report.compared);
  if (!shown.empty()) add_costs(report, shown, document);
  if (!best.empty()) add_rates(report, shown.front().second, document);
  add_refused(report.result, document);
  return document;
}

}  // namespace rankmesh::report
