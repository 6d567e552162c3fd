// SPDX-License-Identifier: BSD-3-Clause
// Reads rules from text.
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/hidden_rule.hpp"
#include "rankmesh/base/detail/read_file.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/routes/route_table.hpp"

namespace rankmesh {
namespace {

constexpr std::size_t most_characters = 1 << 16;
constexpr std::size_t most_rules = 1000;

const std::vector<std::string>& own_transports() {
  static const auto& names =
      *new std::vector<std::string>{"mpi", "shm", "hierarchical", "nccl"};  // lives for ever
  return names;
}

// Longer names do not fit into the record of a rank.
constexpr std::size_t longest_transport = 23;

std::vector<std::string> operations() {
  std::vector<std::string> names;
  for (std::size_t o = 0; o < operation_count; ++o)
    names.emplace_back(to_string(static_cast<Operation>(o)));
  return names;
}

bool is_blank_within(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool ends_rule(char c) { return c == ';' || c == '\n'; }

class Reader {
 public:
  Reader(std::string_view text, RouteSource source, std::string_view origin, bool is_file,
         const std::vector<std::string>& transports)
      : text_{text},
        source_{source},
        origin_{origin},
        is_file_{is_file},
        transports_{own_transports()} {
    transports_.insert(transports_.end(), transports.begin(), transports.end());
  }

  // Returns the rules, and the machines that comments name.
  std::pair<std::vector<RouteRule>, std::vector<RouteMachine>> read() {
    if (text_.size() > most_characters)
      throw SpecError{fmt::format("{}: the routes have {} characters, more than the limit of {}",
                                  origin_, text_.size(), most_characters),
                      "check that this is the intended file"};
    while (skip_to_rule()) {
      if (rules_.size() == most_rules)
        refuse(at_, fmt::format("more than {} rules", most_rules), "use fewer rules");
      rules_.push_back(rule());
      check_reachable();
    }
    return {std::move(rules_), std::move(machines_)};
  }

 private:
  struct Word {
    std::string_view text;
    std::size_t position;
  };

  // Skips blanks, line ends, separators and comments. Returns false at the end.
  bool skip_to_rule() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#')
        comment();
      else if (is_blank_within(text_[at_]) || ends_rule(text_[at_]))
        ++at_;
      else
        return true;
    }
    return false;
  }

  void comment() {
    const std::string_view line = text_.substr(at_, text_.find('\n', at_) - at_);
    constexpr std::string_view mark = "# machine: ";
    if (line.starts_with(mark)) {
      std::string_view machine = line.substr(mark.size());
      while (!machine.empty() && is_blank_within(machine.back())) machine.remove_suffix(1);
      machines_.push_back({std::string{machine}, place(at_)});
    }
    at_ += line.size();
  }

  // Returns the text up to ':', '=' or the end of the rule, without blanks around it.
  Word word() {
    while (at_ < text_.size() && is_blank_within(text_[at_])) ++at_;
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ':' && text_[at_] != '=' && text_[at_] != '#' &&
           !ends_rule(text_[at_]))
      ++at_;
    std::size_t end = at_;
    while (end > begin && is_blank_within(text_[end - 1])) --end;
    return {text_.substr(begin, end - begin), begin};
  }
  [[nodiscard]] bool is_at(char c) const { return at_ < text_.size() && text_[at_] == c; }

  RouteRule rule() {
    RouteRule rule;
    rule.source = source_;
    rule.position = at_;
    rule.origin = place(at_);
    target(rule, word());
    while (is_at(':')) {
      ++at_;
      condition(rule, word());
    }
    if (!is_at('='))
      refuse(at_, "expected ':' or '='", "write a rule as name.operation:conditions=transport");
    ++at_;
    transport(rule, word());
    if (is_at(':') || is_at('='))
      refuse(at_, "expected ';' or the end after the transport", "write conditions before the '='");
    return rule;
  }

