// SPDX-License-Identifier: BSD-3-Clause
// The page of write_html(). lib/report/page/embed generates the texts from the files beside it.
#pragma once

#include <string_view>

namespace rankmesh::report::detail {

extern const std::string_view page_head;  ///< The page up to its data.
extern const std::string_view page_tail;  ///< The page after its data.

}  // namespace rankmesh::report::detail
