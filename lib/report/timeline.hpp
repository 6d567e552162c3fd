// SPDX-License-Identifier: BSD-3-Clause
// Draws records as a timeline, with one row per rank.
#pragma once

#include <span>
#include <string>

#include "rankmesh/record/record.hpp"
#include "report/write.hpp"

namespace rankmesh::report {

/// Writes the records of one mesh as JSON in the Trace Event Format, which https://ui.perfetto.dev
/// and chrome://tracing open.
///
/// - Every node is a process and every rank is a thread, sorted by coordinates. Asynchronous calls
///   overlap, so they have threads of their own below the thread of their rank.
/// - Every call is a complete event, whose arguments are its number, group, members, count, bytes,
///   type, carrier and state. A call that has not ended is drawn up to the time at which the record
///   was read, and its name says so.
/// - Calls whose times were not recorded are drawn between their neighbours. Their argument `time`
///   is `estimated`; for all other calls, it is `recorded`.
/// - Marks are instant events.
/// - Flow events lead from the last member of a collective to the others, and from sends to
///   receives. A flow event ends in a nested event of the call. This nested event begins when the
///   wait was over.
///
/// Times are in microseconds since the first event; `otherData` has the date on which the mesh was
/// opened. The events of a thread are sorted by time. For C calls this takes O(C log C) time and
/// O(C) memory; the text is written event by event.
/// @param records  the records of one mesh, preferably after record::align().
void write_trace_events(const Sink& sink, std::span<const record::Record> records);

/// Writes the records of one mesh as a page of HTML that needs no other file, no network and no
/// program other than a browser. The page shows the rows of the ranks with zoom and search, and the
/// call in which each rank is. For a selected call, it shows the calls of the other members.
///
/// All texts are data of the page and never become markup. For C calls this takes O(C log C) time
/// and O(C) memory.
/// @param records    the records of one mesh, preferably after record::align().
/// @param diagnosis sentences for the top of the page. They are red unless all of them begin with
/// `note: `.
void write_html(const Sink& sink, std::span<const record::Record> records,
                std::span<const std::string> diagnosis = {});

}  // namespace rankmesh::report
