// SPDX-License-Identifier: BSD-3-Clause
#include "traffic.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "arguments.hpp"
#include "rankmesh/base/detail/parse.hpp"
#include "rankmesh/base/detail/suggest.hpp"
#include "rankmesh/base/error.hpp"
#include "search/hugging_face.hpp"
#include "search/model_shape.hpp"

namespace rankmesh::meshinfo {
namespace {

[[noreturn]] void refuse_volume(const std::string& text) {
  throw UsageError{fmt::format("'{}' is not a volume", text),
                   "write NAME=BYTES, or NAME=BYTES:PATTERN with ring, tree, all-to-all or chain"};
}

FamilyTraffic read_volume(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse_volume(text);
  FamilyTraffic result{text.substr(0, equals), 0, Pattern::ring};
  result.pattern = usual_pattern(result.name);
  const std::size_t colon = text.find(':', equals);
  // 237e9 is easier to write than its digits.
  const auto bytes = detail::parse_number<double>(text.substr(equals + 1, colon - equals - 1));
  if (!bytes || !(*bytes >= 0) || *bytes > 1e17) refuse_volume(text);
  result.bytes = static_cast<std::int64_t>(*bytes);
  if (colon == std::string::npos) return result;
  const std::string name = text.substr(colon + 1);
  std::vector<std::string> names;
  for (const Pattern pattern :
       {Pattern::ring, Pattern::tree, Pattern::all_to_all, Pattern::chain}) {
    names.emplace_back(to_string(pattern));
    if (names.back() != name) continue;
    result.pattern = pattern;
    return result;
  }
  throw UsageError{fmt::format("'{}' is not a volume: there is no pattern '{:.40}'", text, name),
                   detail::suggest(name, names, "the patterns are")};
}

// A file that has the sizes of all layers says twice how many parameters there are. Biases and
// positions make no difference that is worth a word.
void warn_of_contradiction(const ModelFigures& model, const std::string& path) {
  const double counted = search::counted_parameters(model);
  const auto stated = static_cast<double>(model.parameters);
  if (counted == 0 || std::abs(stated - counted) <= 0.1 * counted) return;
  std::fputs(fmt::format("meshinfo: {}: `parameters` is {:.3g}, but the layers and the vocabulary "
                         "have {:.3g} of them\n  hint: check parameters, layers, hidden, "
                         "feed_forward, experts and vocabulary\n",
                         path, stated, counted)
                 .c_str(),
             stderr);
}

}  // namespace

ModelFigures read_model(const std::string& path) {
  const std::string text =
      read_input("model", path, "give a TOML file such as examples/models/llama3_405b.toml");
  if (text.find_first_not_of(" \t\r\n") == text.find('{'))
    return search::parse_hugging_face(text, path);
  const auto model = ModelFigures::parse_toml(text, path);
  warn_of_contradiction(model, path);
  return model;
}

void TrafficArguments::add_to(CLI::App& command) {
  add_word(command, "--model", model, "FILE", "the figures of the model, a TOML file");
  add_list(command, "--volume", volumes, "NAME=BYTES[:PATTERN]",
           "what a rank sends in one step; PATTERN is ring, tree, all-to-all or chain; may be "
           "repeated");
  add_list(command, "--keep-in-node", kept, "NAME",
           "a name whose groups must not be split over nodes; may be repeated");
}

std::vector<FamilyTraffic> TrafficArguments::traffic(const MeshPlan& plan) const {
  if (volumes.empty() && model.empty()) return usual_traffic(plan);
  std::vector<FamilyTraffic> result;
  if (!model.empty())
    for (auto& volume : estimate(plan, read_model(model))) result.push_back(volume.traffic);
  for (const std::string& text : volumes) {  // these replace the model's
    FamilyTraffic given = read_volume(text);
    std::erase_if(result, [&](const FamilyTraffic& t) { return t.name == given.name; });
    result.push_back(std::move(given));
  }
  return result;
}

std::string TrafficArguments::unit() const {
  return volumes.empty() && model.empty() ? "relative" : "bytes";
}

}  // namespace rankmesh::meshinfo
