// SPDX-License-Identifier: BSD-3-Clause
// The last calls of a job as a drawing.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "detail/svg.hpp"
#include "detail/timeline_rows.hpp"
#include "detail/wrap.hpp"
#include "detail/writer.hpp"
#include "record/diagnosis.hpp"
#include "report/timeline.hpp"

namespace rankmesh::report {
namespace {

using detail::Bar;
using detail::svg_box;
using detail::svg_line;
using detail::svg_line_height;
using detail::svg_margin;
using detail::svg_width;
using record::Call;
using record::Record;
using record::State;
using record::Time;

constexpr std::size_t most_drawn_rows = 128;
constexpr std::size_t last_bars = 30;  // of each rank
constexpr std::size_t note_width = 165, most_notes = 12;
constexpr std::size_t most_marked_rows = 16;  // denser rows have no texts of marks
constexpr double chart_left = 270, chart_right = svg_width - svg_margin;
constexpr double bar_row_height = 26, bar_lane_height = 10, bar_letter = 6.2;

std::string time_text(Time time) {
  return time < 1'000'000 ? fmt::format("{:.1f} us", static_cast<double>(time) / 1e3)
                          : record::duration_text(time);
}

class TimelineDrawing {
 public:
  TimelineDrawing(const Sink& sink, std::span<const Record> records)
      : out_{sink}, records_{records}, timeline_{records}, rows_{detail::order_of_rows(records)} {
    rows_.resize(std::min(rows_.size(), most_drawn_rows));
    choose_range();
    find_arrivals();
  }

  void write(std::span<const std::string> diagnosis) {
    const std::vector<std::string> notes = notes_of(diagnosis);
    const double top = svg_margin + svg_line_height * static_cast<double>(notes.size() + 3);
    double bottom = top;
    for (const std::size_t r : rows_) bottom += height_of(r);
    const std::string mesh = records_.empty() ? "no records" : records_.front().mesh;
    out_.text(detail::svg_begin(svg_width, bottom + 4 * svg_line_height, mesh));
    out_.text(svg_line(svg_margin, svg_margin + 8, "h", detail::shortened(mesh, 150), 15));
    out_.text(svg_line(svg_margin, svg_margin + 8 + svg_line_height, "f", facts()));
    double y = svg_margin + 8 + 2 * svg_line_height;
    for (const std::string& note : notes) {
      out_.text(svg_line(svg_margin, y, "", note));
      y += svg_line_height;
    }
    draw_axis(top, bottom);
    y = top;
    for (const std::size_t r : rows_) {
      draw_row(r, y);
      y += height_of(r);
    }
    draw_legend(bottom + 2 * svg_line_height);
    out_.text("</svg>\n");
    out_.flush();
  }

 private:
  [[nodiscard]] const Call* call_of(std::size_t r, const Bar& bar) const {
    return bar.call == Bar::wait ? nullptr : &records_[r].calls[bar.call];
  }
  [[nodiscard]] bool is_open(std::size_t r, const Bar& bar) const {
    const Call* const call = call_of(r, bar);
    return call == nullptr || !call->is_over();
  }

  // The last calls of all ranks. Where ranks hang, the time since then is far longer than the calls
  // before; it is cut, and takes a third of the width.
  void choose_range() {
    std::optional<Time> first, stuck;
    Time last_begin = 0, last_end = 0;
    for (const std::size_t r : rows_) {
      const std::vector<Bar>& bars = timeline_.bars[r];
      if (bars.empty()) continue;
      const auto open = std::ranges::find_if(
          bars, [&](const Bar& bar) { return bar.lane == 0 && is_open(r, bar); });
      const auto current = open == bars.end() ? std::prev(open) : open;
      const auto count = std::min<std::ptrdiff_t>(last_bars, current - bars.begin());
      const Bar& from = *(current - count);
      first = std::min(first.value_or(from.begin), from.begin);
      if (open != bars.end()) stuck = std::min(stuck.value_or(open->begin), open->begin);
      last_begin = std::max(last_begin, current->begin);
      last_end = std::max(last_end, current->end);
    }
    begin_ = first.value_or(0);
    const Time before = std::max<Time>(stuck.value_or(last_end) - begin_, 1000);
    const bool hangs = stuck && last_end - *stuck > before / 2;
    const Time shown = hangs ? std::clamp(last_begin - begin_, before, 2 * before) : before;
    end_ = hangs ? begin_ + shown + shown / 2 : std::max(last_end, begin_ + before);
  }

