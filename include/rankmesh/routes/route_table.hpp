// SPDX-License-Identifier: BSD-3-Clause
// Rules that choose the transport of each operation.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// The classes of element types that rules distinguish. In rules, `int` stands for int8 to uint64,
/// `float` for float32 and float64, `half` for float16 and bfloat16, and `fp8` for the two 8-bit
/// floats.
enum class TypeClass : std::uint8_t { integer, floating, half, fp8 };
inline constexpr std::size_t type_class_count = 4;
/// Returns the name that rules use for a class, for example `half`.
RANKMESH_API std::string_view to_string(TypeClass type_class);

/// Returns the class of an element type.
constexpr TypeClass class_of(DataType type) {
  return visit(type, []<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>) return TypeClass::integer;
    if constexpr (std::is_floating_point_v<T>) return TypeClass::floating;
    constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
    return is_half ? TypeClass::half : TypeClass::fp8;
  });
}

/// A range of sizes in bytes, where begin <= size < end.
struct ByteRange {
  /// The value of `end` for a range that has no upper limit.
  static constexpr std::int64_t infinite = std::numeric_limits<std::int64_t>::max();
  std::int64_t begin = 0;       ///< The first size of the range.
  std::int64_t end = infinite;  ///< The first size after the range.
  /// Returns whether all fields are equal.
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// The place where a rule was written. The places are listed in the order in which their rules are
/// tried.
enum class RouteSource : std::uint8_t {
  code,         ///< MeshOptions::routes
  environment,  ///< RANKMESH_ROUTES
  file,         ///< the mesh file
  builtin,      ///< the defaults of rankmesh
};

/// The properties of a group that the conditions of rules can test.
struct RouteScope {
  /// The name of the family. The name is empty for dynamic and adopted groups, to which only rules
  /// for `*` apply.
  std::string name;
  std::int64_t ranks = 2;  ///< The number of ranks of the group.
  /// The number of nodes that host ranks of the group. The number is known only in a running job;
  /// otherwise this value is empty.
  std::optional<std::int32_t> nodes{};
  /// Whether every rank on the nodes of the group has a core of its own. This is known only in a
  /// running job; otherwise this value is empty.
  std::optional<bool> own_cores{};
};

/// One rule, which consists of conditions and a transport. The rule matches a call if all its
/// conditions hold. A condition that is not set always holds.
struct RANKMESH_API RouteRule {
  std::string name;                      ///< The name of the family. Empty: any family (`*`).
  std::optional<Operation> operation{};  ///< The operation. Not set: any operation (`*`).
  std::optional<MemoryKind> kind{};      ///< The kind of memory. Not set: any kind.
  std::optional<ByteRange> bytes{};      ///< The range of sizes. Not set: any size.
  /// Whether the rule is only for v-forms, to which rules with sizes never apply.
  bool v_form = false;
  std::optional<TypeClass> type{};  ///< The class of types. Not set: any type.
  std::int64_t least_ranks = 2;     ///< The least number of ranks of a group.
  /// The greatest number of ranks of a group.
  std::int64_t most_ranks = std::numeric_limits<std::int64_t>::max();
  /// If true, the rule is for groups inside one node; if false, for groups on several nodes. If it
  /// is not set, the rule is for both.
  std::optional<bool> one_node{};
  /// If true, the rule is for groups whose ranks have cores of their own on their nodes; if false,
  /// for all other groups. If it is not set, the rule is for both.
  std::optional<bool> own_cores{};
  /// If true, the rule is for calls that are captured in a CUDA graph; if false, for all other
  /// calls. If it is not set, the rule is for both.
  std::optional<bool> capture{};
  std::string transport;  ///< The name of the transport.

  RouteSource source = RouteSource::builtin;  ///< Where the rule was written.
  std::string origin;        ///< place in messages, for example `mesh.toml:4` or `default`
  std::size_t position = 0;  ///< byte offset in the text

