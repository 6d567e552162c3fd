// SPDX-License-Identifier: BSD-3-Clause
// The grammar of a place.
#include <algorithm>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/axis_parser.hpp"
#include "detail/element_types.hpp"
#include "detail/placement_data.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_string.hpp"

namespace rankmesh {
namespace {

// These limits are far beyond any real tensor. They bound the work that damaged text can cause.
constexpr std::size_t most_characters = 1 << 20;
constexpr std::size_t most_axes = 16;

constexpr std::string_view example =
    "write a place such as [16384,53248] bf16 @ pp=2,dp=4,tp=8 : (_, tp)";

class PlaceParser : private detail::AxisParser {
 public:
  explicit PlaceParser(std::string_view text) : AxisParser{text} {
    if (text.size() > most_characters)
      throw SpecError{
          fmt::format(
              "the place has {} characters, more than the limit of {} (it begins with '{}')",
              text.size(), most_characters, detail::excerpt(text, 0)),
          std::string{example}, 0};
  }

  TensorPlacement parse() {
    read_shape();
    read_type();
    if (!take('@')) refuse("expected '@' after the type", example);
    read_mesh();
    read_axes();
    read_sums();
    if (!at_end()) refuse("expected 'sum(' or the end", "write sum(name) for partial sums");
    choose_view();
    check_names();
    const auto refuse_later = [this](std::size_t position, const std::string& reason,
                                     const std::string& hint) { refuse(position, reason, hint); };
    data_->place();
    data_->divide(refuse_later);
    data_->write();
    return TensorPlacement{data_};
  }

 private:
  void read_shape() {
    skip_blanks();
    if (at_end()) refuse("the place is empty", example);
    if (!take('[')) refuse("expected '[' and the sizes of the axes", example);
    bool is_empty = false;
    if (!take(']')) {
      do {
        if (data_->shape.size() == most_axes)
          refuse(fmt::format("more than {} axes", most_axes), "use fewer axes");
        const std::size_t position = at_;
        const std::int64_t size = number("the size of an axis");
        data_->shape.push_back(size);
        is_empty = is_empty || size == 0;
        if (size != 0 && __builtin_mul_overflow(data_->elements, size, &data_->elements))
          data_->elements = detail::most_elements + 1;
        if (data_->elements > detail::most_elements)
          refuse(position,
                 fmt::format("the tensor has more than {} elements", detail::most_elements),
                 "use smaller sizes");
      } while (take(','));
      require(']', "the sizes of the axes", example);
    }
    if (is_empty) data_->elements = 0;
  }

  void read_type() {
    const std::size_t position = at_;
    const std::string word = name("the type of the elements");
    const auto type = detail::type_named(word);
    if (!type) {
      const std::vector<std::string> names{detail::short_names.begin(), detail::short_names.end()};
      refuse(position, fmt::format("unknown type '{:.20}'", word),
             detail::suggest(word, names, "the types are"));
    }
    data_->type = *type;
    skip_blanks();
  }

  // The mesh ends at the words `on` and `at`, or at the ':' before the axes.
  [[nodiscard]] std::size_t end_of_mesh() const {
    for (std::size_t i = at_; i < text_.size(); ++i) {
      std::size_t next = i + 1;
      if (text_[i] == ':') {
        while (next < text_.size() && is_blank(text_[next])) ++next;
        if (next < text_.size() && text_[next] == '(') return i;
        continue;
      }
      if (!is_blank(text_[i])) continue;
      const std::string_view word = text_.substr(next, 3);
      if (word.size() < 3 || !is_blank(word[2])) continue;
      next += 3;
      while (next < text_.size() && is_blank(text_[next])) ++next;
      const char after = next < text_.size() ? text_[next] : '\0';
      if ((word.starts_with("on") && is_digit(after)) ||
          (word.starts_with("at") && is_name_start(after)))
        return i;
    }
    return text_.size();
  }

  // Calls `read` on a part of the text. The position of an error becomes one in the whole text.
  template <class Read>
  auto read_part(std::size_t end, const Read& read) {
    const std::size_t begin = at_;
    at_ = end;
    try {
      return read(text_.substr(begin, end - begin));
    } catch (const SpecError& error) {
      throw SpecError{error.message(), error.hint(), begin + error.position().value_or(0)};
    }
  }

