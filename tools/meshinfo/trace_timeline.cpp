// SPDX-License-Identifier: BSD-3-Clause
// trace -o: the timeline.
#include <algorithm>
#include <ostream>
#include <streambuf>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/record/alignment.hpp"
#include "report/timeline.hpp"
#include "trace.hpp"

namespace meshinfo {
namespace {

constexpr std::string_view events_ending = ".trace.json";
constexpr std::string_view page_ending = ".html";

// Passes what a stream gets to an Output, which reports errors and never leaves half a file.
class OutputBuffer : public std::streambuf {
 public:
  explicit OutputBuffer(Output& output) : output_{output} {}

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    output_.write({text, static_cast<std::size_t>(size)});
    return size;
  }
  int_type overflow(int_type character) override {
    const char byte = traits_type::to_char_type(character);
    if (!traits_type::eq_int_type(character, traits_type::eof())) output_.write({&byte, 1});
    return traits_type::not_eof(character);
  }

 private:
  Output& output_;
};

}  // namespace

bool is_timeline(const std::string& path) {
  return path.ends_with(events_ending) || path.ends_with(page_ending);
}

void write_timeline(const Records& records, const rankmesh::record::Diagnosis& diagnosis,
                    const std::string& path) {
  const auto other = std::ranges::find_if(records, [&](const rankmesh::record::Record& record) {
    return record.mesh_key != records.front().mesh_key;
  });
  if (other != records.end())
    throw rankmesh::UsageError{
        "the records belong to several meshes, and a timeline shows one",
        fmt::format("choose one with --mesh, for example --mesh {:016x}", other->mesh_key)};
  const Records aligned = rankmesh::record::align(records);
  Output output{path};
  OutputBuffer buffer{output};
  std::ostream stream{&buffer};
  stream.exceptions(std::ios::badbit);  // else the stream keeps the errors of the output
  if (path.ends_with(page_ending)) {
    std::vector<std::string> sentences;
    for (const auto& finding : diagnosis.findings)
      sentences.push_back(fmt::format("{}: {}", to_string(finding.severity), finding.text));
    rankmesh::report::write_html(stream, aligned, sentences);
  } else {
    rankmesh::report::write_trace_events(stream, aligned);
  }
  output.finish();
}

}  // namespace meshinfo