  void target(RouteRule& rule, Word word) {
    const std::size_t dot = word.text.rfind('.');
    if (dot == std::string_view::npos)
      refuse(word.position, fmt::format("expected name.operation, found '{}'", shown(word.text)),
             "write for example tp.all_reduce, tp.* or *.*");
    const std::string_view name = word.text.substr(0, dot);
    const std::string_view operation = word.text.substr(dot + 1);
    if (!is_name(name))
      refuse(word.position, fmt::format("'{}' is not a valid name", shown(name)),
             name.find('/') != std::string_view::npos
                 ? "write @PATH to read rules from a file"
                 : "write a name of the mesh, or * for all names");
    if (name != "*") rule.name = name;
    if (operation == "*") return;
    auto names = operations();
    const auto found = std::ranges::find(names, operation);
    if (found == names.end()) {
      names.emplace_back("*");
      refuse(word.position + dot + 1, fmt::format("unknown operation '{}'", shown(operation)),
             detail::suggest(operation, names, "the operations are"));
    }
    rule.operation = static_cast<Operation>(found - names.begin());
  }

  // Whether the text can be the name of a family, which may belong to a grid (encoder.tp).
  static bool is_name(std::string_view name) {
    if (name == "*") return true;
    bool at_begin = true;
    for (const char c : name) {
      if (at_begin ? !(std::isalpha(static_cast<unsigned char>(c)) || c == '_')
                   : !(std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'))
        return false;
      at_begin = c == '.';
    }
    return !at_begin;
  }

  void condition(RouteRule& rule, Word word) {
    const std::string_view text = word.text;
    if (text == "host" || text == "device") {
      set(rule.kind, text == "host" ? MemoryKind::host : MemoryKind::device, word);
    } else if (text == "v_form") {
      rule.v_form = true;
    } else if (text == "one_node" || text == "many_nodes") {
      set(rule.one_node, text == "one_node", word);
    } else if (text == "own_cores" || text == "shared_cores") {
      set(rule.own_cores, text == "own_cores", word);
    } else if (text == "eager" || text == "capture") {
      set(rule.capture, text == "capture", word);
    } else if (text.starts_with("ranks(") && text.ends_with(")")) {
      ranks(rule, {text.substr(6, text.size() - 7), word.position + 6});
    } else if (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front()))) {
      set(rule.bytes, bytes(word), word);
    } else if (const auto type = type_class(text)) {
      set(rule.type, *type, word);
    } else {
      static const std::vector<std::string> words{
          "host",         "device", "v_form",   "int",        "float",
          "half",         "fp8",    "one_node", "many_nodes", "own_cores",
          "shared_cores", "eager",  "capture",  "ranks(2-8)", "0-32K"};
      refuse(word.position, fmt::format("unknown condition '{}'", shown(text)),
             detail::suggest(text, words, "the conditions are"));
    }
  }

  static std::optional<TypeClass> type_class(std::string_view text) {
    for (std::size_t c = 0; c < type_class_count; ++c)
      if (to_string(static_cast<TypeClass>(c)) == text) return static_cast<TypeClass>(c);
    return std::nullopt;
  }

  template <class T>
  void set(std::optional<T>& field, T value, const Word& word) {
    if (field)
      refuse(word.position,
             fmt::format("'{}' is the second condition of one kind", shown(word.text)),
             "write a separate rule for it");
    field = value;
  }

  std::int64_t number(const Word& word) {
    std::int64_t value = 0;
    const auto [end, error] =
        std::from_chars(word.text.data(), word.text.data() + word.text.size(), value);
    if (error != std::errc{} || end != word.text.data() + word.text.size())
      refuse(word.position, fmt::format("expected a whole number, got '{}'", shown(word.text)),
             "write decimal digits");
    return value;
  }

