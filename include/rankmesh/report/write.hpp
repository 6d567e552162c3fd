// SPDX-License-Identifier: BSD-3-Clause
// Writes documents as text, JSON, CSV or pictures.
#pragma once

#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

/// Writes a document piece by piece. A list of groups is written in pieces of at most 64
/// KiB.
/// @param style  how the text form looks; the other forms ignore it.
/// @throws UsageError if the format is a picture, but the document has none.
RANKMESH_API void write(const Document& document, Format format, const Sink& sink,
                        const TextStyle& style = {});

/// Returns the output of write() as a string.
RANKMESH_API std::string to_string(const Document& document, Format format,
                                   const TextStyle& style = {});

}  // namespace rankmesh::report
