// SPDX-License-Identifier: BSD-3-Clause
#include "detail/box_layout.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace rankmesh::report {
namespace {

using detail::BoxLayout;
using detail::PlacedBox;

constexpr double gap = 6;       // between boxes, and inside their borders
constexpr double cell_gap = 2;  // between cells
constexpr double title_height = 17;
constexpr double letter = 6.7;  // the width of a letter of a title
constexpr std::size_t most_title = 34;

// The units of the next level inside each unit.
using Children = std::vector<std::vector<std::int64_t>>;

Children children_of(const Machine& machine, std::size_t level) {
  Children children(static_cast<std::size_t>(machine.unit_count(level)));
  const std::size_t inner = level + 1;
  for (std::int64_t s = 0; s < machine.slot_count(); ++s) {
    auto& list = children[static_cast<std::size_t>(machine.unit(level, s))];
    const std::int64_t unit = inner == machine.levels().size() ? s : machine.unit(inner, s);
    // Units are numbered in the order of their lowest slots, so a new one is the highest so far.
    if (list.empty() || unit > list.back()) list.push_back(unit);
  }
  return children;
}

class Placer {
 public:
  Placer(const Machine& machine, std::size_t cell_level, std::int64_t cells)
      : machine_{machine}, cell_level_{cell_level} {
    for (std::size_t l = 0; l < cell_level; ++l) children_.push_back(children_of(machine, l));
    const bool are_slots = cell_level == machine.levels().size();
    const std::size_t digits = fmt::format("{}", machine.slot_count() - 1).size();
    if (are_slots)
      cell_width_ = std::max(26.0, 10 + 7.0 * static_cast<double>(digits)), cell_height_ = 20;
    else if (cells <= 128)
      cell_width_ = 96, cell_height_ = 34;
    else
      cell_width_ = cell_height_ = 13;
  }

  BoxLayout place(double width) {
    std::vector<std::int64_t> outermost;
    const std::int64_t count = machine_.unit_count(0);
    for (std::int64_t u = 0; u < count; ++u) outermost.push_back(u);
    BoxLayout layout{cell_level_};
    boxes_ = &layout.boxes;
    const auto [right, bottom] = flow(0, outermost, 0, 0, width);
    layout.width = right;
    layout.height = bottom;
    return layout;
  }

 private:
  struct Extent {
    double width, height;
  };

  // Cells are arranged in rows of at most 16, and of 4 if there are 8 of them at most.
  static std::size_t columns(std::size_t cells) {
    if (cells <= 4) return cells;
    return cells <= 8 ? 4 : cells <= 64 ? 8 : 16;
  }

  Extent flow(std::size_t level, const std::vector<std::int64_t>& units, double x, double y,
              double width) {
    if (level == cell_level_) return grid(level, units, x, y, width);
    double at_x = 0, at_y = 0, row = 0, right = 0;
    for (const std::int64_t unit : units) {
      const std::size_t first = boxes_->size();
      Extent extent = box(level, unit, x + at_x, y + at_y, width - 2 * gap);
      if (at_x > 0 && at_x + extent.width > width) {
        for (std::size_t b = first; b < boxes_->size(); ++b) {
          (*boxes_)[b].x -= at_x;
          (*boxes_)[b].y += row + gap;
        }
        at_y += row + gap;
        at_x = row = 0;
      }
      at_x += extent.width + gap;
      right = std::max(right, at_x - gap);
      row = std::max(row, extent.height);
    }
    return {right, at_y + row};
  }

  Extent grid(std::size_t level, const std::vector<std::int64_t>& units, double x, double y,
              double width) {
    const auto fitting =
        static_cast<std::size_t>(std::max(1.0, (width + cell_gap) / (cell_width_ + cell_gap)));
    const std::size_t in_row =
        std::max<std::size_t>(1, level == 0 ? fitting : std::min(columns(units.size()), fitting));
    for (std::size_t i = 0; i < units.size(); ++i)
      boxes_->push_back({.level = level,
                         .unit = units[i],
                         .is_cell = true,
                         .x = x + static_cast<double>(i % in_row) * (cell_width_ + cell_gap),
                         .y = y + static_cast<double>(i / in_row) * (cell_height_ + cell_gap),
                         .width = cell_width_,
                         .height = cell_height_});
    const std::size_t rows = (units.size() + in_row - 1) / in_row;
    const std::size_t used = std::min(in_row, units.size());
    return {static_cast<double>(used) * (cell_width_ + cell_gap) - cell_gap,
            static_cast<double>(rows) * (cell_height_ + cell_gap) - cell_gap};
  }

  Extent box(std::size_t level, std::int64_t unit, double x, double y, double width) {
    const std::size_t place = boxes_->size();
    const std::string title = detail::shortened(machine_.unit_name(level, unit), most_title);
    boxes_->push_back({.level = level, .unit = unit, .title = title, .x = x, .y = y});
    const Extent inside = flow(level + 1, children_[level][static_cast<std::size_t>(unit)], x + gap,
                               y + title_height, width);
    PlacedBox& self = (*boxes_)[place];
    self.width = std::max(inside.width, letter * static_cast<double>(title.size())) + 2 * gap;
    self.height = inside.height + title_height + gap;
    return {self.width, self.height};
  }

  const Machine& machine_;
  std::size_t cell_level_;
  std::vector<Children> children_{};
  std::vector<PlacedBox>* boxes_ = nullptr;
  double cell_width_ = 0, cell_height_ = 0;
};

}  // namespace

std::string detail::shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // UTF-8
  return text.substr(0, end) + "...";
}

BoxLayout detail::place_boxes(const Machine& machine, std::int64_t most_cells, double width) {
  std::size_t cell_level = machine.levels().size();
  std::int64_t cells = machine.slot_count();
  while (cells > most_cells && cell_level > 0) cells = machine.unit_count(--cell_level);
  return Placer{machine, cell_level, cells}.place(width);
}

}  // namespace rankmesh::report
