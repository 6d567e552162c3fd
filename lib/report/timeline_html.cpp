// SPDX-License-Identifier: BSD-3-Clause
// The timeline as a page. lib/report/page/timeline_model.js reads the data that are written here.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "detail/page.hpp"
#include "detail/timeline_rows.hpp"
#include "record/diagnosis.hpp"
#include "report/timeline.hpp"

namespace rankmesh::report {
namespace {

using record::Record;
using record::Time;

/// Bits of a bar; the two lowest bits are the state, counted from 0, and bits 9 to 12 the carrier.
enum BarFlag : unsigned {
  begin_estimated = 4,
  end_estimated = 8,
  asynchronous = 16,
  captured = 32,
  awaits_all = 64,
  wait_flag = 256,
};

constexpr std::string_view presences[] = {"open", "closed", "destroyed", "failed"};

class PageWriter {
 public:
  PageWriter(const Sink& sink, std::span<const Record> records)
      : out_{sink},
        records_{records},
        timeline_{records},
        first_time_{timeline_.begin().value_or(0)} {}

  void write(std::span<const std::string> diagnosis) {
    out_.text(detail::page_head);
    out_.text("{\"ranks\":[");
    for (std::size_t r = 0; r < records_.size(); ++r) {
      if (r > 0) out_.text(",\n");
      out_.text(detail::script_json(rank_data(r)));
    }
    out_.text("],\n\"messages\":[");
    write_messages();
    out_.text("],\n");
    const Record none;
    const Record& first = records_.empty() ? none : records_.front();
    Json rest{{"groups", Json::array()},
              {"texts", Json::array()},
              {"mesh", first.mesh},
              {"world_size", first.world_size},
              {"carriers", carriers_of(first)},
              {"opened_at", first.opened_at},
              {"diagnosis", std::vector<std::string>{diagnosis.begin(), diagnosis.end()}}};
    for (const auto& [size, members] : group_table_) rest["groups"].push_back({size, members});
    for (const auto& [family, operation, text, bytes] : text_table_)
      rest["texts"].push_back({family, operation, text, bytes});
    out_.text(detail::script_json(rest).substr(1));
    out_.text(detail::page_tail);
    out_.flush();
  }

 private:
  using Text = std::tuple<std::string, std::string, std::string, std::int64_t>;
  using GroupKey = std::pair<std::uint64_t, std::uint64_t>;

  /// The columns of the bars of a rank: arrays are shorter than objects.
  struct Columns {
    std::vector<std::size_t> text, lane;
    std::vector<std::int64_t> group, number, begin, length;
    std::vector<unsigned> flags, root;
  };

  Json rank_data(std::size_t r) {
    const Record& record = records_[r];
    Columns columns;
    Time before = first_time_;
    for (const detail::Bar& bar : timeline_.bars[r]) {
      columns.begin.push_back(bar.begin - before);
      columns.length.push_back(bar.end - bar.begin);
      columns.lane.push_back(bar.lane);
      before = bar.begin;
      add_bar(record, bar, columns);
    }
    Json marks = Json::array();
    for (const record::Mark& mark : record.marks)
      marks.push_back({mark.time - first_time_, mark.text});
    const auto kept = record.calls.size() + record.marks.size();
    return {{"rank", record.rank.value()},
            {"coordinates", record.coordinates},
            {"host", record.host},
            {"node", record.node},
            {"pid", record.process_id},
            {"process", to_string(record.process)},
            {"presence", presences[static_cast<std::size_t>(record.presence)]},
            {"reason", record.reason},
            {"activity", detail::activity_of(record)},
            {"lost", record.calls_made > kept ? record.calls_made - kept : 0},
            {"marks", std::move(marks)},
            {"text", std::move(columns.text)},
            {"lane", std::move(columns.lane)},
            {"group", std::move(columns.group)},
            {"number", std::move(columns.number)},
            {"begin", std::move(columns.begin)},
            {"length", std::move(columns.length)},
            {"flags", std::move(columns.flags)},
            {"root", std::move(columns.root)}};
  }

