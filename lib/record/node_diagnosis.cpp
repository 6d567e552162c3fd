// SPDX-License-Identifier: BSD-3-Clause
#include "detail/node_diagnosis.hpp"

#include <algorithm>
#include <exception>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/patience.hpp"
#include "base/detail/text.hpp"
#include "detail/processes.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/record/find.hpp"
#include "record/diagnosis.hpp"
#include "record/other_meshes.hpp"

namespace rankmesh::detail {
namespace {

using record::Finding;

// Reading the records of a node with many ranks may take longer; the remaining ranks are then left
// out.
constexpr std::size_t most_findings = 3;
// The report at the end of a job takes 8 KiB, and the message comes first.
constexpr std::size_t longest = 3000;

// Reads the records that the processes keep of a mesh. They may be in calls of other meshes.
std::vector<record::Record> records_of(const std::vector<std::int64_t>& processes,
                                       std::uint64_t mesh_key) {
  const Deadline limit{patience().diagnosis};
  std::vector<record::detail::OpenRecord> open;
  for (std::size_t p = 0; p < processes.size() && !limit.passed(); ++p)
    record::detail::add_open_records(processes[p], open);
  std::vector<record::Record> records;
  for (const record::Source& source : record::detail::without_repeats(std::move(open))) {
    if (limit.passed()) break;
    try {
      records.push_back(record::read(record::copy_observed(source), source.path));
    } catch (const Error&) {
      continue;  // the process has just ended
    }
  }
  record::add_waits_in_other_meshes(records);
  std::erase_if(records, [&](const auto& record) { return record.mesh_key != mesh_key; });
  return records;
}

// Returns what a finding says beyond the error; empty if it says nothing.
std::string text_of(const Finding& finding, AlreadySaid said) {
  if (finding.kind == Finding::Kind::no_record || finding.kind == Finding::Kind::progress)
    return "";
  if (said == AlreadySaid::missing) return finding.text;
  if (finding.severity != Finding::Severity::error) return "";
  if (finding.kind != Finding::Kind::circle) return finding.text;
  // The first sentence describes the circle, as the error does.
  const std::size_t end = finding.text.find(". ");
  return end == std::string::npos ? "" : finding.text.substr(end + 2);
}

std::string cut(std::string text) {
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + " ...";
}

}  // namespace

std::string diagnose_node(const Recorder& own, const std::vector<std::int64_t>& processes,
                          AlreadySaid said) noexcept {
  try {
    std::vector<std::string> sentences;
    for (const Finding& finding :
         record::diagnose(records_of(processes, own.mesh_key())).findings) {
      std::string text = text_of(finding, said);
      if (!text.empty() && sentences.size() < most_findings) sentences.push_back(std::move(text));
    }
    std::string text = cut(fmt::format("{}", fmt::join(sentences, " ")));
    if (const std::string& folder = own.folder(); !folder.empty())
      text += fmt::format("{} records of all ranks are in {}: meshinfo trace {}",
                          text.empty() ? "the" : " The", folder, folder);
    return text.empty() ? "" : std::string{diagnosis_mark} + text;
  } catch (const std::exception&) {
    return "";  // the error is more important
  }
}

}  // namespace rankmesh::detail