  [[noreturn]] void refuse_auto(const MeshString& mesh) const {
    const auto& view = mesh.views().front();
    const auto open = std::ranges::find_if(view, [](const auto& d) { return !d.size; });
    refuse(mesh_position_ + open->position,
           fmt::format("'{}' is auto, but a place does not know the number of ranks", open->name),
           fmt::format("write its size, which in an open mesh is mesh[\"{}\"].size(), or list the "
                       "ranks, as in {}=auto on 0-3",
                       open->name, open->name));
  }

  // Whether the ranks of a view are others than 0, 1, ..., as some presets give them.
  static bool has_own_ranks(const Layout& view) {
    return view.ranks().highest().value() >= view.size();
  }

  // Numbers the ranks of a view 0, 1, ... in ascending order, so that `on` can list others.
  void use_view(const Layout& view) {
    data_->mesh_layout = view;
    if (!has_own_ranks(view)) return;
    const std::int64_t lowest = view.ranks().lowest().value();
    RankSet own;
    if (!view.ranks().table() && view.ranks().highest().value() == lowest + view.size() - 1) {
      own = RankSet::range(Rank{lowest}, view.size());
      data_->mesh_layout = Layout{view.dimensions(), view.offset() - lowest, nullptr};
    } else {
      std::vector<Rank> sorted = view.ranks().to_vector();
      std::ranges::sort(sorted);
      std::vector<std::int64_t> numbers;
      for (const Rank rank : view.ranks())
        numbers.push_back(std::ranges::lower_bound(sorted, rank) - sorted.begin());
      std::vector<std::pair<std::string, std::int64_t>> sizes;
      for (const auto& dimension : view.dimensions())
        sizes.emplace_back(dimension.name, dimension.size);
      own = RankSet::of(sorted);
      data_->mesh_layout = Layout::row_major(sizes, 0, RankTable::make(std::move(numbers)));
    }
    if (!data_->on) data_->on = std::move(own);
  }

  void read_mesh() {
    mesh_position_ = at_;
    const MeshString mesh = read_part(end_of_mesh(), MeshString::parse);
    skip_blanks();
    if (take_word("on")) {
      const std::size_t begin = at_;
      std::size_t end = at_;
      while (end < text_.size() && (is_digit(text_[end]) || is_blank(text_[end]) ||
                                    text_[end] == '-' || text_[end] == ','))
        ++end;
      // A ':' belongs to the list if digits follow, as in 0-6:2.
      while (end + 1 < text_.size() && text_[end] == ':' && is_digit(text_[end + 1])) {
        ++end;
        while (end < text_.size() && (is_digit(text_[end]) || is_blank(text_[end]) ||
                                      text_[end] == '-' || text_[end] == ','))
          ++end;
      }
      data_->on = read_part(end, [](std::string_view part) { return RankSet::parse(part); });
      on_position_ = begin;
    }
    std::optional<std::int64_t> world;
    if (data_->on && !mesh.world_size()) world = data_->on->size();
    if (!world && !mesh.world_size() && !mesh.views().empty()) refuse_auto(mesh);
    try {
      parts_ = mesh.plan(world);
    } catch (const SpecError& error) {
      throw SpecError{error.message(), error.hint(), mesh_position_ + error.position().value_or(0)};
    }
    data_->mesh = mesh.to_string();
    if (take_word("at")) do {
        names_.emplace_back("", at_);
        names_.back().first = name("a dimension of the mesh");
        require('=', fmt::format("'{}'", names_.back().first), "write at pp=1");
        data_->at.emplace_back(names_.back().first, number("the coordinate"));
      } while (take(','));
  }

  void read_axes() {
    require(':', "the mesh", example);
    require('(', "':'", "write how each axis is divided, such as (_, tp)");
    axes_position_ = at_;
    if (!take(')')) {
      do {
        if (data_->axes.size() == data_->shape.size())
          refuse(fmt::format("more axes than the {} of the shape", data_->shape.size()),
                 "write one entry per axis, '_' for an axis that is not divided");
        data_->axes.push_back(axis(data_->shape[data_->axes.size()]));
      } while (take(','));
      require(')', "the axes", "separate the axes by ',' and segments of an axis by '+'");
    }
    if (data_->axes.size() != data_->shape.size())
      refuse(axes_position_,
             fmt::format("{} of {} axes are described", data_->axes.size(), data_->shape.size()),
             "write one entry per axis, '_' for an axis that is not divided");
  }

