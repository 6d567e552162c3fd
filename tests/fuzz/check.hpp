// What must hold for every text that somebody may write as a mesh.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "rankmesh/spec/mesh_spec.hpp"

namespace fuzz {

/// Parses the text and, where that succeeds, plans it on its own world and on the one that stands
/// behind the last '#' of the input (`pp=2,tp=auto#8`; no mesh string has a '#', and in TOML it
/// begins a comment). Ends the process with a message where anything but a SpecError comes out, or
/// where a plan contradicts itself.
void check_input(std::string_view input,
                 const std::function<rankmesh::MeshSpec(std::string_view)>& parse);

}  // namespace fuzz

/// The entry that libFuzzer and the replaying test call; one definition per target.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
