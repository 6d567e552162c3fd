// SPDX-License-Identifier: BSD-3-Clause
#include "detail/recorder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/detail/file_size.hpp"
#include "base/detail/text.hpp"
#include "detail/open_records.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/hash.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rankmesh::detail {
namespace {

namespace format = record::format;

// Longer lists of ranks are left out. In this case, the records of the members show which ranks are
// in the group.
constexpr std::size_t longest_ranks = 8192;
constexpr std::size_t longest_ranks_of_wait = 700;
// The rest is for groups.
constexpr std::size_t most_of_sites = format::group_bytes / 2;
constexpr std::uint64_t sampled = (format::sampled_every - 1) * format::position_unit;

// Whether the frequency of the processor's counter is constant. In a virtual machine the question
// takes tens of microseconds.
bool ask_for_constant_counter() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

bool has_constant_counter() {
  static const bool answer = ask_for_constant_counter();
  return answer;
}

std::string file_of(const Recorder::Facts& facts, const std::string& folder) {
  return fmt::format("{}/{:016x}-rank{}{}", folder, facts.mesh_key, facts.rank.value(),
                     format::file_ending);
}

// Returns a descriptor of a file with the size of a record. The blocks of a file are allocated
// immediately. Otherwise a store to the mapped file could end the process when the disk is full.
int make_file(const Recorder::Facts& facts, const std::string& folder) {
  const std::string path = folder.empty() ? "" : file_of(facts, folder);
  // A file with this name is a leftover, or a link that another program has put there.
  if (!folder.empty()) ::unlink(path.c_str());
  const int descriptor =
      folder.empty() ? ::memfd_create(format::memory_name, MFD_CLOEXEC)
                     : ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                              S_IRUSR | S_IWUSR);
  int code = errno;
  if (descriptor >= 0) {
    code = ::fchmod(descriptor, S_IRUSR | S_IWUSR) != 0 ? errno : 0;
    if (code == 0 && !set_file_size(descriptor, format::total_bytes)) code = errno;
    if (code == 0 && !folder.empty())
      code = ::posix_fallocate(descriptor, 0, static_cast<off_t>(format::total_bytes));
    if (code == 0) return descriptor;
    ::close(descriptor);
    if (!folder.empty()) ::unlink(path.c_str());
  }
  throw Error{
      fmt::format("the record {} cannot be made: {}",
                  folder.empty() ? "in memory" : fmt::format("'{}'", path),
                  std::system_category().message(code)),
      "free memory or disk space, raise the limits (ulimit -n, -f), or set RANKMESH_RECORD=off"};
}

}  // namespace

Recorder::Recorder(const Facts& facts, const std::string& folder, bool has_all_times,
                   bool has_call_sites)
    : folder_{folder}, descriptor_{make_file(facts, folder)} {
  void* const memory =
      ::mmap(nullptr, format::total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) {
    const int code = errno;
    ::close(descriptor_);
    throw Error{
        fmt::format("the record cannot be mapped: {}", std::system_category().message(code)),
        "raise the limit of the address space, or set RANKMESH_RECORD=off"};
  }
  header_ = new (memory) format::Header{};
  header_->version = format::version;
  header_->byte_order = format::byte_order;
  header_->header_bytes = format::header_bytes;
  header_->entry_bytes = sizeof(format::Entry);
  header_->entry_count = format::entry_count;
  header_->group_bytes = format::group_bytes;
  header_->mesh_key = facts.mesh_key;
  header_->world_size = facts.world_size;
  header_->rank = facts.rank.value();
  header_->process_id = ::getpid();
  header_->process_start = facts.process.start_time;
  header_->process_namespace = facts.process.pid_namespace;
  std::ranges::copy(facts.boot, header_->boot);
  header_->opened_at = std::chrono::duration_cast<std::chrono::nanoseconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
  has_all_times |= has_call_sites;
  header_->has_all_times = has_all_times ? 1 : 0;
  header_->counter_is_clock = has_constant_counter() ? 0 : 1;
  header_->next = format::first_next;
  header_->time_mask = has_all_times ? 0 : sampled;
  if (has_call_sites) {
    call_sites_.emplace([this](const std::string& line) { return add_line(line, most_of_sites); });
    header_->call_sites = reinterpret_cast<std::uintptr_t>(&*call_sites_);
  }
  copy_text(header_->host, facts.host);
  copy_text(header_->coordinates, facts.coordinates);
  copy_text(header_->mesh, facts.mesh);
  for (std::size_t i = 0; i < std::min(facts.transports.size(), std::size(header_->transports));
       ++i)
    copy_text(header_->transports[i], facts.transports[i]);
  const CounterAndClock opened = read_counter_and_clock(*header_);
  header_->first.counter = opened.counter;
  header_->first.nanoseconds = opened.nanoseconds;
  stamp();
  // The magic is written last: a reader that finds it also finds all other fields.
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header_->magic, format::magic, sizeof header_->magic);
  add_open_record(*header_);
}

