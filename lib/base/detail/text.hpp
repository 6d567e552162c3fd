// Helpers for errors about text.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rankmesh::detail {

/// A few characters around `position`, unprintable ones as '?', cut ends as '...'.
std::string excerpt(std::string_view text, std::size_t position);

/// The candidate that is meant most likely (at most two edits away); empty where none is near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// "did you mean 'x'? " or nothing, then "<label>: a, b, c".
std::string suggest(std::string_view word, std::span<const std::string> candidates,
                    std::string_view label);

}  // namespace rankmesh::detail
