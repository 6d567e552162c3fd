// SPDX-License-Identifier: BSD-3-Clause
// Draws a picture as SVG: a panel for each family and state.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "detail/box_layout.hpp"
#include "detail/picture.hpp"
#include "detail/svg.hpp"
#include "place/spread.hpp"

namespace rankmesh::report {
namespace {

using detail::BoxLayout;
using detail::CellGroups;
using detail::escaped;
using detail::PlacedBox;
using detail::slot_of;

constexpr std::int64_t most_slot_cells = 1024;
constexpr std::int64_t most_cells = 2048;
constexpr std::int64_t most_cells_of_all = 12'000;  // of all panels, so that the file stays small
constexpr std::int64_t most_linked_ranks = 256;
constexpr std::int64_t most_links = 32;
constexpr double margin = 18, line_height = 17, most_width = 1180;
constexpr std::size_t svg_colours = 12;  // after which they repeat

// Light fills below dark texts, or the reverse. The legend says that the colours repeat.
constexpr std::array<int, svg_colours> hue_of{212, 28, 145, 325, 48,  190,
                                              265, 95, 0,   170, 300, 235};

// The element `<style>`, for light and dark backgrounds. Its classes are k0, k1, ... (fill) and l0,
// l1, ... (stroke) for the colours; i and o for cells whose groups stay inside their unit, or leave
// it (s: with a thin border); n for cells in no group; b for boxes; a for links; h, f and t for
// titles, facts and texts in cells.
std::string svg_style() {
  std::string light;
  std::string dark;
  for (std::size_t c = 0; c < svg_colours; ++c) {
    light += fmt::format(".k{0}{{fill:hsl({1},70%,{2}%)}}.l{0}{{stroke:hsl({1},75%,38%)}}", c,
                         hue_of[c], c % 2 == 0 ? 80 : 74);
    dark += fmt::format(".k{0}{{fill:hsl({1},45%,{2}%)}}.l{0}{{stroke:hsl({1},70%,68%)}}", c,
                        hue_of[c], c % 2 == 0 ? 30 : 36);
  }
  return fmt::format(
      "<style>svg{{background:#fff;font:12px sans-serif;fill:#1c2430}}.h{{font-weight:bold}}"
      ".f{{fill:#5d6878}}.b{{fill:none;stroke:#9aa3b0}}.n{{fill:#eceef1}}"
      ".i{{stroke:#1c2430;stroke-opacity:.35}}"
      ".o{{stroke:#b3261e;stroke-width:2;stroke-dasharray:4 2}}"
      ".t{{text-anchor:middle;font-size:11px}}.s{{stroke-width:1;stroke-dasharray:none}}.a{{fill:"
      "none;stroke-width:1.4;opacity:.75}}{}"
      "@media(prefers-color-scheme:dark){{svg{{background:#14171c;fill:#e4e8ee}}.f{{fill:#9aa5b4}}"
      ".b{{stroke:#5b6675}}.n{{fill:#232932}}.i{{stroke:#e4e8ee}}.o{{stroke:#ff8a80}}{}}}"
      "</style>\n",
      light, dark);
}

std::string units_text(std::int64_t units, const std::string& level) {
  return fmt::format("{} {}", units, units == 1 ? level : plural(level));
}

// One family in one state.
struct Panel {
  const PictureState* state;
  const NamedFamily* named;
};

class Drawing {
 public:
  Drawing(const Picture& picture, detail::Writer& out)
      : picture_{picture}, out_{out}, machine_{detail::boxes_of(picture)} {
    for (const PictureState& state : picture.states)
      families_.push_back(detail::drawn_families(state));
    const double panel_width = picture.states.size() > 1 || machine_.slot_count() <= 64
                                   ? (most_width - 3 * margin) / 2
                                   : most_width - 2 * margin;
    layout_ = detail::place_boxes(
        machine_, machine_.slot_count() <= most_slot_cells ? most_slot_cells : most_cells,
        panel_width);
    are_slots_ = layout_.cell_level == machine_.levels().size();
    mark_level_ = are_slots_ ? machine_.node_level() : layout_.cell_level;
    choose_panels();
  }

