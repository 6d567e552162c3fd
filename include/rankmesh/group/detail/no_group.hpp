// SPDX-License-Identifier: BSD-3-Clause
// Parts of functions that do not compile, and say what to write instead.
#pragma once

namespace rankmesh {

class GroupCoordinator;

namespace detail {
/// Replaces the missing group in functions that do not compile. It is never called.
GroupCoordinator& no_group();
/// False. The value is known to the compiler only when a template is instantiated.
template <class>
inline constexpr bool never = false;
}  // namespace detail

}  // namespace rankmesh
