// SPDX-License-Identifier: BSD-3-Clause
// The matrix that `nvidia-smi topo -m` prints. Its legend names the relations: NV18 is NVLink; PIX,
// PXB, PHB, NODE and SYS are increasingly long paths through PCIe.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "detail/device_tree.hpp"
#include "detail/input.hpp"
#include "rankmesh/base/detail/parse.hpp"

namespace rankmesh::detail {
namespace {

constexpr std::string_view matrix_hint = "write the whole output of `nvidia-smi topo -m`";
constexpr std::array<std::string_view, 5> ways{"PIX", "PXB", "PHB", "NODE", "SYS"};

bool is_gpu(std::string_view name) {
  return name.starts_with("GPU") && name.size() > 3 && name.size() < 7 &&
         std::ranges::all_of(name.substr(3), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_nvlink(std::string_view cell) {
  return cell.starts_with("NV") && cell.size() > 2 && cell[2] >= '0' && cell[2] <= '9';
}

// The length of the path, or the number of kinds of paths if the cell is none of them.
std::size_t length_of(std::string_view cell) {
  return static_cast<std::size_t>(std::ranges::find(ways, cell) - ways.begin());
}

// Removes the codes by which nvidia-smi underlines its first line.
std::string without_codes(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    result += text[i];
  }
  return result;
}

struct Matrix {
  std::vector<std::string> columns;             // GPUs and network interfaces
  std::vector<std::vector<std::string>> cells;  // of the rows of GPUs
  std::vector<std::string> numa;                // the NUMA node of each GPU; may be empty
  std::map<std::string, std::string> names;     // NIC0 -> mlx5_0
};

// The columns end before "CPU Affinity".
std::vector<std::string> columns_of(std::string_view line) {
  const auto words = words_of(line.substr(0, line.find("CPU Affinity")));
  return {words.begin(), words.end()};
}

void add_row(Matrix& matrix, std::string_view text, std::string_view origin, std::int64_t line) {
  const std::vector<std::string_view> words = words_of(text);
  const std::size_t count = matrix.columns.size();
  if (words.size() < count + 1)
    refuse(origin, line,
           fmt::format("the row of {} has {} cells, but there are {} columns", words.front(),
                       words.size() - 1, count),
           matrix_hint);
  std::vector<std::string> cells(words.begin() + 1,
                                 words.begin() + 1 + static_cast<std::ptrdiff_t>(count));
  for (const std::string& cell : cells)
    if (cell != "X" && !is_nvlink(cell) && length_of(cell) == ways.size())
      refuse(origin, line, fmt::format("'{:.20}' is not a relation between devices", cell),
             matrix_hint);
  // Behind the cells: the cores, which may be missing, the NUMA node, and the GPU's own one.
  // nvidia-smi separates them by tabs; copies of its output may have blanks.
  std::string numa;
  std::vector<std::string_view> fields = words;
  if (text.find('\t') != text.npos) fields = split(text, '\t');
  if (fields.size() >= count + 3) numa = stripped(fields[count + 2]);
  matrix.cells.push_back(std::move(cells));
  matrix.numa.push_back(std::move(numa));
}

Matrix read_smi_matrix(std::string_view text, std::string_view origin) {
  Matrix matrix;
  std::int64_t last = 0;
  const std::string plain = without_codes(text);
  for (const Line& line : lines_of(plain)) {
    const std::vector<std::string_view> words = words_of(line.text);
    last = line.number;
    if (matrix.columns.empty()) {
      if (words.size() > 1 && words[0] == "GPU0" &&
          (is_gpu(words[1]) || line.text.find("Affinity") != std::string_view::npos))
        matrix.columns = columns_of(line.text);
      if (matrix.columns.size() > 1024)
        refuse(origin, line.number, "the matrix has more than 1,024 columns", matrix_hint);
      continue;
    }
    if (is_gpu(words.front()) && words.size() > 1)
      add_row(matrix, line.text, origin, line.number);
    else if (words.size() == 2 && words[0].starts_with("NIC") && words[0].ends_with(":"))
      matrix.names.emplace(words[0].substr(0, words[0].size() - 1), words[1]);
  }
  const auto gpus = std::ranges::count_if(matrix.columns, [](const auto& c) { return is_gpu(c); });
  if (matrix.columns.empty())
    refuse(origin, 0, "the matrix begins with a line that names GPU0", matrix_hint);
  if (static_cast<std::size_t>(gpus) != matrix.cells.size())
    refuse(origin, last,
           fmt::format("the matrix has {} columns of GPUs, but {} rows", gpus, matrix.cells.size()),
           matrix_hint);
  return matrix;
}

}  // namespace

NodeShape read_nvidia_smi(std::string_view text, std::string_view origin) {
  const Matrix matrix = read_smi_matrix(text, origin);
  const std::size_t count = matrix.cells.size();
  Unions domains{count};
  Unions sockets{matrix.columns.size()};
  bool has_sockets = true;
  std::map<std::string, std::size_t> gpu_on_numa;
  for (std::size_t g = 0; g < count; ++g) {
    bool is_placed = false;  // whether its socket follows from a relation
    for (std::size_t c = 0; c < matrix.columns.size(); ++c) {
      const std::string& cell = matrix.cells[g][c];
      if (c < count && is_nvlink(cell)) domains.join(g, c);
      if (length_of(cell) >= ways.size()) continue;
      is_placed = true;
      if (cell != "SYS") sockets.join(g, c);
    }
    const std::string& numa = matrix.numa[g];
    if (!numa.empty() && numa != "N/A") {
      is_placed = true;
      const auto [entry, is_new] = gpu_on_numa.try_emplace(numa, g);
      if (!is_new) sockets.join(entry->second, g);
    }
    has_sockets = has_sockets && is_placed;
  }
  const std::vector<std::int32_t> domain = domains.numbers();
  const std::vector<std::int32_t> socket = sockets.numbers();
  NodeShape shape{.has_sockets = has_sockets};
  std::vector<int> uses(matrix.columns.size());
  for (std::size_t g = 0; g < count; ++g) {
    NodeShape::Gpu gpu{
        .device = static_cast<std::int32_t>(g), .domain = domain[g], .socket = socket[g]};
    std::size_t nearest = 0;
    std::size_t least = ways.size();
    for (std::size_t c = count; c < matrix.columns.size(); ++c) {
      const std::size_t length = length_of(matrix.cells[g][c]);
      if (length > least || (length == least && (least == ways.size() || uses[c] >= uses[nearest])))
        continue;
      least = length;
      nearest = c;
    }
    if (least < ways.size()) {
      ++uses[nearest];
      const auto name = matrix.names.find(matrix.columns[nearest]);
      gpu.nic = name == matrix.names.end() ? matrix.columns[nearest] : name->second;
    }
    shape.sockets = std::max(shape.sockets, gpu.socket + 1);
    shape.gpus.push_back(std::move(gpu));
  }
  return shape;
}

}  // namespace rankmesh::detail