  std::int64_t size(Word word) {
    if (word.text == "inf") return ByteRange::infinite;
    std::int64_t unit = 1;
    if (!word.text.empty()) {
      const char letter =
          static_cast<char>(std::toupper(static_cast<unsigned char>(word.text.back())));
      unit = letter == 'K' ? 1 << 10 : letter == 'M' ? 1 << 20 : letter == 'G' ? 1 << 30 : 1;
      if (unit != 1) word.text.remove_suffix(1);
    }
    const std::int64_t value = number(word);
    if (value < 0 || value >= ByteRange::infinite / unit)
      refuse(word.position, fmt::format("the size '{}' is out of range", shown(word.text)),
             "write a size such as 4096, 32K, 1G or inf");
    return value * unit;
  }

  // Splits a range at its '-'.
  std::pair<Word, Word> ends(const Word& word) {
    const std::size_t dash = word.text.find('-');
    if (dash == std::string_view::npos)
      refuse(word.position, fmt::format("expected a range, got '{}'", shown(word.text)),
             "write from-to, such as 0-32K or 32K-inf");
    return {{word.text.substr(0, dash), word.position},
            {word.text.substr(dash + 1), word.position + dash + 1}};
  }

  ByteRange bytes(const Word& word) {
    const auto [first, last] = ends(word);
    const ByteRange range{size(first), size(last)};
    if (range.begin >= range.end)
      refuse(word.position, fmt::format("the range '{}' contains no size", shown(word.text)),
             "write the smaller size first; the end is excluded: 0-32K is 0 to 32767 bytes");
    return range;
  }

  void ranks(RouteRule& rule, const Word& word) {
    if (rule.least_ranks > 2 || rule.most_ranks != std::numeric_limits<std::int64_t>::max())
      refuse(word.position, "duplicate condition 'ranks' in one rule", "write two rules");
    if (word.text.find('-') == std::string_view::npos) {
      rule.least_ranks = rule.most_ranks = number(word);
    } else {
      const auto [first, last] = ends(word);
      rule.least_ranks = number(first);
      if (last.text != "inf") rule.most_ranks = number(last);
    }
    if (rule.least_ranks > rule.most_ranks)
      refuse(word.position, fmt::format("the range '{}' contains no group size", shown(word.text)),
             "write the smaller number first: ranks(2-8)");
    if (rule.most_ranks < 2)
      refuse(word.position, "groups of one rank have no route",
             "write 2 or more ranks: a group of one rank only copies");
    rule.least_ranks = std::max<std::int64_t>(rule.least_ranks, 2);
  }

  void transport(RouteRule& rule, const Word& word) {
    if (std::ranges::find(transports_, word.text) == transports_.end())
      refuse(word.position, fmt::format("unknown transport '{}'", shown(word.text)),
             detail::suggest(word.text, transports_, "the transports are"));
    rule.transport = word.text;
    const bool on_device =
        rule.transport == "nccl" || (!is_own(rule.transport) && rule.kind == MemoryKind::device);
    if (rule.kind && on_device != (*rule.kind == MemoryKind::device))
      refuse(word.position,
             fmt::format("{} does not carry {} memory", rule.transport,
                         rankmesh::to_string(*rule.kind)),
             "use mpi, shm or hierarchical for host memory, nccl for device memory");
    if (rule.capture && !on_device)
      refuse(word.position, fmt::format("{} has no rules for CUDA graphs", rule.transport),
             "write eager and capture in rules for nccl only");
    if (rule.one_node == false && rule.transport == "shm")
      refuse(word.position, "shm does not reach other nodes",
             "write one_node, or use another transport");
    if (rule.one_node == true && rule.transport == "hierarchical")
      refuse(word.position, "hierarchical carries calls of groups that span nodes only",
             "write many_nodes, or use another transport");
    if (rule.v_form && (rule.bytes || (rule.operation && !has_v_form(*rule.operation))))
      refuse(rule.position, "rules for v-forms have no sizes, and an operation with v-forms",
             "remove v_form or the other condition");
    if (!rule.operation) return;
    if (rule.bytes && is_point_to_point(*rule.operation))
      refuse(rule.position,
             fmt::format("rules for {} cannot depend on the size",
                         rankmesh::to_string(*rule.operation)),
             "remove the sizes: both ends must use the same transport, even if they expect "
             "different sizes");
    if (!has_data(*rule.operation) && (rule.bytes || rule.type))
      refuse(rule.position, "a barrier carries no data", "remove sizes and types from the rule");
  }

