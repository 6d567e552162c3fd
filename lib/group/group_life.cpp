// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/group/detail/group_life.hpp"

#include <fmt/format.h>

#include "detail/lifetime.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::detail {

GroupLife::GroupLife(const GroupCoordinator& group) : lifetime_{GroupAccess::lifetime(group)} {}

bool GroupLife::exists() const noexcept { return lifetime_ != nullptr && !lifetime_->is_over; }

void GroupLife::require(std::string_view object) const {
  if (exists()) return;
  if (lifetime_ == nullptr) refuse_moved(object);
  throw ClosedError{
      fmt::format("{} over '{}': the group is gone, because it or its mesh was destroyed", object,
                  lifetime_->name),
      fmt::format("destroy the {} before the mesh and the group", object)};
}

void GroupLife::refuse_moved(std::string_view object) {
  throw UsageError{fmt::format("this {} was moved to another one", object),
                   "use the object to which its contents were moved"};
}

}  // namespace rankmesh::detail