  void read_sums() {
    skip_blanks();
    while (take_word("sum")) {
      require('(', "'sum'", "write sum(name)");
      names_.emplace_back("", at_);
      names_.back().first = name("a dimension of the mesh");
      data_->sums.push_back(names_.back().first);
      require(')', fmt::format("'sum({}'", names_.back().first), "write sum(name)");
    }
  }

  // All names must be in one view. The first such view is used.
  void choose_view() {
    std::vector<std::string> all;
    for (const Layout& view : parts_.views)
      for (const auto& dimension : view.dimensions())
        if (std::ranges::find(all, dimension.name) == all.end()) all.push_back(dimension.name);
    for (const auto& [name, position] : names_)
      if (std::ranges::find(all, name) == all.end())
        refuse(position, fmt::format("'{:.64}' is not a dimension of the mesh", name),
               detail::suggest(name, all, "the dimensions are"));
    for (const Layout& view : parts_.views)
      if (std::ranges::all_of(names_,
                              [&](const auto& n) { return view.find(n.first).has_value(); })) {
        use_view(view);
        if (data_->on && data_->on->size() != view.size())
          refuse(on_position_,
                 fmt::format("the mesh has {}, but {} are listed",
                             detail::count_text(view.size(), "rank"), data_->on->size()),
                 "list one rank for each rank of the mesh");
        return;
      }
    refuse(mesh_position_, "no view of the mesh has all dimensions that the place names",
           "use dimensions of one view");
  }

  // A dimension divides one axis, or has partial sums, or is fixed.
  void check_names() {
    std::vector<std::string> used;
    const auto use = [&](const std::string& name, std::size_t position) {
      if (std::ranges::find(used, name) != used.end())
        refuse(position, fmt::format("'{}' is used twice", name),
               "a dimension divides one axis, or has partial sums, or is fixed by 'at'");
      used.push_back(name);
    };
    std::size_t n = 0;
    for (const auto& [name, coordinate] : data_->at) {
      const std::size_t position = names_[n++].second;
      use(name, position);
      const std::int64_t size =
          data_->mesh_layout.dimensions()[data_->mesh_layout.index_of(name)].size;
      if (coordinate >= size)
        refuse(position, fmt::format("'{}' has no coordinate {}", name, coordinate),
               fmt::format("its coordinates are 0 to {}", size - 1));
    }
    for (const AxisPlacement& axis : data_->axes) {
      std::vector<std::string> of_axis;
      for (const AxisSegment& segment : axis)
        for (const AxisSplit& split : segment.splits) {
          n++;
          check_split(split);
          if (std::ranges::find(of_axis, split.dimension) == of_axis.end()) {
            use(split.dimension, split.position);
            of_axis.push_back(split.dimension);
          }
        }
    }
    for (const std::string& name : data_->sums) use(name, names_[n++].second);
  }

  void check_split(const AxisSplit& split) const {
    const std::int64_t size =
        data_->mesh_layout.dimensions()[data_->mesh_layout.index_of(split.dimension)].size;
    const bool is_sizes = split.rule == ShareRule::sizes;
    if (!is_sizes && split.rule != ShareRule::lists) return;
    const std::size_t given = is_sizes ? split.sizes.size() : split.lists.size();
    if (static_cast<std::int64_t>(given) != size)
      refuse(split.position,
             fmt::format("'{}' has {} coordinates, but {} {} are given", split.dimension, size,
                         given, is_sizes ? "sizes" : "lists"),
             fmt::format("give one per coordinate{}", is_sizes ? "" : "; '_' is an empty list"));
  }

  std::size_t mesh_position_ = 0, on_position_ = 0, axes_position_ = 0;
  MeshString::PlanParts parts_;
  std::shared_ptr<TensorPlacement::Data> data_ = std::make_shared<TensorPlacement::Data>();
};

}  // namespace

TensorPlacement TensorPlacement::parse(std::string_view text) { return PlaceParser{text}.parse(); }

}  // namespace rankmesh
