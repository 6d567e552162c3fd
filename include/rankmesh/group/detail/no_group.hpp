// SPDX-License-Identifier: BSD-3-Clause
// Parts of functions that do not compile, and say what to write instead.
#pragma once

namespace rankmesh {

class GroupCoordinator;

namespace detail {
/// Stands for the group that is missing. It is never called: a static_assert has failed before.
GroupCoordinator& no_group();
/// False, but only known where a template is instantiated.
template <class>
inline constexpr bool never = false;
}  // namespace detail

}  // namespace rankmesh