Recorder::~Recorder() {
  remove_open_record(*header_);
  ::munmap(header_, format::total_bytes);
  ::close(descriptor_);
}

Recording Recorder::recording_of(const std::shared_ptr<Recorder>& self, const std::string& identity,
                                 const std::vector<std::string>& names, const RankSet& ranks) {
  if (self == nullptr) return {};
  return {self->header_, self->group_number(identity, names, ranks) << format::group_shift, self};
}

// The groups are lines of JSON, because names of dynamic groups may hold any character.
std::uint64_t Recorder::group_number(const std::string& identity,
                                     const std::vector<std::string>& names, const RankSet& ranks) {
  // A group may be adopted again under the same name, and groups of one rank may have any name.
  // Equal groups get the same number on all members, because the members open them in the same
  // order.
  const std::string key = identity + "|" + ranks.to_string();
  const std::uint64_t repeated = equal_groups_[key]++;
  std::string members = ranks.to_string();
  if (members.size() > longest_ranks) members.clear();
  const std::string text = fmt::format(
      "{{\"identity\":\"{:016x}\",\"names\":{},\"ranks\":\"{}\",\"size\":{}}}\n",
      hash_bytes(fmt::format("{}|{}", key, repeated)).low,
      nlohmann::json(names).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), members,
      ranks.size());
  if (groups_ >= format::unknown_group || !add_line(text, format::group_bytes))
    return format::unknown_group;
  return groups_++;
}

bool Recorder::add_line(const std::string& text, std::size_t most) {
  const std::uint32_t used = header_->group_bytes_used.load(std::memory_order_relaxed);
  if (used + text.size() > most) return false;
  auto* const lines = reinterpret_cast<char*>(header_) + format::header_bytes +
                      format::entry_count * sizeof(format::Entry);
  std::ranges::copy(text, lines + used);
  header_->group_bytes_used.store(used + static_cast<std::uint32_t>(text.size()),
                                  std::memory_order_release);
  return true;
}

void note_call_site(const record::format::Header& header, record::format::Entry& entry) {
  auto& sites = *reinterpret_cast<CallSites*>(header.call_sites);
  entry.site.store(sites.number_of_caller(), std::memory_order_relaxed);
}

void Recorder::mark(std::string_view text) {
  char bytes[format::mark_bytes] = {};
  // A character of several bytes is not cut in two.
  std::size_t size = std::min(text.size(), sizeof bytes);
  while (size < text.size() && size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80)
    --size;
  std::memcpy(bytes, text.data(), size);
  std::uint64_t words[format::mark_bytes / 8];
  std::memcpy(words, bytes, sizeof words);
  CallDescriptor first;
  first.kind = format::mark_kind;
  first.detail = words[0];
  first.count = static_cast<std::int64_t>(words[1]);
  // A mark counts as complete only after end_entry(), when all its words are written.
  format::Entry& entry = add_entry(*header_, next_of(*header_), first, words[2]);
  entry.site.store(words[3], std::memory_order_relaxed);
  entry.begin.store(read_counter(*header_), std::memory_order_relaxed);
  end_entry(entry);
}

void Recorder::publish(const record::Wait& wait) {
  std::string members = wait.ranks.to_string();
  if (members.size() > longest_ranks_of_wait) members.clear();
  header_->wait.write(wait.ranks.empty() ? 0 : wait.point, monotonic_nanoseconds(),
                      members + "\n" + wait.text);
  stamp();
}

void Recorder::end_wait() { header_->wait.clear(); }

void Recorder::set_clock(std::int32_t node, std::int64_t offset, std::int64_t error) {
  header_->node = node;
  header_->clock_offset = offset;
  header_->clock_error = error;
}

void Recorder::leave(record::Presence how, std::string_view reason) {
  stamp();
  header_->reason.write(0, monotonic_nanoseconds(), reason);
  header_->presence.store(static_cast<std::uint32_t>(how), std::memory_order_release);
}

void Recorder::stamp() {
  const std::unique_lock lock{clock_, std::try_to_lock};
  if (!lock) return;  // the other thread does it
  const CounterAndClock now = read_counter_and_clock(*header_);
  format::ClockPair& pair = header_->last;
  const std::uint64_t version = pair.version.load(std::memory_order_relaxed);
  pair.version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  pair.counter.store(now.counter, std::memory_order_relaxed);
  pair.nanoseconds.store(now.nanoseconds, std::memory_order_relaxed);
  pair.version.store(version + 2, std::memory_order_release);
}

}  // namespace rankmesh::detail