  void write() {
    const std::size_t in_row =
        layout_.width > (most_width - 3 * margin) / 2 + 1 || panels_.size() < 2 ? 1 : 2;
    const double panel_height =
        2 * line_height + levels_lines() * line_height + layout_.height + line_height;
    const auto rows = static_cast<double>((panels_.size() + in_row - 1) / in_row);
    const std::vector<std::string> notes = note_lines();
    const double top = margin + line_height * (2 + static_cast<double>(notes.size()));
    const double width =
        std::max(720.0, static_cast<double>(in_row) * (layout_.width + margin) + margin);
    const double height = top + rows * panel_height + 5 * line_height;
    out_.text(
        fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
                    "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"group\" aria-label=\"{2}\">\n"
                    "<title>{2}</title>\n",
                    width, height, escaped(detail::shortened(picture_.title, 200))));
    out_.text(svg_style());
    line(margin, margin + 8, "h", detail::shortened(picture_.title, 150), 15);
    line(margin, margin + 8 + line_height, "f",
         picture_.machine ? machine_.describe() : "no machine: boxes are coordinates");
    for (std::size_t n = 0; n < notes.size(); ++n)
      line(margin, margin + 8 + line_height * static_cast<double>(n + 2), "", notes[n]);
    for (std::size_t p = 0; p < panels_.size(); ++p)
      draw_panel(panels_[p], margin + static_cast<double>(p % in_row) * (layout_.width + margin),
                 top + static_cast<double>(p / in_row) * panel_height);
    legend(top + rows * panel_height);
    out_.text("</svg>\n");
  }

 private:
  // Each family has one panel for each state, side by side.
  void choose_panels() {
    std::int64_t cells = 0;
    for (const PlacedBox& box : layout_.boxes) cells += box.is_cell ? 1 : 0;
    const auto most = static_cast<std::size_t>(
        std::clamp<std::int64_t>(most_cells_of_all / std::max<std::int64_t>(cells, 1), 2, 16));
    const auto has = [&](std::size_t s, const std::string& name) {
      return std::ranges::find(families_[s], name, &NamedFamily::first);
    };
    for (std::size_t s = 0; s < families_.size(); ++s)
      for (const NamedFamily& named : families_[s]) {
        if (s > 0 && has(0, named.first) != families_[0].end()) continue;  // drawn with state 0
        if (panels_.size() + picture_.states.size() > most) {
          ++left_out_;
          continue;
        }
        for (std::size_t t = s; t < families_.size(); ++t)
          if (const auto found = has(t, named.first); found != families_[t].end())
            panels_.push_back({&picture_.states[t], &*found});
      }
  }

  [[nodiscard]] double levels_lines() const {
    return static_cast<double>(machine_.levels().size());
  }

  [[nodiscard]] std::vector<std::string> note_lines() const {
    std::vector<std::string> lines;
    for (const std::string& note : picture_.notes) {
      if (lines.size() == 12) {
        lines.emplace_back("...");
        break;
      }
      lines.push_back(detail::shortened(note, 165));
    }
    if (left_out_ > 0)
      lines.push_back(fmt::format(
          "{} more names are not drawn; the page (-o FILE.html) has all of them", left_out_));
    return lines;
  }

  void line(double x, double y, const char* kind, const std::string& text, int size = 12) {
    out_.text(fmt::format("<text{} x=\"{:.0f}\" y=\"{:.0f}\"{}>{}</text>\n",
                          *kind == '\0' ? "" : fmt::format(" class=\"{}\"", kind), x, y,
                          size == 12 ? "" : fmt::format(" font-size=\"{}\"", size), escaped(text)));
  }

