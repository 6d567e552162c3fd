// SPDX-License-Identifier: BSD-3-Clause
// Errors in mesh strings.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/detail/text.hpp"

namespace rankmesh::detail {

/// Throws a SpecError that shows the mesh string around `position`.
[[noreturn]] void refuse_at(std::string_view text, std::size_t position, std::string_view reason,
                            std::string_view hint);

}  // namespace rankmesh::detail