  void add_bar(const Record& record, const detail::Bar& bar, Columns& columns) {
    if (bar.call == detail::Bar::wait) {
      columns.text.push_back(number_of({"", "wait", record.wait->text, 0}));
      columns.group.push_back(-1);
      columns.number.push_back(0);
      columns.flags.push_back(wait_flag);
      columns.root.push_back(0);
      return;
    }
    const record::Call& call = record.calls[bar.call];
    const std::string& family = record::family_of(record, call);
    columns.text.push_back(
        number_of({family, std::string{to_string(call.descriptor.operation())},
                   to_string(call.descriptor, family), record::bytes_of(record, call)}));
    columns.group.push_back(group_number(record, call));
    columns.number.push_back(columns.group.back() < 0 ? 0 : static_cast<std::int64_t>(call.number));
    unsigned flags = static_cast<unsigned>(call.state) - 1;
    if (bar.is_begin_estimated) flags |= begin_estimated;
    if (bar.is_end_estimated) flags |= end_estimated;
    if (call.is_async) flags |= asynchronous;
    if (call.is_captured) flags |= captured;
    if (facts_of(call.descriptor.operation()).awaited == Awaited::all) flags |= awaits_all;
    columns.flags.push_back(flags | static_cast<unsigned>(call.carrier) << 9);
    columns.root.push_back(is_root(record, call) ? 1 : 0);
  }

  // What the page calls the carriers, in the order of their numbers.
  static Json carriers_of(const Record& record) {
    constexpr std::array names{"local copies", "shared memory", "MPI", "NCCL",
                               "shared memory and MPI"};
    static_assert(names.size() == static_cast<std::size_t>(record::Carrier::first_of_program));
    Json carriers(names);
    for (const std::string& name : record.transports) carriers.push_back(name);
    return carriers;
  }

  static bool is_root(const Record& record, const record::Call& call) {
    if (call.number == 0 || call.group >= record.groups.size()) return false;
    return record.groups[call.group].ranks.find(record.rank) ==
           static_cast<std::int64_t>(call.descriptor.root());
  }

  std::size_t number_of(const Text& text) {
    const auto [place, is_new] = text_numbers_.try_emplace(text, text_table_.size());
    if (is_new) text_table_.push_back(text);
    return place->second;
  }

  std::int64_t group_number(const Record& record, const record::Call& call) {
    if (call.group >= record.groups.size()) return -1;
    const record::Group& group = record.groups[call.group];
    const auto [place, is_new] =
        group_numbers_.try_emplace({record.mesh_key, group.identity}, group_table_.size());
    if (is_new)
      group_table_.emplace_back(group.size,
                                group.ranks.empty() ? std::string{} : group.ranks.to_string(200));
    return static_cast<std::int64_t>(place->second);
  }

  void write_messages() {
    bool is_first = true;
    for (const auto& [from, to, is_certain] : timeline_.matching.messages()) {
      out_.text(fmt::format("{}[{},{},{},{}]", is_first ? "" : ",", from.record,
                            timeline_.places[from.record][from.call], to.record,
                            timeline_.places[to.record][to.call]));
      is_first = false;
    }
  }

  detail::Writer out_;
  std::span<const Record> records_;
  detail::Timeline timeline_;
  Time first_time_;
  std::vector<Text> text_table_;
  std::map<Text, std::size_t> text_numbers_;
  std::vector<std::pair<std::int64_t, std::string>> group_table_;
  std::map<GroupKey, std::size_t> group_numbers_;
};

}  // namespace

void write_html(const Sink& sink, std::span<const Record> records,
                std::span<const std::string> diagnosis) {
  PageWriter{sink, records}.write(diagnosis);
}

}  // namespace rankmesh::report
