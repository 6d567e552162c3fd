// SPDX-License-Identifier: BSD-3-Clause
#include "detail/text.hpp"

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {

void refuse_at(std::string_view text, std::size_t position, std::string_view reason,
               std::string_view hint) {
  throw SpecError{
      fmt::format("mesh '{}', position {}: {}", excerpt(text, position), position, reason),
      std::string{hint}, position};
}

}  // namespace rankmesh::detail
