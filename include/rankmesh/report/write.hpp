// The writers of documents, one per form.
#pragma once

#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

/// Writes a document piece by piece. At most 64 KiB are held back where it lists groups.
/// @param colour  whether text may hold ANSI escapes.
RANKMESH_API void write(const Document& document, Format format, const Sink& sink,
                        bool colour = false);

/// Returns what write() writes.
RANKMESH_API std::string to_string(const Document& document, Format format, bool colour = false);

}  // namespace rankmesh::report
