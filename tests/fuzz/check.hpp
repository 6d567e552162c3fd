// SPDX-License-Identifier: BSD-3-Clause
// Properties that hold for every text of a mesh.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "rankmesh/spec/mesh_spec.hpp"

namespace fuzz {

/// Parses the text. If that succeeds, plans it on its own world and on the world size after the
/// last '#' of the input (`pp=2,tp=auto#8`; a mesh string never contains '#', and in TOML it begins
/// a comment). Ends the process with a message if anything but a SpecError is thrown, or if a plan
/// contradicts itself.
void check_input(std::string_view input,
                 const std::function<rankmesh::MeshSpec(std::string_view)>& parse);

}  // namespace fuzz

/// The function that libFuzzer and the replaying test call. Each target defines it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
