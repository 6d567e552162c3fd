// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

constexpr std::size_t most_pairs = 10;  // of pairs in text

// Returns a text such as `1.56 GB`.
std::string bytes_text(std::int64_t bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(units); ++unit) value /= 1000;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.3g} {}", value, units[unit]);
}

struct Total {
  const char* key;
  std::string title;
  std::int64_t bytes;
  std::optional<std::int64_t> least{};
  bool is_rare = false;  // text leaves it out if it is 0
};

std::vector<Total> totals_of(const TransferVolume& v, bool has_machine) {
  std::vector<Total> totals{
      {"moved", "sent by all ranks", v.moved_bytes, v.least_moved_bytes},
      {"most_sent", fmt::format("most sent by one rank (rank {})", v.most_sending.value()),
       v.most_sent_bytes, v.least_most_sent_bytes},
      {"most_forwarded",
       fmt::format("most forwarded by one rank (rank {})", v.most_forwarding.value()),
       v.most_forwarded_bytes, std::nullopt, true},
      {"most_received",
       fmt::format("most received by one rank (rank {})", v.most_receiving.value()),
       v.most_received_bytes}};
  if (has_machine)
    totals.push_back(
        {"between_nodes", "between nodes", v.between_nodes_bytes, v.least_between_nodes_bytes});
  totals.push_back({"copied", "copied inside ranks", v.copied_bytes});
  return totals;
}

void add_totals(const std::vector<Total>& totals, Document& document) {
  Table table{.columns = {{"", left}, {"bytes", right}, {"", right}, {"lower bound", right}}};
  for (const Total& total : totals) {
    document.fields[total.key] = {{"bytes", total.bytes}, {"lower_bound", total.least}};
    if (!total.is_rare || total.bytes > 0)
      table.rows.push_back({total.title, total.bytes, bytes_text(total.bytes), total.least});
  }
  document.text.emplace_back(std::move(table));
}

PictureState state_of(const char* name, const TensorPlacement& place, std::int64_t world) {
  PictureState state{.name = name, .world_size = world, .views = {place.layout()}};
  for (std::size_t d = 0; d < place.layout().dimensions().size(); ++d) {
    const std::string& dimension = place.layout().dimensions()[d].name;
    state.families.emplace_back(dimension,
                                GroupFamily::of(dimension, place.layout(), std::span{&d, 1}));
  }
  return state;
}

// The meshes of the first tensor before and after the transfer.
Picture picture_of(const TransferPlan& plan, const Machine* machine,
                   const std::vector<Total>& totals) {
  const TensorTransfer& first = plan.tensors().front();
  Picture picture{.title = first.from.to_string() + " to " + first.to.to_string(),
                  .states = {state_of("before", first.from, plan.world_size()),
                             state_of("after", first.to, plan.world_size())}};
  for (const Total& total : totals)
    if (!total.is_rare || total.bytes > 0)
      picture.notes.push_back(fmt::format("{}: {}", total.title, bytes_text(total.bytes)));
  if (machine != nullptr) picture.machine = *machine;
  return picture;
}

// The pairs that carry most come first.
void add_pairs(std::vector<TransferFlow> flows, const Machine* machine, Document& document) {
  std::erase_if(flows, [](const TransferFlow& flow) { return flow.sender == flow.receiver; });
  std::ranges::stable_sort(flows, std::ranges::greater{}, &TransferFlow::bytes);
  for (const char* end : {"sender", "receiver"}) {
    document.table.add_columns({end}, right);
    if (machine != nullptr) document.table.add_columns({std::string{end} + "'s node"});
  }
  document.table.add_columns({"bytes"}, right);
  for (const TransferFlow& flow : flows) {
    std::vector<Cell>& row = document.table.rows.emplace_back();
    for (const Rank rank : {flow.sender, flow.receiver}) {
      row.emplace_back(rank.value());
      if (machine != nullptr) row.emplace_back(machine->host(rank.value()));
    }
    row.emplace_back(flow.bytes);
  }
  if (flows.empty()) return;
  document.fields["pairs"] = document.table.objects({"sender", "receiver", "bytes"}, most_pairs);
  document.add(flows.size() > most_pairs ? fmt::format("\n  the {} of {} pairs that carry most\n\n",
                                                       most_pairs, flows.size())
                                         : std::string{"\n  the pairs of ranks\n\n"});
  document.text.emplace_back(TableHere{most_pairs});
}

void add_relabelling(const Relabelling& relabelling, Document& document) {
  Json& field = document.fields["relabelling"];
  field = {{"moved_bytes", relabelling.moved_bytes},
           {"moved_before", relabelling.moved_before},
           {"how", relabelling.how},
           {"cost", relabelling.cost},
           {"least_cost", relabelling.least_cost}};
  for (const auto& [old_rank, new_rank] : relabelling.rank_of)
    field["ranks"].push_back({{"before", old_rank.value()}, {"after", new_rank.value()}});
  document.add_line(
      "ranks",
      fmt::format("chosen {}: {} move instead of {}",
                  relabelling.how == "exact" ? "exactly" : "by an auction",
                  bytes_text(relabelling.moved_bytes), bytes_text(relabelling.moved_before)),
      Document::title_width);
}

}  // namespace

Document transfer(const TransferPlan& plan, const Machine* machine,
                  const Relabelling* relabelling) {
  const TensorTransfer& first = plan.tensors().front();
  Document document{.schema = "rankmesh.transfer/1",
                    .fields = {{"tensors", plan.tensors().size()},
                               {"world_size", plan.world_size()},
                               {"digest", to_string(plan.digest())},
                               {"from", first.from.to_string()},
                               {"to", first.to.to_string()}}};
  if (machine != nullptr) document.fields["machine"] = machine->describe();
  if (plan.tensors().size() > 1 || !first.name.empty())
    document.add_line("tensors",
                      fmt::format("{}, the first one is {}",
                                  count_text(plan.tensors().size(), "tensor"), first.name));
  document.add_fields({"from", "to", "machine"});
  if (relabelling != nullptr) add_relabelling(*relabelling, document);
  document.add("\n");
  const auto flows = plan.flows();
  const auto totals = totals_of(plan.volume(flows), machine != nullptr);
  add_totals(totals, document);
  add_pairs(flows, machine, document);
  document.picture = picture_of(plan, machine, totals);
  return document;
}

}  // namespace rankmesh::report