  static bool is_own(std::string_view transport) {
    return std::ranges::find(own_transports(), transport) != own_transports().end();
  }

  void check_reachable() {
    const RouteRule& last = rules_.back();
    if (const RouteRule* const other = detail::rule_that_hides_last(rules_))
      refuse(last.position, fmt::format("the rule '{}' can never match", last.to_string()),
             fmt::format("move the rule before the rule '{}', which already matches all its calls",
                         other->to_string()));
  }

  static std::string shown(std::string_view text) { return detail::excerpt(text.substr(0, 40), 0); }

  // The origin, and the line if the text has several.
  [[nodiscard]] std::string place(std::size_t position) const {
    const auto line = 1 + std::ranges::count(text_.substr(0, position), '\n');
    if (is_file_) return fmt::format("{}:{}", origin_, line);
    if (text_.find('\n') == std::string_view::npos) return std::string{origin_};
    return fmt::format("{}, line {}", origin_, line);
  }

  [[noreturn]] void refuse(std::size_t position, std::string_view reason,
                           std::string_view hint) const {
    const std::size_t line_end = std::min(text_.find('\n', position), text_.size());
    const std::size_t before =
        position == 0 ? std::string_view::npos : text_.rfind('\n', position - 1);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    throw SpecError{
        fmt::format("{}: routes '{}', position {}: {}", place(position),
                    detail::excerpt(text_.substr(begin, line_end - begin), position - begin),
                    position - begin, reason),
        std::string{hint}, position};
  }

  std::string_view text_;
  RouteSource source_;
  std::string_view origin_;
  bool is_file_;
  std::vector<std::string> transports_;
  std::size_t at_ = 0;
  std::vector<RouteRule> rules_;
  std::vector<RouteMachine> machines_;
};

}  // namespace

RouteTable RouteTable::parse(std::string_view text, RouteSource source, std::string_view origin,
                             const std::vector<std::string>& transports) {
  RouteTable table;
  std::tie(table.rules_, table.machines_) = Reader{text, source, origin, false, transports}.read();
  return table;
}

RouteTable RouteTable::read(std::string_view text_or_path, RouteSource source,
                            std::string_view origin, const std::vector<std::string>& transports) {
  if (!text_or_path.starts_with('@')) return parse(text_or_path, source, origin, transports);
  const std::string path{text_or_path.substr(1)};
  const auto text = detail::read_file(path);
  if (!text)
    throw SpecError{
        fmt::format("{}: cannot read the route file '{}': {}", origin, path, std::strerror(errno)),
        "check the path and its permissions on every node"};
  RouteTable table;
  std::tie(table.rules_, table.machines_) = Reader{*text, source, path, true, transports}.read();
  return table;
}

std::string RouteTable::why_no_name(std::string_view transport) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  const std::string shown = detail::excerpt(transport.substr(0, 40), 0);
  if (transport.empty() || transport.size() > longest_transport ||
      !std::ranges::all_of(transport, is_allowed) || transport.front() < 'a')
    return fmt::format(
        "'{}' cannot be the name of a transport: a name begins with a lower-case letter and has at "
        "most {} lower-case letters, digits and '_'",
        shown, longest_transport);
  if (transport == "local" ||
      std::ranges::find(own_transports(), transport) != own_transports().end())
    return fmt::format("'{}' is the name of a transport of rankmesh", shown);
  return {};
}

}  // namespace rankmesh
