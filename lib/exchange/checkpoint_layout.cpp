// SPDX-License-Identifier: BSD-3-Clause
#include "detail/checkpoint_layout.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "transfer/detail/element_types.hpp"

namespace rankmesh::exchange::detail {
namespace {

constexpr std::int64_t least_piece_bytes = std::int64_t{4} << 20;

// The first 8 bytes of a file: the length of the JSON text that follows, least significant first.
std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

TensorInFile divided_tensor(const StoredTensor& tensor) {
  TensorInFile result{.tensor = tensor};
  const std::int64_t count =
      std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies{});
  result.bytes = count * static_cast<std::int64_t>(size_of(tensor.type));
  if (count == 0) return result;
  const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front();
  const std::int64_t row_bytes = result.bytes / rows;
  result.piece_rows = std::min(rows, (least_piece_bytes + row_bytes - 1) / row_bytes);
  result.piece_bytes = result.piece_rows * row_bytes;
  result.pieces = (rows + result.piece_rows - 1) / result.piece_rows;
  return result;
}

}  // namespace

bool is_utf8(const std::string& name) {
  try {
    (void)nlohmann::json(name).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

std::string type_name(DataType type) {
  std::string name{rankmesh::detail::short_name(type)};
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return name;
}

TensorPlacement TensorInFile::place(std::int64_t ranks) const {
  const std::int64_t members = writers(ranks);
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < members; ++i) list.push_back(writer(i, ranks));
  std::vector<std::string> axes(tensor.shape.size(), "_");
  if (members > 1) axes.front() = fmt::format("w:cyclic({})", piece_rows);
  return TensorPlacement::parse(fmt::format("[{}] {} @ w={} on {} : ({})",
                                            fmt::join(tensor.shape, ","),
                                            rankmesh::detail::short_name(tensor.type), members,
                                            fmt::join(list, ","), fmt::join(axes, ",")));
}

CheckpointLayout::CheckpointLayout(const std::vector<StoredTensor>& list, std::int64_t file_bytes) {
  std::vector<nlohmann::ordered_json> headers;
  std::vector<std::int64_t> sizes;  // without the headers
  for (const StoredTensor& stored : list) {
    if (headers.empty() || sizes.back() >= file_bytes) {
      headers.push_back({{"__metadata__", {{"format", "rankmesh"}}}});
      sizes.push_back(0);
    }
    TensorInFile tensor = divided_tensor(stored);
    tensor.file = headers.size() - 1;
    tensor.begin = sizes.back();
    tensor.first_piece = pieces;
    headers.back()[stored.name] = {{"dtype", type_name(stored.type)},
                                   {"shape", stored.shape},
                                   {"data_offsets", {tensor.begin, tensor.begin + tensor.bytes}}};
    sizes.back() += tensor.bytes;
    pieces += tensor.pieces;
    tensors.push_back(std::move(tensor));
  }
  for (std::size_t i = 0; i < headers.size(); ++i) {
    std::string text = headers[i].dump();
    text.append((8 - text.size() % 8) % 8, ' ');  // so that the elements are aligned
    CheckpointFile file{
        .name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, headers.size()),
        .header = length_bytes(text.size()) + text};
    file.bytes = std::ssize(file.header) + sizes[i];
    files.push_back(std::move(file));
  }
  for (TensorInFile& tensor : tensors) tensor.begin += std::ssize(files[tensor.file].header);
}

}  // namespace rankmesh::exchange::detail
