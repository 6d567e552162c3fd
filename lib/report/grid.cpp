// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "detail/parts.hpp"

namespace rankmesh::report::detail {
namespace {

constexpr std::int64_t max_rows = 16;

std::string cell(Rank rank, const LiveFacts* live) {
  if (live == nullptr) return fmt::format("{}", rank.value());
  if (live->devices.empty()) return fmt::format("{} n{}", rank.value(), live->placement.node(rank));
  return fmt::format("{} n{} d{}", rank.value(), live->placement.node(rank),
                     live->devices.at(static_cast<std::size_t>(rank.value())));
}

// The columns run along the last dimension that has more than one coordinate.
std::size_t column_dimension(const Layout& view) {
  std::size_t d = view.dimensions().size() - 1;
  while (d > 0 && view.dimensions()[d].size == 1) --d;
  return d;
}

struct Shape {
  std::int64_t rows, columns;
  std::size_t cell_width;
  std::size_t label_width;
};

bool is_too_large(const Shape& shape) {
  return shape.rows > max_rows || shape.columns > static_cast<std::int64_t>(max_grid_width);
}

Shape shape_of(const Layout& view, const LiveFacts* live) {
  const std::size_t column = column_dimension(view);
  Shape shape{1, view.dimensions()[column].size, 0, 0};
  shape.rows = view.size() / shape.columns;
  if (is_too_large(shape)) return shape;
  for (const Rank rank : view.ranks())
    shape.cell_width = std::max(shape.cell_width, cell(rank, live).size());
  for (std::size_t d = 0; d < column; ++d)
    shape.label_width +=
        fmt::format("  {} {}", view.dimensions()[d].name, view.dimensions()[d].size - 1).size();
  return shape;
}

// "tp 0": the dimension's name in front of its first coordinate.
std::size_t head_width(const Layout& view) {
  return view.dimensions()[column_dimension(view)].name.size() + 2;
}

// The width of the first column, whose head is longer than the heads of the other columns.
std::size_t first_width(const Layout& view, const Shape& shape) {
  return std::max(head_width(view) - 1, shape.cell_width) + 3;
}

// How many columns fit beside each other; at least one. All of them if the grid is not divided.
std::int64_t columns_in(const Layout& view, const Shape& shape, std::size_t width) {
  const std::size_t used = shape.label_width + first_width(view, shape);
  const std::size_t more = width > used ? (width - used) / (shape.cell_width + 2) : 0;
  return std::min(shape.columns, static_cast<std::int64_t>(more) + 1);
}

}  // namespace

std::size_t grid_lines(const Layout& view, const LiveFacts* live, std::size_t width) {
  const Shape shape = shape_of(view, live);
  if (is_too_large(shape)) return 0;
  const std::size_t natural = shape.label_width + head_width(view) +
                              static_cast<std::size_t>(shape.columns) * (shape.cell_width + 2);
  if (natural > max_grid_width) return 0;
  const std::int64_t columns = columns_in(view, shape, width);
  const auto blocks = static_cast<std::size_t>((shape.columns + columns - 1) / columns);
  return blocks * (static_cast<std::size_t>(shape.rows) + 2) - 1;
}

namespace {

// The coordinates in front of a row, without those that repeat the row above.
std::string row_label(const Layout& view, const std::vector<Coordinate>& coordinates,
                      const std::vector<Coordinate>& previous) {
  const auto& dimensions = view.dimensions();
  std::string label;
  bool changed = previous.empty();
  for (std::size_t d = 0; d < column_dimension(view); ++d) {
    const std::string part = fmt::format("  {} {:>{}}", dimensions[d].name, coordinates[d].value(),
                                         fmt::format("{}", dimensions[d].size - 1).size());
    changed = changed || coordinates[d] != previous[d];
    label += changed ? part : std::string(part.size(), ' ');
  }
  return label;
}

// Advances to the next row; the last of the outer dimensions varies fastest.
void next_row(const Layout& view, std::vector<Coordinate>& coordinates) {
  for (std::size_t d = column_dimension(view); d-- > 0;) {
    coordinates[d] = (coordinates[d].value() + 1) % view.dimensions()[d].size;
    if (coordinates[d] != Coordinate{0}) break;
  }
}

// Adds the columns from `begin` to `end`, and their coordinates above them.
void add_columns(const Layout& view, const LiveFacts* live, const Shape& shape, std::int64_t begin,
                 std::int64_t end, Document& document) {
  const std::size_t column = column_dimension(view);
  const auto width = [&](std::int64_t c) {
    return c == begin ? first_width(view, shape) : shape.cell_width + 2;
  };
  std::string head(shape.label_width, ' ');
  for (std::int64_t c = begin; c < end; ++c) {
    const std::string name = c == begin ? view.dimensions()[column].name + " " : "";
    head += fmt::format("{:>{}}", fmt::format("{}{}", name, c), width(c));
  }
  document.add_bold(head);
  document.add("\n");

  std::vector<Coordinate> coordinates(view.dimensions().size(), Coordinate{0});
  std::vector<Coordinate> previous;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    document.add_bold(row_label(view, coordinates, previous));
    std::string cells;
    for (std::int64_t c = begin; c < end; ++c) {
      coordinates[column] = c;
      cells += fmt::format("{:>{}}", cell(view.rank(coordinates), live), width(c));
    }
    document.add(cells + "\n");
    previous = coordinates;
    next_row(view, coordinates);
  }
}

}  // namespace

void add_grid(const Layout& view, const LiveFacts* live, std::size_t width, Document& document) {
  const Shape shape = shape_of(view, live);
  const std::int64_t columns = columns_in(view, shape, width);
  for (std::int64_t begin = 0; begin < shape.columns; begin += columns) {
    if (begin > 0) document.add("\n");
    add_columns(view, live, shape, begin, std::min(begin + columns, shape.columns), document);
  }
}

}  // namespace rankmesh::report::detail