  void draw_panel(const Panel& panel, double x, double y) {
    const GroupFamily& family = panel.named->second;
    const auto spreads = spread_of(family, machine_, panel.state->slots);
    const std::string title =
        fmt::format("{}{}: {} of {}", panel.state->name.empty() ? "" : panel.state->name + ", ",
                    panel.named->first, count_text(family.group_count(), "group"),
                    count_text(family.group_size(), "rank"));
    out_.text(fmt::format("<g role=\"group\" aria-label=\"{}\">\n", escaped(title)));
    line(x, y + line_height, "h", title);
    for (std::size_t l = 0; l < spreads.size(); ++l)
      line(x, y + line_height * static_cast<double>(l + 2), "f",
           fmt::format("{} in one {}, a group touches up to {}", spreads[l].inside,
                       machine_.levels()[l].name,
                       units_text(spreads[l].most_units, machine_.levels()[l].name)));
    draw_boxes(panel, x, y + line_height * (levels_lines() + 1.6));
    out_.text("</g>\n");
  }

  void draw_boxes(const Panel& panel, double x, double y) {
    const GroupFamily& family = panel.named->second;
    const auto groups = detail::groups_of_ranks(family, panel.state->world_size);
    const std::vector<CellGroups> cells =
        detail::cells_of(machine_, layout_.cell_level, mark_level_, *panel.state, groups);
    std::map<std::vector<std::int64_t>, std::size_t> colours;  // of each set of groups
    for (const CellGroups& cell : cells) colours.try_emplace(cell.groups, colours.size());
    for (const PlacedBox& box : layout_.boxes)
      if (!box.is_cell) draw_box(box, x, y);
    if (are_slots_ && panel.state->world_size <= most_linked_ranks)
      draw_links(panel, groups, colours, x, y);  // below the cells
    for (const PlacedBox& box : layout_.boxes) {
      if (!box.is_cell) continue;
      const CellGroups& cell = cells[static_cast<std::size_t>(box.unit)];
      draw_cell(panel, box, cell, colours.at(cell.groups), x, y);
    }
  }

  void draw_box(const PlacedBox& box, double x, double y) {
    out_.text(
        fmt::format("<rect class=\"b\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" "
                    "height=\"{:.0f}\" rx=\"4\"/>\n",
                    x + box.x, y + box.y, box.width, box.height));
    line(x + box.x + 6, y + box.y + 13, "f", box.title, 11);
  }

  [[nodiscard]] std::string words_of(const Panel& panel, const PlacedBox& box,
                                     const CellGroups& cell) const {
    const std::string& unit = machine_.levels()[mark_level_].name;
    if (cell.ranks.empty()) return fmt::format("slot {} is empty", box.unit);
    if (!are_slots_)
      return fmt::format(
          "{}: {} in {} of {}, of which {} leave the {}", machine_.unit_name(box.level, box.unit),
          count_text(cell.ranks.size(), "rank"), count_text(cell.groups.size(), "group"),
          panel.named->first, cell.leaving, unit);
    const std::string where =
        fmt::format("rank {} on {}", cell.ranks.front(), machine_.host(box.unit));
    if (cell.groups.empty()) return fmt::format("{}, in no group of {}", where, panel.named->first);
    return fmt::format("{}, group {} of {}{}", where, cell.groups.front(), panel.named->first,
                       cell.leaving > 0 ? fmt::format(", which leaves the {}", unit) : "");
  }

  void draw_cell(const Panel& panel, const PlacedBox& box, const CellGroups& cell,
                 std::size_t colour, double x, double y) {
    const bool is_large = box.width > 20;
    const std::string kind = cell.groups.empty() ? "n i"
                                                 : fmt::format("k{} {}", colour % svg_colours,
                                                               cell.leaving == 0 ? "i"
                                                               : is_large        ? "o"
                                                                                 : "o s");
    out_.text(
        fmt::format("<g role=\"img\"><title>{}</title><rect class=\"{}\" x=\"{:.0f}\" y=\"{:.0f}\" "
                    "width=\"{:.0f}\" height=\"{:.0f}\"{}/>",
                    escaped(words_of(panel, box, cell)), kind, x + box.x, y + box.y, box.width,
                    box.height, is_large ? " rx=\"3\"" : ""));
    const double middle = x + box.x + box.width / 2;
    const auto text = [&](double at, const std::string& words) {
      out_.text(fmt::format("<text class=\"t\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>", middle, at,
                            escaped(words)));
    };
    if (are_slots_ && !cell.ranks.empty())
      text(y + box.y + 14, fmt::format("{}", cell.ranks.front()));
    if (!are_slots_ && is_large) {
      text(y + box.y + 14, detail::shortened(machine_.unit_name(box.level, box.unit), 15));
      text(y + box.y + 28, count_text(cell.ranks.size(), "rank"));
    }
    out_.text("</g>\n");
  }