  // When the last member began, for the collectives in which all members wait for each other.
  void find_arrivals() {
    for (const record::Meeting& meeting : timeline_.matching.meetings()) {
      std::optional<Time>& arrival = arrivals_.emplace_back();
      const record::CallIndex first = meeting.calls.front();
      const Operation operation = records_[first.record].calls[first.call].descriptor.operation();
      if (!meeting.has_all_members || !meeting.agrees ||
          facts_of(operation).awaited != Awaited::all)
        continue;
      for (const record::CallIndex& call : meeting.calls)
        arrival = std::max(arrival.value_or(begin_), timeline_.bar_of(call).begin);
    }
  }

  [[nodiscard]] double x_of(Time time) const {
    const double share = static_cast<double>(time - begin_) / static_cast<double>(end_ - begin_);
    return chart_left + (chart_right - chart_left) * std::clamp(share, 0.0, 1.0);
  }
  [[nodiscard]] double height_of(std::size_t r) const {
    return bar_row_height +
           bar_lane_height * static_cast<double>(detail::lanes_of(timeline_.bars[r]) - 1);
  }

  [[nodiscard]] std::string facts() const {
    if (records_.empty()) return "";
    std::string text =
        fmt::format("{} of {}", records_.size(), count_text(records_.front().world_size, "rank"));
    if (rows_.size() < records_.size())
      text +=
          fmt::format("; the first {} are drawn, FILE.trace.json has all of them", rows_.size());
    return text;
  }

  static std::vector<std::string> notes_of(std::span<const std::string> diagnosis) {
    std::vector<std::string> lines;
    for (const std::string& sentence : diagnosis)
      for (const auto& [begin, end] : detail::wrapped(sentence, note_width, 2))
        lines.push_back((begin == 0 ? "" : "  ") + sentence.substr(begin, end - begin));
    if (lines.size() > most_notes) lines.resize(most_notes, "...");
    return lines;
  }

  // Times count from the first call of all.
  void draw_axis(double top, double bottom) {
    const Time origin = timeline_.begin().value_or(0);
    const double wanted = static_cast<double>(end_ - begin_) / 8;
    double step = std::pow(10, std::floor(std::log10(wanted)));
    for (const double factor : {2.0, 2.5, 2.0})
      if (step < wanted) step *= factor;
    const int digits = std::max(0, 6 - static_cast<int>(std::floor(std::log10(step))));
    for (double at = std::ceil(static_cast<double>(begin_ - origin) / step) * step;
         at < static_cast<double>(end_ - origin); at += step) {
      const double x = x_of(origin + static_cast<Time>(at));
      out_.text(
          fmt::format("<path class=\"b\" stroke-opacity=\".4\" d=\"M{:.0f} {:.0f}V{:.0f}\"/>\n", x,
                      top - 4, bottom));
      out_.text(svg_line(x + 3, top - 8, "f", fmt::format("{:.{}f} ms", at / 1e6, digits), 11));
    }
  }

  void draw_row(std::size_t r, double y) {
    const Record& record = records_[r];
    const bool is_gone =
        record.process == record::Process::stopped || record.process == record::Process::ended;
    const std::string activity = detail::activity_of(record);
    out_.text(fmt::format(
        "<g role=\"group\" aria-label=\"{}\">\n<title>{}</title>{}",
        detail::escaped("rank " + record::name_of(record)),
        detail::escaped(activity.empty() ? "in no call" : activity),
        svg_line(svg_margin, y + 17, "",
                 detail::shortened(
                     fmt::format("{} on {}{}{}", record::name_of(record), record.host,
                                 is_gone ? ", " : "", is_gone ? to_string(record.process) : ""),
                     40))));
    double free = chart_left - 1;  // calls that share a pixel are drawn once
    for (const Bar& bar : timeline_.bars[r]) {
      if (bar.end < begin_ || bar.begin > end_) continue;
      const bool is_usual =
          bar.lane == 0 && call_of(r, bar) != nullptr && call_of(r, bar)->state == State::ended;
      if (is_usual && x_of(bar.end) < free + 0.5) continue;
      draw_bar(r, bar, y);
      if (bar.lane == 0) free = std::max(x_of(bar.end), x_of(bar.begin) + 1);
    }
    draw_marks(record, y);
    out_.text("</g>\n");
  }

