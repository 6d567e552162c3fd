// SPDX-License-Identifier: BSD-3-Clause
// The Trace Event Format.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "detail/timeline_rows.hpp"
#include "detail/writer.hpp"
#include "report/timeline.hpp"

namespace rankmesh::report {
namespace {

using Event = nlohmann::json;
using record::Call;
using record::Record;
using record::Time;

constexpr std::string_view states[] = {"unknown", "issued", "inside", "ended", "failed"};

/// An end of a flow event inside a bar.
struct FlowEnd {
  std::size_t id = 0;
  bool is_start = false;
  Time time = 0;
};

class EventWriter {
 public:
  EventWriter(const Sink& sink, std::span<const Record> records)
      : out_{sink}, records_{records}, timeline_{records} {
    find_origin();
    place_threads();
    place_flows();
  }

  void write() {
    out_.text(R"({"displayTimeUnit":"ns","otherData":)" + detail::json_text(other_data()) +
              ",\"traceEvents\":[");
    name_processes();
    for (const std::size_t r : detail::order_of_rows(records_)) {
      name_threads(r);
      for (std::size_t lane = 0; lane < detail::lanes_of(timeline_.bars[r]); ++lane)
        write_lane(r, lane);
    }
    out_.text("\n]}\n");
    out_.flush();
  }

 private:
  /// Writes an event in its place, a process or a thread.
  void emit(Event place, const Event& event) {
    place.update(event);
    out_.text((is_first_ ? "\n" : ",\n") + detail::json_text(place));
    is_first_ = false;
  }

  /// Names a process or a thread in the viewer, and gives it its place.
  void label(const Event& place, const std::string& what, const std::string& name,
             std::int64_t order) {
    emit(place, {{"ph", "M"}, {"name", what + "_name"}, {"args", {{"name", name}}}});
    emit(place, {{"ph", "M"}, {"name", what + "_sort_index"}, {"args", {{"sort_index", order}}}});
  }

  [[nodiscard]] double microseconds(Time time) const { return as_microseconds(time - origin_); }

  /// Perfetto multiplies by 1,000 and truncates the fraction. The returned value gives the exact
  /// number of nanoseconds after this step, because calls that overlap by a nanosecond would not
  /// nest.
  static double as_microseconds(Time nanoseconds) {
    double result = static_cast<double>(nanoseconds) / 1e3;
    while (static_cast<Time>(result * 1e3) < nanoseconds)
      result = std::nextafter(result, std::numeric_limits<double>::infinity());
    return result;
  }

  [[nodiscard]] Event other_data() const {
    Event data{{"writer", "rankmesh"}};
    if (records_.empty()) return data;
    const Record& first = records_.front();
    data["mesh"] = first.mesh;
    data["world_size"] = first.world_size;
    data["opened_at_ns_since_1970"] = first.opened_at;
    data["first_event_ns_of_clock"] = origin_;
    return data;
  }

  void find_origin() {
    std::optional<Time> first = timeline_.begin();
    for (const Record& record : records_)
      for (const record::Mark& mark : record.marks)
        first = std::min(first.value_or(mark.time), mark.time);
    origin_ = first.value_or(0);
  }

  /// Threads and processes share one sequence of numbers: Perfetto treats a thread with the number
  /// of its process as the main thread of this process.
  void place_threads() {
    std::int64_t next = 1;
    first_thread_.resize(records_.size());
    for (const std::size_t r : detail::order_of_rows(records_)) {
      first_thread_[r] = next;
      next += static_cast<std::int64_t>(detail::lanes_of(timeline_.bars[r]));
    }
    first_process_ = next;
  }

  [[nodiscard]] std::int64_t process_of(const Record& record) const {
    return first_process_ + record.node;
  }

  /// An arrow starts when its call begins. It ends in the other call a nanosecond later, or when
  /// the other call begins, if that is later. Viewers sort events by time, and need the start
  /// first. Arrows that would lead back in time are left out.
  void place_flows() {
    for (const Record& record : records_) flows_.emplace_back(record.calls.size());
    std::size_t id = 0;
    for (const detail::Arrow& arrow : detail::arrows_of(timeline_)) {
      const detail::Bar& from = timeline_.bar_of(arrow.from);
      const detail::Bar& to = timeline_.bar_of(arrow.to);
      const Time arrival = std::max(from.begin + 1, to.begin);
      if (arrival >= to.end && arrival > to.begin) continue;
      ++id;
      flows_[arrow.from.record][arrow.from.call].push_back({id, true, from.begin});
      flows_[arrow.to.record][arrow.to.call].push_back({id, false, arrival});
    }
  }

  void name_processes() {
    std::vector<std::int32_t> named;
    for (const Record& record : records_) {
      if (std::ranges::find(named, record.node) != named.end()) continue;
      named.push_back(record.node);
      label(Event::object({{"pid", process_of(record)}}), "process",
            fmt::format("node {} ({})", record.node, record.host), record.node);
    }
  }

  void name_threads(std::size_t r) {
    const Record& record = records_[r];
    for (std::size_t lane = 0; lane < detail::lanes_of(timeline_.bars[r]); ++lane) {
      const std::int64_t tid = first_thread_[r] + static_cast<std::int64_t>(lane);
      std::string name = fmt::format("rank {}", record::name_of(record));
      if (lane > 0) name += fmt::format(", asynchronous {}", lane);
      label({{"pid", process_of(record)}, {"tid", tid}}, "thread", name, tid);
    }
  }