  // Lines between the members of a group that are in different boxes.
  void draw_links(const Panel& panel, const std::vector<std::int64_t>& groups,
                  const std::map<std::vector<std::int64_t>, std::size_t>& colours, double x,
                  double y) {
    std::map<std::int64_t, const PlacedBox*> box_of_slot;
    for (const PlacedBox& box : layout_.boxes)
      if (box.is_cell) box_of_slot[box.unit] = &box;
    const GroupFamily& family = panel.named->second;
    if (family.group_count() > most_links) return;
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      const PlacedBox* before = nullptr;
      std::string path;
      family.group(g).for_each([&](Rank rank) {
        const std::int64_t slot = slot_of(*panel.state, rank.value());
        const PlacedBox* box = box_of_slot.at(slot);
        if (before != nullptr &&
            machine_.unit(mark_level_, before->unit) != machine_.unit(mark_level_, slot))
          path += link(*before, *box, x, y);
        before = box;
      });
      if (!path.empty())
        out_.text(fmt::format("<path class=\"a l{}\" d=\"{}\"/>\n",
                              colours.at({groups[family.group(g).front().to_size()]}) % svg_colours,
                              path));
    }
  }

  // A curve from the lower edge of a cell to that of another one, or down to the next row.
  static std::string link(const PlacedBox& from, const PlacedBox& to, double x, double y) {
    const double x1 = x + from.x + from.width / 2, x2 = x + to.x + to.width / 2;
    const double y1 = y + from.y + from.height, y2 = y + to.y + (to.y > from.y ? 0 : to.height);
    const double sag = to.y > from.y ? 0 : 14;
    return fmt::format("M{:.0f} {:.0f}Q{:.0f} {:.0f} {:.0f} {:.0f}", x1, y1, (x1 + x2) / 2,
                       (y1 + y2) / 2 + sag, x2, y2);
  }

  void legend(double y) {
    const std::string& unit = machine_.levels()[mark_level_].name;
    const auto sample = [&](double at, const char* kind, const std::string& words) {
      out_.text(fmt::format(
          "<rect class=\"{}\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"22\" height=\"14\" rx=\"3\"/>",
          kind, margin, at - 11));
      line(margin + 30, at, "", words);
    };
    out_.text("<g role=\"group\" aria-label=\"Legend\">\n");
    sample(y + 1.5 * line_height, "k0 i", fmt::format("its groups lie inside one {}", unit));
    sample(y + 2.6 * line_height, "k0 o", fmt::format("a group leaves its {}", unit));
    line(margin, y + 3.8 * line_height, "f",
         are_slots_ ? fmt::format("Each cell is a rank. Ranks of one colour are in the same group; "
                                  "after {} groups the colours repeat.",
                                  svg_colours)
                    : fmt::format("Each cell is a {0}. {1} of one colour have ranks of the same "
                                  "groups; after {2} colours they repeat.",
                                  unit, "Cells", svg_colours));
    out_.text("</g>\n");
  }

  const Picture& picture_;
  detail::Writer& out_;
  Machine machine_;
  std::vector<std::vector<NamedFamily>> families_;  // of each state
  BoxLayout layout_;
  bool are_slots_ = true;
  std::size_t mark_level_ = 0;  // groups that leave their unit of this level are marked
  std::vector<Panel> panels_;
  std::int64_t left_out_ = 0;  // names without a panel
};

}  // namespace

void detail::write_svg(const Picture& picture, Writer& out) { Drawing{picture, out}.write(); }

}  // namespace rankmesh::report
