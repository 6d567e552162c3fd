// SPDX-License-Identifier: BSD-3-Clause
// trace --follow: prints repeatedly what a job does.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <ctime>

#include "rankmesh/base/error.hpp"
#include "report/reports.hpp"
#include "report/write.hpp"
#include "trace.hpp"

namespace rankmesh::meshinfo {
namespace {

// Running ranks relate their clocks several times per second. The job has ended if no record has
// changed for this time, in seconds.
constexpr double longest_silence = 2;

volatile std::sig_atomic_t is_interrupted = 0;

// Waits for some seconds, or until the user presses Ctrl-C.
void wait_for(double seconds) {
  timespec left{};
  left.tv_sec = static_cast<std::time_t>(seconds);
  left.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
  while (is_interrupted == 0 && ::nanosleep(&left, &left) != 0) {
  }
}

std::size_t screen_height() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 8) return 24;
  return size.ws_row;
}

// Whether the rank can still make calls. A process on another node may be alive.
bool goes_on(const record::Record& record) {
  return record.presence == record::Presence::open && record.process != record::Process::ended;
}

// Whether the read time of a record has changed. It never changes for copies, and for records of
// processes on other nodes that have ended.
bool have_changed(const Records& before, const Records& now) {
  return !std::ranges::equal(before, now, {}, &record::Record::read_at, &record::Record::read_at);
}

// Prints what each mesh does. Meshes that have ended are left out: the folder may have records of
// earlier jobs.
void print_meshes(const Records& before, const Records& now, std::size_t height,
                  const TraceOptions& options, Output& output) {
  std::vector<Records> meshes = record::by_mesh(now);
  std::erase_if(meshes, [](const Records& mesh) { return std::ranges::none_of(mesh, goes_on); });
  const std::size_t lines_between = std::min(height, meshes.size() - 1);
  for (const Records& mesh : meshes) {
    if (&mesh != &meshes.front() && options.output.chosen_format() == report::Format::text)
      output.write("\n");
    print(report::follow(before, mesh, (height - lines_between) / meshes.size()), options.output,
          output);
  }
}

// Returns nothing if the job has ended, and its records with it.
Records read_again(const TraceOptions& options) {
  try {
    return read_records(options);
  } catch (const UsageError&) {
    return {};
  }
}

}  // namespace

void follow(const TraceOptions& options) {
  const bool is_text = options.output.chosen_format() == report::Format::text;
  const bool redraws = is_text && ::isatty(STDOUT_FILENO) == 1;
  Output output{""};
  Records before = read_records(options);
  std::signal(SIGINT, [](int) { is_interrupted = 1; });
  double unchanged = 0;
  for (bool is_first = true;; is_first = false) {
    wait_for(*options.interval);
    if (is_interrupted != 0) return;
    Records now = read_again(options);
    unchanged = have_changed(before, now) ? 0 : unchanged + *options.interval;
    if (std::ranges::none_of(now, goes_on) || unchanged >= longest_silence) break;
    if (redraws)
      output.write("\x1b[H\x1b[J");  // to the corner, and clear the rest
    else if (is_text && !is_first)
      output.write("\n");
    print_meshes(before, now, redraws ? screen_height() - 1 : SIZE_MAX, options, output);
    before = std::move(now);
  }
  if (is_text)
    output.write(unchanged > 0 ? "The records do not change any more.\n" : "The job has ended.\n");
  output.finish();
}

}  // namespace rankmesh::meshinfo