  /// Writes the events of a thread in the order of their times.
  void write_lane(std::size_t r, std::size_t lane) {
    const Record& record = records_[r];
    const Event place{{"pid", process_of(record)},
                      {"tid", first_thread_[r] + static_cast<std::int64_t>(lane)}};
    std::vector<record::Mark> marks = lane == 0 ? record.marks : std::vector<record::Mark>{};
    std::ranges::stable_sort(marks, {}, &record::Mark::time);
    auto mark = marks.begin();
    const auto write_marks_before = [&](std::optional<Time> time) {
      for (; mark != marks.end() && (!time || mark->time < *time); ++mark) write_mark(*mark, place);
    };
    for (const detail::Bar& bar : timeline_.bars[r]) {
      if (bar.lane != lane) continue;
      write_marks_before(bar.begin);
      write_bar(record, bar, place);
      if (bar.call == detail::Bar::wait) continue;
      auto& ends = flows_[r][bar.call];
      std::ranges::stable_sort(ends, {}, &FlowEnd::time);
      bool is_divided = false;
      for (const FlowEnd& end : ends) {
        write_marks_before(end.time);
        if (!end.is_start && end.time > bar.begin && !is_divided) {
          write_rest(record.calls[bar.call], end.time, bar.end, place);
          is_divided = true;
        }
        write_flow(end, place);
      }
    }
    write_marks_before(std::nullopt);
  }

  void write_mark(const record::Mark& mark, const Event& place) {
    emit(place, {{"ph", "i"},
                 {"s", "t"},
                 {"cat", "mark"},
                 {"name", mark.text},
                 {"ts", microseconds(mark.time)}});
  }

  void write_flow(const FlowEnd& end, const Event& place) {
    Event event{{"ph", end.is_start ? "s" : "f"},
                {"cat", "flow"},
                {"name", "leads to"},
                {"id", end.id},
                {"ts", microseconds(end.time)}};
    if (!end.is_start) event["bp"] = "e";  // the slice around the time, not the next one
    emit(place, event);
  }

  /// Perfetto reverses an arrow if the call to which it leads began first. Therefore the part of
  /// this call after the wait is an event of its own inside the call. This event also shows how
  /// long the wait was.
  void write_rest(const Call& call, Time begin, Time end, const Event& place) {
    const Operation operation = call.descriptor.operation();
    const char* name = "last member arrived";
    if (facts_of(operation).awaited == Awaited::root)
      name = "root arrived";
    else if (operation == Operation::recv || operation == Operation::send_recv)
      name = "message is sent";
    emit(place, {{"ph", "X"},
                 {"cat", "after the wait"},
                 {"name", name},
                 {"ts", microseconds(begin)},
                 {"dur", as_microseconds(end - begin)}});
  }

  static std::string library_of(const Record& record, record::Carrier carrier) {
    if (carrier == record::Carrier::nccl) return "NCCL";
    if (carrier < record::Carrier::first_of_program) return "MPI";
    return std::string{record::carrier_name(record, carrier)};
  }

  void write_bar(const Record& record, const detail::Bar& bar, const Event& place) {
    Event event{{"ph", "X"},
                {"ts", microseconds(bar.begin)},
                {"dur", as_microseconds(bar.end - bar.begin)}};
    if (bar.call == detail::Bar::wait) {
      event.update({{"cat", "wait"},
                    {"name", record.wait->text + " (not over)"},
                    {"cname", "terrible"},
                    {"args", {{"state", "waiting"}, {"time", "recorded"}}}});
      return emit(place, event);
    }
    const Call& call = record.calls[bar.call];
    std::string name = fmt::format("{}.{}", record::family_of(record, call),
                                   to_string(call.descriptor.operation()));
    if (call.state == record::State::issued) name += " (not over)";
    if (call.state == record::State::inside)
      name += fmt::format(" (not over, in {})", library_of(record, call.carrier));
    if (call.state == record::State::failed) name += " (failed)";
    if (call.is_cancelled) name += " (cancelled)";
    // The reserved colours of chrome://tracing; Perfetto chooses colours by name.
    if (!call.is_over()) event["cname"] = "terrible";
    if (call.state == record::State::failed) event["cname"] = "bad";
    event["cat"] = to_string(call.descriptor.operation());
    event["name"] = std::move(name);
    event["args"] = arguments_of(record, call, bar);
    emit(place, event);
  }

  static Event arguments_of(const Record& record, const Call& call, const detail::Bar& bar) {
    Event args;
    if (call.group < record.groups.size()) {
      const record::Group& group = record.groups[call.group];
      args["call"] = record::to_string(record, call);
      args["group_id"] = fmt::format("{:x}", group.identity);
      args["group_size"] = group.size;
      if (!group.ranks.empty()) args["members"] = group.ranks.to_string(200);
    }
    args["group"] = record::family_of(record, call);
    if (call.number != 0) args["number"] = call.number;
    args["count"] = call.descriptor.count;
    args["bytes"] = record::bytes_of(record, call);
    if (has_data(call.descriptor.operation())) args["type"] = to_string(call.descriptor.type());
    args["carrier"] = record::carrier_name(record, call.carrier);
    args["state"] = states[static_cast<std::size_t>(call.state)];
    if (call.is_async) args["asynchronous"] = true;
    if (call.is_captured) args["captured"] = true;
    args["time"] = bar.is_begin_estimated ? "estimated" : "recorded";
    if (bar.is_end_estimated && !bar.is_begin_estimated) args["end"] = "estimated";
    return args;
  }

  detail::Writer out_;
  std::span<const Record> records_;
  detail::Timeline timeline_;
  std::vector<std::vector<std::vector<FlowEnd>>> flows_;  ///< of each call of each record
  std::vector<std::int64_t> first_thread_;                ///< of each record
  std::int64_t first_process_ = 1;
  Time origin_ = 0;
  bool is_first_ = true;
};

}  // namespace

void write_trace_events(const Sink& sink, std::span<const Record> records) {
  EventWriter{sink, records}.write();
}

}  // namespace rankmesh::report
