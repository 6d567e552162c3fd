// SPDX-License-Identifier: BSD-3-Clause
// Reads the config.json of models of Hugging Face.
#pragma once

#include <string_view>

#include "place/model.hpp"

namespace rankmesh::search {

/// Reads the figures of a Llama, Mixtral or DeepSeek-V3 model. The length of a sequence is the
/// greatest one of the model.
/// @throws SpecError that names the field that is missing, or the type of the model if another one.
[[nodiscard]] ModelFigures parse_hugging_face(std::string_view text, std::string_view origin);

}  // namespace rankmesh::search
