// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/helpers/print.hpp"

#include <iostream>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/helpers/prefix.hpp"

namespace rankmesh {
namespace {

void write_lines(std::ostream& out, std::string_view text) {
  out << text;
  if (!text.ends_with('\n')) out << '\n';
}

}  // namespace

void print_once(std::ostream& out, const Mesh& mesh, std::string_view text, Rank from) {
  if (from.value() < 0 || from.value() >= mesh.size())
    throw UsageError{fmt::format("print_once: rank {} is outside the world of {} ranks",
                                 from.value(), mesh.size()),
                     fmt::format("ranks are numbered from 0 to {}", mesh.size() - 1)};
  if (mesh.rank() != from) return;
  write_lines(out, text);
  out.flush();
}

void print_once(const Mesh& mesh, std::string_view text, Rank from) {
  print_once(std::cout, mesh, text, from);
}

void print_in_order(std::ostream& out, GroupCoordinator& group, std::string_view text) {
  const detail::CalledBy by{detail::GroupAccess::runtime(group),
                            detail::UserFunction::print_in_order};
  const auto texts = group.gather_v(text, 0);
  if (!group.is_first()) return;
  for (std::int64_t k = 0; k < group.size(); ++k)
    if (const auto one = texts[k]; !one.empty()) write_lines(out, {one.data(), one.size()});
  out.flush();
}

void print_in_order(GroupCoordinator& group, std::string_view text) {
  print_in_order(std::cout, group, text);
}

void print_in_order(std::ostream& out, Mesh& mesh, std::string_view text) {
  print_in_order(out, mesh["world"], text.empty() ? std::string{} : prefixed(mesh, text));
}

void print_in_order(Mesh& mesh, std::string_view text) { print_in_order(std::cout, mesh, text); }

}  // namespace rankmesh