  /// Returns the rule as text, for example `tp.all_reduce:host:0-32K=shm`.
  [[nodiscard]] std::string to_string() const;
  /// Returns whether the rule's conditions on the family, the number of ranks, the nodes and the
  /// cores hold for a group. If the nodes or the cores are not known, every condition on them
  /// holds.
  [[nodiscard]] bool fits(const RouteScope& scope) const;
  /// Returns whether fits() is certain: the scope has the facts that the rule's conditions test.
  [[nodiscard]] bool is_certain(const RouteScope& scope) const {
    return (!one_node || scope.nodes) && (!own_cores || scope.own_cores);
  }
};

/// The properties of a call that the conditions of rules can test, except the properties of its
/// group.
struct RouteQuery {
  Operation operation = Operation::all_reduce;  ///< The operation.
  MemoryKind kind = MemoryKind::host;           ///< The kind of memory.
  /// The size in bytes, as docs/routes.md defines it for rules. The size is empty for v-forms,
  /// objects, send and recv, because the counts may differ between members or only two members know
  /// them. Rules that have a condition on the size do not match such calls.
  std::optional<std::int64_t> bytes{};
  /// The class of the element type. The class is empty for barriers, and rules that have a
  /// condition on the type do not match barriers.
  std::optional<TypeClass> type{};
  bool capture = false;  ///< Whether the call is captured in a CUDA graph.
};

/// A range of sizes for which the same rules match in the same order.
struct RouteSegment {
  ByteRange bytes;  ///< The sizes.
  /// The matching rules, as indices into RouteTable::rules(). A call uses the first of these rules
  /// whose transport can carry the call.
  std::vector<std::size_t> rules;
};

/// The machine on which the rules of a text were measured. It is the text after `# machine: ` in a
/// comment line. `meshinfo tune` writes this line.
struct RouteMachine {
  std::string text;    ///< For example `4 cores, Open MPI v4.1.4, rankmesh 1.0.0`.
  std::string origin;  ///< The place of the line, for example `tuned.routes:2`.
};

/// An ordered list of rules. A call uses the first matching rule whose transport can carry the
/// call. The table is plain data. Its functions are local and do not call MPI.
///
///     table     := rule { ';' rule }                 a line end also separates; # begins a comment
///     rule      := name '.' operation { ':' condition } '=' transport
///     name      := a name of the mesh | '*'
///     operation := all_reduce | broadcast | ... | '*'
///     condition := host | device                     memory kind
///                | from '-' to                       from <= bytes < to; K, M, G; to may be inf
///                | v_form                            blocks of different sizes
///                | int | float | half | fp8          element type
///                | ranks '(' least [ '-' most ] ')'  group size, both ends included
///                | one_node | many_nodes             nodes of the members
///                | own_cores | shared_cores          whether the ranks there have a core each
///                | eager | capture                   device calls outside and inside a CUDA graph
///     transport := mpi | shm | nccl | a name in MeshOptions::transports
///
/// docs/routes.md defines the size in bytes for each operation.
class RANKMESH_API RouteTable {
 public:
  RouteTable() = default;
  /// Reads rules from text.
  /// @param origin  the name of the text in errors and explanations.
  /// @param transports  the names of the transports that the program adds.
  /// @throws SpecError if the syntax is wrong, if a range is empty, if conditions exclude each
  /// other, or if a rule can never match. The error contains the position, the reason and a hint.
  static RouteTable parse(std::string_view text, RouteSource source, std::string_view origin,
                          const std::vector<std::string>& transports = {});
  /// Reads rules from text, or from a file if the text is `@PATH`.
  /// @throws SpecError if the file cannot be read, or if parse() rejects the text.
  static RouteTable read(std::string_view text_or_path, RouteSource source, std::string_view origin,
                         const std::vector<std::string>& transports = {});
  /// Returns the reason why a transport of a program cannot have this name, or an empty text if
  /// it can.
  [[nodiscard]] static std::string why_no_name(std::string_view transport);
  /// Returns the default rules. For every call on host or device memory, at least one default rule
  /// matches.
  static const RouteTable& defaults();

  /// Adds rules after the existing rules.
  void append(const RouteTable& later);
  /// Returns the rules in order.
  [[nodiscard]] const std::vector<RouteRule>& rules() const { return rules_; }
  /// Returns the machines that the texts of the rules name, in order. to_string() does not print
  /// them.
  [[nodiscard]] const std::vector<RouteMachine>& machines() const { return machines_; }
  /// Returns whether there are no rules.
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  /// Returns the rules as text in canonical form. parse() returns the same rules when it reads this
  /// text.
  [[nodiscard]] std::string to_string() const;

  /// Checks that each rule is for `*` or for a name in `names`.
  /// @throws SpecError if a rule is for any other name.
  void check_names(const std::vector<std::string>& names) const;

  /// Returns the segments of the route of one operation in one group. The segments are in ascending
  /// order and cover all sizes from 0 to infinity. Each segment lists the matching rules, up to the
  /// first rule whose transport carries every call. If the query has no size, the result is a
  /// single segment.
  [[nodiscard]] std::vector<RouteSegment> resolve(const RouteScope& scope,
                                                  const RouteQuery& query) const;

 private:
  std::vector<RouteRule> rules_;
  std::vector<RouteMachine> machines_;
};

/// Returns whether a transport carries every call on its kind of memory, regardless of the nodes on
/// which the members of the group run.
RANKMESH_API bool carries_everything(std::string_view transport);

/// The transport that a call uses, and the reason for this choice.
struct RANKMESH_API RouteExplanation {
  /// A rule that matches but whose transport cannot carry the call.
  struct Skipped {
    std::string rule;    ///< The rule as text.
    std::string origin;  ///< Where the rule was written.
    std::string why;     ///< Why its transport cannot carry the call.
  };
  std::string question;          ///< `tp.all_reduce of 8 bytes on the host`
  std::string transport;         ///< empty if no transport can carry the call
  std::string rule;              ///< empty for groups of one rank, which need no rule
  std::string origin;            ///< the origin of the rule
  std::vector<Skipped> skipped;  ///< the matching rules that precede `rule`
  std::string how{};             ///< how the transport works on this machine; may be empty
  /// The explanation for the asynchronous form of the operation, if this form uses a different
  /// transport; otherwise empty. It has at most one element.
  std::vector<RouteExplanation> async_form{};

  /// Returns a text that has one line for the transport and one line for each skipped rule. The
  /// same lines follow for the asynchronous form if its transport differs.
  [[nodiscard]] std::string to_string() const;
};

}  // namespace rankmesh