  void draw_bar(std::size_t r, const Bar& bar, double row_top) {
    const Call* const call = call_of(r, bar);
    const bool is_thin = bar.is_begin_estimated && !is_open(r, bar);
    const double height =
        (bar.lane == 0 ? bar_row_height - 8 : bar_lane_height - 3) * (is_thin ? 0.4 : 1);
    const double lane_top = bar.lane == 0 ? row_top + 4
                                          : row_top + bar_row_height +
                                                bar_lane_height * static_cast<double>(bar.lane - 1);
    const double y = is_thin ? lane_top + height * 0.75 : lane_top;
    const double left = x_of(bar.begin), right = std::max(x_of(bar.end), left + 1);
    const bool stands_out = is_open(r, bar) || (call != nullptr && call->state == State::failed);
    const std::string kind = fmt::format("{} {}", fill_of(r, call), stands_out ? "o" : "i");
    out_.text(fmt::format("<g role=\"img\"><title>{}</title>{}", detail::escaped(words_of(r, bar)),
                          svg_box(kind, left, y, right - left, height)));
    if (const double arrival = x_of(arrival_of(r, bar)); arrival - left >= 1)
      out_.text("<g opacity=\".6\">" +
                svg_box("n", left, y, std::min(arrival, right) - left, height) + "</g>");
    const auto letters = static_cast<std::size_t>(std::max((right - left - 8) / bar_letter, 0.0));
    if (bar.lane == 0 && letters > 4 && !is_thin)
      out_.text(svg_line(left + 4, y + 13, "", detail::shortened(label_of(r, bar), letters), 11));
    out_.text("</g>\n");
  }

  [[nodiscard]] Time arrival_of(std::size_t r, const Bar& bar) const {
    if (bar.call == Bar::wait || bar.is_begin_estimated) return begin_;
    const std::size_t meeting = timeline_.matching.meeting_of({r, bar.call});
    return meeting == record::Matching::none ? begin_ : arrivals_[meeting].value_or(begin_);
  }

  std::string fill_of(std::size_t r, const Call* call) {
    if (call == nullptr) return "n";
    const auto [place, is_new] =
        colours_.try_emplace(record::family_of(records_[r], *call), colours_.size());
    return fmt::format("k{}", place->second % detail::svg_colours);
  }

  [[nodiscard]] std::string label_of(std::size_t r, const Bar& bar) const {
    const Call* const call = call_of(r, bar);
    const std::string name = call == nullptr
                                 ? records_[r].wait->text
                                 : fmt::format("{}.{}", record::family_of(records_[r], *call),
                                               to_string(call->descriptor.operation()));
    return is_open(r, bar)
               ? fmt::format("not over for {}: {}", time_text(bar.end - bar.begin), name)
               : name;
  }

  [[nodiscard]] std::string words_of(std::size_t r, const Bar& bar) const {
    const Record& record = records_[r];
    const Call* const call = call_of(r, bar);
    std::string text = call == nullptr ? record.wait->text : record::to_string(record, *call);
    if (call != nullptr && call->state == State::inside)
      text += fmt::format(", inside {}", record::carrier_name(record, call->carrier));
    if (call != nullptr && call->state == State::failed) text += ", failed";
    text += fmt::format(", begins at {}{}", time_text(bar.begin - timeline_.begin().value_or(0)),
                        bar.is_begin_estimated ? " (estimated)" : "");
    if (is_open(r, bar))
      return text + fmt::format(", not over for {}", time_text(bar.end - bar.begin));
    return bar.is_end_estimated ? text
                                : text + fmt::format(", takes {}", time_text(bar.end - bar.begin));
  }

  void draw_marks(const Record& record, double y) {
    double free = chart_left;
    for (const record::Mark& mark : record.marks) {
      if (mark.time < begin_ || mark.time > end_) continue;
      const double x = x_of(mark.time);
      const std::string text = detail::escaped(mark.text);
      out_.text(fmt::format("<path d=\"M{:.0f} {:.0f}h8l-4 6z\"><title>{}</title></path>\n", x - 4,
                            y, text));
      if (rows_.size() > most_marked_rows || x < free) continue;
      out_.text(svg_line(x + 5, y + 3, "f", mark.text, 9));
      free = x + 8 + 5 * static_cast<double>(mark.text.size());
    }
  }

  void draw_legend(double y) {
    double x = svg_margin;
    out_.text("<g role=\"group\" aria-label=\"Legend\">\n");
    for (const auto& [family, colour] : colours_) {
      out_.text(svg_box(fmt::format("k{} i", colour % detail::svg_colours), x, y - 11, 22, 14, 3));
      out_.text(svg_line(x + 28, y, "", family));
      x += 48 + bar_letter * static_cast<double>(family.size());
    }
    out_.text(svg_line(
        svg_margin, y + svg_line_height, "f",
        "Pale: waits for other members. A dashed red border: not over, or failed. Thin: the times "
        "are estimated. A triangle: a mark of the program."));
    out_.text("</g>\n");
  }

  detail::Writer out_;
  std::span<const Record> records_;
  detail::Timeline timeline_;
  std::vector<std::size_t> rows_;
  std::vector<std::optional<Time>> arrivals_;   // of each meeting
  std::map<std::string, std::size_t> colours_;  // of each family
  Time begin_ = 0, end_ = 0;
};

}  // namespace

void write_timeline_svg(const Sink& sink, std::span<const Record> records,
                        std::span<const std::string> diagnosis) {
  TimelineDrawing{sink, records}.write(diagnosis);
}

}  // namespace rankmesh::report
