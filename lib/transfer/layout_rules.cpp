// SPDX-License-Identifier: BSD-3-Clause
// Applies rules of layouts to lists of tensors.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/text.hpp"
#include "detail/element_types.hpp"
#include "detail/placement_data.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/transfer/tensor_list.hpp"

namespace rankmesh {
namespace {

// In the pattern, `*` stands for any characters.
bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  pattern.remove_prefix(star + 1);
  for (std::size_t at = star; at <= name.size(); ++at)
    if (matches(pattern, name.substr(at))) return true;
  return false;
}

using Counters = std::vector<std::pair<std::string, std::int64_t>>;  // and their values

// The places of the tensors of one side.
class Side {
 public:
  Side(const LayoutOnMesh& side, const TensorList& list) : side_{side}, list_{list} {}

  // Chooses the rule of the following tensors.
  void use(const TensorList::Entry& entry) {
    entry_ = &entry;
    const auto found = std::ranges::find_if(side_.rules.rules, [&](const LayoutRules::Rule& rule) {
      return matches(rule.tensors, entry.name);
    });
    if (found == side_.rules.rules.end())
      throw SpecError{
          fmt::format("{}: no rule matches the tensor '{:.80}'", side_.rules.origin, entry.name),
          "add a rule whose 'tensors' matches the name; * stands for any characters"};
    rule_ = &*found;
  }

  const TensorPlacement& place(const Counters& values) {
    std::vector<std::string> at;
    for (const std::string& one : rule_->at) at.push_back(coordinate(one, values));
    return parsed(fmt::format("[{}] {} @ {}{}{} : {}", fmt::join(entry_->shape, ","),
                              detail::short_name(entry_->type), side_.mesh,
                              at.empty() ? "" : " at ", fmt::join(at, ","), rule_->axes));
  }

 private:
  [[noreturn]] void refuse(const std::string& reason, const std::string& hint) const {
    throw SpecError{fmt::format("{}:{}: {} (tensor '{:.80}')", side_.rules.origin, rule_->line,
                                reason, entry_->name),
                    hint};
  }

  const TensorPlacement& parsed(const std::string& text) {
    const auto known = places_.find(text);
    if (known != places_.end()) return known->second;
    try {
      return places_.emplace(text, TensorPlacement::parse(text)).first->second;
    } catch (const SpecError& error) {
      refuse(error.message(), error.hint());
    }
  }

  // Turns `pp=layer` into `pp=3`.
  std::string coordinate(const std::string& text, const Counters& values) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      refuse(fmt::format("'{:.40}' is no coordinate", text), "write pp=layer, pp=0 or pp=last");
    const std::string split = text.substr(0, equals);
    const std::string name = split.substr(0, split.find_first_of(": "));
    const std::string value = text.substr(equals + 1);
    if (!value.empty() && value.find_first_not_of("0123456789") == std::string::npos) return text;
    if (value == "last") {
      const Layout& layout = parsed(fmt::format("[1] u8 @ {} : ({})", side_.mesh, name)).layout();
      return fmt::format("{}={}", name, layout.dimensions()[layout.index_of(name)].size - 1);
    }
    const auto counter = std::ranges::find(values, value, [](const auto& v) { return v.first; });
    if (counter == values.end())
      refuse(fmt::format("'{:.40}' is neither a counter of the name nor a number", value),
             "write pp=layer, pp=0 or pp=last");
    const std::int64_t count =
        std::ranges::find(list_.counters, value, &TensorList::Counter::name)->last + 1;
    const TensorPlacement& counted =
        parsed(fmt::format("[{}] u8 @ {} : ({})", count, side_.mesh, split));
    const detail::AxisShares& axis = counted.data().shares.front();
    const std::int64_t number = axis.class_of(counter->second);
    if (number >= 0) {
      const auto& shares = axis.classes[static_cast<std::size_t>(number)].shares;
      if (shares.size() == 1)
        return fmt::format("{}={}", name, axis.coordinate(shares.front(), 0, counted.layout()));
    }
    refuse(fmt::format("the {} {} is not on exactly one coordinate of '{}'", value, counter->second,
                       name),
           "divide the counter so that each of its values belongs to exactly one coordinate");
  }

  const LayoutOnMesh& side_;
  const TensorList& list_;
  const TensorList::Entry* entry_ = nullptr;
  const LayoutRules::Rule* rule_ = nullptr;
  std::unordered_map<std::string, TensorPlacement> places_;
};

std::string name_of(std::string name, const Counters& values) {
  for (const auto& [counter, value] : values) {
    const std::string mark = "{" + counter + "}";
    for (std::size_t at = name.find(mark); at != std::string::npos; at = name.find(mark, at))
      name.replace(at, mark.size(), std::to_string(value));
  }
  return name;
}

}  // namespace

std::vector<TensorTransfer> transfers_of(const TensorList& tensors, const LayoutOnMesh& from,
                                         const LayoutOnMesh& to) {
  constexpr std::size_t most = std::size_t{1} << 24;
  Side source{from, tensors};
  Side target{to, tensors};
  std::vector<TensorTransfer> result;
  for (const TensorList::Entry& entry : tensors.entries) {
    source.use(entry);
    target.use(entry);
    Counters values;
    for (const auto& counter : entry.counters) values.emplace_back(counter.name, counter.first);
    for (;;) {
      if (result.size() == most)
        throw SpecError{
            fmt::format("the list '{:.80}' has more than {} tensors", tensors.name, most),
            "use smaller counters"};
      result.push_back({source.place(values), target.place(values), name_of(entry.name, values)});
      std::size_t c = values.size();
      while (c > 0 && values[c - 1].second++ == entry.counters[c - 1].last) {
        --c;
        values[c].second = entry.counters[c].first;
      }
      if (c == 0) break;
    }
  }
  return result;
}

}  // namespace rankmesh
