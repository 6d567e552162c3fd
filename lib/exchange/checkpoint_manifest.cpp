// SPDX-License-Identifier: BSD-3-Clause
// The JSON files of a checkpoint.
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "detail/checkpoint_layout.hpp"

namespace rankmesh::exchange::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* manifest_format = "rankmesh.checkpoint/1";

DataType type_of_name(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(DataType::float8_e5m2); ++i)
    if (type_name(static_cast<DataType>(i)) == name) return static_cast<DataType>(i);
  throw FileError{fmt::format("the type {} is unknown", name), ""};
}

Manifest manifest_of(const Json& content) {
  std::vector<StoredTensor> tensors;
  std::vector<std::string> checksums;
  for (const Json& tensor : content.at("tensors")) {
    tensors.push_back({tensor.at("name").get<std::string>(),
                       type_of_name(tensor.at("dtype").get<std::string>()),
                       tensor.at("shape").get<std::vector<std::int64_t>>()});
    for (const Json& sum : tensor.at("checksums")) checksums.push_back(sum.get<std::string>());
  }
  return {CheckpointLayout{tensors, content.at("file_bytes").get<std::int64_t>()},
          std::move(checksums)};
}

}  // namespace

std::string index_text(const CheckpointLayout& layout) {
  Json index{{"metadata", {{"total_size", 0}}}, {"weight_map", Json::object()}};
  std::int64_t bytes = 0;
  for (const TensorInFile& tensor : layout.tensors) {
    bytes += tensor.bytes;
    index["weight_map"][tensor.tensor.name] = layout.files[tensor.file].name;
  }
  index["metadata"]["total_size"] = bytes;
  return index.dump(1) + "\n";
}

std::string manifest_text(const CheckpointLayout& layout, std::int64_t file_bytes,
                          const std::vector<Hash128>& checksums) {
  Json content{{"file_bytes", file_bytes}, {"tensors", Json::array()}};
  for (const TensorInFile& tensor : layout.tensors) {
    Json sums = Json::array();
    for (std::int64_t p = 0; p < tensor.pieces; ++p)
      sums.push_back(to_string(checksums[static_cast<std::size_t>(tensor.first_piece + p)]));
    content["tensors"].push_back({{"name", tensor.tensor.name},
                                  {"dtype", type_name(tensor.tensor.type)},
                                  {"shape", tensor.tensor.shape},
                                  {"piece_bytes", tensor.piece_bytes},
                                  {"checksums", std::move(sums)}});
  }
  const std::string digest = to_string(hash_bytes(content.dump()));
  const Json manifest{{"format", manifest_format},
                      {"checksum", "XXH3-128"},
                      {"digest", digest},
                      {"content", std::move(content)}};
  return manifest.dump(1) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  try {
    const Json manifest = Json::parse(text);
    const auto format = manifest.at("format").get<std::string>();
    if (format != manifest_format)
      throw FileError{fmt::format("the format is {}, not {}", format, manifest_format), ""};
    const Json& content = manifest.at("content");
    if (manifest.at("digest").get<std::string>() != to_string(hash_bytes(content.dump())))
      throw FileError{"its digest does not match its content", ""};
    Manifest result = manifest_of(content);
    if (std::ssize(result.checksums) != result.layout.pieces)
      throw FileError{"it does not have one checksum per piece", ""};
    return result;
  } catch (const nlohmann::json::exception& error) {
    throw FileError{fmt::format("{} is cut or altered: {}", path, error.what()),
                    "load another checkpoint"};
  } catch (const FileError& error) {
    throw FileError{fmt::format("{} cannot be used: {}", path, error.message()),
                    "load another checkpoint"};
  }
}

}  // namespace rankmesh::exchange::detail
