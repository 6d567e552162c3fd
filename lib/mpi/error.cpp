// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/mpi/error.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace rankmesh::mpi {
namespace {

// Joins the lines of MPI's text, since messages are one line: MPICH describes an error by a stack
// of lines.
std::string on_one_line(std::string_view text) {
  std::string joined;
  for (const char c : text) {
    if (c != '\n')
      joined += c;
    else if (!joined.empty())
      joined += joined.back() == ':' ? " " : "; ";
  }
  const std::size_t last = joined.find_last_not_of("; \r");
  return joined.substr(0, last == std::string::npos ? 0 : last + 1);
}

// Whether calls of other lengths, or other calls, on other ranks can be the reason.
bool may_be_mismatch(int error_class) {
  return error_class == MPI_ERR_TRUNCATE || error_class == MPI_ERR_OTHER ||
         error_class == MPI_ERR_INTERN || error_class == MPI_ERR_UNKNOWN;
}

}  // namespace

void detail::fail(int code, const char* function, const std::source_location& where) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  // Open MPI returns some of its own codes, which are negative. Asking for their texts ends the
  // job.
  const bool is_known = code >= 0 && is_active();
  if (is_known) MPI_Error_string(code, text, &length);
  std::string_view file = where.file_name();
  file.remove_prefix(
      std::min(file.find("lib/") == std::string_view::npos ? 0 : file.rfind("lib/"), file.size()));
  int error_class = MPI_SUCCESS;
  if (is_known) MPI_Error_class(code, &error_class);
  throw MpiError{code,
                 fmt::format("{} failed: {} (code {}, {}:{})", function, on_one_line(text), code,
                             file, where.line()),
                 may_be_mismatch(error_class)
                     ? "if the calls of the ranks may differ, RANKMESH_CHECK=1 names the rank"
                     : ""};
}

void detail::refuse_after_finalize() {
  throw UsageError{"rankmesh is called after MPI_Finalize",
                   "close all meshes before MPI is finalised"};
}

bool is_active() {
  int initialised = 0;
  int finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  return initialised != 0 && finalised == 0;
}

}  // namespace rankmesh::mpi
